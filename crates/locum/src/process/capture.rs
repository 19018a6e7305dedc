//! Running a program to its end: it is told something, what it says is kept up to a bound, and it ends in time or is
//! ended with everything that it started. This blocks, so it belongs into the pool.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio_util::sync::CancellationToken;

/// Between two looks at the clock and the stop token.
const LOOK_MS: u16 = 20;

/// How long a program may take to obey a request to end.
const GRACE: Duration = Duration::from_secs(5);

/// How long what a program started may keep its output open after it has ended.
const LINGER: Duration = Duration::from_secs(1);

/// A program and everything that it is told.
pub(crate) struct Program<'a> {
    pub(crate) path: &'a Path,
    pub(crate) arguments: &'a [OsString],
    /// Its whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) directory: &'a Path,
    pub(crate) input: &'a [u8],
}

/// What ends a program that does not end by itself, and how much it may say.
pub(crate) struct Bounds<'a> {
    pub(crate) output_bytes_max: usize,
    pub(crate) within: Duration,
    pub(crate) stop: &'a CancellationToken,
}

/// What a program said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// None if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: Vec<u8>,
    pub(crate) complaints: Vec<u8>,
    /// Whether it said more than is kept.
    pub(crate) cut: bool,
}

/// Why nothing is known of a program's end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error("it cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("it was told to stop")]
    Stopped,
    #[error("it did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("it cannot be listened to: {0}")]
    Listen(#[source] io::Error),
}

