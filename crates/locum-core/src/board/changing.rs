//! Taking, changing and completing a task of the board.

use super::{Terms, Verdict, answer, blocking, check_active, check_chars, check_line, check_metadata, check_room};
use super::{find, owner_status, put};
use crate::ids::{Identity, TaskId};
use crate::limits;
use crate::protocol::request::{BoardClaim, BoardUpdate};
use crate::protocol::response::{BoardComment, BoardStatus, BoardTask};
use crate::protocol::{Code, Refusal};
use crate::session::SessionView;

/// Gives a task to the caller, or to the task that the orchestrator names, and begins it. Who has it already has it.
pub(super) fn claim(claim: &BoardClaim, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    let task = find(&claim.id, view)?;
    let owner = match &claim.owner {
        None => terms.participant.clone(),
        Some(named) => named_owner(named, terms, view)?,
    };
    let claimed = claimed(task, &owner, view)?;
    changed(task, claimed, view)
}

/// Completes a task. One that is completed stays as it is.
pub(super) fn complete(id: &str, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    let task = find(id, view)?;
    let done = finished(task, terms, view)?;
    changed(task, done, view)
}

/// Changes what the request names. Anybody may comment; the rest is for who may change the task.
pub(super) fn update(update: &BoardUpdate, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    let before = find(&update.id, view)?;
    check_shape(update)?;
    let mut task = before.clone();
    if changes_the_task(update) {
        refuse_others(before, terms, view)?;
        set_fields(&mut task, update);
    }
    if let Some(blocked_by) = &update.blocked_by {
        task.blocked_by = blocking::named(blocked_by, &view.board.tasks)?;
        blocking::refuse_cycle(task.id, &with(&task, view))?;
    }
    if let Some(text) = &update.comment {
        task.comments.push(comment(text, before, terms)?);
    }
    check_metadata(&task.metadata)?;
    task = match update.status {
        None => task,
        Some(BoardStatus::Pending) => {
            refuse_others(before, terms, view)?;
            BoardTask { status: BoardStatus::Pending, owner: None, completed_at: None, ..task }
        }
        Some(BoardStatus::InProgress) => claimed(&task, terms.participant, view)?,
        Some(BoardStatus::Completed) => finished(&task, terms, view)?,
    };
    check_room(std::slice::from_ref(&task), view)?;
    changed(before, task, view)
}

/// A task that is done.
pub(super) fn completed(task: BoardTask, terms: &Terms<'_>) -> BoardTask {
    BoardTask { status: BoardStatus::Completed, completed_at: Some(terms.now), ..task }
}

/// The answer, and a change if there is one.
fn changed(before: &BoardTask, after: BoardTask, view: &SessionView) -> Verdict {
    let response = answer(&after, view);
    let changes = if after == *before { Vec::new() } else { vec![put(after)] };
    Ok((response, changes))
}

fn claimed(task: &BoardTask, owner: &Identity, view: &SessionView) -> Result<BoardTask, Refusal> {
    let name = owner.to_string();
    match task.status {
        BoardStatus::Completed => {
            return Err(Refusal::invalid(format!("{} is completed", task.id))
                .hint("update it with status pending to have it done again"));
        }
        BoardStatus::InProgress if task.owner.as_ref() == Some(&name) => return Ok(task.clone()),
        BoardStatus::InProgress => return Err(owned(task, view)),
        BoardStatus::Pending => {}
    }
    blocking::refuse_blocked(task, &view.board.tasks)?;
    Ok(BoardTask { status: BoardStatus::InProgress, owner: Some(name), ..task.clone() })
}

fn finished(task: &BoardTask, terms: &Terms<'_>, view: &SessionView) -> Result<BoardTask, Refusal> {
    if task.status == BoardStatus::Completed {
        return Ok(task.clone());
    }
    refuse_others(task, terms, view)?;
    blocking::refuse_blocked(task, &view.board.tasks)?;
    Ok(completed(task.clone(), terms))
}

/// Refuses a subagent that would change what another one has and works on.
fn refuse_others(task: &BoardTask, terms: &Terms<'_>, view: &SessionView) -> Result<(), Refusal> {
    let is_free = match (terms.participant, &task.owner) {
        (Identity::Orchestrator, _) | (_, None) => true,
        (participant, Some(owner)) => *owner == participant.to_string() || has_ended(owner, view),
    };
    if is_free { Ok(()) } else { Err(owned(task, view)) }
}

