//! A task's log as a conversation that can be read, and the commands that it left in the background.

use locum::TaskId;
use locum::task::{Record, TaskEvent};
use locum::transcript::{Reply, ToolCall};

use super::words;
use crate::commands::logs;

/// How many entries of a log are kept, from its end.
const ENTRIES_MAX: usize = 400;

/// How many characters of what was said are kept.
const SAID_CHARS_MAX: usize = 4_000;

/// How many characters of what a tool returned, or was given, are kept.
const TOOL_CHARS_MAX: usize = 400;

/// Columns of the narrowest screen that scrolling is meant for.
const NARROWEST: usize = 20;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// Whoever delegated.
    Caller,
    /// The agent.
    Agent,
    /// A tool: chatter beside what is said.
    Tool,
    /// What happened to the task.
    Event,
}

/// One thing that was said or happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) speaker: Speaker,
    pub(super) text: String,
}

/// What was said in a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transcript {
    pub(super) task: TaskId,
    pub(super) entries: Vec<Entry>,
}

impl Transcript {
    /// More lines than it has on any screen that is wide enough to be read.
    pub(super) fn lines_max(&self) -> usize {
        self.entries.iter().map(|entry| entry.text.lines().count() + entry.text.len() / NARROWEST).sum()
    }
}

/// A command in the background of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) task: TaskId,
    pub(super) agent: String,
    pub(super) number: u32,
    pub(super) command: String,
}

/// The conversation of a log.
pub(super) fn of_log(task: TaskId, records: &[Record]) -> Transcript {
    let from = records.len().saturating_sub(ENTRIES_MAX);
    let mut entries = Vec::new();
    if from > 0 {
        entries.push(Entry { speaker: Speaker::Event, text: format!("{from} earlier entries; `locum logs {task}`") });
    }
    for record in &records[from..] {
        entries.extend(said(&record.event));
    }
    Transcript { task, entries }
}

fn said(event: &TaskEvent) -> Vec<Entry> {
    let entry = |speaker, text: String| Entry { speaker, text };
    match event {
        TaskEvent::Accepted { plan, .. } => vec![
            entry(Speaker::Event, logs::describe(event)),
            entry(Speaker::Caller, head(&plan.assignment.task, SAID_CHARS_MAX)),
        ],
        TaskEvent::Replied { reply, .. } => replied(reply),
        TaskEvent::ToolEnded { output, .. } => vec![entry(Speaker::Tool, head(output.text.trim(), TOOL_CHARS_MAX))],
        // A turn shows itself by its answer, a call by what it returns.
        TaskEvent::TurnStarted { .. } | TaskEvent::ToolStarted { .. } => Vec::new(),
        TaskEvent::Released { .. }
        | TaskEvent::WorkspaceReady { .. }
        | TaskEvent::WorkspaceClosed { .. }
        | TaskEvent::TurnDeclined { .. }
        | TaskEvent::BudgetNearing { .. }
        | TaskEvent::ModelFailed { .. }
        | TaskEvent::ModelReplaced { .. }
        | TaskEvent::Stopped { .. }
        | TaskEvent::WorkerLost { .. }
        | TaskEvent::ProcessesEnded { .. }
        | TaskEvent::Ended { .. } => vec![entry(Speaker::Event, logs::describe(event))],
    }
}

fn replied(reply: &Reply) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !reply.text.trim().is_empty() {
        entries.push(Entry { speaker: Speaker::Agent, text: head(reply.text.trim(), SAID_CHARS_MAX) });
    }
    for call in &reply.tool_calls {
        let text = format!("{} {}", call.name, words::fit(&call.input.to_string(), TOOL_CHARS_MAX));
        entries.push(Entry { speaker: Speaker::Event, text });
    }
    entries
}

/// The commands that a task left in the background and that nobody has seen to end.
pub(super) fn jobs_of(task: TaskId, agent: &str, records: &[Record]) -> Vec<Job> {
    let mut calls: Vec<&ToolCall> = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    for record in records {
        match &record.event {
            TaskEvent::Replied { reply, .. } => calls = reply.tool_calls.iter().collect(),
            TaskEvent::ToolEnded { call_id, output, .. } => {
                let Some(call) = calls.iter().find(|call| call.id == *call_id) else { continue };
                if let Some(number) = number_after(&output.text, "started as job ") {
                    let command = call.input.get("command").and_then(|command| command.as_str()).unwrap_or_default();
                    let command = words::fit(command, TOOL_CHARS_MAX);
                    jobs.push(Job { task, agent: agent.to_owned(), number, command });
                } else if let Some(number) = number_after(&output.text, "job ").filter(|_| call.name == "job") {
                    let runs = output.text.starts_with(&format!("job {number}: running"));
                    jobs.retain(|job| job.number != number || runs);
                }
            }
            _ => {}
        }
    }
    jobs
}

fn number_after(text: &str, words: &str) -> Option<u32> {
    let rest = text.strip_prefix(words)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The beginning of a text.
fn head(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Part of a transcript as lines of a width, so many from its end; and how many there are behind them at most.
pub(super) fn window(transcript: &Transcript, width: usize, height: usize, back: usize) -> Vec<(Speaker, String)> {
    let mut lines: Vec<(Speaker, String)> = Vec::new();
    // From the end, and no further than what is seen: a long log costs no more than a short one.
    for entry in transcript.entries.iter().rev() {
        if lines.len() >= height + back {
            break;
        }
        let inset = if entry.speaker == Speaker::Agent { 0 } else { 2 };
        let wrapped = words::wrap(&entry.text, width.saturating_sub(inset));
        let (mark, blank) = match entry.speaker {
            Speaker::Caller => ("> ", "  "),
            Speaker::Agent => ("", ""),
            Speaker::Tool => ("  ", "  "),
            Speaker::Event => ("· ", "  "),
        };
        for (number, line) in wrapped.into_iter().enumerate().rev() {
            let mark = if number == 0 { mark } else { blank };
            lines.push((entry.speaker, format!("{mark}{line}")));
        }
    }
    let skipped = back.min(lines.len().saturating_sub(height));
    let mut shown: Vec<(Speaker, String)> = lines.into_iter().skip(skipped).take(height).collect();
    shown.reverse();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(texts: &[&str]) -> Transcript {
        let entries = texts.iter().map(|text| Entry { speaker: Speaker::Agent, text: (*text).to_owned() });
        Transcript { task: TaskId::new(1), entries: entries.collect() }
    }

    #[test]
    fn a_window_shows_the_end_and_stops_at_the_beginning() {
        let said = transcript(&["one", "two\nthree", "four"]);
        let cases: [(usize, &[&str]); 4] =
            [(0, &["three", "four"]), (1, &["two", "three"]), (2, &["one", "two"]), (9, &["one", "two"])];
        for (back, lines) in cases {
            let shown: Vec<String> = window(&said, 10, 2, back).into_iter().map(|(_, line)| line).collect();
            assert_eq!(shown, lines, "{back} lines back");
        }
    }
}
