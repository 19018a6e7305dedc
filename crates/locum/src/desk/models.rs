//! The models of a desk: which there are, and which one routing would choose.

use locum_core::protocol::Refusal;
use locum_core::routing::{self, Catalogue, Choice, Hints, Need, Ranking, RoutingRules, SessionModel, Wish};
use locum_models::{ModelError, Probed, Registry};

use super::{BuildError, Desk};

/// How routing judges the models for a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Routed {
    /// Every model, with its score or the reason why it was passed over.
    pub ranking: Ranking,
    /// The model that a task with these hints would get, or why it would be refused.
    pub choice: Result<Choice, Refusal>,
}

impl Desk {
    /// The models that are known by name, what is known about them, and which can be reached.
    pub fn models(&self) -> &Catalogue {
        &self.engine.rules.catalogue
    }

    /// Asks the servers on this machine, and those that the user named, which models they have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the questions; nothing is kept.
    pub async fn probe_models(&self) -> Vec<Probed> {
        self.engine.hands.models.probe().await
    }

    /// How routing judges the models for a task. Nothing is started and no model is asked.
    pub fn route(&self, task: &str, hints: &Hints) -> Routed {
        let catalogue = self.models();
        let ranking = routing::rank(Need::of(task, hints, &catalogue.rules, true), catalogue);
        // Without any hint a call keeps the session's model; whoever asks here wants to know what routing would do.
        let agent = hints.is_empty().then_some("auto-balanced");
        let preference = agent.and(catalogue.rules.cost_preference.filter(|_| catalogue.rules.enabled));
        let hints = Hints { cost_preference: hints.cost_preference.or(preference), ..hints.clone() };
        let choice = routing::choose(&Wish { hints, agent, task, tools: true, ..Wish::default() }, catalogue);
        Routed { ranking, choice }
    }
}

/// The models that are there, with the session's own. A model that is not known or cannot be opened is refused now, not
/// in the first task.
pub(super) fn catalogue(
    models: &Registry,
    asked: Option<(String, String)>,
    fallback: &[String],
    rules: RoutingRules,
) -> Result<Catalogue, BuildError> {
    let unusable = |name: &str, error: ModelError| BuildError::Model { name: name.to_owned(), why: error.message };
    let mut catalogue = Catalogue { rules, ..models.catalogue() };
    let known = |catalogue: &Catalogue, name: &str| {
        catalogue.resolve(name).ok_or_else(|| BuildError::Model {
            name: name.to_owned(),
            why: catalogue.not_found(name).hint.unwrap_or_default(),
        })
    };
    if let Some((name, why)) = asked {
        let name = known(&catalogue, &name)?;
        catalogue.stands_in = models.stands_in(&name);
        catalogue.session = SessionModel { name, why };
    }
    let session = &catalogue.session.name;
    models.open(session).map_err(|error| unusable(&session.to_string(), error))?;
    let list: Result<Vec<_>, _> = fallback.iter().map(|name| known(&catalogue, name)).collect();
    catalogue.fallback = list?;
    Ok(catalogue)
}
