//! `locum context`: the shared context of the session.

use std::path::Path;

use locum::protocol::request::{ContextDelete, ContextKey, ContextWrite, ListKeys};
use locum::protocol::{ContextAction, Request, Response};
use locum::{Executor, ToolRequest};

use super::foreground::read_text;
use crate::args::{ContextVerb, Global};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) async fn context(args: ContextVerb, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let action = match args {
        ContextVerb::List => ContextAction::ListKeys(ListKeys {}),
        ContextVerb::Read { key } => ContextAction::Read(ContextKey { key }),
        ContextVerb::Write { key, value, expected_version } => {
            let value = if value == "-" { read_text(Path::new("-"))? } else { value };
            ContextAction::Write(ContextWrite { key, value, expected_version })
        }
        ContextVerb::Delete { key, expected_version } => ContextAction::Delete(ContextDelete { key, expected_version }),
    };
    let request = Request::person(ToolRequest::SharedContext(action));
    Ok(match door.opened.desk.handle(request).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) => {
            show(output, &answer);
            Exit::Done
        }
    })
}

fn show(output: Output, answer: &Response) {
    match answer {
        answer if output.is_json() => output.json(answer),
        Response::Keys(keys) if keys.keys.is_empty() => output.note("the shared context is empty"),
        Response::Keys(keys) => {
            let mut table = Table::new(&["KEY", "VERSION", "TOKENS", "BY", "AT"]);
            for key in &keys.keys {
                table.row([
                    key.key.clone(),
                    key.version.to_string(),
                    key.value_size_tokens.to_string(),
                    key.written_by.clone(),
                    key.written_at.to_string(),
                ]);
            }
            output.answer(&table.render(output.width()));
        }
        Response::Entry(entry) => output.answer(&entry.value),
        Response::Written(written) => {
            if let Some(warning) = &written.warning {
                output.warn(warning);
            }
            output.answer(&format!("{} version {}", written.key, written.version));
        }
        Response::Deleted(deleted) => {
            output.answer(&format!("deleted {} (version {})", deleted.deleted, deleted.previous_version));
        }
        other => output.json(other),
    }
}
