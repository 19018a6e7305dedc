//! `locum context`: the shared context of the session.

use std::path::Path;

use locum::protocol::request::{
    ContextBatch, ContextDelete, ContextHistory, ContextKey, ContextLabel, ContextWrite, ListKeys, ListSnapshots,
};
use locum::protocol::response::{Batch, Entry, History, KeyLine, Keys, Restored, SnapshotLine, Snapshots};
use locum::protocol::{ContextAction, Request, Response};
use locum::{Executor, ToolRequest};

use super::foreground::read_text;
use super::sessions;
use crate::args::{ContextVerb, ContextWriteArgs, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, Table};

pub(super) async fn context(args: ContextVerb, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let action = match args {
        ContextVerb::Session(verb) => return sessions::sessions(verb, door.here()?).await,
        ContextVerb::List => ContextAction::ListKeys(ListKeys {}),
        ContextVerb::Read { key } => ContextAction::Read(ContextKey { key }),
        ContextVerb::ReadBatch { keys } => ContextAction::ReadBatch(ContextBatch { keys }),
        ContextVerb::Write(args) => ContextAction::Write(written(args)?),
        ContextVerb::Delete { key, expected_version } => ContextAction::Delete(ContextDelete { key, expected_version }),
        ContextVerb::History { key, versions } => ContextAction::ReadHistory(ContextHistory { key, versions }),
        ContextVerb::Snapshot { label } => ContextAction::Snapshot(ContextLabel { label }),
        ContextVerb::Snapshots => ContextAction::ListSnapshots(ListSnapshots {}),
        ContextVerb::Restore { label } => ContextAction::Restore(ContextLabel { label }),
    };
    let request = Request::person(ToolRequest::SharedContext(action));
    Ok(match door.handle(request).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) => {
            show(output, &answer);
            Exit::Done
        }
    })
}

fn written(args: ContextWriteArgs) -> anyhow::Result<ContextWrite> {
    let some = |patterns: Vec<String>| (!patterns.is_empty()).then_some(patterns);
    Ok(ContextWrite {
        key: args.key,
        value: if args.value == "-" { read_text(Path::new("-"))? } else { args.value },
        expected_version: args.expected_version,
        ttl_seconds: args.ttl,
        readable_by: some(args.readable_by),
        writable_by: some(args.writable_by),
    })
}

fn show(output: Output, answer: &Response) {
    match answer {
        answer if output.is_json() => output.json(answer),
        Response::Keys(keys) => show_keys(output, keys),
        Response::Entry(entry) => output.answer(&entry.value),
        Response::Batch(batch) => show_batch(output, batch),
        Response::History(history) => show_history(output, history),
        Response::Written(written) => {
            if let Some(warning) = &written.warning {
                output.warn(warning);
            }
            let until = written.expires_at.map(|at| format!(" until {at}")).unwrap_or_default();
            output.answer(&format!("{} version {}{until}", written.key, written.version));
        }
        Response::Deleted(deleted) => {
            output.answer(&format!("deleted {} (version {})", deleted.deleted, deleted.previous_version));
        }
        Response::Snapshot(line) => {
            output.answer(&format!("{}: keys {}, tokens {}", line.label, line.keys, line.total_size_tokens));
        }
        Response::Snapshots(snapshots) => show_snapshots(output, snapshots),
        Response::Restored(restored) => show_restored(output, restored),
        other => output.json(other),
    }
}

fn show_keys(output: Output, keys: &Keys) {
    if keys.keys.is_empty() {
        return output.note("the shared context is empty");
    }
    let limited = keys.keys.iter().any(|key| !limits_of(key).is_empty());
    let head = ["KEY", "VERSION", "TOKENS", "BY", "AT", "LIMITS"];
    let mut table = Table::new(if limited { &head } else { &head[..5] });
    for key in &keys.keys {
        let (version, tokens) = (key.version.to_string(), key.value_size_tokens.to_string());
        let cells = [key.key.clone(), version, tokens, key.written_by.clone(), key.written_at.to_string()];
        table.row(cells.into_iter().chain(limited.then(|| limits_of(key))));
    }
    output.answer(&table.render(output.width()));
}

/// Until when a key has its value, and for whom.
fn limits_of(key: &KeyLine) -> String {
    let mut limits: Vec<String> = key.expires_at.map(|at| format!("until {at}")).into_iter().collect();
    for (what, patterns) in [("read by", &key.readable_by), ("written by", &key.writable_by)] {
        if !patterns.is_empty() {
            limits.push(format!("{what} {}", patterns.join(" ")));
        }
    }
    limits.join(", ")
}

fn show_batch(output: Output, batch: &Batch) {
    let block = |entry: &Entry| format!("{} version {}\n{}\n", entry.key, entry.version, entry.value.trim_end());
    let blocks: Vec<String> = batch.entries.iter().map(block).collect();
    if !blocks.is_empty() {
        output.answer(&blocks.join("\n"));
    }
    if !batch.missing.is_empty() {
        output.note(&format!("not there: {}", batch.missing.join(", ")));
    }
}

fn show_history(output: Output, history: &History) {
    let blocks: Vec<String> = history
        .versions
        .iter()
        .map(|it| {
            format!("version {} by {} at {}\n{}\n", it.version, it.written_by, it.written_at, it.value.trim_end())
        })
        .collect();
    output.answer(&blocks.join("\n"));
}

fn show_snapshots(output: Output, snapshots: &Snapshots) {
    if snapshots.snapshots.is_empty() {
        return output.note("there are no snapshots");
    }
    let mut table = Table::new(&["LABEL", "KEYS", "TOKENS", "BY", "AT"]);
    for SnapshotLine { label, taken_by, taken_at, keys, total_size_tokens } in &snapshots.snapshots {
        let (keys, tokens) = (keys.to_string(), total_size_tokens.to_string());
        table.row([label.clone(), keys, tokens, taken_by.clone(), taken_at.to_string()]);
    }
    output.answer(&table.render(output.width()));
}

fn show_restored(output: Output, restored: &Restored) {
    let mut lines = vec![format!("restored {}", restored.restored)];
    lines.extend(restored.written.iter().map(|written| format!("{} version {}", written.key, written.version)));
    lines.extend(restored.deleted.iter().map(|key| format!("deleted {key}")));
    output.answer(&lines.join("\n"));
}
