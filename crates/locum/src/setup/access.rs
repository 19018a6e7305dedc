//! Keys and addresses of providers, gathered from the environment and the settings.

use std::path::{Path, PathBuf};

use locum_models::providers;
use locum_models::{Access, ProviderAccess};
use secrecy::SecretString;

use crate::settings::Settings;
use crate::settings::environment::Environment;

/// Everything that this user has given to reach providers.
pub(super) fn find(settings: &Settings, environment: &Environment) -> Access {
    let known = providers::all().iter().map(|row| row.id.as_str());
    let names = known.chain(settings.provider_names());
    Access {
        providers: names.map(|name| (name.to_owned(), provider(name, settings, environment))).collect(),
        proxy: settings.proxy(),
        ca_file: settings.ca_file().map(|path| absolute(path, environment)),
    }
}

fn provider(name: &str, settings: &Settings, environment: &Environment) -> ProviderAccess {
    let said = settings.provider(name);
    let usual = providers::find(name).map_or(&[] as &[String], |row| &row.key_variables);
    let variables = said.key_variable.as_ref().map_or(usual, std::slice::from_ref);
    let key = variables.iter().find_map(|variable| Some((variable, environment.get(variable)?)));
    let header = |(name, value): (String, String)| {
        let value = match value.strip_prefix('$') {
            Some(variable) => environment.get(variable)?.to_owned(),
            None => value,
        };
        Some((name, SecretString::from(value)))
    };
    ProviderAccess {
        key: key.map(|(_, key)| SecretString::from(key)),
        // Messages name the variable that holds the key, where several may.
        key_variable: key.map(|(variable, _)| variable.clone()).or(said.key_variable.clone()),
        base_url: said.base_url,
        protocol: said.protocol,
        headers: said.headers.into_iter().filter_map(header).collect(),
        ca_file: said.ca_file.map(|path| absolute(&path, environment)),
    }
}

fn absolute(path: &str, environment: &Environment) -> PathBuf {
    environment.working_directory().unwrap_or(Path::new(".")).join(path)
}

#[cfg(test)]
mod tests {
    use crate::settings::{Origin, SettingsFile};
    use crate::setup::Setup;

    use super::*;

    fn setup(variables: &[(&str, &str)]) -> Setup {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Setup::new(Environment::new(variables, PathBuf::from("/here")))
    }

    const FILE: &str = "[providers.acme]\nbase_url = \"http://acme/v1\"\nkey_variable = \"ACME_KEY\"\n\
                        ca_file = \"ca.pem\"\nheaders = { \"X-A\" = \"$ACME_HEADER\", \"X-B\" = \"$NOT_SET\" }";

    #[test]
    fn keys_and_headers_come_from_the_variables_that_are_named() {
        let setup = setup(&[
            ("ACME_KEY", "acme-key-1234"),
            ("ACME_HEADER", "acme-header-1234"),
            ("GOOGLE_API_KEY", "google-key-1234"),
            ("HTTPS_PROXY", "http://somebody:password@proxy:1"),
        ]);
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text: FILE };
        let settings = Settings::resolve(&[file], &setup.environment, &[]).unwrap();
        let access = find(&settings, &setup.environment);
        let acme = &access.providers["acme"];
        assert_eq!(acme.base_url.as_deref(), Some("http://acme/v1"));
        assert_eq!(acme.ca_file.as_deref(), Some(Path::new("/here/ca.pem")));
        assert_eq!(acme.headers.len(), 1);
        assert_eq!(access.first_model().why, "GOOGLE_API_KEY is set");
        let redactor = setup.redactor(&settings);
        for secret in ["acme-key-1234", "acme-header-1234", "google-key-1234", "somebody:password"] {
            assert_eq!(redactor.text(format!("<{secret}>")), "<[redacted]>");
        }
        let told = setup.environment.naming(settings.named_variables()).known_to_locum();
        for variable in ["ACME_KEY", "ACME_HEADER", "GOOGLE_API_KEY", "HTTPS_PROXY"] {
            assert!(told.contains_key(variable), "{variable}");
        }
    }

    #[test]
    fn a_key_that_another_outranks_is_a_secret_all_the_same() {
        let setup = setup(&[("GEMINI_API_KEY", "the-first-key"), ("GOOGLE_API_KEY", "the-second-key")]);
        let settings = Settings::resolve(&[], &setup.environment, &[]).unwrap();
        assert_eq!(setup.redactor(&settings).text("the-second-key".to_owned()), "[redacted]");
    }
}
