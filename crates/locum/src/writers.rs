//! Who writes which files: two tasks of a session that are not parent and child must not write the same file at once.
//! The first one to write it keeps it until it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locum_core::ids::{Identity, SessionKey, Uid};
use locum_core::task::Task;

/// The files that tasks of this process write.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    /// Held for a look or a change, never across an await.
    inner: Mutex<Inner>,
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
#[derive(Debug, Clone)]
pub(crate) struct Pen {
    writers: Arc<Writers>,
    uid: Uid,
    root: String,
}

/// A task at work; dropped, it gives back what it claimed.
#[derive(Debug)]
pub(crate) struct AtWork {
    pen: Pen,
}

impl Writers {
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
            pen.claim(path).ok();
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
    /// Claims a file until the task ends, or says whose it is.
    pub(crate) fn claim(&self, path: &str) -> Result<(), Identity> {
        let mut inner = self.writers.lock();
        let Some(session) = inner.tasks.get(&self.uid).map(|writer| writer.session.clone()) else { return Ok(()) };
        let key = ((session, self.root.clone()), path.to_owned());
        if let Some(holder) = inner.claims.get(&key).filter(|holder| !inner.are_related(holder, &self.uid))
            && let Some(writer) = inner.tasks.get(holder)
        {
            return Err(writer.identity.clone());
        }
        inner.claims.insert(key, self.uid.clone());
        Ok(())
    }
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

/// More levels than delegation has.
const MOST_LEVELS: usize = 16;

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut inner = self.pen.writers.lock();
        inner.tasks.remove(&self.pen.uid);
        inner.claims.retain(|_, holder| *holder != self.pen.uid);
    }
}
