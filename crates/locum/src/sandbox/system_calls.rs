//! Which system calls a command may not make. The list names what changes the machine, reaches around the other
//! restrictions, or has more power than a build or a test needs; everything else is allowed.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::Level;

/// Refused whatever their arguments are.
const REFUSED: &[libc::c_long] = &[
    // Other namespaces and other views of files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_lookup_dcookie,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// Answered as if the kernel did not know them: programs then use older calls, whose arguments can be judged.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Flags of `clone` that make a namespace.
const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME
];

/// The bits of a file's mode that make it give its owner's or group's rights to whoever runs it.
const PRIVILEGED_MODES: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// Requests that type into, or take over, a terminal: TIOCSTI and TIOCLINUX.
const TERMINAL_REQUESTS: [u64; 2] = [0x5412, 0x541c];

/// Socket families that stay inside a network namespace without interfaces.
const LOCAL_FAMILIES: [libc::c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Numbers from here on are calls in another convention that the kernel may know: the same calls under other numbers.
const OTHER_CONVENTION: u32 = 0x4000_0000;

/// Restricts this process and all that it starts. It must not be allowed to gain privileges any more.
pub(super) fn apply(level: Level) -> Result<(), String> {
    let broken = |error: seccompiler::BackendError| format!("the filter of system calls cannot be built: {error}");
    let refused = program(refused(level).map_err(broken)?, libc::EPERM).map_err(broken)?;
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    let unknown = program(unknown, libc::ENOSYS).map_err(broken)?;
    let ignored = match level {
        Level::Landlock => vec![libc::SYS_fchmod],
        Level::Full | Level::None => Vec::new(),
    };
    let ignored = program(ignored.into_iter().map(|call| (call, Vec::new())).collect(), 0).map_err(broken)?;
    for filter in [ignored, unknown, refused] {
        apply_filter(&filter).map_err(|error| format!("system calls cannot be filtered (seccomp): {error}"))?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused(level: Level) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut refuse = |call: libc::c_long, conditions: Vec<Condition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::BackendError>(())
    };
    for flag in NEW_NAMESPACES {
        refuse(libc::SYS_clone, vec![has_bits(0, flag as u64)?])?;
    }
    for request in TERMINAL_REQUESTS {
        refuse(libc::SYS_ioctl, vec![Condition::new(1, Length::Dword, Compare::Eq, request)?])?;
    }
    for mode in PRIVILEGED_MODES {
        for (call, argument) in MODE_ARGUMENTS {
            refuse(*call, vec![has_bits(*argument, mode)?])?;
        }
        for (call, argument) in OPEN_ARGUMENTS {
            for creating in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                refuse(*call, vec![has_bits(*argument, creating as u64)?, has_bits(argument + 1, mode)?])?;
            }
        }
    }
    match level {
        Level::Full => {
            let others: Result<Vec<Condition>, _> = LOCAL_FAMILIES
                .iter()
                .map(|family| Condition::new(0, Length::Dword, Compare::Ne, *family as u64))
                .collect();
            refuse(libc::SYS_socket, others?)?;
        }
        Level::Landlock | Level::None => {
            for (call, argument) in PROCESS_ARGUMENTS {
                refuse(*call, vec![Condition::new(*argument, Length::Dword, Compare::Ne, 0)?])?;
            }
            // Only a change by path; one through an open file needs the file to be open.
            refuse(libc::SYS_utimensat, vec![Condition::new(1, Length::Qword, Compare::Ne, 0)?])?;
            rules.extend(WITHOUT_MOUNTS.iter().map(|call| (*call, Vec::new())));
        }
    }
    Ok(rules)
}

/// Refused where nothing but Landlock restricts files: it does not judge changes of modes, owners, times and attributes.
/// Without a network namespace there is no socket that stays inside; pairs of sockets still do.
///
/// `fchmod` is not among them: too many programs copy files with it. It is answered as if it had been done.
const WITHOUT_MOUNTS: &[libc::c_long] = &[
    libc::SYS_socket,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Calls that change another process, and the argument that names it; zero is the caller. Without a process namespace
/// the others are within reach.
const PROCESS_ARGUMENTS: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

/// Calls that set a file's mode, and the argument that is it.
const MODE_ARGUMENTS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
];

/// Calls that open a file, and the argument with their flags; the mode comes after it.
const OPEN_ARGUMENTS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

fn has_bits(argument: u8, bits: u64) -> Result<Condition, seccompiler::BackendError> {
    Condition::new(argument, Length::Dword, Compare::MaskedEq(bits), bits)
}

fn program(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?;
    Ok(one_convention().into_iter().chain(program).collect())
}

/// Ends a process that calls the kernel in another convention, before anything else is looked at.
fn one_convention() -> [sock_filter; 3] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    [
        // The number of the call is the first word of what a filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, OTHER_CONVENTION),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}
