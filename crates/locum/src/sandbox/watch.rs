//! Staying with a command until nothing of it is left: it ends by itself, or is asked to end, or is ended.
//!
//! The launcher's standard input stays open as long as somebody wants the command. Its end, be it a stop or the death
//! of the process that asked, is what ends the command: TERM, a grace period, KILL.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::order::{End, Report};
use super::raw::{Standard, standard};

/// Who belongs to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Everyone {
    /// Every process of the namespace whose first process this is.
    InNamespace,
    /// Every process below this one, which inherits those whose parents have ended.
    Below,
}

/// Whether the command is still wanted.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Yes,
    /// It was asked to end, and is ended then.
    Until(Instant),
    /// It is being ended.
    No,
}

/// Says how it went. The first thing said is what counts.
pub(super) fn tell(to: BorrowedFd<'_>, report: &Report) {
    let line = serde_json::to_string(report).unwrap_or_default() + "\n";
    // Whoever does not listen any more has nothing to be told.
    nix::unistd::write(to, line.as_bytes()).ok();
}

/// Keeps the news of children until [`watch`] listens. It must be called before the first child is started.
pub(super) fn hear_children() -> Result<(), String> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block().map_err(|error| format!("signals cannot be held back: {error}"))
}

/// Waits until the command has ended, and ends everyone that it left behind.
pub(super) fn watch(command: Pid, everyone: Everyone, grace_ms: u64) -> End {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    let Ok(children) = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC) else {
        end(command, everyone, Signal::SIGKILL);
        return End::Refused("the command cannot be watched".to_owned());
    };
    let mut wanted = Wanted::Yes;
    let mut ended = None;
    loop {
        let left = reap(command, &mut ended);
        match (wanted, &ended) {
            (_, Some(end)) if left == Left::Nobody => return end.clone(),
            // What a command leaves behind is not wanted any more.
            (Wanted::Yes, Some(_)) => wanted = Wanted::No,
            (Wanted::Until(at), _) if at <= Instant::now() => wanted = Wanted::No,
            (Wanted::Yes | Wanted::Until(_) | Wanted::No, _) => {}
        }
        if let (Wanted::No, Everyone::InNamespace, Some(end)) = (wanted, everyone, &ended) {
            // The kernel ends everyone else with this process.
            return end.clone();
        }
        if matches!(wanted, Wanted::No) {
            end(command, everyone, Signal::SIGKILL);
        }
        if wait(wanted, &children) == Heard::Unwanted && matches!(wanted, Wanted::Yes) {
            end(command, everyone, Signal::SIGTERM);
            end(command, everyone, Signal::SIGCONT);
            wanted = Wanted::Until(Instant::now() + Duration::from_millis(grace_ms));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}

/// Takes the remains of children away, and keeps how the command ended.
fn reap(command: Pid, ended: &mut Option<End>) -> Left {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => *ended = Some(End::Exit(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => *ended = Some(End::Signal(signal as i32)),
            Ok(WaitStatus::StillAlive) => return Left::Somebody,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Left::Nobody,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// Nobody wants the command any more.
    Unwanted,
    /// Something else happened, or the time is over.
    Other,
}

/// Waits for the next thing to look at.
fn wait(wanted: Wanted, children: &SignalFd) -> Heard {
    let child = PollFd::new(children.as_fd(), PollFlags::POLLIN);
    let asker = PollFd::new(standard(Standard::Order), PollFlags::POLLIN);
    let (mut fds, timeout) = match wanted {
        Wanted::Yes => (vec![child, asker], PollTimeout::NONE),
        Wanted::Until(at) => {
            let left = at.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            (vec![child], PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))
        }
        // A new orphan may arrive at any moment: look again soon.
        Wanted::No => (vec![child], PollTimeout::from(10_u8)),
    };
    if poll(&mut fds, timeout).is_err() {
        return Heard::Other;
    }
    // The signal only wakes; what happened is asked of the kernel.
    while let Ok(Some(_)) = children.read_signal() {}
    let said = fds.get(1).and_then(PollFd::any).unwrap_or(false);
    let mut byte = [0; 1];
    match said && matches!(nix::unistd::read(standard(Standard::Order), &mut byte), Ok(0) | Err(_)) {
        true => Heard::Unwanted,
        false => Heard::Other,
    }
}

/// Sends a signal to everyone of a command, and to nobody else.
fn end(command: Pid, everyone: Everyone, signal: Signal) {
    match everyone {
        Everyone::InNamespace => {
            // For the first process of a namespace, this is everyone in it but itself.
            kill(Pid::from_raw(-1), signal).ok();
        }
        Everyone::Below => {
            // Its group exists as long as the command was not reaped, which ends the asking and begins the ending.
            if signal != Signal::SIGKILL {
                nix::sys::signal::killpg(command, signal).ok();
            }
            // A child of this process keeps its id until this process has reaped it.
            for child in children() {
                kill(child, signal).ok();
            }
        }
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in it may contain anything; the parent is the second word after it.
        line.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)) == Some(own.as_str())
    };
    pids.filter(is_child).map(Pid::from_raw).collect()
}
