//! The level `full`: namespaces of its own for users, files, processes, network and the rest.
//!
//! Two processes stand around a command. The outer one stays in the old process namespace and reports; the inner one is
//! the first process of the new one. When it ends, the kernel ends all others in there, whatever they did.

use std::fs;
use std::os::fd::AsFd as _;

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{getgid, getuid, pipe2};

use super::order::{End, Order, Report};
use super::protected::Name;
use super::sentry::Sentry;
use super::watch::{Everyone, tell, watch};
use super::{command, entrance, protected, raw, view};

/// Runs the command in namespaces of its own.
pub(super) fn run(order: &Order) -> Result<Report, String> {
    // It listens before anybody looks, so that it hears of what is moved away in between.
    let mut sentry = Sentry::new(&order.root)?;
    let protected = protected::hold(&order.root)?;
    if order.has_sentry {
        sentry.watch_over(protected.vacant.clone(), protected.occupied());
    }
    enter()?;
    let (report, telling) = pipe2(OFlag::O_CLOEXEC).map_err(|error| format!("no pipe can be made: {error}"))?;
    let first = raw::fork(|| first_process(order, &protected.names, telling.as_fd()))
        .map_err(|error| format!("no process can be started in a namespace of its own: {error}"))?;
    drop(telling);
    let said = sentry.watch_until_end(&report, first);
    // Reading ends when the first process does; this takes its remains away.
    waitpid(first, None).map_err(|error| format!("the sandbox was lost: {error}"))?;
    drop(protected);
    let line = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let silent = || match sentry.has_ended_it() {
        true => End::Signal(Signal::SIGKILL as i32).into(),
        false => End::Refused("the sandbox ended without saying how its command did".to_owned()).into(),
    };
    let report: Report = serde_json::from_slice(line).unwrap_or_else(|_| silent());
    Ok(Report { notes: sentry.finish(), ..report })
}

/// Leaves the namespaces of the system. The user stays who it is, without any right over what is outside.
fn enter() -> Result<(), String> {
    let (user, group) = (getuid(), getgid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(all).map_err(|error| {
        format!("namespaces are not available ({error}); see user.max_user_namespaces and the rules of AppArmor")
    })?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("the user cannot be mapped into a namespace ({file}): {error}"))?;
    }
    Ok(())
}

/// The first process of the namespace: makes the view, starts the command and stays until it has ended.
fn first_process(order: &Order, protected: &[Name], telling: std::os::fd::BorrowedFd<'_>) -> i32 {
    let started = || {
        set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("the launcher's end cannot be noticed: {error}"))?;
        // The outer process keeps the system's files: it has names in the project to give back.
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("files cannot be shown in another way: {error}"))?;
        let protected = protected.iter().filter_map(|name| name.again().transpose()).collect::<Result<Vec<_>, _>>()?;
        view::enter(order, &protected)?;
        raw::loopback_up().map_err(|error| format!("the loopback interface cannot be switched on: {error}"))?;
        if order.has_entrance {
            entrance::hand_out().map_err(|error| format!("the network's entrance cannot be opened: {error}"))?;
        }
        // The command must not look into this process.
        set_dumpable(false).map_err(|error| format!("the launcher cannot be closed to the command: {error}"))?;
        command::start(order, telling)
    };
    match started() {
        Ok(command) => tell(telling, &watch(command, Everyone::InNamespace, order.grace_ms).into()),
        Err(why) => tell(telling, &End::Refused(why).into()),
    }
    0
}
