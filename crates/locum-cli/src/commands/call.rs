//! `locum call`: a tool call with JSON, as a model would make it; one, or one per line.

use anyhow::Context as _;
use locum::protocol::{Refusal, Response};
use locum::{Desk, Executor, Stay, limits};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

use crate::args::{Call, Global};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

/// One line of `call -`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    tool: String,
    input: Value,
}

pub(super) async fn call(args: Call, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let desk = door.opened.desk.clone();
    let exit = if args.tool == "-" {
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
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(line) = read_line(&mut input).await.context("standard input cannot be read")? {
        let answer = match line {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(bytes) => call_line(desk, &bytes).await,
            Err(refusal) => Err(refusal),
        };
        print(output, &answer);
    }
    // Each line had its own answer; that they could be given is success.
    Ok(Exit::Done)
}

async fn call_line(desk: &Desk, bytes: &[u8]) -> Result<Response, Refusal> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Refusal::invalid(format!("the line is not UTF-8 from byte {} on", error.valid_up_to())))?;
    // A list would be read as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(Refusal::invalid("the line is not {\"tool\", \"input\"}: it must be a JSON object"));
    }
    let Line { tool, input } = serde_json::from_str(text)
        .map_err(|error| Refusal::invalid(format!("the line is not {{\"tool\", \"input\"}}: {error}")))?;
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

/// One line of bytes, or a refusal for one that is too long; what is too long is read past, not kept.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Result<Vec<u8>, Refusal>>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok((!line.is_empty() || too_long).then(|| ended(line, too_long)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > limits::REQUEST_BYTES_MAX {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(&available[..taken]);
        }
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(ended(line, too_long)));
        }
    }
}

fn ended(line: Vec<u8>, too_long: bool) -> Result<Vec<u8>, Refusal> {
    if too_long {
        let most = limits::REQUEST_BYTES_MAX;
        return Err(Refusal::invalid(format!("the line is longer than {most} bytes")));
    }
    Ok(line)
}
