//! Making agents.

use locum_core::admission;
use locum_core::protocol::request::Define;
use locum_core::protocol::{Code, Refusal, Response};
use locum_core::session::Lookup;

use super::Desk;

impl Desk {
    pub(super) async fn define(&self, request: Define) -> Result<Response, Refusal> {
        self.check_enabled()?;
        let (caller, session) = (self.caller.clone(), self.session.clone());
        let (now, muster) = (self.engine.hands.clock.now(), self.engine.staff.now());
        self.meet_servers_for(&request, &muster).await;
        let servers = self.engine.hands.servers.known();
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let (_, defined) = self
            .engine
            .decide(&self.session, lookup, move |engine, view| {
                let premises = engine.premises(&session, &caller, (&muster, &servers), now);
                let (defined, change) = admission::define(&request, &premises, view)?;
                Ok((vec![change], defined))
            })
            .await?;
        Ok(Response::Defined(defined))
    }

    pub(super) fn check_enabled(&self) -> Result<(), Refusal> {
        if self.engine.rules.enabled {
            return Ok(());
        }
        Err(Refusal::new(Code::SubagentsDisabled, "delegation is switched off")
            .hint("subagents.enabled = true in the settings switches it on"))
    }
}
