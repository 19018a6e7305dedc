//! The fields below `locum:`, which no other program has.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value as Json, json};

use super::findings::Findings;
use super::note::Topic;
use super::roster::nearest;
use super::values;
use super::yaml::{Entry, Value, short};
use crate::limits::{self, Limits};
use crate::permission::HostPattern;
use crate::usage::Budget;

/// What an agent asks of locum alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocumFields {
    /// What one of its tasks may use, where the call does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The paths that it may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_scope: Option<Vec<String>>,
    /// The JSON schema that its answer must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// The models to ask where its own does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_models: Option<Vec<String>>,
    /// How many levels it may delegate below itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// The hosts that its commands may reach.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "hosts_or_switch")]
    pub network: Option<Vec<HostPattern>>,
    /// Whether a worktree begins with uncommitted changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_dirty: Option<bool>,
}

impl LocumFields {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Every field that is set, under the name that files use.
    pub(super) fn said(&self) -> Vec<(&'static str, Json)> {
        let all = [
            ("locum.budget", self.budget.as_ref().map(|budget| json!(budget))),
            ("locum.write_scope", self.write_scope.as_ref().map(|paths| json!(paths))),
            ("locum.output_schema", self.output_schema.clone()),
            ("locum.fallback_models", self.fallback_models.as_ref().map(|models| json!(models))),
            ("locum.max_depth", self.max_depth.map(|levels| json!(levels))),
            ("locum.network", self.network.as_ref().map(|network| json!(network))),
            ("locum.include_dirty", self.include_dirty.map(|dirty| json!(dirty))),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The fields that are set and have no effect yet, with why.
    pub(super) fn unhonoured(&self) -> Vec<(&'static str, &'static str)> {
        let why =
            |name: &str| KEYS.iter().find(|(key, _)| name.ends_with(&format!(".{key}"))).and_then(|(_, why)| *why);
        self.said().into_iter().filter_map(|(name, _)| Some((name, why(name)?))).collect()
    }

    /// Takes from another what is left out here.
    pub(super) fn fill(&mut self, from: &Self) {
        fn take<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
            if own.is_none() {
                own.clone_from(other);
            }
        }
        take(&mut self.budget, &from.budget);
        take(&mut self.write_scope, &from.write_scope);
        take(&mut self.output_schema, &from.output_schema);
        take(&mut self.fallback_models, &from.fallback_models);
        take(&mut self.max_depth, &from.max_depth);
        take(&mut self.network, &from.network);
        take(&mut self.include_dirty, &from.include_dirty);
    }
}

/// The keys below `locum:`, with why one has no effect yet.
const KEYS: [(&str, Option<&str>); 7] = [
    ("budget", None),
    ("write_scope", None),
    ("output_schema", Some("answers are not checked against a schema yet")),
    ("fallback_models", None),
    ("max_depth", None),
    ("network", None),
    ("include_dirty", None),
];

const BUDGET_KEYS: [&str; 3] = ["max_input_tokens", "max_output_tokens", "max_cost_usd"];

pub(super) fn read(entry: &Entry, findings: &mut Findings) -> Option<LocumFields> {
    let Value::Map(entries) = &entry.value.value else {
        return findings.wrong(entry, "a map, for example {max_depth: 1}");
    };
    let mut fields = LocumFields::default();
    for inner in entries {
        let Some((key, kept)) = KEYS.iter().find(|(key, _)| *key == inner.key) else {
            unknown(inner, "locum", &KEYS.map(|(key, _)| key), findings);
            continue;
        };
        findings.place(&format!("locum.{key}"), inner);
        if !findings.is_given(inner, "") {
            continue;
        }
        if let Some(why) = kept {
            findings.info(inner.at, format!("`{key}` is kept and has no effect yet: {why}"));
        }
        set(&mut fields, inner, findings);
    }
    Some(fields)
}

fn set(fields: &mut LocumFields, entry: &Entry, findings: &mut Findings) {
    match entry.key.as_str() {
        "budget" => fields.budget = budget(entry, findings),
        "write_scope" => fields.write_scope = findings.texts(entry),
        "output_schema" => {
            fields.output_schema = match &entry.value.value {
                Value::Map(_) => Some(values::json(&entry.value)),
                Value::Scalar { .. } | Value::List(_) => findings.wrong(entry, "a JSON schema, as a map"),
            }
        }
        "fallback_models" => fields.fallback_models = findings.texts(entry),
        "max_depth" => fields.max_depth = depth(entry, findings),
        "network" => fields.network = network(entry, findings),
        "include_dirty" => fields.include_dirty = findings.boolean(entry),
        // The keys above are those of the table.
        _ => {}
    }
}

/// Older logs say yes or no here, which had no effect.
fn hosts_or_switch<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<HostPattern>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Hosts(Vec<HostPattern>),
        Else(serde::de::IgnoredAny),
    }
    Ok(match Option::<Said>::deserialize(input)? {
        Some(Said::Hosts(hosts)) => Some(hosts),
        Some(Said::Else(_)) | None => None,
    })
}

