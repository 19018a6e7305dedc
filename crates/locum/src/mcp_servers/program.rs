//! A server that is a program: started in the sandbox, ended with proof.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locum_core::limits;
use nix::sys::stat::Mode;
use secrecy::ExposeSecret as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::description::ServerCommand;
use crate::sandbox::{Level, Order, OutputTo, Running, Sandbox, StandardFiles, make_private};
use crate::web::{Dialer, Passage, proxy_variables};

/// How long a server may take to end by itself when nobody speaks to it any more.
const FAREWELL: Duration = Duration::from_millis(1_000);

/// How long beyond the grace period an ending is waited for: the launcher only waits for the kernel then.
const REPORT_MS_MAX: u64 = 2_000;

/// A server's process.
pub(super) struct Program {
    running: Running,
    private: PathBuf,
}

/// Both ends of a new server.
pub(super) struct Started {
    pub(super) program: Program,
    pub(super) stream: UnixStream,
    pub(super) complaints: pipe::Receiver,
}

/// Starts a server for the project or worktree at `root`.
pub(super) async fn start(
    name: &str,
    command: &ServerCommand,
    sandbox: Option<&Sandbox>,
    root: &Path,
    dialer: &Arc<Dialer>,
) -> Result<Started, String> {
    let sandbox = sandbox.ok_or("programs are not started here: this program was given no sandbox")?;
    let private = sandbox.private().join(format!("mcp-{name}-{}", ulid::Ulid::generate()));
    let made = make_private(&private).map_err(|error| format!("{} cannot be made: {error}", private.display()));
    let started = async {
        made?;
        let order = order(command, sandbox, root, &private)?;
        let complaints = listen(&order.complaints())?;
        let failed = |error: std::io::Error| format!("no connection to it can be made: {error}");
        let (stream, other) = UnixStream::pair().map_err(failed)?;
        let other = other.into_std().map_err(failed)?;
        other.set_nonblocking(false).map_err(failed)?;
        let mut running = Running::start(sandbox, &order, OutputTo::Socket(other.into())).await?;
        if order.has_entrance {
            running.let_through(Passage::new(std::slice::from_ref(&command.network), Arc::clone(dialer)));
        }
        Ok((running, stream, complaints))
    };
    match started.await {
        Ok((running, stream, complaints)) => Ok(Started { program: Program { running, private }, stream, complaints }),
        Err(why) => {
            // What cannot be removed is private and nearly empty.
            std::fs::remove_dir_all(&private).ok();
            Err(why)
        }
    }
}

fn order(command: &ServerCommand, sandbox: &Sandbox, root: &Path, private: &Path) -> Result<Order, String> {
    let mut order = sandbox.order(command.level.unwrap_or(sandbox.level()), root, private)?;
    if let Some(directory) = &command.directory {
        order.directory = root.join(directory);
    }
    match order.level {
        _ if command.network.is_empty() => {}
        Level::Full => {
            order.has_entrance = true;
            order.variables.extend(proxy_variables(std::slice::from_ref(&command.network)));
        }
        // Failing is better than a server that seems to work.
        Level::Landlock => return Err("its `network` needs the sandbox `full`: `landlock` has no network".to_owned()),
        // Nothing keeps it from any host.
        Level::None => {}
    }
    for (name, value) in &command.variables {
        order.variables.retain(|(known, _)| known != name);
        order.variables.push((name.clone(), value.expose_secret().to_owned()));
    }
    order.variables.push(("LOCUM_SUBAGENT_CHILD".to_owned(), "1".to_owned()));
    let program = find_program(&command.program, &order)?;
    order.program = std::iter::once(program).chain(command.arguments.iter().cloned()).collect();
    if order.level != Level::None {
        order.toolchains.extend(command.readable.iter().filter_map(|path| path.canonicalize().ok()));
    }
    order.files = StandardFiles::Conversation;
    Ok(order)
}

/// A name without a slash is looked for as a shell would; the launcher itself has no environment.
fn find_program(program: &str, order: &Order) -> Result<String, String> {
    if program.contains('/') {
        return Ok(program.to_owned());
    }
    let path = order.variables.iter().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value);
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    let found = path.split(':').map(|directory| Path::new(directory).join(program)).find(is_program);
    found
        .map(|path| path.to_string_lossy().into_owned())
        .ok_or_else(|| format!("there is no program `{program}` in PATH"))
}

/// A pipe that the server complains through. It has a name, because a launcher is given no further file.
fn listen(path: &Path) -> Result<pipe::Receiver, String> {
    let failed = |error: String| format!("nobody could hear it complain: {error}");
    nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed(error.to_string()))?;
    let mut options = pipe::OpenOptions::new();
    // With a writer of our own the pipe does not end before the server has opened it.
    #[cfg(target_os = "linux")]
    options.read_write(true);
    options.open_receiver(path).map_err(|error| failed(error.to_string()))
}

impl Program {
    /// Ends the server, to which nobody speaks any more, and proves it: its launcher, which ends after everything that
    /// it started, is gone.
    pub(super) async fn end(mut self) -> Result<(), String> {
        if tokio::time::timeout(FAREWELL, self.running.report()).await.is_err() {
            self.running.stop();
            let patience = Duration::from_millis(limits::COMMAND_GRACE_MS + REPORT_MS_MAX);
            // Whether it has ended is asked of the kernel below.
            drop(tokio::time::timeout(patience, self.running.report()).await);
        }
        // What cannot be removed is private.
        std::fs::remove_dir_all(&self.private).ok();
        let end = self.running.end();
        if end.ended { Ok(()) } else { Err(format!("process {} does not end", end.pid)) }
    }
}
