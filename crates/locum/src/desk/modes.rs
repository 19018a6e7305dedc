//! The foreground forms: start, wait, collect. They are data for the same path as `spawn`.

use locum_core::admission::Order;
use locum_core::protocol::face::CallerKind;
use locum_core::protocol::request::{Many, MapOver, Run};
use locum_core::protocol::response::{Chain, Collected, Parallel, ParallelResult, RefusedEntry, TaskIds};
use locum_core::protocol::{FaceDefaults, Refusal, Response, SpawnEntry};
use locum_core::task::errand::Form;
use locum_core::task::{Reason, Status};

use super::Desk;
use super::spawn::{Started, Together};
use super::wait::Ended;
use crate::store::TaskRow;

/// How many of a person's `parallel` run at once when nothing else is said.
const PERSON_CONCURRENCY: u32 = 4;

/// What stands for each input in the task of `map`.
const INPUT: &str = "{input}";

impl Desk {
    pub(super) async fn run(&self, run: Run, face: &FaceDefaults) -> Result<Response, Refusal> {
        let queue = run.entry.queue.unwrap_or(false);
        let mut order = self.order(run.entry, locum_core::task::plan::Among::Session, queue, self.places(face));
        order.among = self.among(face, &order.uid);
        let mut started = self.start(vec![order], face, Together::AllOrNone).await?;
        let Some(Ok(Started { row, background, .. })) = started.pop() else {
            return Err(Refusal::internal("the task was not started"));
        };
        if run.background.unwrap_or(background) {
            return Ok(Response::Background(TaskIds { task_ids: vec![row.summary.task_id], refused: Vec::new() }));
        }
        let ended = self.ended(vec![row]).await?.pop().ok_or_else(|| Refusal::internal("the task is missing"))?;
        // Whoever waits for a task waits without it.
        Ok(Response::Collected(Box::new(Box::pin(self.deliver(ended, face)).await?)))
    }

    pub(super) async fn parallel(&self, many: Many, face: &FaceDefaults) -> Result<Response, Refusal> {
        check_not_empty(&many)?;
        let entries = many.tasks.clone();
        let orders = self.orders(many.tasks, face, |_| None);
        let started = self.start_errand(orders, face, Together::Each, Some(Form::Parallel)).await?;
        let refused = |entry: &SpawnEntry, refusal: &Refusal| RefusedEntry {
            refusal: refusal.clone(),
            agent: entry.agent.clone(),
            task: entry.task.clone(),
        };
        if many.background == Some(true) {
            let task_ids = started.iter().flatten().map(|started| started.row.summary.task_id).collect();
            let refusals = entries
                .iter()
                .zip(&started)
                .filter_map(|(entry, started)| started.as_ref().err().map(|refusal| refused(entry, refusal)));
            return Ok(Response::Background(TaskIds { task_ids, refused: refusals.collect() }));
        }
        let rows = started.iter().flatten().map(|started| started.row.clone()).collect();
        let ended = self.ended(rows).await?;
        let refusals = entries.iter().zip(&started).map(|(entry, started)| match started {
            Ok(_) => None,
            Err(refusal) => Some(refused(entry, refusal)),
        });
        let mut results = self.gathered(ended, refusals, face).await?;
        self.retry_stalled(&entries, &mut results, face).await?;
        Ok(Response::Parallel(count(results)))
    }

    /// The results of entries in their order: of each the refusal, or the next task.
    pub(super) async fn gathered(
        &self,
        ended: Vec<Ended>,
        refusals: impl Iterator<Item = Option<RefusedEntry>>,
        face: &FaceDefaults,
    ) -> Result<Vec<ParallelResult>, Refusal> {
        let mut ended = ended.into_iter();
        let mut results = Vec::new();
        for refusal in refusals {
            results.push(match refusal {
                Some(refused) => ParallelResult::Refused(refused),
                None => {
                    let ended = ended.next().ok_or_else(|| Refusal::internal("a task is missing"))?;
                    ParallelResult::Collected(Box::new(self.deliver(ended, face).await?))
                }
            });
        }
        Ok(results)
    }

