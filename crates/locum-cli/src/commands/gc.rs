//! `locum gc`: removes what is older than it is kept, and says what that was.

use locum::Executor;
use locum::desk::Forgotten;
use locum::limits::RETENTION_DAYS;
use locum::store::Sweeping;
use serde_json::json;

use crate::args::{GcArgs, Global};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

pub(super) async fn gc(args: GcArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let places = &door.opened.places;
    let sweeping = if args.dry_run { Sweeping::Look } else { Sweeping::Remove };
    let forgotten = door.opened.desk.forget_old(&[places.logs(), places.transcripts()], sweeping).await;
    let forgotten = match forgotten {
        Ok(forgotten) => forgotten,
        Err(refusal) => return Ok(output.refuse(&refusal)),
    };
    if output.is_json() {
        let mut answer = json!(forgotten);
        answer["dry_run"] = json!(args.dry_run);
        output.json(&answer);
    } else {
        output.answer(&told(&forgotten, sweeping));
    }
    Ok(Exit::Done)
}

fn told(forgotten: &Forgotten, sweeping: Sweeping) -> String {
    let Forgotten { swept, files, bytes } = forgotten;
    if swept.tasks == 0 && files.is_empty() {
        return format!("nothing ended more than {RETENTION_DAYS} days ago");
    }
    let verb = match sweeping {
        Sweeping::Look => "would remove",
        Sweeping::Remove => "removed",
    };
    let counted = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let tasks = counted(swept.tasks, "task", "tasks");
    let entries = counted(swept.entries, "log entry", "log entries");
    let mut lines =
        vec![format!("{verb} {tasks} with {entries}, and {} ({bytes} bytes)", counted(files.len(), "file", "files"))];
    lines.extend(files.iter().map(|file| file.display().to_string()));
    lines.join("\n")
}
