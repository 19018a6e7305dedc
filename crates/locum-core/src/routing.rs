//! Which model answers: the order of `call`, agent and session, and how a name finds a model.

mod entry;

use crate::agent::roster::nearest;
use crate::protocol::{Code, Refusal};
use crate::task::plan::{ModelName, ModelReceipt};
use crate::usage::Price;

pub use entry::{ModelEntry, Ratings, Supports};

/// The words in an agent file that ask for a model by what it costs.
const KEYWORDS: [&str; 4] = ["auto-cheap", "auto-eco", "auto-balanced", "auto-premium"];

/// The models that a session can use.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// The model of the session, used where nobody names another.
    pub session: SessionModel,
    /// Providers; `provider:model` is passed through for each of them.
    pub providers: Vec<String>,
    /// Models that are known by name.
    pub models: Vec<ModelEntry>,
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

    /// What a model costs, where that is known.
    pub fn price_of(&self, model: &ModelName) -> Option<Price> {
        self.models.iter().find(|entry| entry.name == *model)?.price
    }

    /// Whether an agent may ask for this: a model, or one of the words that stand for a choice.
    pub fn knows(&self, name: &str) -> bool {
        is_inherit(name) || is_keyword(name) || self.resolve(name).is_some()
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

fn is_keyword(name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name))
}

/// The model that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The model.
    pub model: ModelName,
    /// What was asked for, what answers, why.
    pub receipt: ModelReceipt,
    /// What the caller should know.
    pub warning: Option<String>,
}

/// Chooses the model of a task: the call's, else the agent's, else the session's. A call that names an unknown model
/// is refused; an agent that does gets the session's model, and the receipt says so.
pub fn choose(call: Option<&str>, agent: Option<&str>, catalogue: &Catalogue) -> Result<Choice, Refusal> {
    let chosen = |model: ModelName, requested: &str, why: String| {
        let receipt = ModelReceipt { requested: Some(requested.to_owned()), effective: model.to_string(), why };
        Choice { model, receipt, warning: None }
    };
    if let Some(name) = call {
        let model = catalogue.resolve(name).ok_or_else(|| catalogue.not_found(name))?;
        return Ok(chosen(model, name, "named by the call".to_owned()));
    }
    let session = &catalogue.session;
    let Some(name) = agent.filter(|name| !is_inherit(name)) else {
        let effective = session.name.to_string();
        let receipt =
            ModelReceipt { requested: None, effective, why: format!("the session's model ({})", session.why) };
        return Ok(Choice { model: session.name.clone(), receipt, warning: None });
    };
    if is_keyword(name) {
        let why = format!("`{name}` resolves to the session's model ({})", session.why);
        return Ok(chosen(session.name.clone(), name, why));
    }
    if let Some(model) = catalogue.resolve(name) {
        return Ok(chosen(model, name, "named by the agent".to_owned()));
    }
    let warning = format!("the agent's model `{name}` is not known: the session's model {} is used", session.name);
    let mut choice = chosen(session.name.clone(), name, "the agent's model is not known".to_owned());
    choice.warning = Some(warning);
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(provider: &str, id: &str) -> ModelName {
        ModelName { provider: provider.to_owned(), id: id.to_owned() }
    }

    fn catalogue() -> Catalogue {
        Catalogue {
            session: SessionModel { name: name("offline", ""), why: "no key was found".to_owned() },
            providers: vec!["acme".to_owned()],
            models: vec![ModelEntry {
                aliases: vec!["large".to_owned()],
                ..ModelEntry::named(name("acme", "large-1"))
            }],
        }
    }

    #[test]
    fn a_name_may_be_an_alias_an_id_or_carry_its_provider() {
        let catalogue = catalogue();
        for known in ["large", "large-1", "acme:large-1", "acme/large-1", "acme:large"] {
            assert_eq!(catalogue.resolve(known), Some(name("acme", "large-1")), "{known}");
        }
        assert_eq!(catalogue.resolve("acme:new"), Some(name("acme", "new")));
        assert_eq!(catalogue.resolve("offline"), Some(name("offline", "")));
        assert!(catalogue.knows("Auto-Eco") && catalogue.knows("inherit") && catalogue.knows("large"));
        for unknown in ["new", "other:new", "acme:", "", ":"] {
            assert_eq!(catalogue.resolve(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn call_beats_agent_beats_session() {
        let catalogue = catalogue();
        let effective = |call, agent| choose(call, agent, &catalogue).map(|choice| choice.receipt.effective);
        assert_eq!(effective(Some("large"), Some("acme:x")).unwrap(), "acme:large-1");
        assert_eq!(effective(None, Some("acme:x")).unwrap(), "acme:x");
        assert_eq!(effective(None, Some("AUTO-cheap")).unwrap(), "offline");
        assert_eq!(effective(None, Some("inherit")).unwrap(), "offline");
        assert_eq!(effective(None, None).unwrap(), "offline");
        assert_eq!(effective(Some("lrage"), None).unwrap_err().code, Code::ModelNotFound);
        let unknown = choose(None, Some("nobody"), &catalogue).unwrap();
        assert!(unknown.warning.unwrap().contains("nobody"));
    }
}
