//! A `locum` at a terminal: it sees a person there, who reads and types.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::home::{Home, wait_until};

/// A command at a terminal of 80 columns.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::run(home.command(arguments))
    }

    /// Any command.
    pub(crate) fn run(mut command: Command) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(&size, None).unwrap();
        let end = || Stdio::from(ends.slave.try_clone().unwrap());
        // With the command go this process's copies of the terminal's end: what is left of that end is the child's, so
        // that its end is seen.
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let keyboard = File::from(ends.master);
        let (screen, mut shown) = (Arc::new(Mutex::new(String::new())), keyboard.try_clone().unwrap());
        let written = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other end is closed answers with an error.
            while let Some(read) = read_some(&mut shown, &mut bytes) {
                written.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { child, keyboard, screen, reader }
    }

    /// Waits until this is on the screen.
    pub(crate) fn shows(&self, text: &str) {
        let start = std::time::Instant::now();
        wait_until(|| {
            let screen = self.screen.lock().unwrap();
            assert!(start.elapsed() < crate::home::PATIENCE / 2, "`{text}` is not shown:\n{screen}");
            screen.contains(text)
        });
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
    }

    /// Presses keys.
    pub(crate) fn presses(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    /// Waits for the end: the exit code, and everything that was on the screen.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        // What was written last may not have been read when the command is gone.
        self.reader.join().unwrap();
        let screen = self.screen.lock().unwrap().clone();
        (code, screen)
    }
}

fn read_some(screen: &mut File, bytes: &mut [u8]) -> Option<usize> {
    loop {
        match screen.read(bytes) {
            Ok(0) => return None,
            Ok(read) => return Some(read),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
