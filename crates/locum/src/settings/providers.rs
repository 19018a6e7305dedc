//! Settings about providers: `providers.NAME.base_url` and the like. Their names are not known beforehand, so they
//! are checked by the fields that a provider may have. Only the user's own file may hold them.

use std::path::Path;

use locum_core::agent::roster::nearest;
use locum_models::providers::{self, Protocol};
use toml::{Table, Value};

use super::environment::Environment;
use super::{Origin, Setting, Settings, SettingsError};

/// The table of all providers in a settings file.
pub(super) const PROVIDERS: &str = "providers";

/// What may be said about a provider.
const FIELDS: [&str; 5] = ["base_url", "key_variable", "protocol", "ca_file", HEADERS];
const HEADERS: &str = "headers";

/// Names that mean something else.
const RESERVED: [&str; 3] = ["offline", "scripted", "replay"];

/// What the user said about one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderSettings {
    pub(crate) base_url: Option<String>,
    pub(crate) key_variable: Option<String>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) ca_file: Option<String>,
    /// Names and values; a value that begins with `$` names a variable.
    pub(crate) headers: Vec<(String, String)>,
}

impl Settings {
    /// Takes the providers of a settings file.
    pub(super) fn take_providers(&mut self, value: &Value, path: &Path, text: &str) -> Result<(), SettingsError> {
        let refused = |name: &str, message: String| {
            let place = format!("{}:{}", path.display(), line_beginning(text, name));
            Err(SettingsError { place, message })
        };
        let Some(all) = value.as_table() else {
            return refused(PROVIDERS, "`providers` must be a table, as in [providers.NAME]".to_owned());
        };
        for (name, value) in all {
            let line = format!("[providers.{name}");
            if let Err(why) = check_name(name) {
                return refused(&line, why);
            }
            let Some(fields) = value.as_table() else {
                return refused(name, format!("`providers.{name}` must be a table, as in [providers.{name}]"));
            };
            for (field, value) in fields {
                match leaves(name, field, value) {
                    Ok(leaves) => leaves.into_iter().for_each(|(name, value)| {
                        self.put_any(name, value, Origin::File(path.to_owned()));
                    }),
                    Err(why) => return refused(field, why),
                }
            }
            if providers::find(name).is_none() && !fields.contains_key("base_url") {
                let message = format!("no provider is called `{name}`: one of your own needs a base_url");
                return refused(&line, message);
            }
        }
        Ok(())
    }

    /// Takes the addresses that variables name.
    pub(super) fn take_addresses(&mut self, environment: &Environment) {
        for row in providers::all() {
            let name = format!("{PROVIDERS}.{}.base_url", row.id);
            let url = row.url_variable.as_deref().and_then(|variable| {
                let url = environment.get(variable)?;
                Some((variable, url.to_owned()))
            });
            let host = row.host_variable.as_deref().and_then(|variable| {
                let host = environment.get(variable)?;
                Some((variable, row.address_of_host(host)))
            });
            if let Some((variable, url)) = url.or(host) {
                self.put_any(name, Value::String(url), Origin::Variable(variable));
            }
        }
    }

    /// The providers about which something was said.
    pub(crate) fn provider_names(&self) -> Vec<&str> {
        let named = self.all().iter().filter_map(|setting| setting.name.strip_prefix("providers."));
        let mut names: Vec<&str> = named.filter_map(|rest| rest.split('.').next()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What was said about a provider.
    pub(crate) fn provider(&self, name: &str) -> ProviderSettings {
        let text = |field: &str| self.text(&format!("{PROVIDERS}.{name}.{field}")).map(|(text, _)| text.to_owned());
        let start = format!("{PROVIDERS}.{name}.{HEADERS}.");
        let header = |setting: &Setting| {
            Some((setting.name.strip_prefix(&start)?.to_owned(), setting.value.as_str()?.to_owned()))
        };
        ProviderSettings {
            base_url: text("base_url"),
            key_variable: text("key_variable"),
            protocol: text("protocol").and_then(|protocol| protocol.parse().ok()),
            ca_file: text("ca_file"),
            headers: self.all().iter().filter_map(header).collect(),
        }
    }

    /// The variables that the settings name for providers: keys and headers, and the key of the search engine.
    pub(super) fn variables_of_providers(&self) -> Vec<String> {
        let variables = self.provider_names().into_iter().flat_map(|name| {
            let ProviderSettings { key_variable, headers, .. } = self.provider(name);
            let in_headers = headers.into_iter().filter_map(|(_, value)| value.strip_prefix('$').map(str::to_owned));
            key_variable.into_iter().chain(in_headers)
        });
        variables.chain(self.search_key_variable()).collect()
    }
}

/// The number of the first line that begins so; 1 if none does.
pub(super) fn line_beginning(text: &str, beginning: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(beginning)).map_or(1, |line| line + 1)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_accepted = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || matches!(char, '_' | '-');
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is built in: a provider needs another name"));
    }
    if name.is_empty() || !name.chars().all(is_accepted) {
        return Err(format!("`{name}` cannot be a provider's name: use a-z, 0-9, _ and -"));
    }
    Ok(())
}

