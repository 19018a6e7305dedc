//! What a command may use up. These limits hold for each process; how many processes there may be is limited for all of
//! a namespace together, because the kernel does not count root's.

use locum_core::limits;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Level;
use super::order::Order;

/// Applies the limits to this process and all that it starts.
pub(super) fn apply(order: &Order) -> Result<(), String> {
    let mut bounds = vec![
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_CPU, limits::COMMAND_CPU_SECONDS_MAX),
        (Resource::RLIMIT_DATA, limits::COMMAND_MEMORY_BYTES_MAX),
        (Resource::RLIMIT_FSIZE, limits::COMMAND_FILE_BYTES_MAX),
    ];
    match order.level {
        // Only a new user namespace counts the processes of this command alone.
        Level::Full => bounds.push((Resource::RLIMIT_NPROC, limits::COMMAND_PROCESSES_MAX)),
        Level::Landlock => {}
        Level::None => return Ok(()),
    }
    for (resource, most) in bounds {
        let (_, hard) = getrlimit(resource).map_err(|error| format!("a limit cannot be read: {error}"))?;
        let most = most.min(hard);
        setrlimit(resource, most, most).map_err(|error| format!("the limit {resource:?} cannot be set: {error}"))?;
    }
    Ok(())
}
