//! What tallow's callers read: the texts of its answers.

use std::borrow::Cow;

use locum_core::ids::TaskId;
use locum_core::limits;
use locum_core::protocol::response::{AgentLine, Collected, Parallel, ParallelResult, TaskIds};
use locum_core::task::{Reason, Status};

use super::super::cut::head;
use super::super::{FaceAnswer, asking};
use super::result::{Details, is_substituted, source};
use crate::desk::Desk;

/// What helps where workers stall.
const STALLED: &str = "Stalled workers can be asked again one by one, with a narrower task or another model; \
                       LOCUM_SUBAGENT_INACTIVITY_TIMEOUT_MS gives slow models more time.";

/// The id under which tallow's callers know a task: with its session, where the call named one.
pub(super) fn background_id(task_id: TaskId, session: Option<&str>) -> String {
    let ours = task_id.to_string();
    let number = ours.trim_start_matches("t_");
    session.map_or_else(|| format!("bg_{number}"), |session| format!("bg_{number}@{session}"))
}

/// The task of an id that tallow's callers know, and the session that it names.
pub(super) fn task_of(background_id: &str) -> Option<(TaskId, Option<&str>)> {
    let id = background_id.strip_prefix("bg_")?;
    let (number, session) = id.split_once('@').map_or((id, None), |(number, session)| (number, Some(session)));
    Some((TaskId::parse(&format!("t_{number}")).ok()?, session))
}

pub(super) fn is_completed(task: &Collected) -> bool {
    task.status == Status::Completed
}

/// A complaint, with who can be asked.
pub(super) fn invalid(complaint: &str, agents: &[AgentLine]) -> String {
    let agents: Vec<String> =
        agents.iter().map(|agent| format!("{} ({})", agent.name, source(&agent.source))).collect();
    format!("{complaint}\nAvailable agents: {}", agents.join(", "))
}

/// One task's answer.
pub(super) fn single(desk: &Desk, task: &Collected, details: &Details) -> FaceAnswer {
    let text = if is_completed(task) {
        outcome(desk, task)
    } else {
        format!("Agent {}: {}", state(task), outcome(desk, task))
    };
    FaceAnswer::content(format!("{}{text}", substitution(task)), Some(details), !is_completed(task))
}

/// Every task's answer, in the order in which they were asked.
pub(super) fn parallel(desk: &Desk, answer: &Parallel, details: &Details) -> FaceAnswer {
    let Parallel { results, completed, failed, stalled } = answer;
    let total = results.len();
    let mut text =
        format!("Parallel: {total}/{total} done ({completed} completed, {failed} failed, {stalled} stalled)");
    let batches = total.div_ceil(limits::TALLOW_BATCH);
    for (place, result) in results.iter().enumerate() {
        if batches > 1 && place % limits::TALLOW_BATCH == 0 {
            text.push_str(&format!("\n\nBatch {} of {batches}", place / limits::TALLOW_BATCH + 1));
        }
        text.push_str("\n\n");
        text.push_str(&match result {
            ParallelResult::Collected(task) => {
                format!("[{}] {}:\n{}{}", task.agent, state(task), substitution(task), outcome(desk, task))
            }
            ParallelResult::Refused(refused) => {
                format!("[{}] failed:\n{}", refused.agent, asking::words(&refused.refusal))
            }
        });
    }
    if *stalled > 0 {
        text.push_str(&format!("\n\n{STALLED}"));
    }
    FaceAnswer::content(text, Some(details), failed + stalled > 0)
}

/// The last step's answer, or where it stopped.
pub(super) fn centipede(desk: &Desk, steps: &[Collected], details: &Details) -> FaceAnswer {
    let substitutions: String = steps.iter().map(substitution).collect();
    let Some(last) = steps.last() else { return FaceAnswer::content(String::new(), Some(details), true) };
    let text = if is_completed(last) {
        outcome(desk, last)
    } else {
        format!("Centipede stopped at step {} ({}): {}", steps.len(), last.agent, outcome(desk, last))
    };
    FaceAnswer::content(format!("{substitutions}{text}"), Some(details), !is_completed(last))
}

/// What was started in the background.
pub(super) fn started(ids: &TaskIds, session: Option<&str>, details: &Details) -> FaceAnswer {
    let TaskIds { task_ids, refused } = ids;
    let started = task_ids.iter().map(|id| format!("Started background subagent: {}", background_id(*id, session)));
    let failed = refused.iter().map(|entry| format!("[{}] failed: {}", entry.agent, asking::words(&entry.refusal)));
    let hint = (!task_ids.is_empty()).then(|| "Use subagent_status to check progress.".to_owned());
    let lines: Vec<String> = started.chain(failed).chain(hint).collect();
    FaceAnswer::content(lines.join("\n"), Some(details), !refused.is_empty())
}

/// The word for how a task ended.
pub(super) fn state(task: &Collected) -> &'static str {
    match task.reason {
        Some(Reason::Stalled) => "stalled",
        _ => task.status.as_str(),
    }
}

/// What a task came to: its answer, or why there is none and what it had said before.
fn outcome(desk: &Desk, task: &Collected) -> String {
    let said = task.result.as_deref().or(task.partial_result.as_deref()).unwrap_or_default();
    let said = whole(desk, task.task_id, said);
    let why = match (task.status, task.reason) {
        (Status::Completed, _) => return said.into_owned(),
        (_, Some(Reason::MaxTurns)) => {
            let terminated = terminated(task.receipt.max_turns);
            return if said.is_empty() { terminated } else { format!("{said}\n\n{terminated}") };
        }
        _ => task.error.as_deref().unwrap_or("cancelled"),
    };
    if said.is_empty() { why.to_owned() } else { format!("{why}\n\nPartial result:\n{said}") }
}

/// What stands at the end of a result whose task ran out of turns.
pub(super) fn terminated(max_turns: u32) -> String {
    format!("[Terminated: reached maxTurns limit of {max_turns}]")
}

/// A result as far as it is shown, with where the rest is.
pub(super) fn whole<'a>(desk: &Desk, task_id: TaskId, text: &'a str) -> Cow<'a, str> {
    match head(text, limits::FACE_RESULT_BYTES_MAX, usize::MAX) {
        None => Cow::Borrowed(text),
        Some(head) => Cow::Owned(format!(
            "{head}\n[cut at 200 KiB: `locum result {task_id} --session {}` has all of it]",
            desk.session().id
        )),
    }
}

/// Who has worked on a task in the place of whom, if it is not who was named.
fn substitution(task: &Collected) -> String {
    if !is_substituted(task) {
        return String::new();
    }
    let agent = &task.receipt.agent;
    let requested: String = agent.requested.chars().take(80).collect();
    format!("[agent: {requested} → {} ({})]\n", agent.resolved, agent.how)
}
