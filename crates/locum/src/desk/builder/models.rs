//! Who answers: the application's own models, those that are reached over a network, what they cost, and who takes the
//! place of whom.

use std::sync::Arc;

use locum_core::routing::{Catalogue, ModelEntry, RoutingRules};
use locum_core::usage::Price;
use locum_models::{Access, Model};

use super::{BuildError, DeskBuilder};

impl DeskBuilder {
    /// Lets this one answer in the place of every model.
    #[must_use]
    pub(crate) fn answered_by(mut self, model: Arc<dyn Model>) -> Self {
        self.everyone = Some(model);
        self
    }

    /// A model of the application's own, known by this name. The first one is the session's model unless
    /// [`DeskBuilder::session_model`] names another. [The guide](crate#a-model-of-your-own) has an example.
    #[must_use]
    pub fn model(mut self, name: &str, model: Arc<dyn Model>) -> Self {
        self.models.push((name.to_owned(), model));
        self.model.get_or_insert_with(|| (name.to_owned(), "registered by the application".to_owned()));
        self
    }

    /// What a model costs, by the name of [`DeskBuilder::model`] or any other. Budgets in money hold where prices are
    /// known.
    #[must_use]
    pub fn price(mut self, model: &str, price: Price) -> Self {
        self.prices.push((model.to_owned(), price));
        self
    }

    /// The session's model by name, such as `openai:gpt-5.4-mini`, `offline` or one that [`DeskBuilder::model`] made
    /// known, and why it is that one: the reason is shown to whoever wonders who answered.
    #[must_use]
    pub fn session_model(mut self, name: &str, why: &str) -> Self {
        self.model = Some((name.to_owned(), why.to_owned()));
        self
    }

    /// The models that are known by name, with what they cost and how good they are; the built-in catalogue
    /// ([`catalogue::models`](crate::models::catalogue::models)) if this is left out.
    #[must_use]
    pub fn known_models(mut self, models: Vec<ModelEntry>) -> Self {
        self.known_models = Some(models);
        self
    }

    /// The models that answer, in this order, in the place of one that cannot be had. Without them, and without a list
    /// of the agent's own, no other model is asked.
    #[must_use]
    pub fn fallback_models(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fallback = names.into_iter().map(Into::into).collect();
        self
    }

    /// Whether hints of a call choose a model, and what fills those that it leaves out.
    #[must_use]
    pub fn routing(mut self, rules: RoutingRules) -> Self {
        self.routing = rules;
        self
    }

    /// The keys and addresses of model providers; none if this is left out. Nothing is dialled before a task needs
    /// it. Hand the same keys to [`DeskBuilder::redact`], so that they are never stored or shown.
    ///
    /// ```
    /// use locum::Desk;
    /// use locum::models::Access;
    /// use locum::redact::Redactor;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = "sk-an-example-key";
    /// let access = Access::default().key("openai", key);
    /// let desk = Desk::builder()
    ///     .access(access)
    ///     .session_model("openai:gpt-5.4-mini", "the application's choice")
    ///     .redact(Redactor::new([key]))
    ///     .build()?;
    /// assert_eq!(desk.session_model().0, "openai:gpt-5.4-mini");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }
}

/// The models with the prices that the application knows.
pub(super) fn priced(mut catalogue: Catalogue, prices: &[(String, Price)]) -> Result<Catalogue, BuildError> {
    for (name, price) in prices {
        let unknown =
            || BuildError::Model { name: name.clone(), why: catalogue.not_found(name).hint.unwrap_or_default() };
        let model = catalogue.resolve(name).ok_or_else(unknown)?;
        match catalogue.models.iter_mut().find(|entry| entry.name == model) {
            Some(entry) => entry.price = Some(*price),
            None => catalogue.models.push(ModelEntry { price: Some(*price), ..ModelEntry::named(model) }),
        }
    }
    Ok(catalogue)
}
