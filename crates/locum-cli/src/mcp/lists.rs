//! Whether what a client has listed is another list now: agents come and go with their files.

use std::sync::Arc;

use locum::agents::Muster;
use locum::protocol::schema::ToolDefinition;

use super::server::Place;

/// What the lists rest on, as it was when somebody looked last.
pub(super) struct Lists {
    muster: Arc<Muster>,
    tools: Vec<ToolDefinition>,
    agents: Vec<(String, String)>,
}

/// Which lists are other ones.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListsChanged {
    pub(super) tools: bool,
    pub(super) resources: bool,
}

impl Lists {
    /// What there is now.
    pub(super) fn now(place: &Place) -> Self {
        let muster = place.desk.muster();
        let agents = muster.roster.iter().map(|agent| (agent.name.to_string(), agent.description.clone())).collect();
        Self { tools: place.face.tools(&muster.roster), agents, muster }
    }

    /// What has changed since the last look. It costs next to nothing where no file has.
    pub(super) fn look(&mut self, place: &Place) -> ListsChanged {
        if Arc::ptr_eq(&self.muster, &place.desk.muster()) {
            return ListsChanged::default();
        }
        let before = std::mem::replace(self, Self::now(place));
        ListsChanged { tools: before.tools != self.tools, resources: before.agents != self.agents }
    }
}
