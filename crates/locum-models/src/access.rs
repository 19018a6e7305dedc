//! What a user has given to reach providers: keys, addresses, headers. Plain values; where they came from is the
//! settings' business.

use std::collections::BTreeMap;
use std::path::PathBuf;

use locum_core::routing::SessionModel;
use locum_core::task::plan::ModelName;
use secrecy::{ExposeSecret as _, SecretString};

use crate::catalogue;
use crate::http::Proxy;
use crate::providers::{self, Protocol, Provider};

const OFFLINE: &str = "offline";

/// The keys and addresses of providers.
///
/// ```
/// use locum_models::Access;
///
/// let access = Access::default().key("anthropic", "sk-an-example").base_url("ollama", "http://box:11434/v1");
/// assert_eq!(access.first_model().name.provider, "anthropic");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What is known beside the table of providers, by the provider's name. A name that the table does not have is a
    /// provider of the user's own: it needs an address.
    pub providers: BTreeMap<String, ProviderAccess>,
    /// How https addresses are reached.
    pub proxy: Proxy,
    /// Certificates that are trusted beside the machine's own, for every provider.
    pub ca_file: Option<PathBuf>,
}

/// What a user has said about one provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderAccess {
    /// Its key.
    pub key: Option<SecretString>,
    /// Where the key is looked for, if not where the table says.
    pub key_variable: Option<String>,
    /// Where it is, if not where the table says.
    pub base_url: Option<String>,
    /// What it speaks, if not what the table says.
    pub protocol: Option<Protocol>,
    /// Further headers of every request. Their values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// Certificates that are trusted beside the machine's own.
    pub ca_file: Option<PathBuf>,
}

impl Access {
    /// Adds a provider's key.
    #[must_use]
    pub fn key(mut self, provider: &str, key: impl Into<SecretString>) -> Self {
        self.providers.entry(provider.to_owned()).or_default().key = Some(key.into());
        self
    }

    /// Says where a provider is.
    #[must_use]
    pub fn base_url(mut self, provider: &str, base_url: &str) -> Self {
        self.providers.entry(provider.to_owned()).or_default().base_url = Some(base_url.to_owned());
        self
    }

    /// The model that a session has when nobody names one, and why: the first provider with a key, else a server that
    /// was named, else the built-in model.
    pub fn first_model(&self) -> SessionModel {
        let chosen = |provider: &str, why: String| SessionModel { name: catalogue::default_model(provider), why };
        let with_key = providers::all().iter().filter(|row| row.leads).find(|row| self.of(&row.id).key.is_some());
        if let Some(row) = with_key {
            return chosen(&row.id, format!("{} is set", self.key_name(&row.id)));
        }
        let named = self.names().find(|name| self.of(name).base_url.is_some());
        if let Some(name) = named {
            return chosen(name, format!("providers.{name}.base_url names a server"));
        }
        chosen(OFFLINE, "no key and no server is set; not a language model".to_owned())
    }

    /// Every provider, those of the table first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.providers.keys().map(String::as_str).filter(|name| providers::find(name).is_none());
        providers::all().iter().map(|row| row.id.as_str()).chain(own)
    }

    /// The names of all providers and of the models that need none: what may stand before a model's id.
    pub fn provider_names(&self) -> Vec<String> {
        let own = self.names().filter(|name| providers::find(name).is_none()).map(str::to_owned);
        catalogue::providers().into_iter().chain(own).collect()
    }

    /// Whether a key or an address was given for a provider. A server of the user's own machine counts only if it was
    /// named: nobody looks for it unasked.
    pub fn reaches(&self, provider: &str) -> bool {
        let said = self.of(provider);
        said.key.is_some() || said.base_url.is_some() || !said.headers.is_empty()
    }

    /// The variable that must be set before this model can answer, if it is missing.
    pub fn missing_key(&self, name: &ModelName) -> Option<String> {
        let said = self.of(&name.provider);
        // Whoever names the variable of a key says that there must be one.
        if let (Some(variable), None) = (&said.key_variable, &said.key) {
            return Some(variable.clone());
        }
        let row = providers::find(&name.provider)?;
        let is_reachable = self.reaches(&name.provider) || row.is_local;
        (!is_reachable).then(|| self.key_name(&name.provider))
    }

    /// What must never be stored or shown.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let said = self.providers.values();
        let secrets = said.flat_map(|said| said.key.iter().chain(said.headers.iter().map(|(_, value)| value)));
        let credentials = self.proxy.https_proxy.as_deref().into_iter().flat_map(credentials_of);
        secrets.map(|secret| secret.expose_secret().trim()).chain(credentials)
    }

    /// What was said about a provider.
    pub(crate) fn of(&self, provider: &str) -> &ProviderAccess {
        static NOTHING: ProviderAccess = ProviderAccess {
            key: None,
            key_variable: None,
            base_url: None,
            protocol: None,
            headers: Vec::new(),
            ca_file: None,
        };
        self.providers.get(provider).unwrap_or(&NOTHING)
    }

    /// The protocol that is spoken with a provider: what was said, else what the table says for this address.
    pub(crate) fn protocol(&self, provider: &str) -> Protocol {
        let said = self.of(provider);
        let row = providers::find(provider);
        let elsewhere = said.base_url.as_ref().and(row).and_then(|row| row.elsewhere_protocol);
        said.protocol.or(elsewhere).or(row.map(|row| row.protocol)).unwrap_or(Protocol::OpenaiChat)
    }

    /// What a user sets to give a provider's key.
    pub(crate) fn key_name(&self, provider: &str) -> String {
        let variables = providers::find(provider).map_or(&[] as &[String], |row: &Provider| &row.key_variables);
        let named = self.of(provider).key_variable.as_ref().or(variables.first());
        named.cloned().unwrap_or_else(|| format!("providers.{provider}.key_variable"))
    }
}

