//! Plays a script through the real task machine, as a driver would: ask what is next, do it, append what happened.

use std::sync::Arc;

use locum_core::ids::Timestamp;
use locum_core::task::{
    LAST_ANSWER_NOTICE, LAST_TURN_NOTICE, Outcome, Record, Step, Task, TaskEvent, Workspace, Worktree,
};
use locum_core::transcript::{Message, Repeat, ToolCall, ToolEnd, ToolOutput, ToolSpec, ToolUse};
use locum_core::usage::TokenCount;

use crate::script::{ModelCall, Script, escape};
use crate::world::NOW;

/// No script needs more; a machine that does has lost its way.
const STEPS_MAX: usize = 5000;

/// In which order calls that run at once end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    InOrder,
    Reversed,
}

/// What playing a script came to.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) task: Task,
    pub(crate) log: Vec<Record>,
    /// What happened, in the language of scripts.
    pub(crate) lines: Vec<String>,
    /// The tool calls that were really made, with the answer that asked for them.
    pub(crate) executed: Vec<(usize, ToolCall, Repeat)>,
}

impl Played {
    pub(crate) fn outcome(&self) -> &Outcome {
        self.task.outcome().unwrap()
    }
}

/// Plays a script from its beginning.
pub(crate) fn play(script: &Script, ends: Ends) -> Played {
    let first = record(1, script.accepted());
    let task = Task::accepted(first.clone()).unwrap();
    Stage::new(script, task, vec![first], ends).play()
}

/// Plays a script on from a log that another process left.
pub(crate) fn resume(script: &Script, log: &[Record], ends: Ends) -> Played {
    let task = Task::replay(log.to_vec()).unwrap();
    Stage::new(script, task, log.to_vec(), ends).play()
}

/// An entry, one second after the one before.
pub(crate) fn record(seq: u64, event: TaskEvent) -> Record {
    Record { seq, at: Timestamp::from_millis(NOW.millis() + i64::try_from(seq).unwrap() * 1000), event }
}

struct Stage<'a> {
    script: &'a Script,
    ends: Ends,
    played: Played,
    /// Model calls that were answered or failed.
    answers: usize,
    /// How many of them came from models that gave up.
    replaced: usize,
    /// Ended tool calls of the last answer.
    outputs: usize,
}

impl<'a> Stage<'a> {
    fn new(script: &'a Script, task: Task, log: Vec<Record>, ends: Ends) -> Self {
        let played = Played { task, log: Vec::new(), lines: Vec::new(), executed: Vec::new() };
        let mut stage = Self { script, ends, played, answers: 0, replaced: 0, outputs: 0 };
        for record in log {
            stage.note(&record.event);
            stage.played.log.push(record);
        }
        stage
    }

    fn play(mut self) -> Played {
        for _ in 0..STEPS_MAX {
            match self.played.task.next_step() {
                Step::Park => self.append(TaskEvent::Released { inputs: self.script.inputs.clone() }),
                Step::Record(event) => self.append(event),
                Step::PrepareWorkspace => self.append(TaskEvent::WorkspaceReady { workspace: workspace() }),
                Step::CloseWorkspace => self.append(TaskEvent::WorkspaceClosed { worktree: worktree() }),
                Step::CallModel { turn } => self.call_model(turn),
                Step::CallTools { turn, calls, repeat } => self.call_tools(turn, &calls, repeat),
                Step::Done => return self.played,
            }
        }
        panic!("no end after {STEPS_MAX} steps: {:#?}", self.played.lines)
    }

    fn append(&mut self, event: TaskEvent) {
        self.note(&event);
        let record = record(self.played.task.seq() + 1, event);
        self.played.task.apply(record.clone()).unwrap();
        self.played.log.push(record);
    }

    fn call_model(&mut self, turn: u32) {
        self.note_prompt();
        if self.stops_here() {
            self.stop();
            return;
        }
        let event = match self.script.answers.get(self.answers).map(|answer| &answer.call) {
            Some(ModelCall::Replies(reply)) => TaskEvent::Replied { turn, reply: reply.clone() },
            Some(ModelCall::Fails(failure, retry_in_ms)) => {
                let cut = failure.partial.as_ref().map(|text| text.chars().count());
                let tokens = cut.map_or_else(TokenCount::default, |chars| self.played.task.spent_by_cut_call(chars));
                TaskEvent::ModelFailed { turn, failure: failure.clone(), retry_in_ms: *retry_in_ms, tokens }
            }
            None => panic!("the script ends too early: {:#?}", self.played.lines),
        };
        self.append(event);
    }

    fn call_tools(&mut self, turn: u32, calls: &[ToolCall], repeat: Repeat) {
        assert!(repeat == Repeat::Safe || calls.len() == 1, "unrepeatable calls run alone");
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        self.played.lines.push(format!("~ {}", names.join(" ")));
        let answer = self.answers - 1;
        for call in calls {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            self.append(TaskEvent::ToolStarted { turn, call_id, name, repeat, intent: None, consent: None });
            self.played.executed.push((answer, call.clone(), repeat));
        }
        let mut ending: Vec<&ToolCall> = calls.iter().collect();
        if self.ends == Ends::Reversed {
            ending.reverse();
        }
        for call in ending {
            if self.stops_here() && self.outputs == self.script.stop.as_ref().map_or(0, |stop| stop.outputs) {
                self.stop();
                return;
            }
            let output = self.script.output(answer, call);
            self.append(TaskEvent::ToolEnded { turn, call_id: call.id.clone(), output, duration_ms: 5 });
        }
    }