/// Whether an owner is a task that has ended; one that is no longer known ended long ago.
fn has_ended(owner: &str, view: &SessionView) -> bool {
    let task_id = Identity::parse(owner).and_then(|owner| owner.task_id());
    task_id.is_some_and(|task_id| view.board.owners.get(&task_id).is_none_or(|status| status.is_final()))
}

fn owned(task: &BoardTask, view: &SessionView) -> Refusal {
    let owner = task.owner.as_deref().unwrap_or("nobody");
    match owner_status(task, view).filter(|status| status.is_final()) {
        Some(status) => {
            let message = format!("{} is owned by {owner}, which has ended: {}", task.id, status.as_str());
            Refusal::new(Code::Owned, message).hint("update it with status pending, then claim it")
        }
        None => Refusal::new(Code::Owned, format!("{} is owned by {owner}", task.id)).hint("claim another one"),
    }
}

/// The identity of a task that the orchestrator gives something to.
fn named_owner(named: &str, terms: &Terms<'_>, view: &SessionView) -> Result<Identity, Refusal> {
    if *terms.participant != Identity::Orchestrator {
        return Err(Refusal::invalid("`owner` is set by the orchestrator only").hint("leave it out"));
    }
    let known = TaskId::parse(named).ok().and_then(|task_id| Some((task_id, view.tasks.get(&task_id)?)));
    let Some((task_id, known)) = known else {
        let shown: String = named.chars().take(80).collect();
        return Err(Refusal::new(Code::TaskNotFound, format!("there is no task `{shown}` to own it"))
            .hint("`owner` is the id of a task of this session, for example t_01"));
    };
    Ok(Identity::Subagent { agent: known.agent.clone(), task_id })
}

fn changes_the_task(update: &BoardUpdate) -> bool {
    update.subject.is_some()
        || update.description.is_some()
        || update.active_form.is_some()
        || update.blocked_by.is_some()
        || update.metadata.is_some()
}

fn check_shape(update: &BoardUpdate) -> Result<(), Refusal> {
    if !changes_the_task(update) && update.status.is_none() && update.comment.is_none() {
        return Err(Refusal::invalid("update: nothing to change")
            .hint("name subject, description, active_form, status, blocked_by, comment or metadata"));
    }
    for (field, line) in [("subject", &update.subject), ("active_form", &update.active_form)] {
        if let Some(line) = line {
            check_line(field, line)?;
        }
    }
    match &update.description {
        Some(text) => check_chars("description", text, limits::BOARD_DESCRIPTION_CHARS_MAX),
        None => Ok(()),
    }
}

fn set_fields(task: &mut BoardTask, update: &BoardUpdate) {
    if let Some(subject) = &update.subject {
        task.subject.clone_from(subject);
    }
    if update.description.is_some() {
        task.description.clone_from(&update.description);
    }
    if update.active_form.is_some() {
        task.active_form.clone_from(&update.active_form);
    }
    for (key, value) in update.metadata.iter().flatten() {
        if value.is_null() {
            task.metadata.remove(key);
        } else {
            task.metadata.insert(key.clone(), value.clone());
        }
    }
}

fn comment(text: &str, task: &BoardTask, terms: &Terms<'_>) -> Result<BoardComment, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid("`comment` is empty"));
    }
    check_chars("comment", text, limits::BOARD_COMMENT_CHARS_MAX)?;
    if task.comments.len() >= limits::BOARD_COMMENTS_MAX {
        let most = limits::BOARD_COMMENTS_MAX;
        return Err(Refusal::invalid(format!("{} has {most} comments; at most {most} are allowed", task.id))
            .hint("write it to the shared context"));
    }
    Ok(BoardComment { author: terms.participant.to_string(), text: text.to_owned(), created_at: terms.now })
}

/// The board with this task as it would be.
fn with(task: &BoardTask, view: &SessionView) -> Vec<BoardTask> {
    view.board.tasks.iter().map(|other| if other.id == task.id { task } else { other }).cloned().collect()
}
