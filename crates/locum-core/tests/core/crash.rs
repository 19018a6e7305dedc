//! Every conversation is cut after every event and played on from its log, as another process would. It must end the
//! same, and what cannot be undone must not be done twice.

use std::collections::HashMap;

use locum_core::task::{Reason, Record, Step, Task, TaskEvent};
use locum_core::transcript::{Repeat, ToolEnd};
use locum_core::usage::Budget;

use crate::conversation;
use crate::script::Script;
use crate::stage::{Ends, Played, play, resume};

#[test]
fn a_conversation_cut_anywhere_ends_the_same() {
    for (name, text) in conversation::all() {
        let script = Script::parse(text);
        for ends in [Ends::InOrder, Ends::Reversed] {
            let whole = play(&script, ends);
            for cut in 1..=whole.log.len() {
                let kept = &whole.log[..cut];
                let rest = resume(&script, kept, ends);
                let place = format!("{name}, cut after event {cut} of {}, {ends:?}", whole.log.len());
                check_end(&script, &whole, &rest, &place);
                check_repeats(&rest, usize::from(kept.last().is_some_and(starts_unrepeatable)), &place);
            }
        }
    }
}

/// A task may be cut as often as it likes; one that ends its own workers is given up with what it has.
#[test]
fn a_task_that_loses_three_workers_is_interrupted_wherever_it_is() {
    for (name, text) in conversation::all() {
        let script = Script::parse(text);
        let whole = play(&script, Ends::InOrder);
        for cut in 1..whole.log.len() {
            let mut task = Task::replay(whole.log[..cut].to_vec()).unwrap();
            if matches!(whole.log[cut - 1].event, TaskEvent::Stopped { .. }) {
                continue;
            }
            for lost in 0..4 {
                let step = task.next_step();
                let end = match &step {
                    Step::Record(TaskEvent::Ended { outcome }) => outcome.reason(),
                    _ => None,
                };
                assert_eq!(lost >= 3, end == Some(Reason::Interrupted), "{name}, {cut}, {lost} lost: {step:?}");
                let event = TaskEvent::WorkerLost { why: "it ended".to_owned() };
                task.apply(Record { seq: task.seq() + 1, at: whole.log[0].at, event }).unwrap();
            }
        }
    }
}

/// Each process lives for one entry more than the one before, so that even a long batch of tools ends at last.
#[test]
fn a_task_that_is_cut_over_and_over_ends_the_same() {
    for (name, text) in conversation::all() {
        let script = Script::parse(text);
        let whole = play(&script, Ends::Reversed);
        let mut kept = whole.log[..1].to_vec();
        let mut in_doubt = 0;
        for lifetime in 1..100 {
            let rest = resume(&script, &kept, Ends::Reversed);
            kept = rest.log[..rest.log.len().min(kept.len() + lifetime)].to_vec();
            in_doubt += usize::from(kept.last().is_some_and(starts_unrepeatable));
        }
        let rest = resume(&script, &kept, Ends::Reversed);
        assert_eq!(rest.log, kept, "{name}: it had ended");
        check_end(&script, &whole, &rest, name);
        check_repeats(&rest, in_doubt, name);
    }
}

fn check_end(script: &Script, whole: &Played, rest: &Played, place: &str) {
    let ends = rest.log.iter().filter(|record| matches!(record.event, TaskEvent::Ended { .. })).count();
    assert_eq!(ends, 1, "{place}: one end");
    let usage = rest.task.usage();
    let budget = &script.plan.bounds.budget;
    // A lost call may have been paid for, so a bounded task may end earlier; it must not spend more.
    assert!(budget.max_input_tokens.is_none_or(|most| usage.input_total() <= most), "{place}: {usage:?}");
    if *budget != Budget::default() && rest.outcome().reason() == Some(Reason::Budget) {
        return;
    }
    assert_eq!(rest.outcome(), whole.outcome(), "{place}");
    let counts = |played: &Played| {
        let usage = played.task.usage();
        (usage.turns, usage.tool_calls, usage.denials)
    };
    assert_eq!(counts(rest), counts(whole), "{place}");
    assert_eq!(rest.task.status(), whole.task.status(), "{place}");
}

/// Every execution is in the log before it acts, so the log is the ledger: no unrepeatable call may be in it more often
/// than the model made it, and each one in doubt is told to the model.
fn check_repeats(rest: &Played, in_doubt: usize, place: &str) {
    let mut asked: HashMap<(u32, &str), usize> = HashMap::new();
    let mut unknown = 0;
    for record in &rest.log {
        match &record.event {
            TaskEvent::Replied { turn, reply } => {
                for call in &reply.tool_calls {
                    *asked.entry((*turn, &call.id)).or_default() += 1;
                }
            }
            TaskEvent::ToolStarted { turn, call_id, repeat: Repeat::Unsafe, .. } => {
                let left = asked.get_mut(&(*turn, call_id.as_str())).unwrap();
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{place}: {call_id} ran twice"));
            }
            TaskEvent::ToolEnded { output, .. } => unknown += usize::from(output.end == ToolEnd::Unknown),
            _ => {}
        }
    }
    assert_eq!(unknown, in_doubt, "{place}: told that an outcome is unknown");
}

fn starts_unrepeatable(record: &Record) -> bool {
    matches!(record.event, TaskEvent::ToolStarted { repeat: Repeat::Unsafe, .. })
}
