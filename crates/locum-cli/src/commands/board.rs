//! `locum board`: the task board of the session.

use std::path::Path;

use anyhow::Context as _;
use locum::protocol::request::{
    BoardAdd, BoardClaim, BoardClear, BoardCompleteAll, BoardEntry, BoardId, BoardList, BoardUpdate,
};
use locum::protocol::response::{BoardStatus, BoardTask, BoardTasks};
use locum::protocol::{BoardAction, Request, Response};
use locum::{Executor, ToolRequest};
use serde_json::{Map, Value};

use super::foreground::read_text;
use crate::args::{BoardAddArgs, BoardFields, BoardState, BoardUpdateArgs, BoardVerb, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, Table};

pub(super) async fn board(verb: BoardVerb, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let action = match verb {
        BoardVerb::Add(args) => BoardAction::Add(BoardAdd { tasks: vec![added(args)?] }),
        BoardVerb::List { archived } => BoardAction::List(BoardList { archived: archived.then_some(true) }),
        BoardVerb::Show { id } => BoardAction::Get(BoardId { id }),
        BoardVerb::Update(args) => BoardAction::Update(Box::new(updated(args)?)),
        BoardVerb::Claim { id, owner } => BoardAction::Claim(BoardClaim { id, owner }),
        BoardVerb::Complete { id } => BoardAction::Complete(BoardId { id }),
        BoardVerb::CompleteAll => BoardAction::CompleteAll(BoardCompleteAll {}),
        BoardVerb::Clear => BoardAction::Clear(BoardClear {}),
    };
    let is_one = matches!(action, BoardAction::Get(_));
    let door = Entrance::open(global, output, Executor::InProcess)?;
    Ok(match door.handle(Request::person(ToolRequest::ManageTasks(action))).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) if output.is_json() => {
            output.json(&answer);
            Exit::Done
        }
        Ok(answer) => {
            show(output, &answer, is_one);
            Exit::Done
        }
    })
}

fn added(args: BoardAddArgs) -> anyhow::Result<BoardEntry> {
    let (description, metadata) = (description(&args.fields)?, metadata(&args.fields)?);
    let BoardFields { active_form, blocked_by, .. } = args.fields;
    let blocked_by = (!blocked_by.is_empty()).then_some(blocked_by);
    Ok(BoardEntry { subject: args.subject.join(" "), description, active_form, blocked_by, metadata })
}

fn updated(args: BoardUpdateArgs) -> anyhow::Result<BoardUpdate> {
    let (description, metadata) = (description(&args.fields)?, metadata(&args.fields)?);
    let BoardFields { active_form, blocked_by, .. } = args.fields;
    let status = args.status.map(|state| match state {
        BoardState::Pending => BoardStatus::Pending,
        BoardState::InProgress => BoardStatus::InProgress,
        BoardState::Completed => BoardStatus::Completed,
    });
    let blocked_by = (args.unblock || !blocked_by.is_empty()).then_some(blocked_by);
    let BoardUpdateArgs { id, subject, comment, .. } = args;
    Ok(BoardUpdate { id, subject, description, active_form, status, blocked_by, comment, metadata })
}

fn description(fields: &BoardFields) -> anyhow::Result<Option<String>> {
    match fields.description.as_deref() {
        Some("-") => Ok(Some(read_text(Path::new("-"))?)),
        text => Ok(text.map(str::to_owned)),
    }
}

fn metadata(fields: &BoardFields) -> anyhow::Result<Option<Map<String, Value>>> {
    let read = |text: &String| serde_json::from_str(text).context("--metadata is not a JSON object");
    fields.metadata.as_ref().map(read).transpose()
}

fn show(output: Output, answer: &Response, is_one: bool) {
    match answer {
        Response::BoardTasks(tasks) => show_tasks(output, tasks),
        Response::BoardTask(task) if is_one => output.answer(&whole(task)),
        Response::BoardTask(task) => output.answer(&line(task)),
        Response::BoardAdded(added) => {
            let lines: Vec<String> = added.added.iter().map(line).collect();
            output.answer(&lines.join("\n"));
        }
        Response::BoardCompleted(answer) => output.answer(&format!("completed {}", answer.completed)),
        Response::BoardArchived(answer) => output.answer(&format!("archived {}", answer.archived)),
        other => output.json(other),
    }
}

fn show_tasks(output: Output, tasks: &BoardTasks) {
    if tasks.tasks.is_empty() {
        return output.note("the board is empty");
    }
    let blocked = tasks.tasks.iter().any(|task| !task.blocked_by.is_empty());
    let head = ["ID", "STATUS", "OWNER", "BLOCKED BY", "SUBJECT"];
    let columns = |place: usize| blocked || place != 3;
    let head: Vec<&str> = head.into_iter().enumerate().filter(|(place, _)| columns(*place)).map(|it| it.1).collect();
    let mut table = Table::new(&head);
    for task in &tasks.tasks {
        let (status, subject) = (task.status.as_str().to_owned(), subject(task).to_owned());
        let cells = [task.id.to_string(), status, owner(task), blockers(task), subject];
        table.row(cells.into_iter().enumerate().filter(|(place, _)| columns(*place)).map(|it| it.1));
    }
    output.answer(&table.render(output.width()));
}

fn line(task: &BoardTask) -> String {
    let owner = if task.owner.is_some() { format!(" ({})", owner(task)) } else { String::new() };
    format!("{} {}{owner} {}", task.id, task.status.as_str(), subject(task))
}

/// What somebody is doing, or what is to be done.
fn subject(task: &BoardTask) -> &str {
    let active = task.active_form.as_deref().filter(|_| task.status == BoardStatus::InProgress);
    active.unwrap_or(&task.subject)
}

/// Who has a task and, if that is a task, how it stands.
fn owner(task: &BoardTask) -> String {
    let owner = task.owner.clone().unwrap_or_default();
    match task.owner_status {
        Some(status) => format!("{owner} {}", status.as_str()),
        None => owner,
    }
}

fn blockers(task: &BoardTask) -> String {
    let names: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
    names.join(" ")
}

fn whole(task: &BoardTask) -> String {
    let mut lines = vec![format!("{} {}", task.id, task.subject), format!("status      {}", task.status.as_str())];
    let metadata = Value::Object(task.metadata.clone()).to_string();
    let optional = [
        ("doing", task.active_form.clone()),
        ("owner", task.owner.is_some().then(|| owner(task))),
        ("blocked by", (!task.blocked_by.is_empty()).then(|| blockers(task))),
        ("metadata", (!task.metadata.is_empty()).then_some(metadata)),
        ("created", Some(task.created_at.to_string())),
        ("completed", task.completed_at.map(|at| at.to_string())),
        ("archived", task.archived_at.map(|at| at.to_string())),
    ];
    lines.extend(optional.into_iter().filter_map(|(name, value)| Some(format!("{name:<11} {}", value?))));
    if let Some(description) = &task.description {
        lines.push(format!("\n{}", description.trim_end()));
    }
    for comment in &task.comments {
        lines.push(format!("\n{} at {}\n{}", comment.author, comment.created_at, comment.text.trim_end()));
    }
    lines.join("\n")
}
