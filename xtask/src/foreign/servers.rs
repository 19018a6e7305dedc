//! MCP servers that others wrote, whose tools an agent borrows: as programs in the sandbox, and over HTTP.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Built, NODE_VERSION, Stage, install_npm, node_package, wait};

/// The reference servers.
const EVERYTHING: &str = "@modelcontextprotocol/server-everything";
const FILES: &str = "@modelcontextprotocol/server-filesystem";
const VERSION: &str = "2026.8.31";

/// Lets an agent use tools of the reference servers and looks at what it was answered.
pub(crate) fn servers(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let folder = built.folder.join("servers");
    let node_package = node_package()?;
    let [everything, files] = [EVERYTHING, FILES].map(|package| format!("{package}@{VERSION}"));
    install_npm(&folder, &[&everything, &files, &format!("{node_package}@{NODE_VERSION}")])?;
    let stage = Stage::new(&built.folder)?;
    let modules = folder.join("node_modules");
    let node = modules.join(node_package).join("bin/node");
    let far = Far::start(&node, &modules.join(EVERYTHING).join("dist/index.js"))?;
    fs::write(stage.folder.join("project/notes.txt"), "The answer is 42.\n")?;
    describe(&stage, &folder, &node, far.port)?;
    let answers = ask(&stage, &built.locum)?;
    for (place, (_, expected)) in calls(&stage).iter().enumerate() {
        let answer = answers.get(place).map_or("", String::as_str);
        ensure!(answer.contains(expected), "call {place} was answered {answer}, without {expected}");
        println!("call {place}: {expected}");
    }
    ensure!(fs::read_to_string(stage.folder.join("project/made.txt"))? == "made", "the file was not written");
    drop(far);
    let left = processes_of(&folder)?;
    ensure!(left.is_empty(), "servers are left over: {left:?}");
    Ok(())
}

/// The calls of the agent, and what must be in their answers.
fn calls(stage: &Stage) -> Vec<(Value, &'static str)> {
    let project = stage.folder.join("project");
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    vec![
        (call("mcp__everything__echo", json!({"message": "hello"})), "Echo: hello"),
        (call("mcp__everything__get-sum", json!({"a": 2, "b": 3})), "5"),
        (call("mcp__everything__get-tiny-image", json!({})), "[image left out: image/png"),
        (call("mcp__files__read_text_file", json!({"path": project.join("notes.txt")})), "The answer is 42."),
        (call("mcp__files__write_file", json!({"path": project.join("made.txt"), "content": "made"})), "made.txt"),
        (call("mcp__files__read_text_file", json!({"path": "/etc/hostname"})), "ccess denied"),
        (call("mcp__far__echo", json!({"message": "over there"})), "Echo: over there"),
        (call("mcp__far__get-sum", json!({"a": 20, "b": 22})), "42"),
    ]
}

/// Writes the user's settings, an agent that borrows from all servers, and what the model says.
fn describe(stage: &Stage, folder: &Path, node: &Path, port: u16) -> Result<()> {
    let program = |name: &str, package: &str, argument: &str| {
        let script = folder.join("node_modules").join(package).join("dist/index.js");
        format!(
            "[mcp_servers.{name}]\ncommand = {node:?}\nargs = [{script:?}, {argument:?}]\nreadable = [{folder:?}]\n"
        )
    };
    let project = stage.folder.join("project");
    let far = format!("[mcp_servers.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    let settings =
        program("everything", EVERYTHING, "stdio") + &program("files", FILES, &project.to_string_lossy()) + &far;
    let files = [
        ("home/config/config.toml", settings),
        (
            "agents/borrower.md",
            "---\nname: borrower\ndescription: Borrows.\nmcpServers: [everything, files, far]\n---\nBorrow.\n"
                .to_owned(),
        ),
        ("script.json", {
            let turns = calls(stage).into_iter().map(|(call, _)| json!({"tool_calls": [call]}));
            let replies: Vec<Value> = turns.chain([json!({"text": "Done."})]).collect();
            json!({"agents": {"*": replies}}).to_string()
        }),
    ];
    for (path, text) in files {
        let path = stage.folder.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Runs the agent, and returns what its calls were answered.
fn ask(stage: &Stage, locum: &Path) -> Result<Vec<String>> {
    let model = format!("scripted:{}", stage.folder.join("script.json").display());
    let agents = stage.folder.join("agents");
    let run = ["run", "borrower", "go", "--json", "--model", &model, "--agents", &agents.to_string_lossy()];
    let answer: Value = serde_json::from_str(&said(stage, locum, &run)?).context("the answer is not JSON")?;
    ensure!(answer["status"] == "completed", "the task did not complete: {answer}");
    ensure!(
        answer["receipt"]["mcp_servers"] == json!(["everything", "far", "files"]),
        "not all were reached: {answer}"
    );
    let task = answer["task_id"].as_str().context("the task has no id")?.to_owned();
    let log = said(stage, locum, &["logs", &task, "--json"])?;
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(records.filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.to_owned())).collect())
}

fn said(stage: &Stage, locum: &Path, arguments: &[&str]) -> Result<String> {
    let answer = stage.folder.join("answer.txt");
    let mut command = Command::new(locum);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &stage.folder)
        .env("LOCUM_HOME", stage.folder.join("home"))
        .current_dir(stage.folder.join("project"))
        .stdout(File::create(&answer)?);
    wait(&mut command)?;
    Ok(fs::read_to_string(answer)?)
}

/// The server of everything behind an address; ended when it is dropped.
struct Far {
    child: Child,
    port: u16,
}

impl Far {
    fn start(node: &Path, script: &Path) -> Result<Self> {
        // Free a moment ago; a server that cannot have it says so.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(node);
        command.arg(script).arg("streamableHttp").env("PORT", port.to_string());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let complaints = child.stderr.take().context("nobody hears it")?;
        let far = Self { child, port };
        let mut lines = BufReader::new(complaints).lines().map_while(Result::ok);
        ensure!(lines.any(|line| line.contains("listening on port")), "the server behind an address did not start");
        // What it says from now on nobody reads, and it is not much.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(far)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The processes that were started from a folder.
fn processes_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mark = folder.to_string_lossy().into_owned();
    let is_of_folder = |path: &PathBuf| {
        fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark))
    };
    Ok(fs::read_dir("/proc")?.flatten().map(|entry| entry.path()).filter(is_of_folder).collect())
}
