//! Tasks that have a worktree to themselves: it is made before the first turn, seen to before the end, and neither
//! happens twice, wherever the log is cut.

use locum_core::agent::Isolation;
use locum_core::task::event::StopCause;
use locum_core::task::{Step, Task, TaskEvent, Workspace};
use locum_core::transcript::ToolSpec;

use crate::script::Script;
use crate::stage::{Ends, Played, play, record, resume, workspace, worktree};

const SCRIPT: &str = "
agent tools=read,bash
task Go
> calls bash#a {}; read#b {}
< bash: done
< read: text
> says Well done
";

fn script() -> Script {
    let mut script = Script::parse(SCRIPT);
    script.plan.grants.isolation = Isolation::Worktree;
    script
}

fn count(played: &Played, wanted: fn(&TaskEvent) -> bool) -> usize {
    played.log.iter().filter(|record| wanted(&record.event)).count()
}

#[test]
fn a_worktree_is_made_first_and_seen_to_last() {
    let played = play(&script(), Ends::InOrder);
    assert!(matches!(played.log[1].event, TaskEvent::WorkspaceReady { .. }), "{:#?}", played.lines);
    let [.., closed, ended] = &played.log[..] else { panic!("{:#?}", played.lines) };
    assert!(matches!(closed.event, TaskEvent::WorkspaceClosed { .. }), "{:#?}", played.lines);
    assert!(matches!(ended.event, TaskEvent::Ended { .. }));
    assert_eq!(played.task.worktree(), Some(&worktree()));
    assert_eq!(played.task.root(), "/state/worktrees/u");
}

#[test]
fn wherever_the_log_is_cut_there_is_one_worktree() {
    let whole = play(&script(), Ends::InOrder);
    for cut in 1..=whole.log.len() {
        let rest = resume(&script(), &whole.log[..cut], Ends::InOrder);
        assert_eq!(count(&rest, |event| matches!(event, TaskEvent::WorkspaceReady { .. })), 1, "cut after {cut}");
        assert_eq!(count(&rest, |event| matches!(event, TaskEvent::WorkspaceClosed { .. })), 1, "cut after {cut}");
        assert_eq!(rest.outcome(), whole.outcome(), "cut after {cut}");
    }
}

#[test]
fn the_model_is_told_of_it() {
    let mut task = Task::accepted(record(1, script().accepted())).unwrap();
    let check = |workspace: Workspace, expected: &str| {
        let mut task = task.clone();
        task.apply(record(2, TaskEvent::WorkspaceReady { workspace })).unwrap();
        let tools: std::sync::Arc<[ToolSpec]> = std::sync::Arc::from([]);
        let system = task.prompt(&tools).system.to_owned();
        assert!(system.contains(expected), "{system}");
        assert!(system.contains("on the branch locum/u, which begins at commit abc"), "{system}");
    };
    check(workspace(), "2 uncommitted files of the project are not in it.");
    check(Workspace { dirty_left_out: 1, ..workspace() }, "1 uncommitted file of the project is not in it.");
    check(Workspace { dirty_left_out: 0, ..workspace() }, "at commit abc. Your changes");
    check(
        Workspace { dirty_left_out: 0, dirty_taken: 3, ..workspace() },
        "which has 3 uncommitted files of the project in it.",
    );
    assert_eq!(task.next_step(), Step::PrepareWorkspace);
    task.apply(record(2, TaskEvent::Stopped { cause: StopCause::Cancelled, partial: None })).unwrap();
    assert!(matches!(task.next_step(), Step::Record(TaskEvent::Ended { .. })), "nothing was made, nothing is seen to");
}

#[test]
fn a_task_without_its_worktree_fails_with_that_reason() {
    let mut task = Task::accepted(record(1, script().accepted())).unwrap();
    let cause = StopCause::Isolation { details: "git was not found".to_owned() };
    task.apply(record(2, TaskEvent::Stopped { cause, partial: None })).unwrap();
    let Step::Record(TaskEvent::Ended { outcome }) = task.next_step() else { panic!("{:?}", task.next_step()) };
    assert_eq!(outcome.reason().map(locum_core::task::Reason::as_str), Some("isolation"));
    assert_eq!(outcome.error(), Some("Isolation failed: git was not found"));
}

#[test]
fn a_log_with_a_worktree_too_many_makes_no_sense() {
    let ready = || TaskEvent::WorkspaceReady { workspace: workspace() };
    let closed = || TaskEvent::WorkspaceClosed { worktree: worktree() };
    let check = |events: Vec<TaskEvent>, isolation: Isolation| {
        let mut script = script();
        script.plan.grants.isolation = isolation;
        let first = std::iter::once(script.accepted());
        let log: Vec<_> = first.chain(events).zip(1..).map(|(event, seq)| record(seq, event)).collect();
        Task::replay(log).map(drop).map_err(|misfit| misfit.why)
    };
    let (none, worktree) = (Isolation::None, Isolation::Worktree);
    assert_eq!(check(vec![ready(), closed()], worktree), Ok(()));
    assert_eq!(check(vec![ready()], none), Err("no worktree was needed"));
    assert_eq!(check(vec![ready(), ready()], worktree), Err("no worktree was needed"));
    assert_eq!(check(vec![closed()], worktree), Err("no worktree was in use"));
    assert_eq!(check(vec![ready(), closed(), closed()], worktree), Err("no worktree was in use"));
}
