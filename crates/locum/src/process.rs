//! Processes: who this one is, whether another one still lives, and how one is started. The one place that starts any.

pub(crate) mod capture;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use locum_core::ids::Timestamp;

use crate::store::{Owner, OwnerId, OwnerRow};

/// A remote owner that was not heard of for this long is dead: longer than any pause of a living one.
const REMOTE_SILENCE_MS: u64 = 15_000;

/// How often a living owner shows itself: three times within the silence that would end its leases.
pub(crate) const BEAT_MS: u64 = 5_000;

/// What stands for a start time or a boot that the system does not tell.
const UNKNOWN: &str = "unknown";

/// Whether a process that holds tasks lives for them alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It serves a door.
    Door,
    /// It ends with its tasks.
    Detached,
}

/// This process, as an owner of tasks.
pub(crate) fn this_process(life: Life) -> Owner {
    let pid = std::process::id();
    // 63 random bits, so that the id fits a signed column.
    let id = OwnerId((ulid::Ulid::generate().random() as u64) >> 1);
    let started = start_time_of(pid);
    Owner { id, pid, started, boot: boot_id(), detached: life == Life::Detached }
}

/// Whether an owner can no longer append: its process is gone, or it is elsewhere and silent.
pub(crate) fn is_dead(row: &OwnerRow, now: Timestamp) -> bool {
    if row.owner.boot == boot_id() {
        !is_running(row.owner.pid, &row.owner.started)
    } else {
        now.millis_since(row.beat_at) > REMOTE_SILENCE_MS
    }
}

/// Whether the process with this id is still the one that started then. A zombie has ended.
#[cfg(target_os = "linux")]
pub(crate) fn is_running(pid: u32, started: &str) -> bool {
    let Some((state, start)) = stat(pid) else { return false };
    state != "Z" && state != "X" && (start == started || started == UNKNOWN)
}

/// Kills a process of ours that does not listen. Nothing happens where it cannot be told from another one that was
/// given its id.
pub(crate) fn kill(owner: &Owner) {
    let known = owner.started != UNKNOWN && owner.boot != UNKNOWN && owner.boot == boot_id();
    if let (true, Ok(pid)) = (known && is_running(owner.pid, &owner.started), i32::try_from(owner.pid)) {
        // It may have ended in this moment.
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).ok();
    }
}

#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<String> {
    stat(pid).map(|(_, start)| start)
}

/// State and start time, from the kernel's one-line description. The name in it may contain anything, so what
/// matters is read after its closing parenthesis.
#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<(String, String)> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.to_owned();
    let start = fields.nth(18)?.to_owned();
    Some((state, start))
}

#[cfg(target_os = "linux")]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| UNKNOWN.to_owned(), |id| id.trim().to_owned())
}

/// Without the kernel's start times, a living process id is taken at its word.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_running(pid: u32, _started: &str) -> bool {
    i32::try_from(pid).is_ok_and(|pid| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn start_time(_pid: u32) -> Option<String> {
    None
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> String {
    UNKNOWN.to_owned()
}

/// Descriptors that a process may have open: each task may hold a connection, and the usual soft limit is smaller than
/// a crowd of them.
const DESCRIPTORS_WANTED: u64 = 65_536;

/// Raises this process's own limit of open descriptors as far as it may.
pub(crate) fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard.min(DESCRIPTORS_WANTED)
    {
        // With the limit as it was there is room for fewer connections, and nothing else is different.
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(DESCRIPTORS_WANTED), hard).ok();
    }
}

/// Variables that a process of ours inherits: where programs and files are found, never a secret.
const INHERITED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Starts a process that outlives this one. Its environment is a short allow-list; what else it must know, it is told
/// through its standard input.
pub(crate) fn start_detached(program: &Path, argument: &str, stderr: Stdio) -> std::io::Result<Child> {
    let environment = crate::settings::environment::process_variables(&INHERITED);
    Command::new(program)
        .arg(argument)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
}

/// Starts a process that works for this one, in a group of its own so that a key that interrupts this process does not
/// interrupt it. It ends when its standard input does; dropped, it is killed.
pub(crate) fn start_attached(
    program: &Path,
    arguments: &[&str],
    stderr: Stdio,
) -> std::io::Result<tokio::process::Child> {
    let environment = crate::settings::environment::process_variables(&INHERITED);
    tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .kill_on_drop(true)
        .spawn()
}

/// Asks a process of ours to end; nothing happens if it has.
pub(crate) fn terminate(child: &tokio::process::Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // Until it is waited for, the id is its own.
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).ok();
    }
}

/// When a process of ours started, in the system's own words.
pub(crate) fn start_time_of(pid: u32) -> String {
    start_time(pid).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Starts a launcher, in a group of its own so that a key that interrupts this process does not interrupt it. It ends
/// what it runs when its standard input does; hence it is not killed when it is dropped. It knows nothing but what it
/// is told through its standard input.
pub(crate) fn start_launcher(
    program: &Path,
    argument: &str,
    order: Stdio,
    output: Stdio,
) -> std::io::Result<tokio::process::Child> {
    tokio::process::Command::new(program)
        .arg(argument)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(order)
        .stdout(Stdio::piped())
        .stderr(output)
        .kill_on_drop(false)
        .spawn()
}

/// Leaves the session of the terminal that started this process, so that closing it does not end this one.
pub(crate) fn leave_terminal() {
    // A process that leads its group already cannot leave; it has no terminal to leave either.
    nix::unistd::setsid().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_its_id_with_another_start_does_not() {
        let owner = this_process(Life::Door);
        assert!(is_running(owner.pid, &owner.started));
        assert!(!is_running(owner.pid, "1"));
        assert!(!is_running(u32::MAX, &owner.started));
    }

    #[test]
    fn an_owner_elsewhere_is_judged_by_its_silence() {
        let owner = Owner { boot: "elsewhere".to_owned(), ..this_process(Life::Door) };
        let row = OwnerRow { owner, beat_at: Timestamp::from_millis(1_000) };
        assert!(!is_dead(&row, Timestamp::from_millis(16_000)));
        assert!(is_dead(&row, Timestamp::from_millis(16_001)));
    }
}
