//! The level `full`: namespaces of its own for users, files, processes, network and the rest.
//!
//! Two processes stand around a command. The outer one stays in the old process namespace and reports; the inner one is
//! the first process of the new one. When it ends, the kernel ends all others in there, whatever they did.

use std::fs;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{getgid, getuid, pipe2};

use super::order::{Order, Report};
use super::protected::Name;
use super::watch::{Everyone, tell, watch};
use super::{command, entrance, protected, raw, view};

/// Runs the command in namespaces of its own.
pub(super) fn run(order: &Order) -> Result<Report, String> {
    let protected = protected::hold(&order.root)?;
    enter()?;
    let (report, telling) = pipe2(OFlag::O_CLOEXEC).map_err(|error| format!("no pipe can be made: {error}"))?;
    let first = raw::fork(|| first_process(order, &protected.names, telling.as_fd()))
        .map_err(|error| format!("no process can be started in a namespace of its own: {error}"))?;
    drop(telling);
    let said = read(report);
    // Reading ends when the first process does; this takes its remains away.
    waitpid(first, None).map_err(|error| format!("the sandbox was lost: {error}"))?;
    drop(protected);
    said.lines()
        .next()
        .and_then(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| "the sandbox ended without saying how its command did".to_owned())
}

fn read(report: OwnedFd) -> String {
    let mut text = String::new();
    // What was said before the reading failed still counts.
    fs::File::from(report).read_to_string(&mut text).ok();
    text
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
        let protected = protected.iter().map(Name::again).collect::<Result<Vec<_>, _>>()?;
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
        Ok(command) => tell(telling, &watch(command, Everyone::InNamespace, order.grace_ms)),
        Err(why) => tell(telling, &Report::Refused(why)),
    }
    0
}
