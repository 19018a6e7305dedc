//! Running the tool calls of one reply.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::try_join_all;
use locum_core::agent::tool_names;
use locum_core::limits;
use locum_core::neutral::neutralise;
use locum_core::permission::{Rule, Subject, Verdict};
use locum_core::task::Task;
use locum_core::task::event::{Activity, StopCause};
use locum_core::transcript::{Intent, Repeat, ToolCall, ToolEnd, ToolOutput};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attend::{Attention, Heard, Interrupt};
use crate::asking::{Answer, Question};
use crate::desk::Desk;
use crate::hands::Hands;
use crate::jobs::TaskBadge;
use crate::operation_log::Operation;
use crate::tools::ToolScope;

/// What one call returned and how long it took.
pub(super) struct Ran {
    pub(super) output: ToolOutput,
    pub(super) duration_ms: u64,
}

/// Runs calls at once. An interrupt ends them all: their stop token is set and they are no longer waited for.
pub(super) async fn run(
    task: &Task,
    hands: &Hands,
    desk: &Desk,
    attention: &Attention,
    running: &Running,
) -> Result<Vec<Ran>, Interrupt> {
    let stop = CancellationToken::new();
    // Blocking work that outlives its future sees this and ends.
    let _ended = stop.clone().drop_guard();
    let scope = ToolScope { intent: running.intent.clone(), ..scope(task, hands, desk, stop) };
    try_join_all(running.calls.iter().map(|call| run_one(task, hands, attention, &scope, call))).await
}

/// Decides which of some calls may be made, before anything is recorded or done: by the rules of the plan, and by what
/// a tool says that it would do.
pub(super) async fn clear(
    task: &Task,
    hands: &Hands,
    desk: &Desk,
    attention: &Attention,
    calls: Vec<ToolCall>,
) -> Result<Cleared, Interrupt> {
    let mut cleared = Cleared::default();
    let permissions = &task.plan().grants.permissions;
    let stop = CancellationToken::new();
    let _ended = stop.clone().drop_guard();
    let scope = scope(task, hands, desk, stop);
    for call in calls {
        // What was announced before a crash was allowed then, and is only made where nothing has changed.
        if let Some(intent) = task.intent(&call.id) {
            let intent = Some(intent.clone());
            cleared.granted.push(Granted { intent, ..Granted::freely(call) });
            continue;
        }
        let Some(tool) = hands.tools.get(&call.name) else {
            cleared.granted.push(Granted::freely(call));
            continue;
        };
        let preparing = AssertUnwindSafe(async { tool.prepare(&call.input, &scope).await }).catch_unwind();
        let prepared = match attention.attend(preparing, Activity::Tool, &Heard::new()).await? {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(output)) => {
                log(task, hands, &call, status_of(output.end), &output.text);
                cleared.refused.push((call, output));
                continue;
            }
            Err(_) => {
                let output = ToolOutput::failed(format!("The tool `{}` failed inside and gave no answer.", call.name));
                cleared.refused.push((call, output));
                continue;
            }
        };
        match permissions.judge(&call.name, &prepared.subject) {
            Verdict::Allowed => cleared.granted.push(Granted { intent: prepared.intent, ..Granted::freely(call) }),
            Verdict::Denied { why } => cleared.refuse(task, hands, call, &why),
            Verdict::Ask { rule } => {
                let wanted = format!("the rule `{rule}` wants a person to agree");
                let question = question(task, &call, &prepared.subject, &rule);
                match ask(&question, hands, attention).await? {
                    Answer::Yes => {
                        let consent = Some(rule.to_string());
                        cleared.granted.push(Granted { call, intent: prepared.intent, consent });
                    }
                    Answer::No => cleared.refuse(task, hands, call, &format!("{wanted}, and the person did not")),
                    Answer::Nobody => {
                        cleared.refuse(task, hands, call, &format!("{wanted}, and nobody can be asked here"));
                    }
                }
            }
        }
    }
    Ok(cleared)
}

/// What a person is asked about a call.
fn question(task: &Task, call: &ToolCall, subject: &Subject, rule: &Rule) -> Question {
    let about = match subject {
        Subject::Path(text) | Subject::Command(text) | Subject::Address(text) | Subject::Text(text) => text.clone(),
        Subject::Nothing => call.input.to_string(),
    };
    Question {
        session: task.plan().session.id.clone(),
        task: task.plan().task_id,
        agent: task.plan().agent.name.clone(),
        tool: call.name.clone(),
        about: neutralise(&about).chars().take(limits::QUESTION_CHARS_MAX).collect(),
        rule: rule.to_string(),
    }
}

/// Asks whoever can be asked. Their silence is not the task's.
async fn ask(question: &Question, hands: &Hands, attention: &Attention) -> Result<Answer, Interrupt> {
    let Some(asker) = &hands.asker else { return Ok(Answer::Nobody) };
    let heard = Heard::new();
    heard.hold();
    attention.attend(asker.ask(question), Activity::Tool, &heard).await
}

