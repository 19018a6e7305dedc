//! What a command in the sandbox costs over a plain one: the same task with both, and the difference for each call.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

/// Calls of `bash` in a long task; a short one has one.
const CALLS: usize = 40;

/// Milliseconds that one call takes at a level of the sandbox; none where the system cannot do it.
pub(crate) fn measure(locum: &Path, home: &Path, level: &str) -> anyhow::Result<Option<f64>> {
    let Some(long) = task(locum, home, level, CALLS)? else { return Ok(None) };
    let Some(short) = task(locum, home, level, 1)? else { return Ok(None) };
    Ok(Some((long - short) / (CALLS - 1) as f64))
}

/// Milliseconds of a task with this many calls.
fn task(locum: &Path, home: &Path, level: &str, calls: usize) -> anyhow::Result<Option<f64>> {
    let project = home.join("project");
    std::fs::create_dir_all(project.join(".git"))?;
    let agents = home.join("agents");
    std::fs::create_dir_all(&agents)?;
    std::fs::write(agents.join("sh.md"), "---\nname: sh\ndescription: Runs.\ntools: bash\n---\nRun.\n")?;
    let call = json!({"name": "bash", "input": {"command": "true"}});
    let script = home.join("commands.json");
    let replies = [json!({"tool_calls": vec![call; calls]}), json!({"text": "done"})];
    std::fs::write(&script, json!({"agents": {"*": replies}}).to_string())?;
    let session = format!("{level}-{calls}");
    let started = Instant::now();
    let mut command = Command::new(locum);
    command
        .args(["run", "sh", "go", "--sandbox", level, "--session", &session, "--agents"])
        .arg(&agents)
        .arg("--model")
        .arg(format!("scripted:{}", script.display()))
        .env("LOCUM_HOME", home.join("locum"))
        .current_dir(&project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status()?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    let logs = Command::new(locum)
        .args(["logs", "t_01", "--session", &session])
        .env("LOCUM_HOME", home.join("locum"))
        .current_dir(&project)
        .output()?;
    let refused = String::from_utf8_lossy(&logs.stdout).contains("not possible here");
    Ok((!refused).then_some(elapsed))
}