    /// Whether the script stops the task after the last answer.
    fn stops_here(&self) -> bool {
        self.script.stop.as_ref().is_some_and(|stop| stop.answers == self.answers)
    }

    fn stop(&mut self) {
        let cause = self.script.stop.as_ref().map(|stop| stop.cause.clone()).unwrap();
        self.append(TaskEvent::Stopped { cause, partial: None });
    }

    fn note_prompt(&mut self) {
        let specs: Arc<[ToolSpec]> = Arc::from([]);
        let prompt = self.played.task.prompt(&specs);
        assert_eq!(prompt.call as usize, self.answers - self.replaced, "the position in the script of the model");
        let mut lines = Vec::new();
        if self.answers == 0 {
            if self.script.shows_system {
                lines.push(format!("system {}", prompt.system.lines().next().unwrap()));
            }
            let Some(Message::User(text)) = prompt.messages.first() else { panic!("{:?}", prompt.messages) };
            lines.push(format!("user {}", escape(text)));
        }
        match prompt.notice {
            Some(LAST_TURN_NOTICE) => lines.push("last turn".to_owned()),
            Some(LAST_ANSWER_NOTICE) => lines.push("last answer".to_owned()),
            Some(text) => lines.push(format!("told {text}")),
            None => {}
        }
        let last = matches!(prompt.notice, Some(LAST_TURN_NOTICE | LAST_ANSWER_NOTICE));
        assert_eq!(last, prompt.tool_use == ToolUse::Forbidden);
        self.played.lines.extend(lines);
    }

    fn note(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Accepted { .. }
            | TaskEvent::Released { .. }
            | TaskEvent::TurnStarted { .. }
            | TaskEvent::TurnDeclined { .. }
            | TaskEvent::BudgetNearing { .. }
            | TaskEvent::ToolStarted { .. } => {}
            TaskEvent::Replied { .. } | TaskEvent::ModelFailed { .. } => {
                self.played.lines.push(format!("> {}", self.answers));
                self.answers += 1;
                self.outputs = 0;
            }
            TaskEvent::ModelReplaced { from, to, why, .. } => {
                self.replaced = self.answers;
                self.played.lines.push(format!("{from} -> {to}: {why}"));
            }
            TaskEvent::ToolEnded { call_id, output, .. } => {
                self.outputs += 1;
                let line = output_line(self.tool_of(call_id), output);
                self.played.lines.push(line);
            }
            TaskEvent::WorkspaceReady { workspace } => self.played.lines.push(format!("+ {}", workspace.branch)),
            TaskEvent::WorkspaceClosed { worktree } => {
                self.played.lines.push(format!("- {}: {} changed", worktree.branch, worktree.files_changed));
            }
            TaskEvent::Stopped { cause, .. } => self.played.lines.push(format!("! {cause:?}")),
            // Nobody loses a worker or has processes here.
            TaskEvent::WorkerLost { .. } | TaskEvent::ProcessesEnded { .. } => {}
            TaskEvent::Ended { outcome } => self.played.lines.push(format!("= {}", outcome_line(outcome))),
        }
    }

    fn tool_of(&self, call_id: &str) -> &str {
        let Some(ModelCall::Replies(reply)) = self.script.answers.get(self.answers - 1).map(|answer| &answer.call)
        else {
            panic!("the last answer called no tools")
        };
        // Where ids repeat, calls of the same id are answered in their order.
        let ended = self.played.log.iter().rev().map_while(|record| match &record.event {
            TaskEvent::Replied { .. } => None,
            other => Some(other),
        });
        let before = ended.filter(|event| matches!(event, TaskEvent::ToolEnded { call_id: id, .. } if id == call_id));
        let calls = reply.tool_calls.iter().filter(|call| call.id == call_id);
        let place = before.count();
        calls.map(|call| call.name.as_str()).nth(place).unwrap()
    }
}

/// A worktree, as it is when its task starts.
pub(crate) fn workspace() -> Workspace {
    Workspace {
        path: "/state/worktrees/u".into(),
        branch: "locum/u".into(),
        base: "abc".into(),
        dirty_left_out: 2,
        dirty_taken: 0,
    }
}

/// The same, after its task has ended.
pub(crate) fn worktree() -> Worktree {
    Worktree { files_changed: 1, problem: None, ..Worktree::unseen(&workspace(), String::new()) }
}

fn output_line(name: &str, output: &ToolOutput) -> String {
    let end = match output.end {
        ToolEnd::Ok => "",
        ToolEnd::Failed => " failed",
        ToolEnd::Denied => " denied",
        ToolEnd::Unknown => " unknown",
    };
    format!("< {name}{end}: {}", escape(&output.text))
}

fn outcome_line(outcome: &Outcome) -> String {
    let with_partial = |partial: &Option<String>| partial.as_ref().map_or(String::new(), |text| format!(" | {text}"));
    match outcome {
        Outcome::Completed { text } => format!("completed: {}", escape(text)),
        Outcome::Failed { reason, error, partial } => {
            format!("failed({}): {error}{}", reason.as_str(), with_partial(partial))
        }
        Outcome::Cancelled { partial } => format!("cancelled{}", with_partial(partial)),
    }
}