/// The password in an address, alone and with the name before it.
fn credentials_of(address: &str) -> impl Iterator<Item = &str> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let credentials = rest.split('/').next().and_then(|authority| authority.rsplit_once('@')).map(|(both, _)| both);
    let password = credentials.and_then(|both| both.split_once(':')).map(|(_, password)| password);
    credentials.into_iter().chain(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_leads_then_a_named_server_then_nothing() {
        let first = |access: &Access| {
            let SessionModel { name, why } = access.first_model();
            (name.provider, why)
        };
        let mut access = Access::default();
        let offline = "no key and no server is set; not a language model";
        assert_eq!(first(&access), ("offline".to_owned(), offline.to_owned()));
        access = access.key("groq", "a key that does not lead");
        assert_eq!(first(&access).0, "offline");
        access = access.base_url("acme", "http://acme/v1");
        assert_eq!(first(&access), ("acme".to_owned(), "providers.acme.base_url names a server".to_owned()));
        access = access.base_url("ollama", "http://localhost:1/v1");
        assert_eq!(first(&access).0, "ollama");
        for (provider, variable) in [
            ("openrouter", "OPENROUTER_API_KEY"),
            ("gemini", "GEMINI_API_KEY"),
            ("openai", "OPENAI_API_KEY"),
            ("anthropic", "ANTHROPIC_API_KEY"),
        ] {
            access = access.key(provider, "a key");
            assert_eq!(first(&access), (provider.to_owned(), format!("{variable} is set")));
        }
    }

    #[test]
    fn a_key_is_missing_where_nothing_else_opens_the_door() {
        let missing = |access: &Access, provider: &str| {
            access.missing_key(&ModelName { provider: provider.to_owned(), id: "x".to_owned() })
        };
        let mut access = Access::default();
        assert_eq!(missing(&access, "xai").as_deref(), Some("XAI_API_KEY"));
        assert_eq!(missing(&access, "ollama"), None);
        assert_eq!(missing(&access, "offline"), None);
        access.providers.entry("xai".to_owned()).or_default().key_variable = Some("MY_KEY".to_owned());
        assert_eq!(missing(&access, "xai").as_deref(), Some("MY_KEY"));
        // A server of one's own may want no key, unless its variable is named.
        let access = access.base_url("xai", "http://gateway/v1").base_url("openai", "http://gateway/v1");
        assert_eq!(missing(&access, "xai").as_deref(), Some("MY_KEY"));
        assert_eq!(missing(&access, "openai"), None);
    }

    #[test]
    fn every_secret_is_known() {
        let mut access = Access::default().key("openai", " key-one ").key("acme", "key-two");
        let headers = &mut access.providers.entry("acme".to_owned()).or_default().headers;
        headers.push(("X-Gateway".to_owned(), "header-secret".into()));
        access.proxy.https_proxy = Some("http://name:pass@proxy:3128/".to_owned());
        let secrets: Vec<&str> = access.secrets().collect();
        assert_eq!(secrets, ["key-two", "header-secret", "key-one", "name:pass", "pass"]);
        assert!(!format!("{access:?}").contains("key-one"));
    }
}
