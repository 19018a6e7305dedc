//! Which model answers: the order of call, hints, agent and session, how a name finds a model, and who answers in the
//! place of a model that cannot.

pub mod classify;
mod entry;
mod hints;
mod keyword;
pub mod rank;

use crate::agent::roster::nearest;
use crate::limits;
use crate::protocol::{Code, Refusal};
use crate::task::plan::{ModelName, ModelReceipt, PricedModel};
use crate::usage::Price;

pub use entry::{ModelEntry, Ratings, Supports};
pub use hints::{Hints, RoutingRules};
pub use rank::{Candidate, Need, Ranking, rank};

/// The models that a session can use.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// The model of the session, used where nobody names another.
    pub session: SessionModel,
    /// Whether it stands for every model that routing could choose: a script, a recording or the offline model is there
    /// so that no other model is asked.
    pub stands_in: bool,
    /// Providers; `provider:model` is passed through for each of them.
    pub providers: Vec<String>,
    /// The providers for which there is a key or a server: routing chooses among their models only.
    pub reachable: Vec<String>,
    /// Models that are known by name.
    pub models: Vec<ModelEntry>,
    /// The models that answer in the place of one that cannot, where an agent has no list of its own.
    pub fallback: Vec<ModelName>,
    /// What the settings say about routing.
    pub rules: RoutingRules,
}

/// The session's model and why it is that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionModel {
    /// The model.
    pub name: ModelName,
    /// Who chose it.
    pub why: String,
}

impl Catalogue {
    /// The model that a name means: `provider:model`, `provider/model`, an id, or an alias.
    pub fn resolve(&self, name: &str) -> Option<ModelName> {
        let name = name.trim();
        if name.is_empty() {
            return None;
        }
        if self.session.name.is_called(name) {
            return Some(self.session.name.clone());
        }
        if let Some(entry) = self.models.iter().find(|entry| entry.is_called(name)) {
            return Some(entry.name.clone());
        }
        let (provider, id) = name.split_once([':', '/'])?;
        let of_provider = |entry: &&ModelEntry| entry.name.provider == provider && entry.is_called(id);
        if let Some(entry) = self.models.iter().find(of_provider) {
            return Some(entry.name.clone());
        }
        let served = self.providers.iter().any(|known| known == provider);
        (served && !id.is_empty()).then(|| ModelName { provider: provider.to_owned(), id: id.to_owned() })
    }

    /// What is known about a model.
    pub fn entry(&self, model: &ModelName) -> Option<&ModelEntry> {
        self.models.iter().find(|entry| entry.name == *model)
    }

    /// What a model costs, where that is known.
    pub fn price_of(&self, model: &ModelName) -> Option<Price> {
        self.entry(model)?.price
    }

    /// Whether there is a key or a server for a model.
    pub fn is_reachable(&self, model: &ModelName) -> bool {
        self.reachable.contains(&model.provider)
    }

    /// Whether an agent may ask for this: a model, or one of the words that stand for a choice.
    pub fn knows(&self, name: &str) -> bool {
        is_inherit(name) || keyword::preference(name).is_some() || self.resolve(name).is_some()
    }

    fn names(&self) -> Vec<String> {
        let entries = self
            .models
            .iter()
            .flat_map(|entry| entry.aliases.iter().cloned().chain([entry.name.id.clone(), entry.name.to_string()]));
        entries.chain([self.session.name.to_string()]).filter(|name| !name.is_empty()).collect()
    }

    /// A refusal for a model that nobody knows.
    pub fn not_found(&self, name: &str) -> Refusal {
        let shown: String = name.chars().take(80).collect();
        let names = self.names();
        let near = nearest(name, names.iter(), String::as_str);
        let refusal = Refusal::new(Code::ModelNotFound, format!("no model is called `{shown}`"));
        if near.is_empty() {
            return refusal.hint(format!(
                "name it as provider:model, with one of the providers {}, or leave it out for the session's model, {}",
                self.providers.join(", "),
                self.session.name
            ));
        }
        let near: Vec<&str> = near.into_iter().map(String::as_str).collect();
        refusal.hint(format!("did you mean {}?", near.join(" or ")))
    }
}

