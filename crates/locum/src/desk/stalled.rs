//! Entries of a `parallel` that stalled: each is tried once more, alone, with less to do and the same model, if nothing
//! was done that cannot be done twice.

use locum_core::protocol::response::{Collected, ParallelResult};
use locum_core::protocol::{FaceDefaults, Refusal, SpawnEntry};
use locum_core::task::{Reason, TaskEvent};
use locum_core::transcript::Repeat;

use super::Desk;
use super::spawn::{Started, Together};

/// Said to the second attempt, after the task.
const GUIDANCE: &str = "\n\nAn earlier attempt at this task stalled. Narrow its scope: do the most important part first, \
                        in few and short steps, and answer with what you have.";

/// Said of a task that stalled twice.
const REMEDY: &str = "it stalled again: split the task into smaller ones, name another model, or give it more time with \
                      watchdog.inactivity_timeout_ms or watchdog.tool_timeout_ms";

impl Desk {
    /// Tries those that stalled once more, one by one.
    pub(super) async fn retry_stalled(
        &self,
        entries: &[SpawnEntry],
        results: &mut [ParallelResult],
        face: &FaceDefaults,
    ) -> Result<(), Refusal> {
        for (entry, result) in entries.iter().zip(results) {
            let ParallelResult::Collected(stalled) = result else { continue };
            if stalled.reason != Some(Reason::Stalled) {
                continue;
            }
            if self.has_acted(stalled).await? {
                let why = "it was not tried again: it has done something that must not be done twice";
                stalled.warnings.push(why.to_owned());
                continue;
            }
            match self.try_again(entry, stalled, face).await? {
                Ok(second) => **stalled = second,
                Err(refusal) => stalled.warnings.push(format!("it could not be tried again: {}", refusal.message)),
            }
        }
        Ok(())
    }

    /// Whether a task has made a call that must not be made twice.
    async fn has_acted(&self, task: &Collected) -> Result<bool, Refusal> {
        let acts = |event: &TaskEvent| matches!(event, TaskEvent::ToolStarted { repeat: Repeat::Unsafe, .. });
        Ok(self.log_of(&task.task_id.to_string()).await?.iter().any(|record| acts(&record.event)))
    }

    async fn try_again(
        &self,
        entry: &SpawnEntry,
        stalled: &Collected,
        face: &FaceDefaults,
    ) -> Result<Result<Collected, Refusal>, Refusal> {
        let entry = SpawnEntry {
            task: format!("{}{GUIDANCE}", entry.task),
            model: Some(stalled.receipt.model.effective.clone()),
            // It is another task, whoever named the first.
            idempotency_key: None,
            ..entry.clone()
        };
        let mut order = self.order(entry, locum_core::task::plan::Among::Session, true, 1);
        order.among = self.among(face, &order.uid);
        let started = match self.start(vec![order], face, Together::Each).await?.pop() {
            Some(Ok(Started { row, .. })) => row,
            Some(Err(refusal)) => return Ok(Err(refusal)),
            None => return Err(Refusal::internal("the task was not started")),
        };
        let ended = self.ended(vec![started]).await?.pop().ok_or_else(|| Refusal::internal("the task is missing"))?;
        let mut second = self.deliver(ended, face).await?;
        let (first, again) = (stalled.task_id, second.task_id);
        second.warnings.push(format!("{first} stalled; {again} tried it once more, alone and with less to do"));
        if second.reason == Some(Reason::Stalled) {
            second.warnings.push(REMEDY.to_owned());
        }
        Ok(Ok(second))
    }
}
