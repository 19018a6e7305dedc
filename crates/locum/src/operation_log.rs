//! One line of JSON for each operation and each tool call. Never what was asked or answered, unless the user said so.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use locum_core::ids::Timestamp;
use serde::Serialize;

use crate::attached::Link;
use crate::context_changes::ContextChange;
use crate::redact::Redactor;

/// Where operations are logged; nowhere by default.
#[derive(Debug, Default)]
pub struct OperationLog {
    sink: Sink,
    payloads: bool,
    redactor: Redactor,
}

/// Where lines go.
#[derive(Debug, Default)]
enum Sink {
    #[default]
    Nowhere,
    File(Mutex<DayFile>),
    /// To the process that this one works for.
    Parent(Arc<Link>),
}

/// The file of one day.
#[derive(Debug)]
struct DayFile {
    directory: PathBuf,
    day: String,
    file: File,
}

impl DayFile {
    fn open(directory: &Path, at: Timestamp) -> std::io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let day = day_of(at);
        let path = directory.join(format!("{day}.{EXTENSION}"));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self { directory: directory.to_owned(), day, file })
    }

    /// Goes on in another file when another day has begun: a process that stays must not keep an old one from going.
    fn turn_page(&mut self, at: Timestamp) {
        if day_of(at) != self.day
            && let Ok(next) = Self::open(&self.directory, at)
        {
            *self = next;
        }
    }
}

/// What the files of the log are called after their day.
const EXTENSION: &str = "log";

fn day_of(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// Whether a file of this name in the directory of the log is of a day that ended before.
pub(crate) fn is_of_day_before(name: &str, before: Timestamp) -> Option<bool> {
    let day = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let last = Timestamp::try_from(format!("{day}T23:59:59.999Z")).ok()?;
    Some(last < before)
}

/// One line of the log.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Operation<'a> {
    /// When.
    pub(crate) timestamp: Timestamp,
    /// In which session.
    pub(crate) session: &'a str,
    /// The task, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// The agent, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'a str>,
    /// What was done: an action of a tool, or a tool call of a task.
    pub(crate) action: &'a str,
    /// How it went.
    pub(crate) status: &'a str,
    /// Turns of the task so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turns: Option<u32>,
    /// What it changed in the shared context: key, version, writer and size.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<&'a ContextChange>,
    /// What was asked and answered; only where the user said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<serde_json::Value>,
}

impl OperationLog {
    /// A log in `directory`, in files named after their days, `day` first, and readable by its owner alone. With `payloads` it also has
    /// what was asked and answered, without the redactor's secrets.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made or opened.
    pub fn open(directory: &Path, day: Timestamp, payloads: bool, redactor: Redactor) -> std::io::Result<Self> {
        let file = DayFile::open(directory, day)?;
        Ok(Self { sink: Sink::File(Mutex::new(file)), payloads, redactor })
    }

    /// A log that the parent of this process writes; it knows the secrets.
    pub(crate) fn of_parent(link: Arc<Link>, payloads: bool) -> Self {
        Self { sink: Sink::Parent(link), payloads, redactor: Redactor::default() }
    }

    /// Whether payloads are wanted; they are not even made otherwise.
    pub(crate) fn wants_payloads(&self) -> bool {
        self.payloads
    }

    /// Whether anything is logged at all.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.sink, Sink::Nowhere)
    }

    /// Writes one line. A log that cannot be written never stops the work that it describes.
    pub(crate) fn write(&self, operation: &Operation<'_>) {
        if !self.is_open() {
            return;
        }
        let Ok(line) = serde_json::to_string(operation) else { return };
        if let Sink::File(file) = &self.sink
            && let Ok(mut day) = file.lock()
        {
            day.turn_page(operation.timestamp);
        }
        self.write_line(line);
    }

    /// Writes one line that was made before.
    pub(crate) fn write_line(&self, line: String) {
        let line = self.redactor.text(line);
        match &self.sink {
            Sink::Nowhere => {}
            Sink::Parent(link) => link.log(line),
            Sink::File(file) => {
                if let Ok(mut day) = file.lock() {
                    day.file.write_all((line + "\n").as_bytes()).ok();
                }
            }
        }
    }
}
