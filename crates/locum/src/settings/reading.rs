//! What the settings say, each in the words of whoever asks.

use locum_core::limits::Limits;
use locum_core::liveness::Patience;
use locum_core::permission::Rule;
use locum_core::protocol::request::{CostPreference, TaskType};
use locum_core::routing::RoutingRules;
use locum_models::http::Proxy;
use toml::Value;

use super::table::PROCESS;
use super::{Origin, PROJECT_RULES, Settings};
use crate::faces::{FaceSettings, Retention};
use crate::sandbox::Level;

impl Settings {
    /// The limits in force.
    pub fn limits(&self) -> Limits {
        let small = |name: &str| u32::try_from(self.number(name)).unwrap_or(u32::MAX);
        Limits {
            max_running: small("limits.max_running"),
            max_spawns: small("limits.max_spawns"),
            max_depth: Some(small("limits.max_depth")).filter(|_| self.is_said("limits.max_depth")),
            max_turns: small("limits.max_turns"),
            max_cost_usd: self.money("limits.max_cost_usd"),
            session_cost_usd: self.money("limits.session_cost_usd"),
        }
    }

    /// How long a task may be silent.
    pub fn patience(&self) -> Patience {
        Patience {
            startup_ms: self.number("watchdog.startup_timeout_ms"),
            inactivity_ms: self.number("watchdog.inactivity_timeout_ms"),
            tool_ms: self.number("watchdog.tool_timeout_ms"),
            kill_grace_ms: self.number("watchdog.kill_grace_ms"),
        }
    }

    /// Whether every task has a process of its own, unless it asks for something else.
    pub fn runs_in_processes(&self) -> bool {
        self.text("run.executor").is_some_and(|(word, _)| word == PROCESS)
    }

    /// Whether anything may be delegated.
    pub fn subagents_enabled(&self) -> bool {
        self.switch("subagents.enabled")
    }

    /// Whether a task is refused that would not get all that was asked for.
    pub fn strict(&self) -> bool {
        self.switch("subagents.strict")
    }

    /// Whether keys of the shared context may have a `name:` before them.
    pub fn namespaces(&self) -> bool {
        self.switch("shared_context.namespaces")
    }

    /// What faces need to know.
    pub fn faces(&self) -> FaceSettings {
        let retention = Retention {
            minutes: self.number("subagents.completed_retention_minutes"),
            tail_messages: usize::try_from(self.number("subagents.history_tail_messages")).unwrap_or(usize::MAX),
            full_history: self.switch("subagents.keep_full_history"),
        };
        FaceSettings { allow_write: self.switch("subagents.allow_write"), retention, ..FaceSettings::default() }
    }

    /// Whether tasks and results are logged.
    pub fn log_payloads(&self) -> bool {
        self.switch("log.payloads")
    }

    /// The model that was asked for, and where.
    pub fn model(&self) -> Option<(&str, &Origin)> {
        self.text("model")
    }

    /// The models that answer in the place of one that cannot, in order.
    pub fn fallback_models(&self) -> Vec<&str> {
        let items = self.value("models.fallback").and_then(|setting| setting.value.as_array());
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// What fills the hints that a call or a keyword leaves out. A built-in default fills nothing: there the task's own
    /// words say more.
    pub fn routing(&self) -> RoutingRules {
        let chosen =
            |name: &str| self.text(name).filter(|(_, origin)| **origin != Origin::Default).map(|(text, _)| text);
        RoutingRules {
            enabled: self.switch("routing.enabled"),
            primary_type: chosen("routing.primary_type").and_then(TaskType::parse),
            cost_preference: chosen("routing.cost_preference").and_then(CostPreference::parse),
        }
    }

    /// How https addresses are reached.
    pub(crate) fn proxy(&self) -> Proxy {
        let text = |name: &str| self.text(name).map(|(text, _)| text.to_owned());
        Proxy { https_proxy: text("network.https_proxy"), no_proxy: text("network.no_proxy") }
    }

    /// The directories of packages with agents.
    pub fn packages(&self) -> Vec<String> {
        let all = self.value("agents.packages").and_then(|setting| setting.value.as_array());
        all.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    }

    /// A file with certificates that are trusted beside the machine's own.
    pub(crate) fn ca_file(&self) -> Option<&str> {
        self.text("network.ca_file").map(|(path, _)| path)
    }

    /// What agents may use their tools for, as the user says.
    pub fn permission_rules(&self) -> Vec<Rule> {
        self.rules("permissions.rules")
    }

    /// What the project asks for and forbids beside that.
    pub fn project_rules(&self) -> Vec<Rule> {
        self.rules(PROJECT_RULES)
    }

    fn rules(&self, name: &str) -> Vec<Rule> {
        let items = self.value(name).and_then(|setting| setting.value.as_array());
        items.into_iter().flatten().filter_map(Value::as_str).filter_map(|text| Rule::parse(text).ok()).collect()
    }

    /// What commands are shut into.
    pub fn sandbox_level(&self) -> Level {
        // The table knows no other words; what is not known is shut in.
        self.text("sandbox.level").and_then(|(word, _)| word.parse().ok()).unwrap_or(Level::Full)
    }
}
