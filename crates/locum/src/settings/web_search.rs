//! Settings about the search engine of `web_search`: which kind, where, and the variable with its key.

use secrecy::SecretString;

use super::environment::Environment;
use super::{Settings, SettingsError};
use crate::tools::{SearchEngine, SearchKind};
use crate::web::Address;

impl Settings {
    /// The search engine that the user has named; none if none is.
    pub(crate) fn search_engine(&self, environment: &Environment) -> Result<Option<SearchEngine>, SettingsError> {
        let Some((kind, origin)) = self.text("web_search.kind") else { return Ok(None) };
        let Ok(kind) = kind.parse::<SearchKind>() else { return Ok(None) };
        let (url, origin) = match self.text("web_search.url") {
            Some((url, origin)) => (url, origin),
            None => (kind.usual_url().unwrap_or_default(), origin),
        };
        let refused = |message: String| SettingsError { place: origin.to_string(), message };
        if url.is_empty() {
            return Err(refused("`web_search.url` must say where the search engine is".to_owned()));
        }
        let address = Address::parse(url).map_err(|why| refused(format!("`web_search.url` cannot be used: {why}")))?;
        let key_variable = self.search_key_variable();
        let key = key_variable.as_deref().and_then(|variable| environment.get(variable)).map(SecretString::from);
        Ok(Some(SearchEngine { kind, address, key_variable, key }))
    }

    /// The variable that holds the search engine's key, if it wants one.
    pub(super) fn search_key_variable(&self) -> Option<String> {
        let (kind, _) = self.text("web_search.kind")?;
        let usual = || kind.parse::<SearchKind>().ok().and_then(SearchKind::usual_key_variable);
        let variable = self.text("web_search.key_variable").map(|(variable, _)| variable).or_else(usual);
        variable.map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use secrecy::ExposeSecret as _;

    use super::super::{Origin, SettingsFile};
    use super::*;

    fn engine(file: &str) -> Result<Option<String>, String> {
        let variables = [("BRAVE_API_KEY", "b-key"), ("MY_KEY", "my-key")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = Environment::new(variables, PathBuf::from("/"));
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text: file };
        let settings = Settings::resolve(&[file], &environment, &[]).map_err(|error| error.to_string())?;
        let engine = settings.search_engine(&environment).map_err(|error| error.to_string())?;
        let key = |engine: &SearchEngine| engine.key.as_ref().map(|key| key.expose_secret().to_owned());
        Ok(engine
            .map(|engine| format!("{:?} {} {:?} {:?}", engine.kind, engine.address, engine.key_variable, key(&engine))))
    }

    #[test]
    fn an_engine_is_named_by_kind_address_and_key() {
        for (file, expected) in [
            ("", None),
            ("[web_search]\nurl = \"http://127.0.0.1/\"", None),
            (
                "[web_search]\nkind = \"searxng\"\nurl = \"http://127.0.0.1:8888\"",
                Some("Searxng http://127.0.0.1:8888/ None None"),
            ),
            (
                "[web_search]\nkind = \"brave\"",
                Some("Brave https://api.search.brave.com/res/v1/web/search Some(\"BRAVE_API_KEY\") Some(\"b-key\")"),
            ),
            (
                "[web_search]\nkind = \"tavily\"\nkey_variable = \"MY_KEY\"\nurl = \"http://box/t\"",
                Some("Tavily http://box/t Some(\"MY_KEY\") Some(\"my-key\")"),
            ),
        ] {
            assert_eq!(engine(file), Ok(expected.map(str::to_owned)), "{file}");
        }
        for (file, expected) in [
            ("[web_search]\nkind = \"google\"", "c.toml:2: `web_search.kind` must be one of searxng, brave, tavily"),
            ("[web_search]\nkind = \"searxng\"", "c.toml: `web_search.url` must say where the search engine is"),
            (
                "[web_search]\nkind = \"searxng\"\nurl = \"box\"",
                "c.toml: `web_search.url` cannot be used: it must begin with https:// or http://",
            ),
        ] {
            assert_eq!(engine(file).unwrap_err(), expected);
        }
    }
}
