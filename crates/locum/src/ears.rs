//! What tasks of other processes say, while they say it. Whoever wants to hear has an *ear*: a socket in a directory
//! that only the user can enter. A process whose task is answering sends each piece of the answer to every ear and
//! waits for none: a full one misses the piece. Nothing of this is kept and nothing depends on it; what was said is in
//! the log when it is whole.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram as Mouth;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use locum_core::ids::{AgentName, Seq, SessionKey, TaskId, Uid};
use serde::{Deserialize, Serialize};
use tokio::net::UnixDatagram;

use crate::private_file;
use crate::progress::{News, Progress};

/// How often ears are looked for, at most.
const LOOK: Duration = Duration::from_millis(500);

/// Ears that are spoken to: more than a person has screens open.
const EARS_MAX: usize = 8;

/// Bytes of one piece, with what is said about it: more than a system's datagrams hold.
const PIECE_BYTES_MAX: usize = 256 * 1024;

/// The directory with the ears of this user's processes, and a mouth to speak to them.
#[derive(Debug)]
pub(crate) struct Ears {
    directory: PathBuf,
    mouth: Option<Mouth>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    looked: Option<Instant>,
    ears: Vec<PathBuf>,
    /// How often others were found than before.
    changes: usize,
}

/// A piece of an answer, as it goes from process to process. Both are of one version, or do not understand each other.
#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    session: SessionKey,
    uid: Uid,
    task_id: TaskId,
    agent: AgentName,
    after: Seq,
    offset: usize,
    text: String,
}

impl Ears {
    /// Those in a directory, which need not be there.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        // Without a mouth nothing is said; nobody depends on it.
        let mouth = Mouth::unbound().ok().filter(|mouth| mouth.set_nonblocking(true).is_ok());
        Self { directory, mouth, known: Mutex::default() }
    }

    /// Whether anybody listens: a number that is another one when others do.
    pub(crate) fn listening(&self) -> Option<usize> {
        let known = self.look();
        (!known.ears.is_empty()).then_some(known.changes)
    }

    /// Says a piece of an answer to everybody who listens.
    pub(crate) fn say(&self, progress: &Progress) {
        let News::Text { after, offset, text } = &progress.news else { return };
        let Some(mouth) = &self.mouth else { return };
        let Progress { session, uid, task_id, agent, .. } = progress;
        let piece = Piece {
            session: session.clone(),
            uid: uid.clone(),
            task_id: *task_id,
            agent: agent.clone(),
            after: *after,
            offset: *offset,
            text: text.clone(),
        };
        let Ok(bytes) = serde_json::to_vec(&piece) else { return };
        let ears = self.look().ears.clone();
        for ear in ears {
            let said = mouth.send_to(&bytes, &ear);
            // A full ear misses this piece. One that nobody holds any more is cleared away.
            if said.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                std::fs::remove_file(&ear).ok();
            }
        }
    }

    /// The ears of other processes. Nothing panics or awaits under the lock that it holds.
    fn look(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            known.looked = Some(Instant::now());
            let found = find(&self.directory);
            if found != known.ears {
                known.ears = found;
                known.changes += 1;
            }
        }
        known
    }
}

fn find(directory: &Path) -> Vec<PathBuf> {
    let own = format!("{}-", std::process::id());
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let others = names.filter(|name| !name.to_string_lossy().starts_with(&own));
    let mut ears: Vec<PathBuf> = others.map(|name| directory.join(name)).collect();
    ears.sort();
    ears.truncate(EARS_MAX);
    ears
}

/// An ear of this process; it goes when it is dropped.
pub(crate) struct Ear {
    socket: UnixDatagram,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Ear {
    /// Opens one beside those that are there.
    pub(crate) fn open(ears: &Ears) -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        private_file::make_directory(&ears.directory)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = ears.directory.join(format!("{}-{number}", std::process::id()));
        // A process of the same number may have left one.
        std::fs::remove_file(&path).ok();
        let socket = UnixDatagram::bind(&path)?;
        Ok(Self { socket, path, bytes: vec![0; PIECE_BYTES_MAX] })
    }

    /// The next piece. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> std::io::Result<Progress> {
        loop {
            let length = self.socket.recv(&mut self.bytes).await?;
            // What cannot be read is of another version.
            let Ok(piece) = serde_json::from_slice::<Piece>(&self.bytes[..length]) else { continue };
            let Piece { session, uid, task_id, agent, after, offset, text } = piece;
            return Ok(Progress { session, uid, task_id, agent, news: News::Text { after, offset, text } });
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        // Who speaks to it later clears it away.
        std::fs::remove_file(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use locum_core::ids::SessionId;

    use super::*;

    fn said(text: &str) -> Progress {
        Progress {
            session: SessionKey { project: "/p".into(), id: SessionId::parse("main").unwrap() },
            uid: Uid::parse("01arz3ndektsv4rrffq69g5fav").unwrap(),
            task_id: TaskId::new(1),
            agent: AgentName::parse("writer").unwrap(),
            news: News::Text { after: 3, offset: 0, text: text.to_owned() },
        }
    }

    fn text(progress: Progress) -> String {
        match progress.news {
            News::Text { text, .. } => text,
            News::Event(_) => panic!("an event is never said to an ear"),
        }
    }

    /// What another process sees: it does not look past ears of its own number.
    fn elsewhere(directory: &Path, ear: &Ear) -> Ears {
        std::fs::rename(&ear.path, directory.join("other")).unwrap();
        Ears::in_directory(directory.to_owned())
    }

    #[tokio::test]
    async fn what_is_said_is_heard_by_others_and_an_ear_without_an_owner_is_cleared_away() {
        let directory = tempfile::tempdir().unwrap();
        let own = Ears::in_directory(directory.path().join("ears"));
        assert_eq!(own.listening(), None, "there is no directory yet");
        let mut ear = Ear::open(&own).unwrap();
        assert!(find(&own.directory).is_empty(), "a process does not hear itself");
        let others = elsewhere(&own.directory, &ear);
        assert!(others.listening().is_some());
        others.say(&said("one"));
        others.say(&said("two"));
        assert_eq!(text(ear.next().await.unwrap()), "one");
        assert_eq!(text(ear.next().await.unwrap()), "two");
        drop(ear);
        others.say(&said("three"));
        assert!(find(&own.directory).is_empty(), "nobody holds it any more");
    }

    #[tokio::test]
    async fn a_full_ear_keeps_nobody_waiting_and_hears_again_when_it_has_listened() {
        let directory = tempfile::tempdir().unwrap();
        let own = Ears::in_directory(directory.path().to_owned());
        let mut ear = Ear::open(&own).unwrap();
        let others = elsewhere(directory.path(), &ear);
        let long = "x".repeat(1000);
        (0..2_000).for_each(|_| others.say(&said(&long)));
        ear.next().await.unwrap();
        let mut heard = 1;
        while ear.socket.try_recv(&mut ear.bytes).is_ok() {
            heard += 1;
        }
        assert!((1..2_000).contains(&heard), "{heard}");
        others.say(&said("again"));
        assert_eq!(text(ear.next().await.unwrap()), "again");
        // What is too long for a datagram is missed as well.
        others.say(&said(&"x".repeat(10_000_000)));
        others.say(&said("at last"));
        assert_eq!(text(ear.next().await.unwrap()), "at last");
    }
}