fn is_inherit(name: &str) -> bool {
    name.eq_ignore_ascii_case("inherit")
}

/// What is said about the model of a task.
#[derive(Debug, Clone, Default)]
pub struct Wish<'a> {
    /// The model that the call names.
    pub call: Option<&'a str>,
    /// What the call says about it otherwise.
    pub hints: Hints,
    /// The model, or the keyword, that the agent names.
    pub agent: Option<&'a str>,
    /// Who named it for the agent, where it is not the agent itself.
    pub agent_fallback: Option<&'a str>,
    /// What is to be done.
    pub task: &'a str,
    /// Whether it takes tools.
    pub tools: bool,
}

/// The model that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The model.
    pub model: ModelName,
    /// The models that came next, best first, where it was chosen among several.
    pub runners_up: Vec<ModelName>,
    /// What was asked for, what answers, why.
    pub receipt: ModelReceipt,
    /// Whose word counted.
    pub by: ChosenBy,
    /// What the caller should know.
    pub warning: Option<String>,
}

/// Whose word decided about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// The call's, by name or by hints.
    Call,
    /// The agent's, or that of its fallbacks.
    Agent,
    /// The session's: nobody named another, or none could be had.
    Session,
}

impl Choice {
    fn new(model: ModelName, requested: Option<&str>, why: String, by: ChosenBy) -> Self {
        let receipt = ModelReceipt { requested: requested.map(str::to_owned), effective: model.to_string(), why };
        Self { model, runners_up: Vec::new(), receipt, by, warning: None }
    }

    fn warned(mut self, warning: Option<String>) -> Self {
        self.warning = self.warning.or(warning);
        self
    }
}

/// Chooses the model of a task: the call's, else by the call's hints, else the agent's, else the session's. A call that
/// names an unknown model is refused; an agent that does gets the session's model, and the receipt says so.
pub fn choose(wish: &Wish<'_>, catalogue: &Catalogue) -> Result<Choice, Refusal> {
    if let Some(name) = wish.call {
        return choose_for_call(name, wish, catalogue);
    }
    let by_agent = wish.agent.and_then(keyword::preference);
    if wish.hints.is_empty() {
        return choose_for_agent(wish, catalogue);
    }
    if !catalogue.rules.enabled && by_agent.is_none() {
        let warning = "routing is disabled: the hints for the model are not used".to_owned();
        return Ok(choose_for_agent(wish, catalogue)?.warned(Some(warning)));
    }
    let mut hints = wish.hints.clone();
    hints.cost_preference = hints.cost_preference.or(by_agent);
    route("the call's hints", &hints, ChosenBy::Call, wish, catalogue)
}

fn choose_for_call(name: &str, wish: &Wish<'_>, catalogue: &Catalogue) -> Result<Choice, Refusal> {
    if let Some(preference) = keyword::preference(name) {
        let hints = Hints { cost_preference: Some(preference), ..wish.hints.clone() };
        return route(name, &hints, ChosenBy::Call, wish, catalogue);
    }
    let model = catalogue.resolve(name).ok_or_else(|| catalogue.not_found(name))?;
    let unused = (!wish.hints.is_empty()).then(|| "the call names its model: its hints are not used".to_owned());
    Ok(Choice::new(model, Some(name), "named by the call".to_owned(), ChosenBy::Call).warned(unused))
}

