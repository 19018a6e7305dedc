//! Every setting, in one table: its name, its variable and what it may be.

use locum_core::protocol::request::{CostPreference, TaskType};

use crate::tools::SearchKind;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// Its name in files, with dots for tables.
    pub(crate) name: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    /// What it may be.
    pub(crate) kind: Kind,
}

/// What a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Texts; separated by commas in a variable.
    List,
    /// Rules about the use of tools; separated by commas in a variable.
    Rules,
    /// True or false.
    Switch,
    /// An amount of US dollars, or the word `unlimited`.
    Money,
    /// A whole number in this range.
    Number {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
}

const fn number(name: &'static str, variable: &'static str, least: i64, most: i64) -> Key {
    Key { name, variable, kind: Kind::Number { least, most } }
}

/// A day: no limit of the watchdog makes sense beyond it.
const DAY_MS: i64 = 86_400_000;

/// Tasks run in the process that accepted them.
const IN_PROCESS: &str = "in_process";
/// Every task runs in a process of its own.
pub(crate) const PROCESS: &str = "process";

/// A year: nobody looks for a task in a list after that.
const YEAR_MINUTES: i64 = 525_600;

/// Every setting.
pub(crate) const KEYS: [Key; 33] = [
    Key { name: "model", variable: "LOCUM_MODEL", kind: Kind::Text },
    Key { name: "models.fallback", variable: "LOCUM_MODELS_FALLBACK", kind: Kind::List },
    Key { name: "routing.enabled", variable: "LOCUM_ROUTING_ENABLED", kind: Kind::Switch },
    Key { name: "routing.primary_type", variable: "LOCUM_ROUTING_PRIMARY_TYPE", kind: Kind::Choice(&TaskType::WORDS) },
    Key {
        name: "routing.cost_preference",
        variable: "LOCUM_ROUTING_COST_PREFERENCE",
        kind: Kind::Choice(&CostPreference::WORDS),
    },
    Key { name: "agents.packages", variable: "LOCUM_AGENT_PACKAGES", kind: Kind::List },
    number("limits.max_running", "LOCUM_MAX_RUNNING", 1, 100_000),
    number("limits.max_spawns", "LOCUM_MAX_SPAWNS", 0, 1_000_000),
    number("limits.max_depth", "LOCUM_MAX_DEPTH", 1, 5),
    number("limits.max_turns", "LOCUM_MAX_TURNS", 1, 10_000),
    Key { name: "limits.max_cost_usd", variable: "LOCUM_MAX_COST_USD", kind: Kind::Money },
    Key { name: "limits.session_cost_usd", variable: "LOCUM_SESSION_COST_USD", kind: Kind::Money },
    Key { name: "subagents.enabled", variable: "LOCUM_SUBAGENTS_ENABLED", kind: Kind::Switch },
    Key { name: "subagents.strict", variable: "LOCUM_STRICT", kind: Kind::Switch },
    Key { name: "subagents.allow_write", variable: "LOCUM_SUBAGENTS_ALLOW_WRITE", kind: Kind::Switch },
    number("subagents.completed_retention_minutes", "LOCUM_SUBAGENT_COMPLETED_RETENTION_MINUTES", 0, YEAR_MINUTES),
    number("subagents.history_tail_messages", "LOCUM_SUBAGENT_HISTORY_TAIL_MESSAGES", 0, 10_000),
    Key { name: "subagents.keep_full_history", variable: "LOCUM_SUBAGENT_KEEP_FULL_HISTORY", kind: Kind::Switch },
    number("watchdog.startup_timeout_ms", "LOCUM_SUBAGENT_STARTUP_TIMEOUT_MS", 1, DAY_MS),
    number("watchdog.inactivity_timeout_ms", "LOCUM_SUBAGENT_INACTIVITY_TIMEOUT_MS", 1, DAY_MS),
    number("watchdog.tool_timeout_ms", "LOCUM_SUBAGENT_TOOL_EXECUTION_TIMEOUT_MS", 1, DAY_MS),
    number("watchdog.kill_grace_ms", "LOCUM_SUBAGENT_WATCHDOG_KILL_GRACE_MS", 1, DAY_MS),
    Key { name: "run.executor", variable: "LOCUM_EXECUTOR", kind: Kind::Choice(&[IN_PROCESS, PROCESS]) },
    Key { name: "permissions.rules", variable: "LOCUM_PERMISSIONS_RULES", kind: Kind::Rules },
    Key { name: "sandbox.level", variable: "LOCUM_SANDBOX", kind: Kind::Choice(&["full", "landlock", "none"]) },
    Key { name: "shared_context.namespaces", variable: "LOCUM_SHARED_CONTEXT_NAMESPACES", kind: Kind::Switch },
    Key { name: "log.payloads", variable: "LOCUM_LOG_PAYLOADS", kind: Kind::Switch },
    Key { name: "network.https_proxy", variable: "HTTPS_PROXY", kind: Kind::Text },
    Key { name: "network.no_proxy", variable: "NO_PROXY", kind: Kind::Text },
    Key { name: "network.ca_file", variable: "LOCUM_CA_FILE", kind: Kind::Text },
    Key { name: "web_search.kind", variable: "LOCUM_WEB_SEARCH_KIND", kind: Kind::Choice(&SearchKind::WORDS) },
    Key { name: "web_search.url", variable: "LOCUM_WEB_SEARCH_URL", kind: Kind::Text },
    Key { name: "web_search.key_variable", variable: "LOCUM_WEB_SEARCH_KEY_VARIABLE", kind: Kind::Text },
];

/// What a trusted project may set. Everything else is the user's alone: keys, addresses, sandbox, trust, upper bounds
/// and what is logged. A new setting is the user's until it is named here.
pub(crate) const OF_PROJECTS: [&str; 8] = [
    "model",
    "subagents.enabled",
    "watchdog.startup_timeout_ms",
    "watchdog.inactivity_timeout_ms",
    "watchdog.tool_timeout_ms",
    "watchdog.kill_grace_ms",
    "shared_context.namespaces",
    "permissions.rules",
];
