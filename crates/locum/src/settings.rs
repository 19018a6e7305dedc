//! Settings: layers with provenance, resolved once at the edge into plain values.
//!
//! Built-in defaults, then the user's file, then the project's if it is trusted, then variables, then flags; later
//! ones win, and each value remembers where it came from.

pub mod environment;

mod command_tools;
mod file;
mod mcp_servers;
mod places;
mod providers;
mod reading;
pub(crate) mod table;
mod value;
mod web_search;

use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

pub(crate) use command_tools::{CommandToolSettings, ToolCommand};
use environment::Environment;
pub use file::SettingsFile;
pub(crate) use file::check_project;
pub(crate) use mcp_servers::McpServerSettings;
pub use places::{Places, project_root};
use table::{KEYS, Key};

/// Where the rules of a project are kept, beside the user's: they never take one of those away.
const PROJECT_RULES: &str = "permissions.project_rules";

const DEFAULTS: &str = include_str!("settings/defaults.toml");

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in defaults.
    Default,
    /// A file of the user.
    File(PathBuf),
    /// A file of the project.
    Project(PathBuf),
    /// A variable.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Project(path) => write!(f, "project {}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A setting that cannot be used: what, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct SettingsError {
    /// The file and line, or the variable or flag.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// One resolved value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The setting.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Where the value came from.
    pub origin: Origin,
}

/// Every setting, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    values: Vec<Setting>,
}

impl Settings {
    /// Resolves defaults, the files of the user and of a trusted project (their texts, if there are any), variables and
    /// flags.
    pub fn resolve(
        files: &[SettingsFile<'_>],
        environment: &Environment,
        flags: &[(&'static str, &'static str, String)],
    ) -> Result<Self, SettingsError> {
        let defaults: Table = DEFAULTS.parse().map_err(|error: toml::de::Error| SettingsError {
            place: "built-in defaults".to_owned(),
            message: error.message().to_owned(),
        })?;
        let values = KEYS.iter().filter_map(|key| {
            let value = file::look_up(&defaults, key.name)?.clone();
            Some(Setting { name: key.name.to_owned(), value, origin: Origin::Default })
        });
        let mut settings = Self { values: values.collect() };
        for file in files {
            settings.take_file(file)?;
        }
        settings.take_addresses(environment);
        for key in &KEYS {
            if let Some(text) = environment.get(key.variable) {
                settings.set(key, text, Origin::Variable(key.variable))?;
            }
        }
        for (flag, name, text) in flags {
            if let Some(key) = KEYS.iter().find(|key| key.name == *name) {
                settings.set(key, text, Origin::Flag(flag))?;
            }
        }
        Ok(settings)
    }

    fn set(&mut self, key: &Key, text: &str, origin: Origin) -> Result<(), SettingsError> {
        let refused = |message: String| SettingsError { place: origin.to_string(), message };
        let value = value::read(key, text).map_err(refused)?;
        self.put(key.name, value, origin);
        Ok(())
    }

    fn put(&mut self, name: &str, value: Value, origin: Origin) {
        if let Some(setting) = self.values.iter_mut().find(|setting| setting.name == name) {
            *setting = Setting { name: name.to_owned(), value, origin };
        }
    }

    /// The same, for a setting that has no default.
    fn put_any(&mut self, name: String, value: Value, origin: Origin) {
        self.values.retain(|setting| setting.name != name);
        self.values.push(Setting { name, value, origin });
    }

    /// Every value with its origin.
    pub fn all(&self) -> &[Setting] {
        &self.values
    }

    fn value(&self, name: &str) -> Option<&Setting> {
        self.values.iter().find(|setting| setting.name == name)
    }

    fn number(&self, name: &str) -> u64 {
        let value = self.value(name).and_then(|setting| setting.value.as_integer()).unwrap_or(0);
        u64::try_from(value).unwrap_or(0)
    }

    /// An amount of money; none where it is unlimited.
    fn money(&self, name: &str) -> Option<f64> {
        match self.value(name).map(|setting| &setting.value) {
            Some(Value::Float(amount)) => Some(*amount),
            Some(Value::Integer(amount)) => Some(*amount as f64),
            Some(Value::String(_)) => None,
            // A limit that cannot be read is not a limit that is gone; there is always a default.
            _ => Some(0.0),
        }
    }

    fn switch(&self, name: &str) -> bool {
        self.value(name).and_then(|setting| setting.value.as_bool()).unwrap_or(false)
    }

    /// A text with its origin; an empty one counts as not set.
    fn text(&self, name: &str) -> Option<(&str, &Origin)> {
        let setting = self.value(name)?;
        let text = setting.value.as_str().filter(|text| !text.is_empty())?;
        Some((text, &setting.origin))
    }

    /// Whether somebody has set it.
    fn is_said(&self, name: &str) -> bool {
        self.value(name).is_some_and(|setting| setting.origin != Origin::Default)
    }
}

#[cfg(test)]
mod tests {
    use locum_core::limits::Limits;
    use locum_core::liveness::Patience;
    use locum_core::permission::Rule;
    use locum_core::protocol::request::{CostPreference, TaskType};
    use locum_core::routing::RoutingRules;

