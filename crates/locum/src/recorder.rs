//! Writes what models answer to a file, so that a real run can be [replayed](locum_models::replay) as a test.
//!
//! Several processes may write to one file: a line is added whole, under a lock of the file. Known secrets are taken
//! out, and only the file's owner can read it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locum_core::task::Task;
use locum_core::transcript::{Reply, ToolSpec};
use locum_models::ModelError;
use locum_models::recording::{self, Entry, Said};

use crate::hands::Hands;
use crate::operation_log::Operation;
use crate::redact::Redactor;
use crate::turn;

/// The longest first line that is looked at to see whether a file is a recording.
const FIRST_LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A recording that is being written.
///
/// ```
/// use locum::{Desk, recorder::Recorder, redact::Redactor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("run.jsonl");
/// let recorder = Recorder::open(&path, Redactor::new(["sk-an-example-key"]))?;
/// let desk = Desk::builder().recorder(recorder).build()?;
/// # drop(desk);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recorder {
    // Nothing awaits under this lock.
    file: Mutex<File>,
    path: PathBuf,
    redactor: Redactor,
}

impl Recorder {
    /// A recording at this path; what it holds already is kept. What the redactor knows is never written.
    ///
    /// # Errors
    ///
    /// The file cannot be made or opened, or holds something that is not a recording.
    pub fn open(path: &Path, redactor: Redactor) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        check(&file)?;
        // It may have been made by somebody who did not know what would be in it.
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self { file: Mutex::new(file), path: path.to_owned(), redactor })
    }

    /// Adds one entry.
    pub(crate) fn write(&self, entry: Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&self.redactor.value(entry)?)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        turn::take(&file, &self.path, turn::PATIENCE)?;
        let written = add(&mut file, &line);
        written.and(file.unlock())
    }
}

/// Records what came of the call that a task just made, where the user wants it. A recording that cannot be written
/// never stops the work that it describes, but the log of operations says so.
pub(crate) fn record(hands: &Hands, task: &Task, tools: &Arc<[ToolSpec]>, answer: &Result<Reply, ModelError>) {
    let Some(recorder) = &hands.recorder else { return };
    let (plan, prompt) = (task.plan(), task.prompt(tools));
    let written = recorder.write(Entry {
        recording: recording::VERSION,
        task: plan.uid.clone(),
        agent: plan.agent.name.clone(),
        call: prompt.call,
        asked: recording::fingerprint(&prompt),
        model: task.model().to_string(),
        said: Said::of(answer),
    });
    if let Err(error) = written {
        hands.log.write(&Operation {
            timestamp: hands.clock.now(),
            session: plan.session.id.as_str(),
            task: Some(plan.task_id.to_string()),
            agent: Some(plan.agent.name.as_str()),
            action: "record",
            status: &error.to_string(),
            turns: Some(task.usage().turns),
            change: None,
            payload: None,
        });
    }
}

/// Refuses to add to what is something else.
fn check(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a recording must be a file"));
    }
    let mut first = Vec::new();
    BufReader::new(file.take(FIRST_LINE_BYTES_MAX)).read_until(b'\n', &mut first)?;
    match serde_json::from_slice::<Entry>(&first) {
        Ok(_) => Ok(()),
        // Empty, or cut off with its writer.
        Err(error) if error.is_eof() => Ok(()),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "this file is not a recording; name a new file, or one that --record has made",
        )),
    }
}

fn add(file: &mut File, line: &[u8]) -> io::Result<()> {
    // A line whose writer was killed half-way must not swallow this one.
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(line)
}
