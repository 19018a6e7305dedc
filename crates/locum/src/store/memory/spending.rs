//! Purses in memory.

use locum_core::budget::{self, Draw, Drawn, PurseKey, Scarce};
use locum_core::ids::{SessionKey, Uid};
use locum_core::task::Record;

use super::tables::{SessionTable, Tables};
use crate::store::Error;

impl SessionTable {
    /// Counts a task that a model started.
    pub(super) fn count_spawn(&mut self, counted_in: Option<PurseKey>) {
        match counted_in {
            None => {}
            Some(PurseKey::Session) => self.delegated += 1,
            Some(key) => self.purses.entry(key).or_default().spawned += 1,
        }
    }
}

impl Tables {
    /// Draws on the purses of a task, or refuses before anything was changed.
    pub(super) fn spend(
        &mut self,
        session: &SessionKey,
        uid: &Uid,
        records: &[Record],
        draw: Option<&Draw>,
    ) -> Result<Option<Scarce>, Error> {
        let Some(draw) = draw else { return Ok(None) };
        let entry = self.tasks.get_mut(uid).ok_or(Error::NotFound)?;
        let purses = &mut self.sessions.entry(session.clone()).or_default().purses;
        let drawn: Vec<Drawn> =
            draw.purses.iter().map(|purse| purses.get(&purse.key).copied().unwrap_or_default().drawn).collect();
        let settled = budget::draw(draw, entry.drawn, &drawn, budget::asks(records)).map_err(Error::Overdrawn)?;
        for (purse, drawn) in draw.purses.iter().zip(settled.drawn) {
            purses.entry(purse.key.clone()).or_default().drawn = drawn;
        }
        entry.drawn = draw.held();
        Ok(settled.nearing)
    }
}
