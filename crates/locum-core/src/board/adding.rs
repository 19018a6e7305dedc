//! Putting tasks on the board.

use super::{Terms, Verdict, blocking, check_active, check_chars, check_line, check_metadata, check_room, put, shown};
use crate::ids::BoardTaskId;
use crate::limits;
use crate::protocol::request::{BoardAdd, BoardEntry};
use crate::protocol::response::{BoardAdded, BoardStatus, BoardTask};
use crate::protocol::{Refusal, Response};
use crate::session::{SessionChange, SessionView};

/// Adds tasks, all or none. They may be blocked by each other, under the ids that they get.
pub(super) fn add(add: &BoardAdd, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    if add.tasks.is_empty() {
        return Err(Refusal::invalid("`tasks` is empty").hint("give at least one {subject}"));
    }
    if add.tasks.len() > limits::BOARD_TASKS_MAX {
        let (is, most) = (add.tasks.len(), limits::BOARD_TASKS_MAX);
        return Err(Refusal::invalid(format!("`tasks` has {is} entries; at most {most} are allowed")));
    }
    let mut added = Vec::with_capacity(add.tasks.len());
    for (number, entry) in (view.board.last + 1..).zip(&add.tasks) {
        check(entry)?;
        added.push(new(BoardTaskId::new(number), entry, terms));
    }
    let mut all: Vec<BoardTask> = super::live(view).cloned().chain(added.iter().cloned()).collect();
    for (task, entry) in added.iter_mut().zip(&add.tasks) {
        if let Some(blocked_by) = &entry.blocked_by {
            task.blocked_by = blocking::named(blocked_by, &all)?;
        }
    }
    all.truncate(all.len() - added.len());
    all.extend(added.iter().cloned());
    for task in &added {
        blocking::refuse_cycle(task.id, &all)?;
    }
    check_room(&added, view)?;
    let changes: Vec<SessionChange> = added.iter().cloned().map(put).collect();
    let added = added.iter().map(|task| shown(task, view)).collect();
    Ok((Response::BoardAdded(BoardAdded { added }), changes))
}

fn check(entry: &BoardEntry) -> Result<(), Refusal> {
    check_line("subject", &entry.subject)?;
    if let Some(description) = &entry.description {
        check_chars("description", description, limits::BOARD_DESCRIPTION_CHARS_MAX)?;
    }
    if let Some(active_form) = &entry.active_form {
        check_line("active_form", active_form)?;
    }
    if let Some(metadata) = &entry.metadata {
        check_metadata(metadata)?;
    }
    Ok(())
}

fn new(id: BoardTaskId, entry: &BoardEntry, terms: &Terms<'_>) -> BoardTask {
    BoardTask {
        id,
        subject: entry.subject.clone(),
        description: entry.description.clone(),
        active_form: entry.active_form.clone(),
        status: BoardStatus::Pending,
        owner: None,
        owner_status: None,
        blocked_by: Vec::new(),
        comments: Vec::new(),
        metadata: entry.metadata.clone().unwrap_or_default(),
        created_at: terms.now,
        completed_at: None,
        archived_at: None,
    }
}
