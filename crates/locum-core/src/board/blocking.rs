//! What waits for what on the board.

use std::collections::{BTreeMap, BTreeSet};

use super::not_found;
use crate::ids::BoardTaskId;
use crate::limits;
use crate::protocol::response::{BoardStatus, BoardTask};
use crate::protocol::{Code, Refusal};

/// The tasks that these ids name, each once.
pub(super) fn named(ids: &[String], tasks: &[BoardTask]) -> Result<Vec<BoardTaskId>, Refusal> {
    let mut found: Vec<BoardTaskId> = Vec::new();
    for id in ids {
        let wanted = BoardTaskId::parse(id).ok();
        let task = tasks.iter().find(|task| Some(task.id) == wanted && task.archived_at.is_none());
        let blocker = task.ok_or_else(|| not_found(id))?.id;
        if !found.contains(&blocker) {
            found.push(blocker);
        }
    }
    if found.len() > limits::BOARD_BLOCKERS_MAX {
        let most = limits::BOARD_BLOCKERS_MAX;
        return Err(Refusal::invalid(format!("`blocked_by` has {} tasks; at most {most} are allowed", found.len())));
    }
    Ok(found)
}

/// The tasks that a task still waits for.
pub(super) fn blockers(task: &BoardTask, tasks: &[BoardTask]) -> Vec<BoardTaskId> {
    let is_open =
        |id: &BoardTaskId| tasks.iter().any(|other| other.id == *id && other.status != BoardStatus::Completed);
    task.blocked_by.iter().copied().filter(is_open).collect()
}

/// Refuses a task that still waits for others.
pub(super) fn refuse_blocked(task: &BoardTask, tasks: &[BoardTask]) -> Result<(), Refusal> {
    let blockers = blockers(task, tasks);
    if blockers.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = blockers.iter().map(ToString::to_string).collect();
    Err(Refusal::new(Code::Blocked, format!("{} is blocked by {}", task.id, names.join(", ")))
        .hint("complete them first, or change blocked_by with update"))
}

/// Refuses tasks of which this one waits, through others, for itself.
pub(super) fn refuse_cycle(start: BoardTaskId, tasks: &[BoardTask]) -> Result<(), Refusal> {
    let edges: BTreeMap<BoardTaskId, &[BoardTaskId]> =
        tasks.iter().map(|task| (task.id, task.blocked_by.as_slice())).collect();
    let mut seen: BTreeSet<BoardTaskId> = BTreeSet::new();
    let mut ahead: Vec<BoardTaskId> = edges.get(&start).copied().unwrap_or_default().to_vec();
    while let Some(id) = ahead.pop() {
        if id == start {
            let message = format!("{start} would be blocked by itself");
            return Err(Refusal::new(Code::Cycle, message).hint("leave out a blocker that waits for it"));
        }
        if seen.insert(id) {
            ahead.extend(edges.get(&id).copied().unwrap_or_default());
        }
    }
    Ok(())
}
