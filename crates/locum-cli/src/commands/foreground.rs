//! Asking and waiting while a person watches: progress lines, and an interrupt that stops the tasks.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use locum::agent::Isolation;
use locum::limits;
use locum::protocol::{FaceDefaults, Refusal, Response, SpawnEntry, SubagentAction};

use crate::args::{Apart, Entries, Pair, TaskOptions};
use crate::entrance::Entrance;
use crate::output::live::Live;
use crate::output::voice::Voice;

/// How asking in the foreground ended.
pub(super) enum Asked {
    /// With an answer or a refusal.
    Answered(Box<Result<Response, Refusal>>),
    /// A person interrupted it; the tasks were stopped.
    Interrupted,
}

/// Asks and waits. An interrupt cancels what this process works on.
pub(super) async fn ask(door: &Entrance, action: SubagentAction, face: FaceDefaults) -> Asked {
    ask_aloud(door, action, face, None).await
}

/// The same, and what one agent says is shown as it says it.
pub(super) async fn ask_aloud(
    door: &Entrance,
    action: SubagentAction,
    face: FaceDefaults,
    voice: Option<&mut Voice>,
) -> Asked {
    let news = door.progress();
    let mut live = Live::new(door.bars(), voice);
    let asked = {
        let answer = door.ask_and_wait(action, face);
        let watch = async {
            match news {
                Some(news) if door.output.is_live() => live.show(news).await,
                news => {
                    drop(news);
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            answer = answer => Asked::Answered(Box::new(answer)),
            // Without a handler for it, an interrupt ends the process and the tasks are found by the next one.
            Ok(()) = tokio::signal::ctrl_c() => Asked::Interrupted,
            () = watch => Asked::Interrupted,
        }
    };
    drop(live);
    if matches!(asked, Asked::Interrupted) {
        door.stop().await;
    }
    asked
}

/// An entry for one task as a person gave it.
pub(super) fn entry(door: &Entrance, agent: String, task: String, options: TaskOptions) -> SpawnEntry {
    let TaskOptions { label, timeout, max_input_tokens, max_output_tokens, max_cost_usd, cwd, isolation, routing } =
        options;
    let mut entry = SpawnEntry {
        agent,
        task,
        label,
        timeout,
        max_input_tokens,
        max_output_tokens,
        max_cost_usd,
        cwd,
        isolation: isolation.map(|apart| match apart {
            Apart::Worktree => Isolation::Worktree,
            Apart::Process => Isolation::Process,
            Apart::None => Isolation::None,
        }),
        model: door.call_model.clone(),
        ..SpawnEntry::default()
    };
    routing.fill(&mut entry);
    entry
}

/// The words of a task, or standard input for `-`.
pub(super) fn task_text(words: &[String]) -> anyhow::Result<String> {
    if words == ["-"] { read_text(Path::new("-")) } else { Ok(words.join(" ")) }
}

/// A file, or standard input for `-`, up to the size of a request.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    let most = limits::REQUEST_BYTES_MAX as u64;
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most + 1).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
        file.take(most + 1).read_to_string(&mut text)
    };
    let read = read.with_context(|| format!("{} cannot be read", path.display()))?;
    anyhow::ensure!(read as u64 <= most, "{} is larger than {most} bytes", path.display());
    Ok(text)
}

/// Tasks given as `AGENT=TASK`, or as lines of JSON in a file.
pub(super) fn entries(door: &Entrance, said: Entries) -> anyhow::Result<Vec<SpawnEntry>> {
    let Entries { entries: pairs, tasks: file, routing } = said;
    let mut entries = match file {
        Some(path) => read_text(&path)?
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(place, line)| line_entry(line).with_context(|| format!("{}:{}", path.display(), place + 1)))
            .collect::<anyhow::Result<Vec<SpawnEntry>>>()?,
        None => {
            pairs.into_iter().map(|Pair { agent, task }| SpawnEntry { agent, task, ..SpawnEntry::default() }).collect()
        }
    };
    for entry in &mut entries {
        entry.model = entry.model.take().or_else(|| door.call_model.clone());
        routing.fill(entry);
    }
    Ok(entries)
}

/// A task as a line of a file.
const LINE: &str = r#"{"agent": "explore", "task": "…"}"#;

fn line_entry(line: &str) -> anyhow::Result<SpawnEntry> {
    // A list would be read as the fields in their order.
    anyhow::ensure!(line.trim_start().starts_with('{'), "a task is a JSON object such as {LINE}");
    serde_json::from_str(line).map_err(|error| anyhow::anyhow!("{error}; a task is a JSON object such as {LINE}"))
}
