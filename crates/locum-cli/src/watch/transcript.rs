//! A task's log as a conversation that can be read, and the commands that it left in the background.

use locum::TaskId;
use locum::task::{Record, TaskEvent};
use locum::transcript::Reply;

use super::words;
use crate::commands::logs::Teller;

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
#[derive(Debug, Clone)]
pub(super) struct Transcript {
    pub(super) task: TaskId,
    pub(super) entries: Vec<Entry>,
    /// What is being said: the reply under way, as far as it was heard.
    pub(super) saying: String,
    teller: Teller,
}

impl Transcript {
    /// One that has nothing yet but how many entries of the log it leaves out.
    pub(super) fn new(task: TaskId, left_out: u64) -> Self {
        let notice = |left_out| Entry { speaker: Speaker::Event, text: earlier(task, left_out) };
        let entries = (left_out > 0).then(|| notice(left_out)).into_iter().collect();
        Self { task, entries, saying: String::new(), teller: Teller::default() }
    }

    /// From which entry of a log on it is worth to be read.
    pub(super) fn begins_after(seq: u64) -> u64 {
        seq.saturating_sub(ENTRIES_MAX as u64)
    }

    /// Takes up entries of the log. What was being said is whole then, or given up.
    pub(super) fn take_up(&mut self, records: &[Record]) {
        self.saying.clear();
        for record in records {
            let said = self.said(&record.event);
            self.entries.extend(said);
        }
        if self.entries.len() > 2 * ENTRIES_MAX {
            let first = records.last().map_or(0, |record| Self::begins_after(record.seq));
            self.entries.drain(..self.entries.len() - ENTRIES_MAX);
            self.entries.insert(0, Entry { speaker: Speaker::Event, text: earlier(self.task, first) });
        }
    }

    /// Takes up more of the reply under way.
    pub(super) fn overhear(&mut self, offset: usize, text: &str) {
        if offset != self.saying.len() {
            // What was missed is shown when the reply is whole.
            self.saying.push('…');
        }
        if self.saying.len() < SAID_CHARS_MAX {
            self.saying.push_str(text);
        }
    }

    /// More lines than it has on any screen that is wide enough to be read.
    pub(super) fn lines_max(&self) -> usize {
        let lines = |text: &str| text.lines().count() + text.len() / NARROWEST;
        self.entries.iter().map(|entry| lines(&entry.text)).sum::<usize>() + lines(&self.saying)
    }

    fn said(&mut self, event: &TaskEvent) -> Vec<Entry> {
        let told = self.teller.tell(event);
        let entry = |speaker, text: String| Entry { speaker, text };
        match event {
            TaskEvent::Accepted { plan, .. } => {
                vec![entry(Speaker::Event, told), entry(Speaker::Caller, head(&plan.assignment.task, SAID_CHARS_MAX))]
            }
            TaskEvent::Replied { reply, .. } => replied(reply),
            TaskEvent::ToolEnded { call_id, output, .. } => {
                let name = self.teller.call(call_id).map_or(call_id.as_str(), |call| &call.name);
                vec![entry(Speaker::Tool, format!("{name}: {}", head(output.text.trim(), TOOL_CHARS_MAX)))]
            }
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
            | TaskEvent::Ended { .. } => vec![entry(Speaker::Event, told)],
        }
    }
}

fn earlier(task: TaskId, count: u64) -> String {
    format!("{count} earlier entries; `locum logs {task}`")
}

/// A command in the background of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) task: TaskId,
    pub(super) agent: String,
    pub(super) number: u32,
    pub(super) command: String,
}

/// The commands that a task left in the background and that nobody has seen to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    pub(super) running: Vec<Job>,
    teller: Teller,
}

impl Jobs {
    /// Takes up entries of the log.
    pub(super) fn take_up(&mut self, task: TaskId, agent: &str, records: &[Record]) {
        for record in records {
            self.teller.take_up(&record.event);
            let TaskEvent::ToolEnded { call_id, output, .. } = &record.event else { continue };
            let Some(call) = self.teller.call(call_id) else { continue };
            if let Some(number) = number_after(&output.text, "started as job ") {
                let command = call.input.get("command").and_then(|command| command.as_str()).unwrap_or_default();
                let command = words::fit(command, TOOL_CHARS_MAX);
                self.running.push(Job { task, agent: agent.to_owned(), number, command });
            } else if let Some(number) = number_after(&output.text, "job ").filter(|_| call.name == "job") {
                let runs = output.text.starts_with(&format!("job {number}: running"));
                self.running.retain(|job| job.number != number || runs);
            }
        }
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
    let saying = Entry { speaker: Speaker::Agent, text: transcript.saying.trim().to_owned() };
    let under_way = (!saying.text.is_empty()).then_some(&saying);
    for entry in under_way.into_iter().chain(transcript.entries.iter().rev()) {
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
        Transcript { entries: entries.collect(), ..Transcript::new(TaskId::new(1), 0) }
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

    #[test]
    fn what_is_being_said_is_shown_last_until_it_is_whole() {
        let mut said = transcript(&["one"]);
        let shown = |said: &Transcript| window(said, 20, 9, 0).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        said.overhear(0, "two ");
        said.overhear(4, "three");
        assert_eq!(shown(&said), ["one", "two three"]);
        said.overhear(99, "later");
        assert_eq!(shown(&said), ["one", "two three…later"]);
        said.take_up(&[]);
        assert_eq!(shown(&said), ["one"]);
    }
}
