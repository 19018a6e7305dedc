//! Who writes which files: two tasks of a session that are not parent and child must not write the same file at once.
//! The first one to write it keeps it until it ends.
//!
//! Tasks of one process are known here. A worker process asks its parent. What tasks of other processes write is in
//! their logs: a write is announced there before it is made, so of two that are announced at once at least one is seen
//! by the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locum_core::ids::{Identity, SessionKey, Uid};
use locum_core::task::Task;

use crate::attached::Link;
use crate::store::{self, Store, TaskQuery};

/// More levels than delegation has.
const MOST_LEVELS: usize = 16;

/// The files that tasks write.
#[derive(Default)]
pub(crate) struct Writers {
    /// Held for a look or a change, never across an await.
    inner: Mutex<Inner>,
    others: Others,
}

/// Who knows what is written elsewhere.
#[derive(Default)]
pub(crate) enum Others {
    /// There is nobody else.
    #[default]
    Nobody,
    /// The logs of all tasks.
    Store(Arc<dyn Store>),
    /// The process that this one works for.
    Parent(Arc<Link>),
}

impl Others {
    /// Those whose tasks are in a store. One that was made here and given to nobody has no tasks of others.
    pub(crate) fn in_store(store: Option<&Arc<dyn Store>>) -> Self {
        store.map_or(Self::Nobody, |store| Self::Store(Arc::clone(store)))
    }
}

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<Uid, Writer>,
    claims: HashMap<(Place, String), Uid>,
}

/// Where paths mean the same: a session and a root.
type Place = (SessionKey, String);

#[derive(Debug)]
struct Writer {
    identity: Identity,
    parent: Option<Uid>,
    session: SessionKey,
}

/// What one task writes with.
#[derive(Clone)]
pub(crate) struct Pen {
    writers: Arc<Writers>,
    uid: Uid,
    root: String,
}

/// A task at work; dropped, it gives back what it claimed.
pub(crate) struct AtWork {
    pen: Pen,
}

/// Whose a file was before it was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nobody's, or a relative's.
    Free,
    /// The task's own.
    Own,
}

impl Writers {
    /// Nobody writes yet, as far as is known here.
    pub(crate) fn among(others: Others) -> Self {
        Self { inner: Mutex::default(), others }
    }

    /// A task goes to work. What it wrote before, perhaps in another process, is still its own.
    pub(crate) fn enter(self: &Arc<Self>, task: &Task) -> AtWork {
        let plan = task.plan();
        let writer = Writer {
            identity: plan.lineage.identity.clone(),
            parent: plan.lineage.parent.clone(),
            session: plan.session.clone(),
        };
        self.lock().tasks.insert(plan.uid.clone(), writer);
        let pen = self.pen(&plan.uid, task.root());
        for path in task.files().written() {
            // Whoever has claimed it meanwhile has the better right.
            pen.claim_here(path).ok();
        }
        AtWork { pen }
    }

    /// What this task writes with, beneath a root: a worktree of its own is nobody else's.
    pub(crate) fn pen(self: &Arc<Self>, uid: &Uid, root: &str) -> Pen {
        Pen { writers: Arc::clone(self), uid: uid.clone(), root: root.to_owned() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pen {
    /// Claims a file until the task ends, or says why it cannot be had, to be read after its name. The write must have
    /// been announced in the task's log. Dropped half-way, the file may be claimed.
    pub(crate) async fn claim(&self, path: &str) -> Result<(), String> {
        match &self.writers.others {
            Others::Nobody => self.claim_here(path).map(drop),
            Others::Parent(link) => link.claim(path).await,
            Others::Store(store) => {
                let before = self.claim_here(path)?;
                let free = self.check_elsewhere(&**store, path).await;
                if free.is_err() && before == Before::Free {
                    self.give_back(path);
                }
                free
            }
        }
    }

    /// The same among the tasks of this process.
    fn claim_here(&self, path: &str) -> Result<Before, String> {
        let mut inner = self.writers.lock();
        let Some(key) = self.key(&inner, path) else { return Ok(Before::Own) };
        if let Some(holder) = inner.claims.get(&key).filter(|holder| !inner.are_related(holder, &self.uid))
            && let Some(writer) = inner.tasks.get(holder)
        {
            return Err(held_by(&writer.identity.to_string()));
        }
        let before = inner.claims.insert(key, self.uid.clone());
        Ok(if before.as_ref() == Some(&self.uid) { Before::Own } else { Before::Free })
    }

    fn give_back(&self, path: &str) {
        let mut inner = self.writers.lock();
        if let Some(key) = self.key(&inner, path) {
            inner.claims.remove(&key);
        }
    }

    fn key(&self, inner: &Inner, path: &str) -> Option<(Place, String)> {
        let session = inner.tasks.get(&self.uid)?.session.clone();
        Some(((session, self.root.clone()), path.to_owned()))
    }

    /// Whether no unfinished task that another process works on has written a file, or is about to.
    async fn check_elsewhere(&self, store: &dyn Store, path: &str) -> Result<(), String> {
        let unknown = |error: store::Error| format!("cannot be written now: who else writes it is not known ({error})");
        let Some(session) = self.writers.lock().tasks.get(&self.uid).map(|writer| writer.session.clone()) else {
            return Ok(());
        };
        let rows = store.tasks(TaskQuery::Unfinished(Some(session))).await.map_err(unknown)?;
        let parents: HashMap<&Uid, &Uid> =
            rows.iter().filter_map(|row| Some((&row.summary.uid, row.summary.parent.as_ref()?))).collect();
        for row in &rows {
            let uid = &row.summary.uid;
            let is_here = self.writers.lock().tasks.contains_key(uid);
            if is_here || is_above(&parents, uid, &self.uid) || is_above(&parents, &self.uid, uid) {
                continue;
            }
            let records = store.records(uid, 0, usize::MAX).await.map_err(unknown)?;
            // A log that cannot be read is not this task's concern; whoever works on that one says so.
            let Ok(other) = Task::replay(records) else { continue };
            let intended = || other.intents().any(|intent| intent.path == path);
            if other.root() == self.root && (other.files().written().any(|written| written == path) || intended()) {
                return Err(held_by(&other.plan().lineage.identity.to_string()));
            }
        }
        Ok(())
    }
}

fn held_by(writer: &str) -> String {
    format!("is being written by {writer}, which has not ended; leave this file to it")
}

fn is_above(parents: &HashMap<&Uid, &Uid>, above: &Uid, below: &Uid) -> bool {
    std::iter::successors(Some(below), |uid| parents.get(*uid).copied()).take(MOST_LEVELS).any(|uid| uid == above)
}

impl Inner {
    /// Whether one of two tasks works for the other, or they are the same.
    fn are_related(&self, left: &Uid, right: &Uid) -> bool {
        self.is_above(left, right) || self.is_above(right, left)
    }

    fn is_above(&self, above: &Uid, below: &Uid) -> bool {
        let parent = |uid: &&Uid| self.tasks.get(*uid).and_then(|writer| writer.parent.as_ref());
        std::iter::successors(Some(below), parent).take(MOST_LEVELS).any(|uid| uid == above)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut inner = self.pen.writers.lock();
        inner.tasks.remove(&self.pen.uid);
        inner.claims.retain(|_, holder| *holder != self.pen.uid);
    }
}