/// The settings that one field of a provider makes.
fn leaves(provider: &str, field: &str, value: &Value) -> Result<Vec<(String, Value)>, String> {
    let name = format!("{PROVIDERS}.{provider}.{field}");
    if !FIELDS.contains(&field) {
        let near = nearest(field, FIELDS.iter(), |known| known);
        let hint = near.first().map_or_else(
            || format!("the settings of a provider are {}", FIELDS.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(format!("unknown setting `{name}`; {hint}"));
    }
    if field == HEADERS {
        let wrong = || format!("`{name}` must be a table of texts, as in {{ \"X-Name\" = \"value\" }}");
        let headers = value.as_table().ok_or_else(wrong)?;
        return texts(&name, headers).ok_or_else(wrong);
    }
    let text = value.as_str().ok_or_else(|| format!("`{name}` must be a text in quotes"))?;
    if field == "protocol" {
        text.parse::<Protocol>().map_err(|error| format!("`{name}` is `{text}`, {error}"))?;
    }
    Ok(vec![(name, value.clone())])
}

pub(super) fn texts(name: &str, table: &Table) -> Option<Vec<(String, Value)>> {
    table.iter().map(|(key, value)| value.is_str().then(|| (format!("{name}.{key}"), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::SettingsFile;
    use super::*;

    fn resolve(file: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::new(variables, PathBuf::from("/"));
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text: file };
        Settings::resolve(&[file], &environment, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_provider_is_described_by_its_fields_and_variables_win() {
        let file = "[providers.acme]\nbase_url = \"http://acme/v1\"\nprotocol = \"openai_chat\"\n\
                    key_variable = \"ACME_KEY\"\nca_file = \"/ca.pem\"\nheaders = { \"X-A\" = \"$ACME_HEADER\" }\n\
                    [providers.openai]\nbase_url = \"http://file/v1\"";
        let settings = resolve(file, &[("OPENAI_BASE_URL", "http://variable/v1"), ("OLLAMA_HOST", "box")]).unwrap();
        assert_eq!(settings.provider_names(), ["acme", "ollama", "openai"]);
        let acme = ProviderSettings {
            base_url: Some("http://acme/v1".to_owned()),
            key_variable: Some("ACME_KEY".to_owned()),
            protocol: Some(Protocol::OpenaiChat),
            ca_file: Some("/ca.pem".to_owned()),
            headers: vec![("X-A".to_owned(), "$ACME_HEADER".to_owned())],
        };
        assert_eq!(settings.provider("acme"), acme);
        assert_eq!(settings.provider("openai").base_url.as_deref(), Some("http://variable/v1"));
        assert_eq!(settings.provider("ollama").base_url.as_deref(), Some("http://box:11434/v1"));
        assert_eq!(settings.variables_of_providers(), ["ACME_KEY", "ACME_HEADER"]);
        let origin =
            |name: &str| settings.all().iter().find(|setting| setting.name == name).unwrap().origin.to_string();
        assert_eq!(origin("providers.openai.base_url"), "$OPENAI_BASE_URL");
        assert_eq!(origin("providers.acme.headers.X-A"), "c.toml");
    }

    #[test]
    fn what_is_wrong_about_a_provider_is_said_with_its_place() {
        for (file, expected) in [
            ("providers = 3", "c.toml:1: `providers` must be a table"),
            ("\n[providers.Acme]\nbase_url = \"x\"", "c.toml:2: `Acme` cannot be a provider's name"),
            ("[providers.offline]\nbase_url = \"x\"", "c.toml:1: `offline` is built in"),
            ("[providers.acme]\nca_file = \"x\"", "c.toml:1: no provider is called `acme`: one of your own needs a"),
            (
                "[providers.xai]\nbase_ur = \"x\"",
                "c.toml:2: unknown setting `providers.xai.base_ur`; did you mean `base_url`?",
            ),
            ("[providers.xai]\nbase_url = 3", "c.toml:2: `providers.xai.base_url` must be a text in quotes"),
            ("[providers.xai]\nprotocol = \"x\"", "c.toml:2: `providers.xai.protocol` is `x`, not a protocol: the"),
            ("[providers.xai]\nheaders = { a = 1 }", "c.toml:2: `providers.xai.headers` must be a table of texts"),
        ] {
            let error = resolve(file, &[]).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
