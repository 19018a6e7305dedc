//! A home, a project and the binary in them. Nothing of the surrounding environment is seen except where programs are.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use locum::{SessionId, SessionKey};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::observer::Observer;

/// Longer than anything here takes on a machine that does many other things.
const PATIENCE: Duration = Duration::from_secs(90);

/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(3);

/// One user's locum and one project.
pub(crate) struct Home {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "project", "agents"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory, variables: Vec::new() }
    }

    /// A home whose session model replays these replies, by agent.
    pub(crate) fn scripted(agents: &Value) -> Self {
        Self::new().with_script(agents)
    }

    /// The same home, whose session model replays these replies, by agent.
    pub(crate) fn with_script(mut self, agents: &Value) -> Self {
        let path = self.directory.path().join("script.json");
        fs::write(&path, json!({"agents": agents}).to_string()).unwrap();
        self.set("LOCUM_MODEL", &format!("scripted:{}", path.display()));
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// Writes an agent file. The binary is told of its directory.
    pub(crate) fn agent(&self, name: &str, fields: &str, prompt: &str) {
        let text = format!("---\nname: {name}\ndescription: For a test\n{fields}\n---\n{prompt}\n");
        fs::write(self.agents().join(format!("{name}.md")), text).unwrap();
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.directory.path().join("agents")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.path().join("project").canonicalize().unwrap()
    }

    /// Where all of locum's own files are.
    pub(crate) fn own(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn session(&self, id: &str) -> SessionKey {
        let project = self.project().to_string_lossy().into_owned();
        SessionKey { project: project.into(), id: SessionId::parse(id).unwrap() }
    }

    pub(crate) fn observer(&self, session: &str) -> Observer {
        Observer::open(&self.own().join("data/locum.db"), self.session(session))
    }

    /// The binary with these arguments.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LOCUM_HOME", self.own()).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.project()).arg("--agents").arg(self.agents()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Child {
        self.command(arguments).stdin(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn output<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The JSON that a verb prints, with the code it ended with.
    pub(crate) fn answer<A: AsRef<OsStr>>(&self, arguments: &[A]) -> (Value, i32) {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}, and {told}"));
        (value, output.status.code().unwrap())
    }

    /// The JSON that a verb prints when it succeeds.
    pub(crate) fn json<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Value {
        let (value, code) = self.answer(arguments);
        let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
        assert_eq!(code, 0, "{arguments:?}: {value}");
        value
    }

    /// The answers of `locum call -` to these inputs of the tool `subagent`.
    pub(crate) fn calls(&self, session: &str, inputs: &[Value]) -> Vec<Value> {
        let mut child = self.start(&["call", "-", "--session", session]);
        let mut stdin = child.stdin.take().unwrap();
        let lines = subagent_lines(inputs);
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        whole_lines(&output.stdout)
    }

    /// The processes that go on with tasks of this home after a command has ended.
    pub(crate) fn workers(&self) -> Vec<u32> {
        self.processes(locum::launch::WORKER_ARGUMENT)
    }

    /// The processes with this argument that have a file of this home open.
    fn processes(&self, argument: &str) -> Vec<u32> {
        let own = self.own().canonicalize().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| has_argument(*pid, argument) && has_open(*pid, &own)).collect()
    }

    pub(crate) fn wait_for_no_worker(&self) {
        until("the end of all workers", || self.workers().is_empty().then_some(()));
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A test that failed half-way must not leave processes behind.
        for pid in [self.workers(), self.processes(env!("CARGO_BIN_EXE_locum"))].concat() {
            kill_now(pid);
        }
    }
}

fn has_argument(pid: u32, wanted: &str) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|argument| argument == wanted.as_bytes())
}

fn has_open(pid: u32, own: &Path) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    handles.flatten().any(|handle| fs::read_link(handle.path()).is_ok_and(|file| file.starts_with(own)))
}

/// Kills a process as nothing can be prepared for.
pub(crate) fn kill_now(pid: u32) {
    // It may have ended a moment ago.
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).ok();
}

/// Looks again and again until there is something to see.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
}

/// Inputs of the tool `subagent` as `call -` reads them.
pub(crate) fn subagent_lines(inputs: &[Value]) -> String {
    inputs.iter().map(|input| json!({"tool": "subagent", "input": input}).to_string() + "\n").collect()
}

/// The JSON of every line that is whole.
pub(crate) fn whole_lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}
