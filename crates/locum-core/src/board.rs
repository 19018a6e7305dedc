//! The rules of the task board: what there is to do in a session, who does it and what waits for what. Pure: a store
//! loads what [`lookup`] names and writes what [`decide`] changes, in one transaction.
//!
//! Whoever claims a task has it until it is completed or given back. What a subagent has is its own: another may
//! change it only when that subagent's task has ended. The orchestrator may change everything.

mod adding;
mod blocking;
mod changing;

use crate::ids::{BoardTaskId, Identity, TaskId, Timestamp};
use crate::limits;
use crate::protocol::request::BoardList;
use crate::protocol::response::{BoardArchived, BoardCompleted, BoardStatus, BoardTask, BoardTasks};
use crate::protocol::{BoardAction, Code, Refusal, Response};
use crate::session::{BoardLookup, SessionChange, SessionView};
use crate::usage::estimate_tokens;

/// Under which an action is decided.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Who acts.
    pub participant: &'a Identity,
    /// When.
    pub now: Timestamp,
}

/// An answer and what changes.
type Verdict = Result<(Response, Vec<SessionChange>), Refusal>;

/// What a decision about this action needs to see of the board.
pub fn lookup(action: &BoardAction) -> BoardLookup {
    match action {
        BoardAction::Get(_) | BoardAction::List(BoardList { archived: Some(true) }) => BoardLookup::Everything,
        BoardAction::Add(_)
        | BoardAction::List(_)
        | BoardAction::Update(_)
        | BoardAction::Claim(_)
        | BoardAction::Complete(_)
        | BoardAction::CompleteAll(_)
        | BoardAction::Clear(_) => BoardLookup::Tasks,
    }
}

/// The task of the session that an action names as an owner, which the decision needs to see too.
pub fn named_owner(action: &BoardAction) -> Option<TaskId> {
    match action {
        BoardAction::Claim(claim) => TaskId::parse(claim.owner.as_deref()?).ok(),
        BoardAction::Add(_)
        | BoardAction::List(_)
        | BoardAction::Get(_)
        | BoardAction::Update(_)
        | BoardAction::Complete(_)
        | BoardAction::CompleteAll(_)
        | BoardAction::Clear(_) => None,
    }
}

/// Decides about an action.
pub fn decide(
    action: &BoardAction,
    terms: &Terms<'_>,
    view: &SessionView,
) -> Result<(Response, Vec<SessionChange>), Refusal> {
    match action {
        BoardAction::Add(add) => adding::add(add, terms, view),
        BoardAction::List(list) => Ok((self::list(list, view), Vec::new())),
        BoardAction::Get(named) => Ok((answer(find_any(&named.id, view)?, view), Vec::new())),
        BoardAction::Update(update) => changing::update(update, terms, view),
        BoardAction::Claim(claim) => changing::claim(claim, terms, view),
        BoardAction::Complete(named) => changing::complete(&named.id, terms, view),
        BoardAction::CompleteAll(_) => complete_all(terms, view),
        BoardAction::Clear(_) => clear(terms, view),
    }
}

fn list(list: &BoardList, view: &SessionView) -> Response {
    let archived = list.archived == Some(true);
    let wanted = view.board.tasks.iter().filter(|task| task.archived_at.is_some() == archived);
    Response::BoardTasks(BoardTasks { tasks: wanted.map(|task| shown(task, view)).collect() })
}

/// Completes what the caller may complete: for the orchestrator that is everything, in the order of the blockers, so
/// that nothing is blocked when its turn comes. A subagent completes what it has and is not blocked.
fn complete_all(terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    let is_ours = |task: &BoardTask| match terms.participant {
        Identity::Orchestrator => true,
        Identity::Subagent { .. } => {
            task.owner.as_deref() == Some(terms.participant.to_string().as_str())
                && blocking::blockers(task, &view.board.tasks).is_empty()
        }
    };
    let open = live(view).filter(|task| task.status != BoardStatus::Completed && is_ours(task));
    let changes: Vec<SessionChange> = open.map(|task| put(changing::completed(task.clone(), terms))).collect();
    Ok((Response::BoardCompleted(BoardCompleted { completed: changes.len() }), changes))
}

