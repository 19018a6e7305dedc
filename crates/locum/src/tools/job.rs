//! `job`: how a command in the background stands, and its end.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use locum_core::limits::COMMAND_TAIL_BYTES;
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Tool, ToolFuture, ToolScope, bash, bounded, input};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The number that `bash` answered
    job: u32,
    /// End it first
    stop: Option<bool>,
}

/// The tool `job`.
#[derive(Debug)]
pub(crate) struct Job {
    spec: ToolSpec,
}

impl Default for Job {
    fn default() -> Self {
        // Ending something twice ends it once.
        Self { spec: input::spec::<Question>("job", include_str!("job.md"), Repeat::Safe) }
    }
}

impl Tool for Job {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn comes_with_locum(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            Ok(match input::parse::<Question>(input) {
                Ok(question) => question.answer(scope).await.unwrap_or_else(ToolOutput::failed),
                Err(output) => output,
            })
        })
    }
}

impl Question {
    async fn answer(self, scope: &ToolScope) -> Result<ToolOutput, String> {
        if self.stop == Some(true) {
            scope.jobs.stop(&scope.task, self.job).await;
        }
        let order = scope.jobs.order(&scope.task, &scope.root, &scope.cwd)?;
        let state = scope.jobs.look(&scope.task, self.job, &order);
        let state = state.ok_or_else(|| format!("there is no job {} of this task", self.job))?;
        let (end, bytes) = end_of(&state.output).map_err(|error| format!("its output cannot be read: {error}"))?;
        let stands = state.report.as_ref().map_or_else(|| "running".to_owned(), |report| bash::said(&report.end));
        let notes: String =
            state.report.iter().flat_map(|report| &report.notes).map(|note| format!("\n[{note}]")).collect();
        let head = match bytes > end.len() as u64 {
            true => format!("job {}: {stands}; the end of {} in {}", self.job, bounded::size(bytes), state.shown),
            false => format!("job {}: {stands}", self.job),
        };
        Ok(ToolOutput::ok(format!("{head}{notes}\n{}", String::from_utf8_lossy(&end)).trim_end().to_owned()))
    }
}

/// The end of a file, and how long the file is.
fn end_of(path: &Path) -> std::io::Result<(Vec<u8>, u64)> {
    let mut file = std::fs::File::open(path)?;
    let bytes = file.metadata()?.len();
    let tail = COMMAND_TAIL_BYTES as u64;
    file.seek(SeekFrom::Start(bytes.saturating_sub(tail)))?;
    let mut end = Vec::new();
    file.take(tail).read_to_end(&mut end)?;
    Ok((end, bytes))
}
