//! What a task may do with the tools that it has: rules of the user, the paths it may write to, and names that nobody
//! writes to unless a rule says so. Pure decisions over plain text; nothing here looks at a file.
//!
//! Rules come in layers. In one layer the last rule that matches decides; of all layers the strictest one counts. A
//! task that delegates hands its layers on and others are only ever added, so that a child is never wider than its
//! parent.

mod hosts;
mod pattern;
mod protected;
mod rule;
mod subject;

use serde::{Deserialize, Serialize};

use crate::agent::tool_names;

pub use hosts::HostPattern;
pub use protected::{AGENT_DIRECTORIES, protected_name, protected_paths};
pub use rule::{Effect, Rule, WrongRule};
pub use subject::Subject;

/// What bounds a task's use of its tools. Part of its plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// Layers of rules: the last match decides in each, and the strictest layer counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Vec<Rule>>,
    /// The paths that may be written to: a path must fit each of these lists. Without any, all beneath the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_scopes: Vec<Vec<String>>,
    /// The hosts that commands may reach: a host must be in each of these lists. Without any, none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Vec<HostPattern>>,
}

/// What is decided about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be made.
    Allowed,
    /// A person has to agree.
    Ask {
        /// The rule that says so.
        rule: Rule,
    },
    /// It may not be made.
    Denied {
        /// Why not, for the model and for whoever reads the log.
        why: String,
    },
}

impl Permissions {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.write_scopes.is_empty() && self.network.is_empty()
    }

    /// Whether no call can be decided otherwise than by having the tool at all.
    pub fn has_rules(&self) -> bool {
        self.rules.iter().any(|layer| !layer.is_empty())
    }

    /// What a task of these may hand on where others hold too. Only what is known already is allowed: of a new layer
    /// nothing remains but what it asks for and forbids.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for layer in &other.rules {
            let strict: Vec<Rule> = layer.iter().filter(|rule| rule.effect != Effect::Allow).cloned().collect();
            if !self.rules.contains(layer) && !strict.is_empty() {
                self.rules.push(strict);
            }
        }
        for scope in &other.write_scopes {
            if !self.write_scopes.contains(scope) {
                self.write_scopes.push(scope.clone());
            }
        }
        self
    }

    /// Decides about a call of a tool.
    pub fn judge(&self, tool: &str, subject: &Subject) -> Verdict {
        if let (true, Subject::Path(path)) = (writes(tool), subject)
            && let Err(why) = self.check_written(path)
        {
            return Verdict::Denied { why };
        }
        let pieces = subject.pieces();
        let mut verdict = Verdict::Allowed;
        for rule in self.rules.iter().flat_map(|layer| pieces.iter().filter_map(|piece| last(layer, tool, piece))) {
            match rule.effect {
                Effect::Allow => {}
                Effect::Ask if matches!(verdict, Verdict::Allowed) => verdict = Verdict::Ask { rule: rule.clone() },
                Effect::Ask => {}
                Effect::Deny => return Verdict::Denied { why: format!("the rule `{rule}` forbids it") },
            }
        }
        verdict
    }

    /// Whether a path may be written to at all.
    fn check_written(&self, path: &str) -> Result<(), String> {
        for scope in &self.write_scopes {
            if !scope.iter().any(|glob| pattern::fits_path(glob, path)) {
                let scope = if scope.is_empty() { "nothing".to_owned() } else { scope.join(", ") };
                return Err(format!("`{path}` is outside of what this agent may write to: {scope}"));
            }
        }
        let Some(name) = protected_name(path) else { return Ok(()) };
        let piece = [path.to_owned()];
        let names_it = |rule: &&Rule| rule.effect == Effect::Allow && rule.names(name);
        let granted = self.rules.iter().filter_map(|layer| last(layer, "write", &piece)).any(|rule| names_it(&rule));
        if granted {
            return Ok(());
        }
        let rule = format!("allow write({path})");
        Err(format!(
            "`{name}` is a protected name: other programs act on what is there. Only a user can allow it, with the \
             rule `{rule}` in their settings"
        ))
    }
}

/// The rule of a layer that decides about one piece of a call.
fn last<'a>(layer: &'a [Rule], tool: &str, spellings: &[String]) -> Option<&'a Rule> {
    layer.iter().rev().find(|rule| rule.is_about(tool) && rule.fits(spellings))
}

/// Whether a tool of ours writes files.
fn writes(tool: &str) -> bool {
    tool_names::WRITING.contains(&tool)
}
