//! `bash`: a command in the sandbox. It acts on the world, so a call whose end is not known is never made again.

use std::path::Path;
use std::time::Duration;

use locum_core::limits;
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;

use super::command_output::CommandOutput;
use super::{Tool, ToolFuture, ToolScope, input};
use crate::jobs::Attended;
use crate::sandbox::{End, Order, Report};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Command {
    command: String,
    /// Seconds, default 120, at most 540
    timeout: Option<u64>,
    /// Return at once with a job number; `job` shows how it goes
    background: Option<bool>,
}

/// The tool `bash`.
#[derive(Debug)]
pub(crate) struct Bash {
    spec: ToolSpec,
}

impl Default for Bash {
    fn default() -> Self {
        Self { spec: input::spec::<Command>("bash", include_str!("bash.md"), Repeat::Unsafe) }
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn comes_with_locum(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            let answer = match input::parse::<Command>(input) {
                Ok(command) => command.run(scope).await,
                Err(output) => return Ok(output),
            };
            Ok(answer.unwrap_or_else(|why| ToolOutput::failed(format!("the command was not run: {why}"))))
        })
    }

    fn runs_commands(&self) -> bool {
        true
    }
}

/// What is said to a command that wanted to change a repository.
const REPOSITORY_IS_READ: &str = "\n[git: commands read the repository here and cannot change it: leave your changes in \
                                  the files. In a worktree they are committed to its branch when the task ends]";

/// What is said where git cannot find objects that a repository borrows.
const OBJECTS_ARE_ELSEWHERE: &str = "\n[git: this repository borrows objects from others. Commands see them in the \
                                     sandbox `full` alone, and only directories of the user with nothing but objects \
                                     in them: read the files instead, or tell the user]";

/// How a command came to its end.
enum Ending {
    /// By itself.
    Own(Report),
    /// It took too long.
    TimedOut(Report),
    /// It was no longer wanted.
    Stopped(Report),
}

impl Ending {
    fn report(&self) -> &Report {
        match self {
            Self::Own(report) | Self::TimedOut(report) | Self::Stopped(report) => report,
        }
    }
}

impl Command {
    async fn run(self, scope: &ToolScope) -> Result<ToolOutput, String> {
        if self.command.len() > limits::COMMAND_BYTES_MAX {
            return Err(format!(
                "it has {} bytes; {} are the most: write a script into a file first",
                self.command.len(),
                limits::COMMAND_BYTES_MAX
            ));
        }
        let mut order = scope.jobs.order(&scope.task, &scope.root, &scope.cwd)?;
        order.program = shell(&self.command);
        if self.background == Some(true) {
            let number = scope.jobs.start(&scope.task, &order).await?;
            return Ok(ToolOutput::ok(format!("started as job {number}; `job` shows how it goes")));
        }
        let seconds = self.timeout.unwrap_or(limits::COMMAND_SECONDS_DEFAULT).clamp(1, limits::COMMAND_SECONDS_MAX);
        attended(scope, &order, seconds, "; use `background` for what takes longer").await
    }
}