    use super::table::OF_PROJECTS;
    use super::*;

    fn resolve(file: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::new(variables, PathBuf::from("/"));
        let file = SettingsFile { origin: Origin::File(PathBuf::from("c.toml")), text: file };
        Settings::resolve(&[file], &environment, &[("--model", "model", String::new())])
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_project_comes_over_the_user_and_may_not_set_what_is_the_users() {
        let environment = Environment::new([], PathBuf::from("/"));
        let resolve = |text: &str| {
            let user = SettingsFile { origin: Origin::File("u.toml".into()), text: "model = \"offline\"\n" };
            let project = SettingsFile { origin: Origin::Project("p.toml".into()), text };
            Settings::resolve(&[user, project], &environment, &[]).map_err(|error| error.to_string())
        };
        let settings = resolve("model = \"scripted:s\"").unwrap();
        assert_eq!(
            settings.model().map(|(name, origin)| (name, origin.to_string())),
            Some(("scripted:s", "project p.toml".to_owned()))
        );
        for key in KEYS.iter().filter(|key| !OF_PROJECTS.contains(&key.name)) {
            let (table, name) = key.name.rsplit_once('.').unwrap();
            let error = resolve(&format!("\n[{table}]\n{name} = 1")).unwrap_err();
            assert_eq!(error, format!("p.toml:3: `{}` can be set by the user only, not by a project", key.name));
        }
        for (text, expected) in [
            (
                "[mcp_servers.x]\ncommand = \"rm\"",
                "p.toml:2: `mcp_servers.x.command` is no setting that a project may have",
            ),
            ("sandbox = \"none\"", "p.toml:1: `sandbox` is no setting that a project may have"),
            (
                "[permissions]\nrules = [\"deny bash\", \"allow bash(ls)\"]",
                "p.toml:2: a project may only add rules that deny or ask, not `allow bash(ls)`",
            ),
        ] {
            let error = resolve(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn rules_of_a_project_stand_beside_the_users() {
        let user = "[permissions]\nrules = [\"deny bash(rm *)\", \"allow bash(rm x)\"]";
        let user = SettingsFile { origin: Origin::File("u.toml".into()), text: user };
        let project = "[permissions]\nrules = [\"ask bash\", \"deny write(src/**)\"]";
        let project = SettingsFile { origin: Origin::Project("p.toml".into()), text: project };
        let settings = Settings::resolve(&[user, project], &Environment::new([], PathBuf::from("/")), &[]).unwrap();
        let shown = |rules: Vec<Rule>| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(settings.permission_rules()), ["deny bash(rm *)", "allow bash(rm x)"]);
        assert_eq!(shown(settings.project_rules()), ["ask bash", "deny write(src/**)"]);
    }

    #[test]
    fn every_setting_has_a_default_and_later_layers_win() {
        let settings = resolve("[limits]\nmax_running = 7\nmax_turns = 30", &[("LOCUM_MAX_RUNNING", "9")]).unwrap();
        assert_eq!(settings.all().len(), KEYS.len());
        assert_eq!(settings.limits().max_running, 9);
        assert_eq!(settings.limits().max_turns, 30);
        assert_eq!(settings.limits().max_spawns, Limits::default().max_spawns);
        assert_eq!(settings.patience(), Patience::default());
        let origin = |name: &str| settings.value(name).unwrap().origin.to_string();
        assert_eq!(origin("limits.max_running"), "$LOCUM_MAX_RUNNING");
        assert_eq!(origin("limits.max_turns"), "c.toml");
        assert_eq!(origin("limits.max_depth"), "default");
    }

    #[test]
    fn only_what_was_set_fills_hints() {
        assert_eq!(resolve("", &[]).unwrap().routing(), RoutingRules::default());
        let set = "[routing]\nenabled = false\nprimary_type = \"text\"";
        let rules = resolve(set, &[("LOCUM_ROUTING_COST_PREFERENCE", "eco")]).unwrap().routing();
        assert_eq!((rules.enabled, rules.primary_type), (false, Some(TaskType::Text)));
        assert_eq!(rules.cost_preference, Some(CostPreference::Eco));
        let settings = resolve("[models]\nfallback = [\"a\"]", &[("LOCUM_MODELS_FALLBACK", "b, c,,")]).unwrap();
        assert_eq!(settings.fallback_models(), ["b", "c"]);
    }

    #[test]
    fn money_is_an_amount_or_unlimited_in_so_many_letters() {
        let limits = |file: &str, variables: &[(&str, &str)]| {
            let limits = resolve(file, variables).unwrap().limits();
            (limits.max_cost_usd, limits.session_cost_usd)
        };
        assert_eq!(limits("", &[]), (Some(1.0), Some(5.0)));
        assert_eq!(limits("[limits]\nmax_cost_usd = 2\nsession_cost_usd = 0.5", &[]), (Some(2.0), Some(0.5)));
        assert_eq!(limits("[limits]\nmax_cost_usd = \"unlimited\"", &[]), (None, Some(5.0)));
        assert_eq!(limits("", &[("LOCUM_SESSION_COST_USD", "unlimited")]), (Some(1.0), None));
        assert_eq!(limits("", &[("LOCUM_MAX_COST_USD", "0.25")]), (Some(0.25), Some(5.0)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let cases: [Case; 16] = [
            (
                "[permissions]\nrules = [\"forbid bash\"]",
                &[],
                "c.toml:2: `permissions.rules`: `forbid bash` is not a rule: it must begin with allow, ask or deny",
            ),
            (
                "[routing]\ncost_preference = \"cheap\"",
                &[],
                "c.toml:2: `routing.cost_preference` must be one of eco, balanced, premium",
            ),
            ("[models]\nfallback = \"gpt\"", &[], "c.toml:2: `models.fallback` must be a list of texts in quotes"),
            ("[models]\nfallback = [1]", &[], "c.toml:2: `models.fallback` must be a list of texts in quotes"),
            (
                "",
                &[("LOCUM_ROUTING_PRIMARY_TYPE", "Code")],
                "$LOCUM_ROUTING_PRIMARY_TYPE: `routing.primary_type` must be one of code, vision, text",
            ),
            ("[sandbox]\nlevel = \"off\"", &[], "c.toml:2: `sandbox.level` must be one of full, landlock, none"),
            (
                "\n[limits]\nmax_runing = 1",
                &[],
                "c.toml:3: unknown setting `limits.max_runing`; did you mean `limits.max_running`?",
            ),
            ("[limits]\nmax_depth = 6", &[], "c.toml:2: `limits.max_depth` is 6; it must be from 1 to 5"),
            (
                "[limits]\nmax_cost_usd = \"none\"",
                &[],
                "c.toml:2: `limits.max_cost_usd` must be an amount of US dollars or \"unlimited\"",
            ),
            ("[limits]\nsession_cost_usd = -1", &[], "c.toml:2: `limits.session_cost_usd` must be an amount"),
            ("[limits]\nsession_cost_usd = inf", &[], "c.toml:2: `limits.session_cost_usd` must be an amount"),
            (
                "",
                &[("LOCUM_MAX_COST_USD", "a lot")],
                "$LOCUM_MAX_COST_USD: `limits.max_cost_usd` must be an amount of US dollars or \"unlimited\", not `a lot`",
            ),
            ("model = 3", &[], "c.toml:1: `model` must be a text in quotes"),
            ("model = ", &[], "c.toml:1: "),
            (
                "",
                &[("LOCUM_MAX_TURNS", "many")],
                "$LOCUM_MAX_TURNS: `limits.max_turns` must be a whole number, not `many`",
            ),
            (
                "",
                &[("LOCUM_LOG_PAYLOADS", "maybe")],
                "$LOCUM_LOG_PAYLOADS: `log.payloads` must be true or false, not `maybe`",
            ),
        ];
        for (file, variables, expected) in cases {
            let error = resolve(file, variables).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