/// Runs a program to its end, or ends it.
pub(crate) fn capture(program: &Program<'_>, bounds: &Bounds<'_>) -> Result<Said, CaptureError> {
    let mut child = Command::new(program.path)
        .args(program.arguments)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(program.directory)
        .process_group(0)
        .stdin(if program.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(CaptureError::Start)?;
    let heard = converse(&mut child, program.input, bounds);
    if heard.is_err() {
        end(&mut child);
    }
    heard
}

/// One direction of what is said: nobody blocks, because each side may wait for the other.
fn without_blocking(pipe: BorrowedFd<'_>) -> io::Result<()> {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

fn converse(child: &mut Child, input: &[u8], bounds: &Bounds<'_>) -> Result<Said, CaptureError> {
    let deadline = Instant::now() + bounds.within;
    let (mut to, mut output, mut complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let pipes = [to.as_ref().map(AsFd::as_fd), output.as_ref().map(AsFd::as_fd), complaints.as_ref().map(AsFd::as_fd)];
    pipes.into_iter().flatten().try_for_each(without_blocking).map_err(CaptureError::Listen)?;
    let mut said = Said::default();
    let mut told = 0;
    let mut ended: Option<Instant> = None;
    while output.is_some() || complaints.is_some() {
        mind(bounds, deadline)?;
        if ended.is_some_and(|ended| ended.elapsed() > LINGER) {
            // What it left behind keeps its output open: there is nothing more to hear from itself.
            end(child);
            break;
        }
        wait_for_any(
            to.as_ref().map(AsFd::as_fd),
            output.as_ref().map(AsFd::as_fd),
            complaints.as_ref().map(AsFd::as_fd),
        )?;
        if to.as_mut().is_some_and(|pipe| tell(pipe, input, &mut told)) {
            to = None;
        }
        if output.as_mut().is_some_and(|pipe| listen(pipe, &mut said.output, &mut said.cut, bounds.output_bytes_max)) {
            output = None;
        }
        if complaints.as_mut().is_some_and(|pipe| listen(pipe, &mut said.complaints, &mut said.cut, COMPLAINTS_MAX)) {
            complaints = None;
        }
        if ended.is_none() && matches!(child.try_wait(), Ok(Some(_))) {
            ended = Some(Instant::now());
        }
    }
    said.code = wait(child, bounds, deadline)?;
    Ok(said)
}

/// Bytes of complaints that are kept: a few lines say what went wrong.
const COMPLAINTS_MAX: usize = 8 * 1024;

fn mind(bounds: &Bounds<'_>, deadline: Instant) -> Result<(), CaptureError> {
    if bounds.stop.is_cancelled() {
        return Err(CaptureError::Stopped);
    }
    if Instant::now() >= deadline {
        return Err(CaptureError::TimedOut(bounds.within));
    }
    Ok(())
}

/// Waits until one of the pipes can be used, or until it is time to look around.
fn wait_for_any(
    to: Option<BorrowedFd<'_>>,
    output: Option<BorrowedFd<'_>>,
    complaints: Option<BorrowedFd<'_>>,
) -> Result<(), CaptureError> {
    let mut pipes: Vec<PollFd<'_>> = Vec::with_capacity(3);
    pipes.extend(to.map(|pipe| PollFd::new(pipe, PollFlags::POLLOUT)));
    pipes.extend([output, complaints].into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::POLLIN)));
    match poll(&mut pipes, PollTimeout::from(LOOK_MS)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(CaptureError::Listen(error.into())),
    }
}

/// Tells some more; whether everything was told, or nobody listens.
fn tell(pipe: &mut impl Write, input: &[u8], told: &mut usize) -> bool {
    match pipe.write(&input[*told..]) {
        Ok(count) => {
            *told += count;
            *told == input.len()
        }
        Err(error) => !is_for_later(&error),
    }
}

/// Hears some more; whether that was the end.
fn listen(pipe: &mut impl Read, heard: &mut Vec<u8>, cut: &mut bool, most: usize) -> bool {
    let mut piece = [0; 16 * 1024];
    match pipe.read(&mut piece) {
        Ok(0) => true,
        Ok(count) => {
            let kept = count.min(most.saturating_sub(heard.len()));
            heard.extend_from_slice(&piece[..kept]);
            *cut |= kept < count;
            false
        }
        Err(error) => !is_for_later(&error),
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn wait(child: &mut Child, bounds: &Bounds<'_>, deadline: Instant) -> Result<Option<i32>, CaptureError> {
    loop {
        if let Some(status) = child.try_wait().map_err(CaptureError::Listen)? {
            return Ok(status.code());
        }
        mind(bounds, deadline)?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a program and everything that it started: it is asked first, so that it can put away its locks.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().map(Pid::from_raw);
    let signal = |signal| group.is_some_and(|group| killpg(group, signal).is_ok());
    signal(Signal::SIGTERM);
    let begun = Instant::now();
    while begun.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(Signal::SIGKILL);
    // It is gone, or the system cannot say.
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, input: &[u8], within: Duration, stop: &CancellationToken) -> Result<Said, CaptureError> {
        let arguments = ["-c".into(), script.into()];
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: &arguments,
            environment: &[],
            directory: Path::new("/"),
            input,
        };
        capture(&program, &Bounds { output_bytes_max: 100_000, within, stop })
    }

    #[test]
    fn what_is_said_is_heard_and_bounded() {
        let stop = CancellationToken::new();
        let long = Duration::from_secs(60);
        let said = run("cat; echo no >&2; exit 3", &[b'x'; 90_000], long, &stop).unwrap();
        assert_eq!((said.code, said.output.len(), said.cut), (Some(3), 90_000, false));
        assert_eq!(said.complaints, b"no\n");
        let said = run("cat", &[b'x'; 300_000], long, &stop).unwrap();
        assert_eq!((said.code, said.output.len(), said.cut), (Some(0), 100_000, true));
        let said = run("exec cat </dev/null", &[b'x'; 300_000], long, &stop).unwrap();
        assert_eq!((said.code, said.output.len()), (Some(0), 0));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let stop = CancellationToken::new();
        let ended = run("sleep 1000", b"", Duration::from_millis(50), &stop);
        assert!(matches!(ended, Err(CaptureError::TimedOut(_))), "{ended:?}");
        // It ends, and what it started does not.
        let said = run("sleep 1000 & echo done", b"", Duration::from_secs(60), &stop).unwrap();
        assert_eq!(said.output, b"done\n");
        stop.cancel();
        let ended = run("sleep 1000", b"", Duration::from_secs(60), &stop);
        assert!(matches!(ended, Err(CaptureError::Stopped)), "{ended:?}");
    }
}
