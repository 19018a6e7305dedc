//! `locum context session`: the life of sessions.

use locum::store::SessionRow;
use locum::{Refusal, SessionId};
use serde_json::{Value, json};

use crate::args::SessionVerb;
use crate::door::Door;
use crate::output::{Exit, Output, Table};

pub(super) async fn sessions(verb: SessionVerb, door: &Door) -> anyhow::Result<Exit> {
    let (desk, output) = (&door.opened.desk, door.output);
    let (done, state) = match verb {
        SessionVerb::List => return Ok(list(door).await),
        SessionVerb::Create { id } => (desk.create_session(&SessionId::parse(&id)?).await.map(|()| id), "active"),
        SessionVerb::Archive { id } => (desk.archive_session(&SessionId::parse(&id)?).await.map(|()| id), "archived"),
        SessionVerb::Delete { id, yes } => {
            let session = SessionId::parse(&id)?;
            let question = format!("Delete the session {id} with its shared context, agents, tasks and logs?");
            if !yes && !output.asks(&question) {
                output.complain("nothing was deleted", Some("say --yes"));
                return Ok(Exit::Failed);
            }
            (desk.delete_session(&session).await.map(|()| id), "deleted")
        }
    };
    Ok(show(output, done, state))
}

async fn list(door: &Door) -> Exit {
    let output = door.output;
    let rows = match door.opened.desk.sessions().await {
        Ok(rows) => rows,
        Err(refusal) => return output.refuse(&refusal),
    };
    if output.is_json() {
        output.json(&json!({"sessions": rows.iter().map(line).collect::<Vec<_>>()}));
        return Exit::Done;
    }
    if rows.is_empty() {
        output.note("there are no sessions");
        return Exit::Done;
    }
    let mut table = Table::new(&["SESSION", "STATE", "TASKS", "UNFINISHED", "KEYS"]);
    for row in rows {
        let numbers = [row.tasks, row.unfinished, row.keys].map(|number| number.to_string());
        table.row([row.id.to_string(), state(&row).to_owned()].into_iter().chain(numbers));
    }
    output.answer(&table.render(output.width()));
    Exit::Done
}

/// A session as machines see it.
pub(crate) fn line(row: &SessionRow) -> Value {
    json!({
        "session": row.id.as_str(),
        "state": state(row),
        "tasks": row.tasks,
        "unfinished": row.unfinished,
        "keys": row.keys,
    })
}

fn state(row: &SessionRow) -> &'static str {
    if row.archived { "archived" } else { "active" }
}

fn show(output: Output, done: Result<String, Refusal>, state: &str) -> Exit {
    match done {
        Err(refusal) => output.refuse(&refusal),
        Ok(id) => {
            if output.is_json() {
                output.json(&json!({"session": id, "state": state}));
            } else {
                output.answer(&format!("{id} {state}"));
            }
            Exit::Done
        }
    }
}
