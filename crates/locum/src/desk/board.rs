//! The task board of the session.

use locum_core::board::{self, Terms};
use locum_core::protocol::{BoardAction, Refusal, Response};
use locum_core::session::Lookup;

use super::Desk;

impl Desk {
    pub(super) async fn manage_tasks(&self, action: BoardAction) -> Result<Response, Refusal> {
        let tasks = board::named_owner(&action).into_iter().collect();
        let lookup = Lookup { board: board::lookup(&action), tasks, ..Lookup::default() };
        let (identity, now) = (self.caller.identity.clone(), self.engine.hands.clock.now());
        let (_, response) = self
            .engine
            .decide(&self.session, lookup, move |_, view| {
                let (response, changes) = board::decide(&action, &Terms { participant: &identity, now }, view)?;
                Ok((changes, response))
            })
            .await?;
        Ok(response)
    }
}
