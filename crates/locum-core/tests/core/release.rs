//! Which parked tasks start and which end, when others do.

use std::collections::BTreeMap;
use std::sync::Arc;

use locum_core::ids::TaskId;
use locum_core::release::{Places, Unsettled, Verdict, hand_on};
use locum_core::task::event::TaskEvent;
use locum_core::task::plan::Among;
use locum_core::task::summary::TaskSummary;
use locum_core::task::{Record, Status, Task};
use locum_core::usage::Usage;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::json;

use crate::world::{NOW, World, agent_name, uid};

/// A task on one line, in any state.
pub(crate) fn summary(number: u32, status: Status, depends_on: &[u32], running_max: u32) -> TaskSummary {
    let mut plan = Arc::unwrap_or_clone(World::new().accept(json!({"agent": "reader", "task": "t"})).plan);
    plan.task_id = TaskId::new(number);
    plan.uid = uid(number);
    plan.start.depends_on = depends_on.iter().map(|number| TaskId::new(*number)).collect();
    plan.start.running_max = running_max;
    let event = TaskEvent::Accepted { plan: Arc::new(plan), parked: None };
    let mut summary = Task::accepted(Record { seq: 1, at: NOW, event }).unwrap().summary();
    assert_eq!((summary.standing.status, &summary.standing.usage), (Status::Running, &Usage::default()));
    summary.standing.status = status;
    summary.standing.error = (status == Status::Failed).then(|| format!("broken {number}"));
    summary
}

fn settle(tasks: &[TaskSummary], won: Option<&locum_core::ids::Uid>) -> Vec<(TaskId, Verdict)> {
    locum_core::release::settle(&Unsettled::of(tasks.to_vec()), won)
}

/// The same, decided without the queued ones that are behind as many as there are places for them.
fn settle_heads(tasks: &[TaskSummary]) -> Vec<(TaskId, Verdict)> {
    let Unsettled { tasks, delegating } = Unsettled::of(tasks.to_vec());
    let mut seen: BTreeMap<Places, u32> = BTreeMap::new();
    let mut is_looked_at = |task: &TaskSummary| {
        if task.standing.status != Status::Queued {
            return true;
        }
        let places = Places::of(&task.start);
        let before = seen.entry(places).or_default();
        *before += 1;
        *before <= task.start.running_max
    };
    let tasks = tasks.into_iter().filter(|task| is_looked_at(task)).collect();
    locum_core::release::settle(&Unsettled { tasks, delegating }, None)
}

/// The verdicts, a word or the error for each task.
fn check(tasks: &[TaskSummary]) -> Vec<String> {
    let words = settle(tasks, None).into_iter().map(|(id, verdict)| match verdict {
        Verdict::Start { inputs } => format!("{id} starts with {inputs:?}"),
        Verdict::End(TaskEvent::Ended { outcome }) => format!("{id} ends: {}", outcome.error().unwrap()),
        Verdict::End(other) => panic!("{other:?}"),
        Verdict::Cancel => format!("{id} is told to end"),
    });
    words.collect()
}

#[test]
fn who_lost_a_race_ends_with_everything_below_it() {
    use Status::{Completed, Queued, Running, Waiting};
    let runner = |number: u32, status: Status| {
        let mut task = summary(number, status, &[], 5);
        task.start.race = Some(uid(1));
        task
    };
    let below = |number: u32, parent: u32, status: Status| TaskSummary {
        parent: Some(uid(parent)),
        ..summary(number, status, &[], 5)
    };
    let tasks = [
        runner(1, Running),
        runner(2, Completed),
        runner(3, Queued),
        below(4, 1, Running),
        below(5, 4, Queued),
        below(6, 2, Running),
        summary(7, Waiting, &[3], 5),
        summary(8, Running, &[], 5),
    ];
    let told = |won: Option<&locum_core::ids::Uid>| {
        let word = |(id, verdict): (TaskId, Verdict)| match verdict {
            Verdict::Cancel => format!("{id} is told"),
            Verdict::End(TaskEvent::Ended { outcome }) => format!("{id} {}", outcome.status().as_str()),
            other => format!("{id} {other:?}"),
        };
        settle(&tasks, won).into_iter().map(word).collect::<Vec<_>>()
    };
    let expected = ["t_01 is told", "t_03 cancelled", "t_04 is told", "t_05 cancelled", "t_07 failed"];
    assert_eq!(told(Some(&uid(1))), expected);
    assert_eq!(told(Some(&uid(99))), told(None), "another race");
}

#[test]
fn the_oldest_queued_tasks_take_the_free_places() {
    use Status::{Completed, Queued, Running};
    let tasks = [
        summary(1, Running, &[], 3),
        summary(2, Queued, &[], 3),
        summary(3, Completed, &[], 3),
        summary(4, Queued, &[], 3),
        summary(5, Queued, &[], 3),
    ];
    assert_eq!(check(&tasks), ["t_02 starts with []", "t_04 starts with []"]);
}

#[test]
fn who_waits_for_what_it_delegated_holds_no_place() {
    use Status::{Completed, Queued, Running};
    let below = |number: u32, parent: u32, status: Status| TaskSummary {
        parent: Some(uid(parent)),
        ..summary(number, status, &[], 2)
    };
    let leads = [summary(1, Running, &[], 2), summary(2, Running, &[], 2)];
    let with = |children: &[TaskSummary]| leads.iter().chain(children).cloned().collect::<Vec<_>>();
    let queued = [below(3, 1, Queued), below(4, 2, Queued), below(5, 2, Queued)];
    assert_eq!(check(&with(&queued)), ["t_03 starts with []", "t_04 starts with []"]);
    // Who waits for nobody any more has its place again.
    let finished = [below(3, 1, Completed), below(4, 2, Queued), below(5, 2, Queued)];
    assert_eq!(check(&with(&finished)), ["t_04 starts with []"]);
}

