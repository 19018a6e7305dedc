//! The system calls that have no safe wrapper: the one file of the workspace with unsafe code. It is used by the
//! launcher alone, which has one thread.
#![expect(
    unsafe_code,
    reason = "fork, capabilities, signals and mounts have no safe wrapper; each call says why it is sound"
)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::unistd::{ForkResult, Pid};

/// The highest capability that any kernel may know; asking for one beyond its last is answered with an error.
const CAPABILITY_MAX: libc::c_ulong = 63;

/// Splits this process. `child` runs in the new one, which ends with the code that it returns.
pub(super) fn fork(child: impl FnOnce() -> i32) -> nix::Result<Pid> {
    // SAFETY: the launcher has one thread, so no lock can be held by another one at this moment.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = child();
            // SAFETY: ends this process at once; nothing of the parent's is run or flushed twice.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Whether mounts may be changed below a path, and what by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountChange {
    /// Nothing can be written, no file gives privileges, no file is a device.
    ReadOnly,
    /// No file gives privileges, no file is a device.
    Plain,
}

/// Narrows a mount and all mounts below it.
pub(super) fn narrow_mounts(path: &Path, change: MountChange) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let plain = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let attributes = libc::mount_attr {
        attr_set: match change {
            MountChange::ReadOnly => plain | libc::MOUNT_ATTR_RDONLY,
            MountChange::Plain => plain,
        },
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path and the structure outlive the call, and the size is the structure's own.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives up every capability, also those that a program would get because root runs it.
pub(super) fn drop_capabilities() -> io::Result<()> {
    // No root: SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP, SECBIT_NO_CAP_AMBIENT_RAISE, each with its lock.
    const SECURE_BITS: libc::c_ulong = 0b1100_1111;
    // SAFETY: these calls take numbers only.
    unsafe {
        for capability in 0..=CAPABILITY_MAX {
            // Those that the kernel does not know are refused, which is as good.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        // Without the capability to do this, the process has none that the bits would keep from it.
        libc::prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0);
    }
    /// The kernel's version 3 of the header and two rows of data.
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [[0_u32; 3]; 2];
    // SAFETY: both structures have the layout of version 3 and outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signals do what they do in a new program: Rust ignores broken pipes, and shells expect them to end a program.
pub(super) fn default_signals() {
    for signal in [libc::SIGPIPE, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// No open file but the three standard ones survives into the command.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: marks descriptors; none is closed while this program still uses it.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Switches the loopback interface of a new network namespace on: tests of servers need it.
pub(super) fn loopback_up() -> io::Result<()> {
    // SAFETY: a socket that is closed again below; the request has the layout and the length that the call expects,
    // and its name ends with a zero.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let result = libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request);
        let error = io::Error::last_os_error();
        libc::close(socket);
        if result == 0 { Ok(()) } else { Err(error) }
    }
}

/// The standard files of a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standard {
    /// Where the order comes from; its end says that the command is no longer wanted.
    Order = 0,
    /// Where the report goes.
    Report = 1,
    /// Where the command's output goes.
    Output = 2,
}

/// One of the three standard files.
pub(super) fn standard(file: Standard) -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: a launcher is started with all three and never closes one.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(file as i32) }
}
