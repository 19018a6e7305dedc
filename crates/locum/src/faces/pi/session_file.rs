//! The file with what was said in a task: one line of JSON for each message. Only its owner can read it, and it goes when
//! the task's log would.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_core::limits;
use serde_json::json;

use super::super::transcript::Transcript;
use crate::desk::Desk;

/// How long a file is kept: as long as results and logs.
const KEPT: Duration = Duration::from_secs(limits::RETENTION_DAYS.unsigned_abs() * 24 * 60 * 60);

/// Writes the file, where there is a place for it; its path, if it is there.
pub(super) async fn write(desk: &Desk, transcript: &Transcript) -> Option<PathBuf> {
    let directory = desk.face_settings().transcripts.clone()?;
    let path = directory.join(format!("{}.jsonl", transcript.plan.uid));
    let text = text_of(transcript);
    let written = desk
        .off_thread(move || {
            forget_old(&directory);
            write_file(&directory, &path, text.as_bytes()).map(|()| path)
        })
        .await;
    written.ok()?.ok()
}

fn text_of(transcript: &Transcript) -> String {
    let plan = &transcript.plan;
    let head = json!({
        "type": "session",
        "runId": plan.uid,
        "agent": plan.agent.name,
        "task": plan.assignment.task,
        "model": plan.model.to_string(),
        "timestamp": plan.created_at,
    });
    let mut text = format!("{head}\n");
    for message in transcript.whole() {
        text.push_str(&format!("{}\n", json!({"type": "message", "message": message})));
    }
    text
}

fn write_file(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?.write_all(bytes)
}

/// What cannot be removed now is tried again with the next file.
fn forget_old(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if modified.ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > KEPT) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}