/// The program that runs a command line.
pub(super) fn shell(command: &str) -> Vec<String> {
    let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let words = match bash {
        Some(bash) => vec![bash, "--noprofile", "--norc", "-c", command],
        None => vec!["/bin/sh", "-c", command],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// Runs a command to its end, or for as long as it may take. The advice is for a model whose command took too long.
pub(super) async fn attended(
    scope: &ToolScope,
    order: &Order,
    seconds: u64,
    advice: &str,
) -> Result<ToolOutput, String> {
    let mut command = scope.jobs.attend(&scope.task, order).await?;
    let mut reader = command.running().and_then(crate::sandbox::Running::output);
    let mut output = CommandOutput::new(|| scope.jobs.output_file(&scope.task, order));
    let by_itself =
        tokio::time::timeout(Duration::from_secs(seconds), to_its_end(&mut command, &mut reader, &mut output));
    let ending = match scope.stop.run_until_cancelled(by_itself).await {
        Some(Ok(report)) => Ending::Own(report),
        late => {
            // What it says while it ends is still its output; reading goes on while the ending is waited for.
            let report = command.ended();
            let (report, ()) = futures_util::future::join(report, drain(&mut reader, &mut output)).await;
            if late.is_some() { Ending::TimedOut(report) } else { Ending::Stopped(report) }
        }
    };
    let mut notes: Vec<String> = command.refused().iter().map(|why| format!("network: {why}")).collect();
    notes.extend(ending.report().notes.iter().cloned());
    Ok(answer(ending, output, (seconds, advice), &notes))
}

/// Reads everything that a command says, then how it ended. Every writer is gone when the launcher is.
async fn to_its_end(
    command: &mut Attended<'_>,
    reader: &mut Option<ChildStderr>,
    output: &mut CommandOutput<'_>,
) -> Report {
    drain(reader, output).await;
    command.report().await
}

async fn drain(reader: &mut Option<ChildStderr>, output: &mut CommandOutput<'_>) {
    let Some(reader) = reader else { return };
    let mut piece = Vec::with_capacity(16 * 1024);
    while reader.read_buf(&mut piece).await.is_ok_and(|read| read > 0) {
        output.push(&piece);
        piece.clear();
    }
}

fn answer(ending: Ending, output: CommandOutput<'_>, (seconds, advice): (u64, &str), notes: &[String]) -> ToolOutput {
    let (notice, good) = match ending {
        Ending::Own(Report { end: End::Exit(0), .. }) => (String::new(), true),
        Ending::Own(Report { end: End::Refused(why), .. }) => {
            return ToolOutput::failed(format!(
                "the command was not run, because its sandbox is not possible here: {why}"
            ));
        }
        Ending::Own(report) => (said(&report.end), false),
        Ending::TimedOut(report) => {
            (format!("timed out after {seconds} s and was stopped ({}){advice}", said(&report.end)), false)
        }
        Ending::Stopped(report) => (format!("stopped ({})", said(&report.end)), false),
    };
    let notices: Vec<&str> = notes.iter().map(String::as_str).chain([notice.as_str()]).collect();
    let notices: Vec<&str> = notices.into_iter().filter(|notice| !notice.is_empty()).collect();
    let mut text = output.finish(&notices.join("]\n["));
    if text.contains("check .git/objects/info/alternates") {
        text.push_str(OBJECTS_ARE_ELSEWHERE);
    }
    if was_kept_from_repository(&text) {
        text.push_str(REPOSITORY_IS_READ);
    }
    if good { ToolOutput::ok(text) } else { ToolOutput::failed(text) }
}

/// Whether a command wanted to change a repository, as far as it said so.
fn was_kept_from_repository(text: &str) -> bool {
    let refusals = ["Read-only file system", "Permission denied"];
    // Git does not always say where it could not write.
    let said_by_git = ["error: could not write index", "fatal: unable to write new index file"];
    text.lines().any(|line| {
        said_by_git.contains(&line) || (line.contains(".git") && refusals.iter().any(|refusal| line.contains(refusal)))
    })
}

/// How a command ended, in words.
pub(super) fn said(end: &End) -> String {
    match end {
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::Refused(why) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[tokio::test]
    async fn without_a_sandbox_nothing_runs() {
        let fixture = Fixture::new(&[]);
        for input in [json!({"command": "touch ran"}), json!({"command": "touch ran", "background": true})] {
            let output = Bash::default().call(input, &fixture.tool_scope()).await.unwrap();
            let expected = "the command was not run: commands are refused here: this program was given no sandbox";
            assert_eq!(output, ToolOutput::failed(expected));
        }
        assert!(!fixture.root().join("ran").exists());
        assert_eq!(Bash::default().spec().repeat, Repeat::Unsafe);
    }
}
