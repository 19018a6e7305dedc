//! The agents of an engine: looked for when somebody first asks, and again when their files have changed, if the
//! process stays long enough for that to matter. What was handed out does not change.

use std::sync::{Arc, Mutex, PoisonError};

use locum_core::agent::Roster;

use super::muster::Muster;
use super::places::Search;
use super::watch::Watch;
use crate::redact::Redactor;

/// The agents of an engine.
pub(crate) struct Staff {
    /// Those of the application.
    application: Roster,
    /// Where further ones are looked for.
    search: Option<Search>,
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    muster: Option<Arc<Muster>>,
    /// Present where changes matter.
    watch: Option<Watch>,
}

impl Staff {
    pub(crate) fn new(application: Roster, search: Option<Search>, redactor: Redactor) -> Self {
        Self { application, search, redactor, state: Mutex::default() }
    }

    /// The agents now. Reads files the first time, and when they have changed; a bounded number of small ones.
    pub(crate) fn now(&self) -> Arc<Muster> {
        // A panic while reading leaves the earlier state, which is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(muster) = &state.muster {
            let is_due = state.watch.as_ref().is_some_and(|watch| watch.is_due(&muster.stamps));
            if !is_due {
                return Arc::clone(muster);
            }
        }
        if let Some(watch) = &mut state.watch {
            watch.begin();
        }
        let muster = Arc::new(match &self.search {
            Some(search) => Muster::look(search, &self.application, &self.redactor),
            None => Muster::of(self.application.clone()),
        });
        if let Some(watch) = &mut state.watch {
            watch.follow(&muster.stamps);
        }
        state.muster = Some(Arc::clone(&muster));
        muster
    }

    /// Looks again at the next question, whatever was noticed.
    pub(crate) fn forget(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).muster = None;
    }

    /// From now on changes of files are noticed.
    pub(crate) fn follow_changes(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.search.is_some() && state.watch.is_none() {
            *state = State { muster: None, watch: Some(Watch::new()) };
        }
    }
}
