//! `locum result`: a task's whole text, also after it was collected.

use locum::protocol::request::ResultPage;
use locum::protocol::response::ResultText;
use locum::protocol::{Refusal, Response, SubagentAction};
use locum::{Executor, limits};

use crate::args::{Global, ResultArgs};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn result(args: ResultArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let page = ResultPage { task_id: args.task_id, offset: args.offset, limit: args.limit };
    let paged = page.offset.is_some() || page.limit.is_some();
    if output.is_json() || paged {
        return Ok(match ask(&door, page).await {
            Err(refusal) => output.refuse(&refusal),
            Ok(page) if output.is_json() => {
                output.json(&page);
                Exit::Done
            }
            Ok(page) => {
                output.answer(&page.text);
                Exit::Done
            }
        });
    }
    Ok(match whole_text(&door, &page.task_id).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(text) => {
            output.answer(&text);
            Exit::Done
        }
    })
}

async fn ask(door: &Entrance, page: ResultPage) -> Result<ResultText, Refusal> {
    match door.ask(SubagentAction::Result(page)).await? {
        Response::ResultPage(page) => Ok(page),
        other => Err(Refusal::internal(format!("an unexpected answer to result: {other:?}"))),
    }
}

/// Everything that a task said, page after page.
pub(super) async fn whole_text(door: &Entrance, task_id: &str) -> Result<String, Refusal> {
    let mut text = String::new();
    let mut offset = 0;
    loop {
        let limit = Some(limits::RESULT_PAGE_CHARS_MAX);
        let page = ask(door, ResultPage { task_id: task_id.to_owned(), offset: Some(offset), limit }).await?;
        text.push_str(&page.text);
        match page.next_offset {
            Some(next) => offset = next,
            None => return Ok(text),
        }
    }
}