fn choose_for_agent(wish: &Wish<'_>, catalogue: &Catalogue) -> Result<Choice, Refusal> {
    let session = &catalogue.session;
    let Some(name) = wish.agent.filter(|name| !is_inherit(name)) else {
        let why = format!("the session's model ({})", session.why);
        return Ok(Choice::new(session.name.clone(), None, why, ChosenBy::Session));
    };
    if let Some(preference) = keyword::preference(name) {
        let hints = Hints { cost_preference: Some(preference), ..Hints::default() };
        return route(name, &hints, ChosenBy::Agent, wish, catalogue);
    }
    if let Some(model) = catalogue.resolve(name) {
        let by = wish.agent_fallback.unwrap_or("the agent");
        return Ok(Choice::new(model, Some(name), format!("named by {by}"), ChosenBy::Agent));
    }
    let warning = format!("the agent's model `{name}` is not known: the session's model {} is used", session.name);
    let why = "the agent's model is not known".to_owned();
    let choice = Choice::new(session.name.clone(), Some(name), why, ChosenBy::Session);
    Ok(choice.warned(Some(warning)))
}

/// Chooses the best of the models that can be had. Where there is none it is the session's model, unless the call
/// insists on a name that none of them has.
fn route(
    requested: &str,
    hints: &Hints,
    by: ChosenBy,
    wish: &Wish<'_>,
    catalogue: &Catalogue,
) -> Result<Choice, Refusal> {
    let session = &catalogue.session;
    if catalogue.stands_in {
        let why = format!("`{requested}` resolves to the session's model ({})", session.why);
        return Ok(Choice::new(session.name.clone(), Some(requested), why, ChosenBy::Session));
    }
    let Ranking { need, candidates, passed_over } =
        rank(Need::of(wish.task, hints, &catalogue.rules, wish.tools), catalogue);
    let mut candidates = candidates.into_iter();
    let Some(best) = candidates.next() else {
        if let Some(scope) = &need.scope {
            return Err(out_of_scope(scope, &passed_over, catalogue));
        }
        let why = format!("`{requested}`: no model can be chosen here, so the session's model ({})", session.why);
        return Ok(Choice::new(session.name.clone(), Some(requested), why, ChosenBy::Session));
    };
    let count = candidates.len() + 1;
    let why =
        format!("`{requested}`: best of {count} ({}); rating {}, score {:.1}", need.because, best.rating, best.score);
    let mut choice = Choice::new(best.name, Some(requested), why, by);
    choice.runners_up = candidates.map(|candidate| candidate.name).take(limits::FALLBACK_MODELS_MAX).collect();
    Ok(choice)
}

/// A refusal for a `model_scope` that leaves no model.
fn out_of_scope(scope: &str, passed_over: &[(ModelName, String)], catalogue: &Catalogue) -> Refusal {
    let within = |name: &ModelName| catalogue.entry(name).is_some_and(|entry| rank::is_within(entry, scope));
    let reasons: Vec<String> = passed_over
        .iter()
        .filter(|(name, _)| within(name))
        .take(limits::FALLBACK_MODELS_MAX)
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    if reasons.is_empty() {
        return catalogue.not_found(scope);
    }
    let shown: String = scope.chars().take(80).collect();
    Refusal::new(Code::ModelNotFound, format!("no model within `{shown}` can be chosen")).hint(reasons.join("; "))
}

/// The models that answer in the place of the chosen one if it cannot, in order: those that routing would have chosen
/// next, then the agent's list, else that of the settings. With them, what to say about names that nobody knows.
pub fn fallback(choice: &Choice, agent: &[String], catalogue: &Catalogue) -> (Vec<PricedModel>, Vec<String>) {
    let mut models = choice.runners_up.clone();
    let mut warnings = Vec::new();
    for name in agent {
        match catalogue.resolve(name) {
            Some(model) => models.push(model),
            None => warnings.push(format!("the agent's fallback model `{name}` is not known and left out")),
        }
    }
    if agent.is_empty() {
        models.extend(catalogue.fallback.iter().cloned());
    }
    let mut list: Vec<PricedModel> = Vec::new();
    for model in models {
        if model != choice.model && list.iter().all(|other| other.model != model) {
            list.push(PricedModel { price: catalogue.price_of(&model), model });
        }
    }
    list.truncate(limits::FALLBACK_MODELS_MAX);
    (list, warnings)
}