/// A list of hosts; `no` is an empty one.
fn network(entry: &Entry, findings: &mut Findings) -> Option<Vec<HostPattern>> {
    if let Value::Scalar { text, .. } = &entry.value.value
        && matches!(text.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "none")
    {
        return Some(Vec::new());
    }
    let hosts: Result<Vec<HostPattern>, String> =
        findings.texts(entry)?.iter().map(|host| HostPattern::parse(host)).collect();
    match hosts {
        Ok(hosts) if hosts.len() <= limits::NETWORK_HOSTS_MAX => Some(hosts),
        Ok(_) => findings.wrong(entry, &format!("at most {} hosts", limits::NETWORK_HOSTS_MAX)),
        Err(why) => {
            findings
                .error(entry.value.at, format!("`network` takes hosts, for example [docs.rs, \"*.crates.io\"]: {why}"));
            None
        }
    }
}

fn depth(entry: &Entry, findings: &mut Findings) -> Option<u32> {
    let expected = format!("a whole number from 0 to {}", Limits::DEPTH_CAP);
    let number = findings.whole(entry, "1")?;
    match u32::try_from(number).ok().filter(|depth| *depth <= Limits::DEPTH_CAP) {
        Some(depth) => Some(depth),
        None => findings.wrong(entry, &expected),
    }
}

fn budget(entry: &Entry, findings: &mut Findings) -> Option<Budget> {
    let Value::Map(entries) = &entry.value.value else {
        return findings.wrong(entry, "a map, for example {max_cost_usd: 0.5}");
    };
    let mut budget = Budget::default();
    for inner in entries {
        match inner.key.as_str() {
            "max_input_tokens" => budget.max_input_tokens = tokens(inner, findings),
            "max_output_tokens" => budget.max_output_tokens = tokens(inner, findings),
            "max_cost_usd" => {
                budget.max_cost_usd = match findings.number(inner, "0.5") {
                    Some(usd) if usd <= 0.0 => findings.wrong(inner, "a number above 0"),
                    usd => usd,
                }
            }
            _ => unknown(inner, "budget", &BUDGET_KEYS, findings),
        }
    }
    Some(budget)
}

pub(super) fn tokens(entry: &Entry, findings: &mut Findings) -> Option<u64> {
    let number = findings.whole(entry, "50000")?;
    match u64::try_from(number).ok().filter(|tokens| *tokens > 0) {
        Some(tokens) => Some(tokens),
        None => findings.wrong(entry, "a whole number from 1"),
    }
}

fn unknown(entry: &Entry, parent: &str, known: &[&str], findings: &mut Findings) {
    let near = nearest(&entry.key, known.iter(), |key| key);
    let hint = match near.first() {
        Some(key) => format!("did you mean `{key}`?"),
        None => format!("it has {}", known.join(", ")),
    };
    let message = format!("`{parent}` has no key `{}` and it is ignored: {hint}", short(&entry.key));
    findings.warn(entry.at, Topic::UnknownKey, message);
}
