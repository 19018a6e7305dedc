//! Who serves models and how they are spoken to. The providers are data, in `providers.toml`; a user's settings add
//! further ones and change what is said about these. Nothing is dialled here.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;

/// The table, read once, when it is first needed.
static TABLE: LazyLock<File> =
    LazyLock::new(|| toml::from_str(include_str!("providers.toml")).expect("the table is tested to be readable"));

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// OpenAI's Chat Completions, which local servers speak as well.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    AnthropicMessages,
    /// Google's Gemini.
    GoogleGemini,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 4] = [Self::OpenaiChat, Self::OpenaiResponses, Self::AnthropicMessages, Self::GoogleGemini];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::GoogleGemini => "google_gemini",
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name).ok_or(UnknownProtocol)
    }
}

/// A name that no protocol has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownProtocol;

impl std::fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a protocol: the protocols are {}", Protocol::ALL.map(Protocol::name).join(", "))
    }
}

impl std::error::Error for UnknownProtocol {}

/// What is particular to a provider's models, beyond its protocol. What is not said is what the protocol says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The name of the output limit's field, in Chat Completions.
    pub output_limit_field: Option<String>,
    /// The highest output limit that every model takes.
    pub output_tokens_max: Option<u64>,
    /// How the names of models begin that reason, and take an effort instead of a temperature.
    pub reasoning_models: Vec<String>,
    /// How the names of models begin that are told in tokens how long they may think.
    pub thinking_by_budget: Vec<String>,
    /// Whether what a model thought beside its tool calls (`reasoning_content`) is sent back to it, in Chat Completions.
    pub returns_reasoning: bool,
    /// Whether tool calls are asked for as structured output; a row of the catalogue says so for one model.
    pub tools_as_schema: bool,
}

impl Dialect {
    /// Whether a model reasons, and takes an effort instead of a temperature.
    pub(crate) fn reasons(&self, model: &str) -> bool {
        begins_with_any(model, &self.reasoning_models)
    }

    /// Whether a model is told in tokens how long it may think.
    pub(crate) fn thinks_by_budget(&self, model: &str) -> bool {
        begins_with_any(model, &self.thinking_by_budget)
    }
}

fn begins_with_any(name: &str, beginnings: &[String]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

/// Somebody who serves models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// What it is called, as in `openai:gpt-5.4`.
    pub id: String,
    /// What it speaks at its own address.
    pub protocol: Protocol,
    /// What is spoken at an address that a user names, where that differs.
    #[serde(default)]
    pub elsewhere_protocol: Option<Protocol>,
    /// Where it is.
    pub base_url: String,
    /// The variable with another address.
    #[serde(default)]
    pub url_variable: Option<String>,
    /// The variable with another host: a name, a name and a port, or an address.
    #[serde(default)]
    pub host_variable: Option<String>,
    /// The variables in which its key is looked for.
    #[serde(default)]
    pub key_variables: Vec<String>,
    /// Further headers of every request; none of them is a secret.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What is particular to its models.
    #[serde(default)]
    pub dialect: Dialect,
    /// Whether its key makes it the provider of a session that names no model.
    #[serde(default)]
    pub leads: bool,
    /// Whether it runs on the user's machine and needs no key.
    #[serde(default)]
    pub is_local: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: Vec<Provider>,
}

/// Every provider that is known without settings, in the order of preference.
pub fn all() -> &'static [Provider] {
    &TABLE.provider
}

/// The provider of this name.
pub fn find(id: &str) -> Option<&'static Provider> {
    all().iter().find(|provider| provider.id == id)
}

/// Every variable that a provider's key, address or host is looked for in.
pub fn variables() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|provider| {
        let Provider { url_variable, host_variable, key_variables, .. } = provider;
        url_variable.iter().chain(host_variable).chain(key_variables).map(String::as_str)
    })
}

impl Provider {
    /// The address that a host means here: scheme, port and path are filled in from the provider's own address, and a
    /// server that listens everywhere is reached on this machine.
    pub fn address_of_host(&self, host: &str) -> String {
        let host = host.trim().trim_end_matches('/');
        let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
        let own = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let (own_authority, own_path) = own.split_once('/').unwrap_or((own, ""));
        let own_port = own_authority.rsplit_once(':').map_or("80", |(_, port)| port);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, own_path));
        let (name, port) = split_port(authority);
        let name = if matches!(name, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { name };
        let port = port.unwrap_or(if scheme == "https" { "443" } else { own_port });
        format!("{scheme}://{name}:{port}/{path}")
    }
}

/// A host's name and port. What stands in brackets is one name.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_a_name_of_its_own_and_an_address() {
        for (place, provider) in all().iter().enumerate() {
            assert_eq!(all().iter().position(|other| other.id == provider.id), Some(place), "{}", provider.id);
            let url: hyper::Uri = provider.base_url.parse().unwrap();
            let expected = if provider.is_local { "http" } else { "https" };
            assert_eq!(url.scheme_str(), Some(expected), "{}", provider.id);
            assert!(provider.is_local || !provider.key_variables.is_empty(), "{}", provider.id);
        }
        let leading: Vec<&str> = all().iter().filter(|row| row.leads).map(|row| row.id.as_str()).collect();
        assert_eq!(leading, ["anthropic", "openai", "gemini", "openrouter"]);
    }

    #[test]
    fn a_protocol_is_found_by_its_name() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
        }
        assert_eq!("smtp".parse::<Protocol>(), Err(UnknownProtocol));
    }

    #[test]
    fn a_host_may_be_said_in_many_ways() {
        let ollama = find("ollama").unwrap();
        for (host, address) in [
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
            (":99", "http://127.0.0.1:99/v1"),
            ("box:99", "http://box:99/v1"),
            ("http://box", "http://box:11434/v1"),
            ("http://box:99/", "http://box:99/v1"),
            ("https://box", "https://box:443/v1"),
            ("https://box/behind/v1", "https://box:443/behind/v1"),
            ("[::1]:99", "http://[::1]:99/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
        ] {
            assert_eq!(ollama.address_of_host(host), address, "{host}");
        }
    }
}
