//! The last steps of a launcher: give up every right that the command must not have, then become the command.

use std::ffi::CString;
use std::os::fd::BorrowedFd;

use nix::fcntl::{OFlag, open};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execvpe, setsid};

use super::order::{End, Order, StandardFiles};
use super::watch::{hear_children, tell};
use super::{Level, file_rules, raw, rlimits, system_calls};

/// The exit code of a process that did not become the command; the report says why.
const NOT_STARTED: i32 = 126;

/// Starts the command in a session of its own.
pub(super) fn start(order: &Order, telling: BorrowedFd<'_>) -> Result<Pid, String> {
    hear_children()?;
    raw::fork(|| {
        let Err(why) = become_command(order);
        tell(telling, &End::Refused(why).into());
        NOT_STARTED
    })
    .map_err(|error| format!("the command cannot be started: {error}"))
}

fn become_command(order: &Order) -> Result<std::convert::Infallible, String> {
    let text = |error: std::ffi::NulError| format!("a zero byte cannot be part of a command: {error}");
    let strings = |texts: Vec<String>| texts.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>().map_err(text);
    let arguments = strings(order.program.clone())?;
    let variables = strings(order.variables.iter().map(|(name, value)| format!("{name}={value}")).collect())?;
    let program = arguments.first().ok_or("there is no command")?;
    standard_files(order)?;
    setsid().map_err(|error| format!("no session can be made: {error}"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("the launcher's end cannot be noticed: {error}"))?;
    chdir(&order.directory)
        .map_err(|error| format!("the working directory {} cannot be entered: {error}", order.directory.display()))?;
    raw::close_on_exec().map_err(|error| format!("open files cannot be closed: {error}"))?;
    rlimits::apply(order)?;
    restrict(order)?;
    raw::default_signals();
    SigSet::empty().thread_set_mask().map_err(|error| format!("signals cannot be let through: {error}"))?;
    execvpe(program, &arguments, &variables)
        .map_err(|error| format!("{} cannot be started: {error}", order.program.first().map_or("", String::as_str)))
}

/// Opens what the command reads and writes, before it is restricted.
fn standard_files(order: &Order) -> Result<(), String> {
    let failed = |error: nix::errno::Errno| format!("the standard files cannot be set up: {error}");
    let stream = raw::standard(raw::Standard::Output);
    match order.files {
        StandardFiles::Output => {
            let nothing = open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed)?;
            dup2_stdin(&nothing).map_err(failed)?;
            dup2_stdout(stream).map_err(failed)
        }
        StandardFiles::Conversation => {
            let place = order.complaints_inside();
            let complaints = open(&place, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed)?;
            dup2_stdin(stream).map_err(failed)?;
            dup2_stdout(stream).map_err(failed)?;
            dup2_stderr(&complaints).map_err(failed)
        }
    }
}

fn restrict(order: &Order) -> Result<(), String> {
    match order.level {
        Level::Full | Level::Landlock => {
            set_no_new_privs().map_err(|error| format!("privileges cannot be given up: {error}"))?;
            raw::drop_capabilities().map_err(|error| format!("capabilities cannot be given up: {error}"))?;
            file_rules::apply(order)?;
            system_calls::apply(order.level)
        }
        Level::None => Ok(()),
    }
}
