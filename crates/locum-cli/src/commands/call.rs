//! `locum call`: a tool call with JSON, as a model would make it; one, or one per line.

use anyhow::Context as _;
use locum::faces::{Face, FaceAnswer};
use locum::protocol::Refusal;
use locum::{Desk, Executor, Stay, limits};

use crate::args::{Call, Global};
use crate::door::{Door, Orchestrator};
use crate::lines::{Line, Lines};
use crate::output::{Exit, Output};
use crate::tool_call::ToolCall;

pub(super) async fn call(args: Call, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let (desk, face) = (door.opened.desk.clone(), args.face.face());
    let exit = if args.tool == "-" {
        desk.follow_agent_files();
        desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
        call_lines(face, &desk, output).await?
    } else {
        let input = args.input.unwrap_or_default();
        let answer = match serde_json::from_str(&input) {
            Ok(input) => Ok(face.handle(&desk, &args.tool, input).await),
            Err(error) => Err(Refusal::invalid(format!("the input is not JSON: {error}"))),
        };
        print(output, &answer)
    };
    drop(desk);
    door.opened.desk.close().await.context("unfinished tasks could not be handed on")?;
    Ok(exit)
}

async fn call_lines(face: Face, desk: &Desk, output: Output) -> anyhow::Result<Exit> {
    let mut lines = Lines::new(tokio::io::stdin());
    while let Some(line) = lines.next().await.context("standard input cannot be read")? {
        let answer = match line {
            Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Whole(bytes) => call_line(face, desk, &bytes).await,
            Line::TooLong => {
                Err(Refusal::invalid(format!("the line is longer than {} bytes", limits::REQUEST_BYTES_MAX)))
            }
        };
        print(output, &answer);
    }
    // Each line had its own answer; that they could be given is success.
    Ok(Exit::Done)
}

async fn call_line(face: Face, desk: &Desk, bytes: &[u8]) -> Result<FaceAnswer, Refusal> {
    let ToolCall { tool, input } = ToolCall::read(bytes, "line")?;
    Ok(face.handle(desk, &tool, input).await)
}

fn print(output: Output, answer: &Result<FaceAnswer, Refusal>) -> Exit {
    match answer {
        Ok(answer) => {
            output.answer(&answer.json);
            if answer.is_error { Exit::Failed } else { Exit::Done }
        }
        Err(refusal) => {
            output.json(refusal);
            Exit::Failed
        }
    }
}
