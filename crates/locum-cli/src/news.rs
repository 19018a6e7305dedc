//! What a piece of news about a task says, in a few words; the same for a terminal and for a client.

use std::time::Duration;

use locum::progress::{News, Progress};
use locum::task::TaskEvent;

/// The words, where there is something to tell.
pub(crate) fn words(progress: &Progress) -> Option<String> {
    let record = match &progress.news {
        News::Text { .. } => return Some("answering".to_owned()),
        News::Event(record) => record,
    };
    match &record.event {
        TaskEvent::WorkspaceReady { workspace } => Some(format!("works on {}", workspace.branch)),
        TaskEvent::TurnStarted { turn, .. } => Some(format!("turn {turn}: thinking")),
        TaskEvent::ToolStarted { turn, name, .. } => Some(format!("turn {turn}: {name}")),
        TaskEvent::ModelFailed { failure, retry_in_ms: Some(wait), .. } => {
            let wait = Duration::from_millis(*wait).as_secs_f64();
            Some(format!("asking again in {wait:.1} s: {}", failure.message))
        }
        TaskEvent::ModelReplaced { to, why, .. } => Some(format!("asking {to} instead: {why}")),
        TaskEvent::BudgetNearing { .. } => Some("the budget is nearly used up".to_owned()),
        TaskEvent::WorkerLost { .. } => Some("its worker process was lost; another one goes on".to_owned()),
        TaskEvent::Ended { .. } => Some("ended".to_owned()),
        TaskEvent::Accepted { .. }
        | TaskEvent::Released { .. }
        | TaskEvent::TurnDeclined { .. }
        | TaskEvent::Replied { .. }
        | TaskEvent::ModelFailed { .. }
        | TaskEvent::ToolEnded { .. }
        | TaskEvent::WorkspaceClosed { .. }
        | TaskEvent::ProcessesEnded { .. }
        | TaskEvent::Stopped { .. } => None,
    }
}
