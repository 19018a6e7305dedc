//! The shared context of the session.

use locum_core::protocol::{ContextAction, Refusal, Response};
use locum_core::session::Lookup;
use locum_core::shared_context::{self, Terms};

use super::Desk;
use crate::context_changes::{ContextChange, ContextChanges};

impl Desk {
    /// What changes in the shared context of this session through this process, from now on: never the values.
    /// Every change is told once it is durable.
    pub fn context_changes(&self) -> ContextChanges {
        self.engine.context_hub.subscribe(&self.session)
    }

    pub(super) async fn shared_context(
        &self,
        action: ContextAction,
    ) -> Result<(Response, Vec<ContextChange>), Refusal> {
        let lookup = Lookup { context: shared_context::lookup(&action), ..Lookup::default() };
        let (identity, now) = (self.caller.identity.clone(), self.engine.hands.clock.now());
        let (_, (response, changes)) = self
            .engine
            .decide(&self.session, lookup, move |engine, view| {
                let terms = Terms { participant: &identity, now, namespaces: engine.rules.namespaces };
                let (response, changes) = shared_context::decide(&action, &terms, view)?;
                let told: Vec<ContextChange> = changes.iter().filter_map(ContextChange::of).collect();
                Ok((changes, (response, told)))
            })
            .await?;
        self.engine.context_hub.tell(&self.session, &changes);
        Ok((response, changes))
    }
}
