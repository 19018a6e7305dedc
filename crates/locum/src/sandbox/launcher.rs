//! The launcher: this program started again, to shut itself in and become a command. It has one thread, reads one
//! order, and writes one report.

/// The argument with which a launcher is started.
pub(crate) const ARGUMENT: &str = "__launch";

/// Does a launcher's work.
#[cfg(target_os = "linux")]
pub(crate) fn run() {
    let report = linux::read_order().and_then(|order| linux::obey(&order));
    let report = report.unwrap_or_else(|why| super::End::Refused(why).into());
    super::watch::tell(super::raw::standard(super::raw::Standard::Report), &report);
}

/// There is no sandbox on this system; nothing asks for one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Read as _;
    use std::os::fd::AsFd as _;

    use nix::fcntl::OFlag;
    use nix::sys::prctl::set_child_subreaper;
    use nix::unistd::pipe2;

    use crate::sandbox::order::{Order, Report};
    use crate::sandbox::raw::{Standard, standard};
    use crate::sandbox::watch::{Everyone, watch};
    use crate::sandbox::{Level, command, namespaces};

    /// The longest order that a launcher reads.
    const ORDER_BYTES_MAX: usize = 16 * 1024 * 1024;

    /// Reads the order: its length in four bytes, then itself. What comes after it is the end, some day.
    pub(super) fn read_order() -> Result<Order, String> {
        let mut length = [0; 4];
        fill(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > ORDER_BYTES_MAX {
            return Err("the launcher's order is too long".to_owned());
        }
        let mut text = vec![0; length];
        fill(&mut text)?;
        serde_json::from_slice(&text).map_err(|error| format!("the launcher's order cannot be read: {error}"))
    }

    fn fill(bytes: &mut [u8]) -> Result<(), String> {
        let mut read = 0;
        while read < bytes.len() {
            match nix::unistd::read(standard(Standard::Order), &mut bytes[read..]) {
                Ok(0) => return Err("the launcher's order is cut short".to_owned()),
                Ok(count) => read += count,
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(format!("the launcher's order cannot be read: {error}")),
            }
        }
        Ok(())
    }

    pub(super) fn obey(order: &Order) -> Result<Report, String> {
        match order.level {
            Level::Full => namespaces::run(order),
            Level::Landlock | Level::None => without_namespaces(order),
        }
    }

    /// Runs the command below this process, which inherits whatever the command leaves behind and ends it.
    fn without_namespaces(order: &Order) -> Result<Report, String> {
        set_child_subreaper(true).map_err(|error| format!("processes cannot be kept together: {error}"))?;
        let (refusal, telling) = pipe2(OFlag::O_CLOEXEC).map_err(|error| format!("no pipe can be made: {error}"))?;
        let command = command::start(order, telling.as_fd())?;
        drop(telling);
        let end = watch(command, Everyone::Below, order.grace_ms);
        let mut said = String::new();
        // Nothing in it means that the command was started.
        std::fs::File::from(refusal).read_to_string(&mut said).ok();
        Ok(said.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| end.into()))
    }
}
