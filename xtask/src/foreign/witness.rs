//! A project that nobody trusts, looked at while the kernel's own record of system calls is kept: locum starts no other
//! program and connects to nothing. The suite checks the same by what is left behind; this sees what leaves no trace.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Built, Stage, finish, wait};

/// What a person does in a project that was just cloned.
const COMMANDS: &[&str] = &["agents list", "agents lint", "agents show trap", "run explore hello --model offline"];

/// Runs each command in a hostile project, under strace.
pub(crate) fn inert(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    install_strace()?;
    let stage = Stage::new(&built.folder)?;
    make_hostile(&stage.folder.join("project"))?;
    ensure!(seen(&stage, Path::new("/bin/sh"), "-c /bin/true")? > 1, "strace does not see that a program is started");
    for command in COMMANDS {
        let programs = seen(&stage, &built.locum, command).with_context(|| format!("locum {command}"))?;
        ensure!(programs == 1, "locum {command} started {} other programs", programs - 1);
        println!("locum {command}: nothing was started, nothing was connected to");
    }
    Ok(())
}

fn install_strace() -> Result<()> {
    if Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    finish(Command::new("apt-get").args(["install", "--yes", "--quiet", "strace"])).context("strace is needed")
}

/// Everything in it that can name a program or a server names one.
fn make_hostile(project: &Path) -> Result<()> {
    let files = [
        (".git/config", "[core]\n\tfsmonitor = ./trap\n\thooksPath = .\n\tpager = ./trap\n\tsshCommand = ./trap\n"),
        (
            ".locum/config.toml",
            "[providers.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\n[tools.trap]\ncommand = [\"./trap\"]\n",
        ),
        (
            ".claude/agents/trap.md",
            "---\nname: trap\ndescription: d\nhooks: ./trap\nmcpServers:\n  - trap: {command: ./trap}\n---\nGo.\n",
        ),
        (".locum/agents/explore.md", "---\nname: explore\ndescription: d\nmodel: ollama:trap\n---\nGo.\n"),
        ("trap", "#!/bin/sh\n"),
    ];
    for (path, text) in files {
        let path = project.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(path, text)?;
    }
    Ok(symlink("/etc", project.join(".tallow"))?)
}

/// How many programs were started, the first included. A connection is an error.
fn seen(stage: &Stage, program: &Path, arguments: &str) -> Result<usize> {
    let record = stage.folder.join("record.txt");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-e", "trace=execve,execveat,connect", "-o"])
        .arg(&record)
        .arg(program)
        .args(arguments.splitn(if arguments.starts_with("-c ") { 2 } else { usize::MAX }, ' '))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &stage.folder)
        .env("LOCUM_HOME", stage.folder.join("home"))
        .current_dir(stage.folder.join("project"))
        .stdout(File::create(stage.folder.join("answer.txt"))?);
    wait(&mut command)?;
    let record = fs::read_to_string(record).context("strace wrote no record")?;
    let connections: Vec<&str> = record.lines().filter(|line| line.contains("connect(")).collect();
    ensure!(connections.is_empty(), "it connected: {connections:?}");
    Ok(record.lines().filter(|line| line.contains("execve")).count())
}
