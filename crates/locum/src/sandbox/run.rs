//! A command as locum sees it: a launcher that was told what to run.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Stdio;

use locum_core::task::event::ProcessEnd;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::process::{Child, ChildStderr};

use super::Sandbox;
use super::order::{End, Order, Report};
use crate::web::{Gate, Passage};

/// The longest report that is read: a sentence.
const REPORT_BYTES_MAX: usize = 64 * 1024;

/// Where a command's output goes.
pub(crate) enum OutputTo {
    /// To whoever reads [`Running::output`].
    Reader,
    /// Into a file.
    File(File),
    /// Nowhere.
    Nowhere,
    /// To whoever has the other end, which the command also reads.
    Socket(OwnedFd),
}

/// A command under way. Dropping it, like [`Running::stop`], asks its launcher to end it, which goes on by itself.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pid: u32,
    started: String,
    /// Open as long as the command is wanted.
    wanted: Option<UnixStream>,
    /// What it has reported so far.
    said: Vec<u8>,
    /// The port in its network at which connections to the outside arrive, until somebody takes it.
    entrance: Option<TcpListener>,
    /// Where they go through.
    gate: Option<Gate>,
}

impl Running {
    /// Starts a launcher and tells it what to run.
    pub(crate) async fn start(sandbox: &Sandbox, order: &Order, output: OutputTo) -> Result<Self, String> {
        let program = sandbox.launcher.as_deref().ok_or_else(|| {
            "commands need a launcher, and this program is none: call locum::launch::intercept() first in its main"
                .to_owned()
        })?;
        if !cfg!(target_os = "linux") {
            return Err("commands run in a sandbox, and there is none for this system".to_owned());
        }
        let text = serde_json::to_vec(order).map_err(|error| format!("the order cannot be written: {error}"))?;
        let length = u32::try_from(text.len()).map_err(|_| "the command is too long".to_owned())?;
        let output = match output {
            OutputTo::Reader => Stdio::piped(),
            OutputTo::File(file) => Stdio::from(file),
            OutputTo::Nowhere => Stdio::null(),
            OutputTo::Socket(socket) => Stdio::from(socket),
        };
        let failed = |error: io::Error| format!("the launcher {} cannot be started: {error}", program.display());
        let (mut wanted, theirs) = UnixStream::pair().map_err(failed)?;
        let theirs = theirs.into_std().map_err(failed)?;
        theirs.set_nonblocking(false).map_err(failed)?;
        let order_from = Stdio::from(OwnedFd::from(theirs));
        let child =
            crate::process::start_launcher(program, super::launcher::ARGUMENT, order_from, output).map_err(failed)?;
        let pid = child.id().unwrap_or_default();
        let started = crate::process::start_time_of(pid);
        let told = async {
            wanted.write_all(&length.to_be_bytes()).await?;
            wanted.write_all(&text).await?;
            wanted.flush().await
        };
        told.await.map_err(|error| format!("the launcher cannot be told what to do: {error}"))?;
        let entrance = if order.has_entrance { entrance_of(&wanted).await } else { None };
        Ok(Self { child, pid, started, wanted: Some(wanted), said: Vec::new(), entrance, gate: None })
    }

    /// Lets connections of the command through to the outside, for as long as it runs. Without an entrance there are
    /// none.
    pub(crate) fn let_through(&mut self, passage: Passage) {
        self.gate = self.entrance.take().map(|entrance| Gate::open(entrance, passage));
    }

    /// What the command writes, both of its outputs in one; only once.
    pub(crate) fn output(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The launcher, which ends last, and whether it is gone.
    pub(crate) fn end(&self) -> ProcessEnd {
        let ended = !crate::process::is_running(self.pid, &self.started);
        ProcessEnd { pid: self.pid, started: self.started.clone(), ended }
    }

    /// Asks the command to end; after a grace period it is ended.
    pub(crate) fn stop(&mut self) {
        self.wanted = None;
    }

    /// Waits until nothing of the command is left, and says how it ended. Dropping the future loses nothing: the next
    /// one goes on.
    pub(crate) async fn report(&mut self) -> Report {
        if let Some(stdout) = &mut self.child.stdout {
            // A report that cannot be read is as good as none.
            while self.said.len() < REPORT_BYTES_MAX && stdout.read_buf(&mut self.said).await.is_ok_and(|read| read > 0)
            {
            }
        }
        // It has said its last word; this takes its remains away.
        self.child.wait().await.ok();
        let line = self.said.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(line)
            .unwrap_or_else(|_| End::Refused("the sandbox ended without saying how its command did".to_owned()).into())
    }
}

/// Makes the private directory of a task, with what an [`Order`] expects in it.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    for name in ["tmp", "output", "view"] {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.join(name))?;
    }
    Ok(())
}

/// The entrance that a launcher hands out. A launcher that has none to hand out says why in its report.
#[cfg(target_os = "linux")]
async fn entrance_of(launcher: &UnixStream) -> Option<TcpListener> {
    super::entrance::receive(launcher).await.ok().flatten()
}

/// Nothing is launched on this system.
#[cfg(not(target_os = "linux"))]
async fn entrance_of(_: &UnixStream) -> Option<TcpListener> {
    None
}
