//! The files that a command sees: a new root, built from mounts of what it may see and nothing else.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use locum_core::limits::COMMAND_PROCESSES_MAX;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::hiding::{DEVICES, OUTPUTS, SECRETS, SYSTEM};
use super::order::Order;
use super::protected::{self, Name, Use};
use super::raw::{MountChange, narrow_mounts};

/// Bytes of what a command writes into its empty home or into shared memory: caches, not data.
const EMPTY_BYTES: &str = "size=1g,mode=700";

/// One place in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    content: Content,
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// What is outside at this path, not to be changed.
    Readable(PathBuf),
    /// What is outside at this path.
    Writable(PathBuf),
    /// What is at the place already, taken from this path and narrowed, so that it cannot be moved.
    Held(PathBuf, MountChange),
    /// A device.
    Device(PathBuf),
    /// Nothing yet.
    Empty,
    /// Nothing, whatever is outside.
    Hidden,
    /// The processes of this namespace.
    Processes,
}

/// Builds the view and makes it this process's root. What fails is a sentence: nothing may run then.
pub(super) fn enter(order: &Order, protected: &[Name]) -> Result<(), String> {
    let view = order.view();
    let none: Option<&str> = None;
    // What is mounted from here on is nobody else's.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(|error| said("/", error))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), &view, Some("tmpfs"), plain, Some("size=1m,mode=755"))
        .map_err(|error| said("the root of the view", error))?;
    links(&view)?;
    for place in places(order, protected) {
        put(&view, &place).map_err(|error| said(&place.path.display().to_string(), error))?;
    }
    let only_read = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | plain;
    mount(none, &view, none, only_read, none).map_err(|error| said("the root of the view", error))?;
    nix::unistd::chdir(&view).map_err(|error| said("the root of the view", error))?;
    // The old root ends up on top of the new one, and is taken away from there.
    nix::unistd::pivot_root(".", ".").map_err(|error| said("the new root", error))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(|error| said("the old root", error))?;
    nix::unistd::chdir("/").map_err(|error| said("the new root", error))
}

fn said(what: &str, error: impl std::fmt::Display) -> String {
    format!("{what} cannot be mounted in a namespace of its own: {error}")
}

/// Every place, those that others are below first.
fn places(order: &Order, protected: &[Name]) -> Vec<Place> {
    let place = |path: &Path, content: Content| Place { path: path.to_owned(), content };
    let mut places = Vec::new();
    for path in SYSTEM.map(Path::new).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        places.push(place(path, Content::Readable(path.to_owned())));
    }
    places.push(place(Path::new("/proc"), Content::Processes));
    places.push(place(Path::new("/dev/shm"), Content::Empty));
    for path in DEVICES.map(Path::new) {
        places.push(place(path, Content::Device(path.to_owned())));
    }
    for path in ["/tmp", "/var/tmp"] {
        places.push(place(Path::new(path), Content::Writable(order.temporary())));
    }
    places.push(place(Path::new(OUTPUTS), Content::Readable(order.outputs())));
    places.extend(order.home.iter().map(|home| place(home, Content::Empty)));
    places.extend(order.toolchains.iter().map(|path| place(path, Content::Readable(path.clone()))));
    places.extend(order.repository.iter().map(|path| place(path, Content::Readable(path.clone()))));
    places.push(place(&order.root, Content::Writable(order.root.clone())));
    places.extend(protected.iter().map(|name| match name.allowed {
        Use::Read | Use::Follow => place(&name.path, Content::Held(name.source(), MountChange::ReadOnly)),
        Use::Stay => place(&name.path, Content::Held(name.source(), MountChange::Plain)),
    }));
    let secrets = SECRETS.map(PathBuf::from);
    places.extend(order.hidden.iter().chain(&secrets).map(|path| place(path, Content::Hidden)));
    // A sort that keeps the order of equals: of two at one place, the later one is seen.
    places.sort_by_key(|place| place.path.components().count());
    places
}

fn put(view: &Path, place: &Place) -> nix::Result<()> {
    let none: Option<&str> = None;
    let target = view.join(place.path.strip_prefix("/").unwrap_or(&place.path));
    let bind = |source: &Path| mount(Some(source), &target, none, MsFlags::MS_BIND | MsFlags::MS_REC, none);
    let narrow = |change| narrow_mounts(&target, change).map_err(|error| errno(&error));
    let memory = |options: &str| {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), &target, Some("tmpfs"), flags, Some(options))
    };
    match &place.content {
        Content::Readable(source) => {
            make_room(source, &target)?;
            bind(source)?;
            narrow(MountChange::ReadOnly)
        }
        Content::Writable(source) => {
            make_room(source, &target)?;
            bind(source)?;
            narrow(MountChange::Plain)
        }
        Content::Held(source, change) => {
            // By its path, a link would be followed, and what is gone meanwhile would be made again.
            let there = match protected::open(&target) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                there => there.map_err(|error| errno(&error))?,
            };
            let there = format!("/proc/self/fd/{}", there.as_raw_fd());
            mount(Some(source), there.as_str(), none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
            narrow(*change)
        }
        Content::Device(source) => {
            make_room(source, &target)?;
            bind(source)
        }
        Content::Empty => {
            make_directory(&target)?;
            memory(EMPTY_BYTES)
        }
        Content::Hidden => match fs::symlink_metadata(&target) {
            Err(_) => Ok(()),
            Ok(found) if found.is_dir() => {
                memory("size=4k,mode=755")?;
                narrow(MountChange::ReadOnly)
            }
            Ok(found) if found.is_symlink() => Ok(()),
            Ok(_) => {
                bind(Path::new("/dev/null"))?;
                narrow(MountChange::ReadOnly)
            }
        },
        Content::Processes => {
            make_directory(&target)?;
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some("proc"), &target, Some("proc"), flags, none)?;
            // Kernels before 6.14 have one number for the whole machine and refuse it here.
            fs::write(target.join("sys/kernel/pid_max"), COMMAND_PROCESSES_MAX.to_string()).ok();
            // Root owns files here through which it could change the whole machine.
            narrow(MountChange::ReadOnly)
        }
    }
}

/// Makes what something can be mounted on, where nothing is.
fn make_room(source: &Path, target: &Path) -> nix::Result<()> {
    if source.is_dir() {
        return make_directory(target);
    }
    if target.exists() {
        return Ok(());
    }
    target.parent().map_or(Ok(()), make_directory)?;
    fs::File::create(target).map(drop).map_err(|error| errno(&error))
}

fn make_directory(path: &Path) -> nix::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(|error| errno(&error))
}

/// The names that are links in the system's own root, and those that programs expect among the devices.
fn links(view: &Path) -> Result<(), String> {
    let link = |target: &Path, name: &str| symlink(target, view.join(name)).map_err(|error| said(name, error));
    for path in SYSTEM.map(Path::new).into_iter().filter(|path| path.is_symlink()) {
        let target = fs::read_link(path).map_err(|error| said(&path.display().to_string(), error))?;
        link(&target, path.to_string_lossy().trim_start_matches('/'))?;
    }
    make_directory(&view.join("dev")).map_err(|error| said("/dev", error))?;
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        link(Path::new(&format!("/proc/self/fd{target}")), &format!("dev/{name}"))?;
    }
    Ok(())
}

fn errno(error: &std::io::Error) -> nix::errno::Errno {
    nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