#[test]
fn a_failure_runs_down_the_line() {
    use Status::{Cancelled, Completed, Failed, Waiting};
    let tasks = [
        summary(1, Failed, &[], 5),
        summary(2, Cancelled, &[], 5),
        summary(3, Completed, &[], 5),
        summary(4, Waiting, &[3, 1], 5),
        summary(5, Waiting, &[4], 5),
        summary(6, Waiting, &[2], 5),
        summary(7, Waiting, &[3], 5),
        summary(8, Waiting, &[7], 5),
    ];
    assert_eq!(
        check(&tasks),
        [
            "t_04 ends: Dependency t_01 failed: broken 1",
            "t_05 ends: Dependency t_04 failed: Dependency t_01 failed: broken 1",
            "t_06 ends: Dependency t_02 failed: it was cancelled",
            "t_07 starts with [TaskId(3)]",
        ]
    );
}

#[test]
fn a_group_counts_its_own_tasks() {
    let mut tasks: Vec<TaskSummary> = (1..=4).map(|number| summary(number, Status::Running, &[], 2)).collect();
    for number in 5..=7 {
        let mut task = summary(number, Status::Queued, &[], 2);
        task.start.among = Among::Group(uid(5));
        tasks.push(task);
    }
    assert_eq!(check(&tasks), ["t_05 starts with []", "t_06 starts with []"]);
}

#[test]
fn a_long_result_is_handed_on_by_its_head() {
    let text = |chars: usize| hand_on(TaskId::new(1), agent_name("reader"), &"é".repeat(chars)).text;
    assert_eq!(text(100_000), "é".repeat(100_000));
    assert_eq!(text(100_001), format!("{}\n[cut after 100000 characters]", "é".repeat(100_000)));
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::Queued),
        Just(Status::Waiting),
        Just(Status::Running),
        Just(Status::Completed),
        Just(Status::Failed),
        Just(Status::Cancelled),
    ]
}

proptest! {
    #[test]
    fn places_and_dependencies_are_respected(
        rows in prop::collection::vec((status(), prop::collection::vec(any::<prop::sample::Index>(), 0..3)), 1..12),
        running_max in 0u32..6,
    ) {
        let mut tasks = Vec::new();
        for (place, (status, older)) in rows.iter().enumerate() {
            let number = u32::try_from(place).unwrap() + 1;
            let depends_on: Vec<u32> =
                older.iter().filter(|_| place > 0).map(|index| u32::try_from(index.index(place)).unwrap() + 1).collect();
            tasks.push(summary(number, *status, &depends_on, running_max));
        }
        let status_of = |id: TaskId| tasks[id.number() as usize - 1].standing.status;
        let verdicts = settle(&tasks, None);
        let ended: Vec<TaskId> =
            verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::End(_))).map(|(id, _)| *id).collect();
        let lost = |id: TaskId| matches!(status_of(id), Status::Failed | Status::Cancelled) || ended.contains(&id);
        let running = tasks.iter().filter(|task| task.standing.status == Status::Running).count();
        let started = verdicts.len() - ended.len();
        prop_assert!(started == 0 || running + started <= running_max as usize);
        for task in &tasks {
            let parked = matches!(task.standing.status, Status::Queued | Status::Waiting);
            let verdict = verdicts.iter().find(|(id, _)| *id == task.task_id).map(|(_, verdict)| verdict);
            let doomed = parked && task.start.depends_on.iter().any(|id| lost(*id));
            prop_assert_eq!(ended.contains(&task.task_id), doomed, "{:?}", task.task_id);
            if let Some(Verdict::Start { inputs }) = verdict {
                prop_assert!(parked && inputs.iter().all(|id| status_of(*id) == Status::Completed));
                prop_assert_eq!(inputs, &task.start.depends_on);
            }
            let ready = task.start.depends_on.iter().all(|id| status_of(*id) == Status::Completed);
            let place_left = running + started < running_max as usize;
            prop_assert!(!(parked && ready && place_left && verdict.is_none()), "{:?} was forgotten", task.task_id);
        }
    }

    #[test]
    fn the_heads_of_the_queues_decide_as_much_as_the_whole(
        rows in prop::collection::vec((status(), 0u32..3, 0u32..4, any::<prop::sample::Index>(), any::<bool>()), 1..20),
    ) {
        let mut tasks = Vec::new();
        for (place, (status, group, running_max, older, delegated)) in rows.iter().enumerate() {
            let number = u32::try_from(place).unwrap() + 1;
            let older = u32::try_from(older.index(place.max(1))).unwrap() + 1;
            // Only who is not queued waits for others.
            let depends_on: &[u32] = if place > 0 && *status == Status::Waiting { &[older] } else { &[] };
            let mut task = summary(number, *status, depends_on, *running_max);
            task.parent = (*delegated && place > 0).then(|| uid(older));
            task.start.among = if *group == 0 { Among::Session } else { Among::Group(uid(*group)) };
            tasks.push(task);
        }
        prop_assert_eq!(settle_heads(&tasks), settle(&tasks, None));
    }
}