/// What may be done, and what is answered instead of being done.
#[derive(Default)]
pub(super) struct Cleared {
    pub(super) granted: Vec<Granted>,
    pub(super) refused: Vec<(ToolCall, ToolOutput)>,
}

impl Cleared {
    /// Calls about which there is nothing to decide.
    pub(super) fn freely(calls: Vec<ToolCall>) -> Self {
        Self { granted: calls.into_iter().map(Granted::freely).collect(), refused: Vec::new() }
    }

    fn refuse(&mut self, task: &Task, hands: &Hands, call: ToolCall, why: &str) {
        log(task, hands, &call, status_of(ToolEnd::Denied), why);
        let output = ToolOutput::forbidden(&call.name, why);
        self.refused.push((call, output));
    }
}

/// A call that may be made.
pub(super) struct Granted {
    pub(super) call: ToolCall,
    pub(super) intent: Option<Intent>,
    /// The rule that a person agreed to.
    pub(super) consent: Option<String>,
}

impl Granted {
    fn freely(call: ToolCall) -> Self {
        Self { call, intent: None, consent: None }
    }
}

/// Calls whose start is recorded.
pub(super) struct Running {
    pub(super) calls: Vec<ToolCall>,
    /// What the one that changes a file has announced.
    pub(super) intent: Option<Intent>,
    pub(super) repeat: Repeat,
}

pub(crate) fn scope(task: &Task, hands: &Hands, desk: &Desk, stop: CancellationToken) -> ToolScope {
    let grants = &task.plan().grants;
    ToolScope {
        root: PathBuf::from(task.root()),
        cwd: PathBuf::from(&grants.cwd),
        identity: task.plan().lineage.identity.clone(),
        stop,
        intent: None,
        files: Arc::clone(task.files()),
        permissions: grants.permissions.clone(),
        writers: Arc::clone(&hands.writers),
        seals: Arc::clone(&hands.seals),
        pool: Arc::clone(&hands.pool),
        task: TaskBadge::of(task.plan()),
        jobs: Arc::clone(&hands.jobs),
        desk: desk.for_task(task),
    }
}

async fn run_one(
    task: &Task,
    hands: &Hands,
    attention: &Attention,
    scope: &ToolScope,
    call: &ToolCall,
) -> Result<Ran, Interrupt> {
    let started = Instant::now();
    let Some(tool) = hands.tools.get(&call.name) else {
        let output = ToolOutput::failed(format!("The tool `{}` is not available here any more.", call.name));
        return Ok(Ran { output, duration_ms: 0 });
    };
    // The call itself is inside too: a tool may break before it returns its future.
    let running = AssertUnwindSafe(async { tool.call(call.input.clone(), scope).await }).catch_unwind();
    let heard = Heard::new();
    if call.name == tool_names::SUBAGENT {
        // Whoever waits for others is as alive as they are, and each of them is watched.
        heard.hold();
    }
    let output = match attention.attend(running, Activity::Tool, &heard).await {
        Ok(Ok(Ok(output))) => bounded(output),
        Ok(Ok(Err(error))) => {
            let (turn, details) = (task.usage().turns, error.to_string());
            log(task, hands, call, "failed", &details);
            return Err(Interrupt::Stop(StopCause::ToolLayer { turn, details }));
        }
        Ok(Err(_)) => ToolOutput::failed(format!("The tool `{}` failed inside and gave no answer.", call.name)),
        Err(interrupt) => {
            log(task, hands, call, "interrupted", "");
            return Err(interrupt);
        }
    };
    log(task, hands, call, status_of(output.end), &output.text);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Ran { output, duration_ms })
}

/// Whatever a tool returns, no more than this reaches the model.
fn bounded(mut output: ToolOutput) -> ToolOutput {
    let most = limits::TOOL_RESULT_BYTES_MAX;
    if output.text.len() > most {
        let end = (0..=most).rev().find(|end| output.text.is_char_boundary(*end)).unwrap_or(0);
        let left = output.text.len() - end;
        output.text.truncate(end);
        output.text.push_str(&format!("\n[{left} more bytes not shown]"));
    }
    output
}

fn status_of(end: ToolEnd) -> &'static str {
    match end {
        ToolEnd::Ok => "ok",
        ToolEnd::Failed => "failed",
        ToolEnd::Denied => "denied",
        ToolEnd::Unknown => "unknown",
    }
}

fn log(task: &Task, hands: &Hands, call: &ToolCall, status: &str, output: &str) {
    if !hands.log.is_open() {
        return;
    }
    let payload = hands.log.wants_payloads().then(|| serde_json::json!({"input": call.input, "output": output}));
    hands.log.write(&Operation {
        timestamp: hands.clock.now(),
        session: task.plan().session.id.as_str(),
        task: Some(task.plan().task_id.to_string()),
        agent: Some(task.plan().agent.name.as_str()),
        action: &call.name,
        status,
        turns: Some(task.usage().turns),
        change: None,
        payload,
    });
}
