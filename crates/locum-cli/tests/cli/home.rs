//! A home and a project for one test. Nothing of the real environment is seen but `PATH`, and no process may be left
//! when the test ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up: far beyond what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The files of every project.
const FILES: [(&str, &str); 3] = [
    ("README.md", "# Clock\n\nTells the time.\n"),
    ("src/clock.rs", "//! A clock.\n\npub fn now() -> u64 {\n    7\n}\n"),
    ("src/tide.rs", "//! The tide.\n\npub fn height() -> u64 {\n    1\n}\n"),
];

/// A hermetic place for one test.
pub(crate) struct Home {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
    user: Option<u32>,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("locum-cli-").tempdir().unwrap();
        let home = Self { directory, variables: Vec::new(), user: None };
        // A project's root is known by its `.git`: without one, a checkout around the temporary directory would count.
        std::fs::create_dir_all(home.project().join(".git")).unwrap();
        for (path, text) in FILES {
            home.write(path, text);
        }
        home
    }

    /// A home whose `scribe` writes files below `src`, which a rule wants to be asked for.
    pub(crate) fn with_scribe() -> Self {
        let home = Self::new();
        let config = home.locum_home().join("config");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), "[permissions]\nrules = [\"ask write(src/**)\"]\n").unwrap();
        home.write("agents/scribe.md", "---\nname: scribe\ndescription: Writes\ntools: write\n---\nYou write.\n");
        home
    }

    /// The same home with one more variable.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The same home, given to another user, who runs its commands. Only root can do this.
    pub(crate) fn given_to(mut self, user: u32) -> Self {
        let program = self.program();
        // The program may be where that user cannot go.
        if std::fs::hard_link(env!("CARGO_BIN_EXE_locum"), &program).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_locum"), &program).unwrap();
        }
        self.user = Some(user);
        self.give();
        self
    }

    /// Gives what was made since to the user of this home.
    pub(crate) fn give(&self) {
        if let Some(user) = self.user {
            give(&self.root(), user, &self.program());
        }
    }

    fn program(&self) -> PathBuf {
        self.root().join("locum-for-tests")
    }

    /// Everything of this test, as one path.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Locum's own directory.
    pub(crate) fn locum_home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a script beside the project and names the model that plays it.
    pub(crate) fn script(&self, agents: &Value) -> String {
        let path = self.root().join("script.json");
        std::fs::write(&path, serde_json::json!({ "agents": agents }).to_string()).unwrap();
        format!("scripted:{}", path.display())
    }

    /// The command `locum` with these arguments, in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.user {
            None => Command::new(env!("CARGO_BIN_EXE_locum")),
            Some(_) => Command::new(self.program()),
        };
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root())
            .env("LOCUM_HOME", self.locum_home())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.project());
        command
    }

    /// Runs `locum` without input.
    pub(crate) fn locum(&self, arguments: &[&str]) -> Ran {
        self.locum_reading(arguments, b"")
    }

    /// Runs `locum` with these bytes as its standard input.
    pub(crate) fn locum_reading(&self, arguments: &[&str], input: &[u8]) -> Ran {
        run(self.command(arguments), input)
    }

    /// Sends lines through `locum call -`, all in the session `test`, and reads one answer for each.
    pub(crate) fn call(&self, model: &str, lines: &[u8]) -> Vec<Value> {
        let ran = self.locum_reading(&["call", "-", "--model", model, "--session", "test"], lines);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Ends every process that works on tasks of this home, without a chance to say anything.
    pub(crate) fn kill_workers(&self) {
        for pid in processes_in(&self.root()) {
            // It may have ended by itself meanwhile.
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
        assert!(self.left_over().is_empty());
    }

    /// Waits until no process has a file of this home open; those that are left after all patience.
    fn left_over(&self) -> Vec<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = processes_in(&self.root());
            if left.is_empty() || Instant::now() >= until || std::thread::panicking() {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let left = self.left_over();
        for pid in &left {
            // It may have ended by itself meanwhile.
            kill(Pid::from_raw(*pid), Signal::SIGKILL).ok();
        }
        assert!(left.is_empty() || std::thread::panicking(), "processes are left over: {left:?}");
    }
}

/// Gives everything below a path to a user, but for one file that others have as well.
fn give(path: &Path, user: u32, except: &Path) {
    if path != except {
        std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    }
    if path.is_dir() && !path.is_symlink() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), user, except));
    }
}

/// A `locum` that answers line by line.
pub(crate) struct Talk {
    child: Child,
    stdin: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Talk {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, stdin, answers }
    }

    /// Says one line and reads the answer to it.
    pub(crate) fn ask(&mut self, line: &Value) -> Value {
        writeln!(self.stdin, "{line}").unwrap();
        serde_json::from_str(&self.answers.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// Says no more, and waits for the end.
    pub(crate) fn end(self) -> Option<i32> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().unwrap().code()
    }
}

/// Asks until something is so.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command to its end, or fails the test if it has none.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    // A command that ends without reading everything is not at fault.
    std::thread::spawn(move || stdin.write_all(&input).ok());
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()).ok());
    let Ok(output) = ended.recv_timeout(PATIENCE) else {
        kill(pid, Signal::SIGKILL).ok();
        panic!("{command:?} does not end");
    };
    let output = output.unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The other processes that have a file below `root` open. A worker keeps its log open from its first moment on.
fn processes_in(root: &Path) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pid = |name: &OsStr| name.to_str()?.parse::<i32>().ok();
    let own = i32::try_from(std::process::id()).unwrap();
    let opened = |pid: &i32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
        files
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.starts_with(root)))
    };
    processes.flatten().filter_map(|entry| pid(&entry.file_name())).filter(|pid| *pid != own).filter(opened).collect()
}
