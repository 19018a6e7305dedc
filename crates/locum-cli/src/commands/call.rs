//! `locum call`: a tool call with JSON, as a model would make it; one, or one per line.

use crate::args::{Call, Global};
use crate::door::{Door, Orchestrator};
use crate::lines::{Line, Lines};
use crate::output::{Exit, Output};
use crate::tool_call::ToolCall;
use anyhow::Context as _;
use locum::protocol::{Refusal, Response};
use locum::{Desk, Executor, Stay, limits};

pub(super) async fn call(args: Call, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let desk = door.opened.desk.clone();
    let exit = if args.tool == "-" {
        desk.follow_agent_files();
        desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
        call_lines(&desk, output).await?
    } else {
        let input = args.input.unwrap_or_default();
        let answer = match serde_json::from_str(&input) {
            Ok(input) => desk.call(&args.tool, input).await,
            Err(error) => Err(Refusal::invalid(format!("the input is not JSON: {error}"))),
        };
        print(output, &answer)
    };
    drop(desk);
    door.opened.desk.close().await.context("unfinished tasks could not be handed on")?;
    Ok(exit)
}

async fn call_lines(desk: &Desk, output: Output) -> anyhow::Result<Exit> {
    let mut lines = Lines::new(tokio::io::stdin());
    while let Some(line) = lines.next().await.context("standard input cannot be read")? {
        let answer = match line {
            Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Whole(bytes) => call_line(desk, &bytes).await,
            Line::TooLong => {
                Err(Refusal::invalid(format!("the line is longer than {} bytes", limits::REQUEST_BYTES_MAX)))
            }
        };
        print(output, &answer);
    }
    // Each line had its own answer; that they could be given is success.
    Ok(Exit::Done)
}

async fn call_line(desk: &Desk, bytes: &[u8]) -> Result<Response, Refusal> {
    let ToolCall { tool, input } = ToolCall::read(bytes, "line")?;
    desk.call(&tool, input).await
}

fn print(output: Output, answer: &Result<Response, Refusal>) -> Exit {
    match answer {
        Ok(response) => {
            output.json(response);
            Exit::Done
        }
        Err(refusal) => {
            output.json(refusal);
            Exit::Failed
        }
    }
}