    /// The same agent over many inputs.
    pub(super) async fn map(&self, over: MapOver, face: &FaceDefaults) -> Result<Response, Refusal> {
        if !over.entry.task.contains(INPUT) {
            return Err(Refusal::invalid("map: `task` has no {input}")
                .hint("write {input} where each of `inputs` belongs, or use parallel"));
        }
        if over.inputs.is_empty() {
            return Err(Refusal::invalid("`inputs` is empty").hint("give at least one"));
        }
        let entry = |(place, input): (usize, &String)| SpawnEntry {
            task: over.entry.task.replace(INPUT, input),
            // One key stands for the whole request: each of its tasks has its own.
            idempotency_key: over.entry.idempotency_key.as_ref().map(|key| format!("{key}#{}", place + 1)),
            ..over.entry.clone()
        };
        let tasks = over.inputs.iter().enumerate().map(entry).collect();
        self.parallel(Many { tasks, background: Some(over.background) }, face).await
    }

    pub(super) async fn chain(&self, many: Many, face: &FaceDefaults) -> Result<Response, Refusal> {
        check_not_empty(&many)?;
        let orders = self.orders(many.tasks, face, |place| place.checked_sub(1));
        let started = self.start_errand(orders, face, Together::AllOrNone, Some(Form::Chain)).await?;
        let rows: Vec<TaskRow> = started.into_iter().flatten().map(|started| started.row).collect();
        if many.background == Some(true) {
            let task_ids = rows.iter().map(|row| row.summary.task_id).collect();
            return Ok(Response::Background(TaskIds { task_ids, refused: Vec::new() }));
        }
        let ended = self.ended(rows).await?;
        self.chained(ended, face).await
    }

    /// The answer for the steps of a chain.
    pub(super) async fn chained(&self, ended: Vec<Ended>, face: &FaceDefaults) -> Result<Response, Refusal> {
        let steps = ended.len();
        let mut collected = Vec::with_capacity(steps);
        for ended in ended {
            collected.push(self.deliver(ended, face).await?);
        }
        // The step to show is the first that did not complete: those after it only waited for it.
        let failed = collected.iter().position(|step| step.status != Status::Completed);
        let place = failed.unwrap_or(steps.saturating_sub(1));
        let step = collected.into_iter().nth(place).ok_or_else(|| Refusal::internal("the step is missing"))?;
        Ok(Response::Chain(Box::new(Chain { collected: step, step: place + 1, steps })))
    }

    /// Orders for the entries of one request; beyond the places they queue.
    pub(super) fn orders(
        &self,
        entries: Vec<SpawnEntry>,
        face: &FaceDefaults,
        after: impl Fn(usize) -> Option<usize>,
    ) -> Vec<Order> {
        let places = self.places(face);
        let mut orders: Vec<Order> = Vec::with_capacity(entries.len());
        for (place, entry) in entries.into_iter().enumerate() {
            let mut order = self.order(entry, locum_core::task::plan::Among::Session, true, places);
            let first = orders.first().map_or(&order.uid, |first| &first.uid).clone();
            order.among = self.among(face, &first);
            order.after = after(place);
            orders.push(order);
        }
        orders
    }

    /// How many tasks of a command, or of the session, may run at once.
    fn places(&self, face: &FaceDefaults) -> u32 {
        match face.caller {
            CallerKind::Model => {
                let most = self.engine.rules.limits.max_running;
                face.concurrency.map_or(most, |asked| asked.clamp(1, most.max(1)))
            }
            CallerKind::Person => face.concurrency.unwrap_or(PERSON_CONCURRENCY).max(1),
        }
    }
}

pub(super) fn check_not_empty(many: &Many) -> Result<(), Refusal> {
    if many.tasks.is_empty() {
        return Err(Refusal::invalid("`tasks` is empty").hint("give at least one {agent, task}"));
    }
    Ok(())
}

pub(super) fn count(results: Vec<ParallelResult>) -> Parallel {
    let ended = |wanted: fn(&Collected) -> bool| {
        let counts = |result: &&ParallelResult| match result {
            ParallelResult::Collected(collected) => wanted(collected),
            ParallelResult::Refused(_) => false,
        };
        results.iter().filter(counts).count()
    };
    let completed = ended(|task| task.status == Status::Completed);
    let stalled = ended(|task| task.reason == Some(Reason::Stalled));
    let failed = results.len() - completed - stalled;
    Parallel { results, completed, failed, stalled }
}