fn clear(terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    if *terms.participant != Identity::Orchestrator {
        return Err(Refusal::invalid("the board is cleared by the orchestrator only")
            .hint("complete what is yours, or give it back with status pending"));
    }
    let archive = |task: &BoardTask| put(BoardTask { archived_at: Some(terms.now), ..task.clone() });
    let changes: Vec<SessionChange> = live(view).map(archive).collect();
    Ok((Response::BoardArchived(BoardArchived { archived: changes.len() }), changes))
}

/// The tasks that are on the board now.
fn live(view: &SessionView) -> impl Iterator<Item = &BoardTask> {
    view.board.tasks.iter().filter(|task| task.archived_at.is_none())
}

/// A task as it is answered: with how its owner stands.
fn shown(task: &BoardTask, view: &SessionView) -> BoardTask {
    BoardTask { owner_status: owner_status(task, view), ..task.clone() }
}

/// How the task of the session stands that has this one.
fn owner_status(task: &BoardTask, view: &SessionView) -> Option<crate::task::outcome::Status> {
    let owner = Identity::parse(task.owner.as_deref()?)?.task_id()?;
    view.board.owners.get(&owner).copied()
}

fn answer(task: &BoardTask, view: &SessionView) -> Response {
    Response::BoardTask(Box::new(shown(task, view)))
}

fn put(task: BoardTask) -> SessionChange {
    SessionChange::PutBoardTask(Box::new(BoardTask { owner_status: None, ..task }))
}

/// The task of this id, archived or not.
fn find_any<'a>(id: &str, view: &'a SessionView) -> Result<&'a BoardTask, Refusal> {
    let wanted = BoardTaskId::parse(id).ok();
    view.board.tasks.iter().find(|task| Some(task.id) == wanted).ok_or_else(|| not_found(id))
}

/// The task of this id that is on the board.
fn find<'a>(id: &str, view: &'a SessionView) -> Result<&'a BoardTask, Refusal> {
    find_any(id, view).ok().filter(|task| task.archived_at.is_none()).ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> Refusal {
    let shown: String = id.chars().take(80).collect();
    Refusal::new(Code::BoardTaskNotFound, format!("the board has no task `{shown}`"))
        .hint("list shows them; an id looks like b_01")
}

fn check_active(view: &SessionView) -> Result<(), Refusal> {
    if view.archived {
        return Err(Refusal::new(Code::SessionArchived, "the session is archived: its board can only be read"));
    }
    Ok(())
}

/// Refuses a line that is empty or too long.
fn check_line(field: &str, text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::invalid(format!("`{field}` is empty")));
    }
    check_chars(field, text, limits::BOARD_SUBJECT_CHARS_MAX)
}

fn check_chars(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    let is = text.chars().count();
    if is <= most {
        return Ok(());
    }
    Err(Refusal::invalid(format!("`{field}` has {is} characters; at most {most} are allowed")))
}

fn check_metadata(metadata: &serde_json::Map<String, serde_json::Value>) -> Result<(), Refusal> {
    let text = serde_json::to_string(metadata).map_err(Refusal::internal)?;
    check_chars("metadata", &text, limits::BOARD_METADATA_CHARS_MAX)
}

/// Refuses what would make the whole board too large. `changed` takes the place of the tasks with the same ids.
fn check_room(changed: &[BoardTask], view: &SessionView) -> Result<(), Refusal> {
    let others = || live(view).filter(|task| changed.iter().all(|other| other.id != task.id));
    let count = others().count() + changed.len();
    let tokens: usize = others().chain(changed).map(size_tokens).sum();
    let (count_max, tokens_max) = (limits::BOARD_TASKS_MAX, limits::BOARD_TOKENS_MAX);
    let message = if count > count_max {
        format!("the board would have {count} tasks; at most {count_max} are allowed")
    } else if tokens > tokens_max {
        format!("the board would have {tokens} tokens; at most {tokens_max} are allowed")
    } else {
        return Ok(());
    };
    Err(Refusal::invalid(message).hint("clear archives what is on it; long texts belong into the shared context"))
}

/// Tokens of everything that people and models wrote into a task.
fn size_tokens(task: &BoardTask) -> usize {
    let optional = |text: &Option<String>| text.as_deref().map_or(0, estimate_tokens);
    let comments: usize = task.comments.iter().map(|comment| estimate_tokens(&comment.text)).sum();
    let metadata = serde_json::to_string(&task.metadata).map_or(0, |text| estimate_tokens(&text));
    estimate_tokens(&task.subject) + optional(&task.description) + optional(&task.active_form) + comments + metadata
}
