//! What sessions wrote lately, read from the store once for all who follow it: a hundred readers of one session cost
//! little more than one. Who is far behind reads for itself.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use locum_core::ids::SessionKey;
use tokio::sync::Semaphore;

use crate::store::{Error, PlacedRecord, Position, Store, Tail};

/// Records that are read at once: a reader that is far behind must not fill the memory.
const AT_ONCE: usize = 64;

/// Looks that are kept for those who come a little later.
const LOOKS_KEPT: usize = 16;

/// A record as it is told to everybody who follows its session: written down once, however many read it.
#[derive(Debug)]
pub struct TailedRecord {
    placed: PlacedRecord,
    json: OnceLock<Option<String>>,
}

impl TailedRecord {
    fn new(placed: PlacedRecord) -> Self {
        Self { placed, json: OnceLock::new() }
    }

    /// The record as JSON. None where it cannot be written so, which no record of a store is.
    pub fn json(&self) -> Option<&str> {
        self.json.get_or_init(|| serde_json::to_string(&self.placed).ok()).as_deref()
    }
}

impl Deref for TailedRecord {
    type Target = PlacedRecord;

    fn deref(&self) -> &PlacedRecord {
        &self.placed
    }
}

/// Who looks at which session.
#[derive(Default)]
pub(crate) struct Lookout {
    sessions: Mutex<HashMap<SessionKey, Weak<Lately>>>,
}

impl Lookout {
    /// What a session wrote lately. It is kept as long as anybody follows the session.
    pub(crate) fn on(&self, session: &SessionKey) -> Arc<Lately> {
        // Nothing panics or awaits under this lock.
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lately) = sessions.get(session).and_then(Weak::upgrade) {
            return lately;
        }
        sessions.retain(|_, lately| lately.strong_count() > 0);
        let lately = Arc::new(Lately::new());
        sessions.insert(session.clone(), Arc::downgrade(&lately));
        lately
    }
}

/// What one session wrote lately.
pub(crate) struct Lately {
    /// Each begins where the one before it ended.
    looks: Mutex<VecDeque<Arc<Look>>>,
    /// Looks that were begun. One that was begun after something was written has seen it.
    begun: AtomicU64,
    /// Whoever has it looks; the others wait for what is found.
    turn: Semaphore,
}

/// One look at the store.
#[derive(Debug)]
pub(crate) struct Look {
    /// Which of those that were begun it is.
    pub(crate) number: u64,
    from: Position,
    pub(crate) until: Position,
    pub(crate) records: Vec<Arc<TailedRecord>>,
    pub(crate) has_more: bool,
}

impl Lately {
    fn new() -> Self {
        Self { looks: Mutex::default(), begun: AtomicU64::new(0), turn: Semaphore::new(1) }
    }

    /// How many looks were begun. Every later one sees what was written before this was asked.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// A look that goes on after a position: one that somebody else took, or a new one. Where it found nothing, it was
    /// begun after `heard` were. The future may be dropped at any time.
    pub(crate) async fn look(
        &self,
        store: &dyn Store,
        session: &SessionKey,
        after: Position,
        heard: u64,
    ) -> Result<Arc<Look>, Error> {
        if let Some(look) = self.kept(after, heard) {
            return Ok(look);
        }
        if self.is_past(after) {
            return Ok(Arc::new(self.take(store, session, after).await?));
        }
        // Nobody closes it.
        let _turn = self.turn.acquire().await.map_err(|_| Error::Failed("the lookout has ended".into()))?;
        if let Some(look) = self.kept(after, heard) {
            return Ok(look);
        }
        let look = Arc::new(self.take(store, session, after).await?);
        self.keep(Arc::clone(&look));
        Ok(look)
    }

    async fn take(&self, store: &dyn Store, session: &SessionKey, from: Position) -> Result<Look, Error> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let Tail { records, until, has_more } = store.tail(session, from, AT_ONCE).await?;
        let records = records.into_iter().map(|record| Arc::new(TailedRecord::new(record))).collect();
        Ok(Look { number, from, until, records, has_more })
    }

    /// A look that has more than what a reader knows, or that was begun late enough to say that there is no more.
    fn kept(&self, after: Position, heard: u64) -> Option<Arc<Look>> {
        let looks = self.locked();
        let says_more = |look: &&Arc<Look>| look.from <= after && after < look.until;
        let says_no_more = |look: &&Arc<Look>| look.until == after && look.number > heard && !look.has_more;
        looks.iter().find(says_more).or_else(|| looks.back().filter(says_no_more)).cloned()
    }

    /// Whether what comes after a position is kept no longer.
    fn is_past(&self, after: Position) -> bool {
        self.locked().front().is_some_and(|oldest| after < oldest.from)
    }

    fn keep(&self, look: Arc<Look>) {
        let mut looks = self.locked();
        if looks.back().is_some_and(|last| last.until != look.from) {
            looks.clear();
        }
        // One that only says that there was nothing gives way to the next.
        looks.retain(|kept| kept.from < kept.until);
        looks.push_back(look);
        if looks.len() > LOOKS_KEPT {
            looks.pop_front();
        }
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<Arc<Look>>> {
        // Nothing panics or awaits under this lock.
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
