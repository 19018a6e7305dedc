//! Results: taking them, and reading them again.

use locum_core::limits;
use locum_core::neutral::neutralise;
use locum_core::protocol::request::ResultPage;
use locum_core::protocol::response::{Collected, ResultText};
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response};
use locum_core::session::{Lookup, SessionChange};
use locum_core::task::{Outcome, Status};

use super::Desk;
use super::spawn::is_open;
use super::wait::Ended;
use crate::engine::Finished;
use crate::store::TaskRow;

/// What stands at the end of a result that was cut (specification §4.1, word for word).
const NOTICE: &str = "[truncated — full response exceeded 1000 token limit]";

impl Desk {
    pub(super) async fn collect(&self, task_id: &str, face: &FaceDefaults) -> Result<Response, Refusal> {
        let row = self.uncollected(task_id).await?;
        if is_open(&row) {
            let message = format!("task {} is {}", row.summary.task_id, row.summary.standing.status.as_str());
            return Err(Refusal::new(Code::TaskNotReady, message).hint("wait for it, then collect"));
        }
        let collected = self.take(&row, face).await?;
        Ok(Response::Collected(Box::new(collected)))
    }

    /// Takes a finished task out of active tracking and presents it. Of two callers at once, one gets it.
    async fn take(&self, row: &TaskRow, face: &FaceDefaults) -> Result<Collected, Refusal> {
        let collected = self.presented(row, face).await?;
        let (task_id, at) = (row.summary.task_id, self.engine.hands.clock.now());
        let lookup = Lookup { tasks: vec![task_id], ..Lookup::default() };
        self.engine
            .decide(&self.session, lookup, move |_, view| {
                if view.tasks.get(&task_id).is_none_or(|known| known.collected) {
                    let message = format!("task {task_id} was collected already; `result` still has its text");
                    return Err(Refusal::new(Code::TaskNotFound, message).hint("use the action result"));
                }
                Ok((vec![SessionChange::Collect { task_id, at }], ()))
            })
            .await?;
        Ok(collected)
    }

    /// Presents a finished task to the caller that asked for it and waited, and takes it out of active tracking if
    /// nobody has yet: a request that is repeated under its idempotency key is answered as it was the first time.
    pub(super) async fn deliver(&self, ended: Ended, face: &FaceDefaults) -> Result<Collected, Refusal> {
        let Ended { row, known } = ended;
        let collected = match known {
            Some(finished) => present(&row, &finished, face),
            None => self.presented(&row, face).await?,
        };
        let (task_id, at) = (row.summary.task_id, self.engine.hands.clock.now());
        let lookup = Lookup { tasks: vec![task_id], ..Lookup::default() };
        self.engine
            .decide(&self.session, lookup, move |_, view| {
                let open = view.tasks.get(&task_id).is_some_and(|known| !known.collected);
                Ok((open.then_some(SessionChange::Collect { task_id, at }).into_iter().collect(), ()))
            })
            .await?;
        Ok(collected)
    }

    /// What `collect` answers about a task that has ended, as often as it is asked for. The task is collected then, if
    /// it was not before. For the first task of an errand it is what the whole request would have been answered, see
    /// [`Desk::keeping_errands`].
    ///
    /// # Errors
    ///
    /// There is no such task in the session, it has not ended, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It may be asked for again: dropped half-way, the task may be collected all the same.
    pub async fn outcome_of(&self, task_id: &str) -> Result<Response, Refusal> {
        let row = self.row(task_id).await?;
        if let Some(errand) = self.errand(&row.summary.uid).await? {
            return self.outcome_of_errand(&errand, &FaceDefaults::native()).await;
        }
        check_ended(&row)?;
        let collected = self.deliver(Ended { row, known: None }, &FaceDefaults::native()).await?;
        Ok(Response::Collected(Box::new(collected)))
    }

    async fn presented(&self, row: &TaskRow, face: &FaceDefaults) -> Result<Collected, Refusal> {
        Ok(present(row, &self.engine.finished(row).await?, face))
    }

    pub(super) async fn result(&self, request: &ResultPage) -> Result<Response, Refusal> {
        let row = self.row(&request.task_id).await?;
        check_ended(&row)?;
        let Finished { outcome, .. } = self.engine.finished(&row).await?;
        let limit = request.limit.unwrap_or(limits::RESULT_PAGE_CHARS_DEFAULT).clamp(1, limits::RESULT_PAGE_CHARS_MAX);
        let offset = request.offset.unwrap_or(0);
        let text = outcome.text();
        let total_chars = text.chars().count();
        let page: String = text.chars().skip(offset).take(limit).collect();
        let next = offset.saturating_add(limit);
        Ok(Response::ResultPage(ResultText {
            task_id: row.summary.task_id,
            status: outcome.status(),
            text: page,
            offset,
            next_offset: (next < total_chars).then_some(next),
            total_chars,
        }))
    }
}

/// Refuses what needs an end before there is one.
pub(super) fn check_ended(row: &TaskRow) -> Result<(), Refusal> {
    if is_open(row) {
        let message = format!("task {} is {}", row.summary.task_id, row.summary.standing.status.as_str());
        return Err(Refusal::new(Code::TaskNotReady, message).hint("wait for it first"));
    }
    Ok(())
}

fn present(row: &TaskRow, finished: &Finished, face: &FaceDefaults) -> Collected {
    let Finished { plan, outcome, worktree } = finished;
    let (text, cut) = bounded(outcome.text(), face.result_chars_max);
    let (result, partial_result) = match outcome {
        Outcome::Completed { .. } => (Some(text), None),
        Outcome::Failed { .. } | Outcome::Cancelled { .. } => (None, Some(text).filter(|text| !text.is_empty())),
    };
    let usage = row.summary.standing.usage.clone();
    let mut warnings = plan.warnings.clone();
    if outcome.status() == Status::Completed && !plan.grants.tools.is_empty() && usage.tool_calls == 0 {
        warnings.push("the agent has tools and used none: its answer rests on nothing it looked up".to_owned());
    }
    if let Some(problem) = worktree.as_ref().and_then(|worktree| worktree.problem.as_ref()) {
        warnings.push(format!("the work is in the worktree's directory and not on its branch: {problem}"));
    }
    Collected {
        task_id: plan.task_id,
        agent: plan.agent.name.clone(),
        status: outcome.status(),
        result,
        error: outcome.error().map(str::to_owned),
        reason: outcome.reason(),
        partial_result,
        turns_used: usage.turns,
        usage,
        receipt: plan.receipt.clone(),
        worktree: worktree.clone(),
        truncated: cut.then_some(true),
        warnings,
    }
}

/// The head of a text that an orchestrator reads, defused, and whether anything was cut.
pub(super) fn bounded(text: &str, chars_max: usize) -> (String, bool) {
    match text.char_indices().nth(chars_max) {
        None => (neutralise(text).into_owned(), false),
        Some((end, _)) => (format!("{}\n{NOTICE}", neutralise(&text[..end])), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_after_its_limit_in_characters_and_says_so() {
        let exact = "é".repeat(4000);
        assert_eq!(bounded(&exact, 4000), (exact.clone(), false));
        let (text, cut) = bounded(&format!("{exact}x"), 4000);
        assert!(cut);
        assert_eq!(text, format!("{exact}\n[truncated — full response exceeded 1000 token limit]"));
    }
}
