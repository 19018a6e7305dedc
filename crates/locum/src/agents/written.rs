//! Where the fields of agents are written, also those that an agent takes from the one it builds upon.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use locum_core::agent::note::Place;
use locum_core::agent::{AgentSpec, Origins, said};
use locum_core::ids::AgentName;

/// Where a field is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file, and where in it; none for an agent that has none.
    pub place: Option<(Arc<Path>, Place)>,
    /// The agent that the field is taken from, where it is another one.
    pub base: Option<AgentName>,
}

/// Where fields are written, by their names in files.
pub type WrittenFields = BTreeMap<String, Written>;

/// Where the fields of one file are written.
pub(super) fn in_file(path: &Path, origins: &Origins) -> WrittenFields {
    let file: Arc<Path> = Arc::from(path);
    let written = |place: Place| Written { place: Some((Arc::clone(&file), place)), base: None };
    origins.iter().map(|(field, origin)| (field.clone(), written(origin.at))).collect()
}

/// Where the fields of an agent are that has no file.
pub(super) fn without_file(agent: &AgentSpec) -> WrittenFields {
    let fields = said::said(agent).into_iter();
    fields.map(|(field, _)| (field.to_owned(), Written { place: None, base: None })).collect()
}

/// Adds what comes from another agent to an agent's own.
pub(super) fn inherit(own: &mut WrittenFields, base: &AgentName, of_base: &WrittenFields) {
    for (field, Written { place, base: farther }) in of_base {
        let base = farther.as_ref().unwrap_or(base);
        let inherited = || Written { place: place.clone(), base: Some(base.clone()) };
        own.entry(field.clone()).or_insert_with(inherited);
    }
}
