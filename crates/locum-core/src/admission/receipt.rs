//! The launch receipt: what was asked for, what a task gets, who said so, and what is left out and why. A task and
//! whoever looks at an agent are told the same by the same code.

use serde_json::{Value as Json, json};

use crate::admission::tools::Granted;
use crate::agent::fallbacks::Completed;
use crate::agent::fields::Field;
use crate::agent::roster::Found;
use crate::agent::said::{said, unhonoured};
use crate::agent::{AgentSpec, Isolation};
use crate::protocol::{Refusal, SpawnEntry};
use crate::routing::{Choice, ChosenBy};
use crate::task::plan::{AgentReceipt, Dropped, Plan, Receipt, ValueReceipt};

/// Where a value comes from that nobody said.
const BUILT_IN: &str = "built-in";
/// Where a value comes from that the request says.
const CALL: &str = "call";

/// What was decided about a task, before it is told.
pub(super) struct Given<'a> {
    pub(super) entry: &'a SpawnEntry,
    pub(super) completed: &'a Completed,
    pub(super) choice: &'a Choice,
    pub(super) granted: &'a Granted,
    pub(super) max_turns: u32,
    /// What is said about turns that were asked for and are not given.
    pub(super) clamped: Option<&'a str>,
    pub(super) isolation: Isolation,
    /// Its wall clock.
    pub(super) timeout_s: Option<u64>,
}

impl Given<'_> {
    /// The receipt of a task; `sandbox` is what its commands are shut into, if it runs any.
    pub(super) fn receipt(&self, found: &Found, sandbox: Option<&str>) -> Receipt {
        let agent = &self.completed.agent;
        let said = said(agent);
        // What was asked for, what is given and why is said of these beside it already.
        let beside = |from: String| ValueReceipt { requested: None, effective: None, from, why: None };
        let model = (Field::Model, beside(self.model_from(&said)));
        let tools = (Field::Tools, beside(self.said_by(Field::Tools.as_str(), &said)));
        let origins = [model, tools].into_iter().chain(self.other_values(&said));
        let kept = unhonoured(agent).into_iter();
        Receipt {
            agent: AgentReceipt {
                requested: self.entry.agent.clone(),
                resolved: found.agent.name.to_string(),
                how: found.how.as_str().to_owned(),
                source: found.agent.source.as_str().to_owned(),
            },
            model: self.choice.receipt.clone(),
            tools: self.granted.receipt.clone(),
            max_turns: self.max_turns,
            isolation: self.isolation,
            sandbox: sandbox.map(str::to_owned),
            mcp_servers: self.granted.servers.clone(),
            mcp_sandboxes: self.granted.sandboxes.clone(),
            origins: origins.map(|(field, value)| (receipt_name(field).to_owned(), value)).collect(),
            not_honoured: kept.map(|(name, why)| Dropped { name: name.to_owned(), why: why.to_owned() }).collect(),
        }
    }

    /// Every value that the task has, by the names that files use: those that every task has, then whatever else the
    /// agent or its fallbacks say.
    pub(super) fn explained(&self) -> Vec<(&'static str, ValueReceipt)> {
        let agent = &self.completed.agent;
        let (said, why_not) = (said(agent), unhonoured(agent));
        let mut all: Vec<(&'static str, ValueReceipt)> =
            self.values(&said).into_iter().map(|(field, value)| (field.as_str(), value)).collect();
        for (name, value) in &said {
            if all.iter().any(|(known, _)| known == name) {
                continue;
            }
            let why = why_not.iter().find(|(kept, _)| kept == name).map(|(_, why)| (*why).to_owned());
            let effective = why.is_none().then(|| value.clone());
            let from = self.said_by(name, &said);
            all.push((name, ValueReceipt { requested: Some(value.clone()), effective, from, why }));
        }
        all
    }

    /// The values that every task has; `said` is what its agent says.
    fn values(&self, said: &[(&'static str, Json)]) -> Vec<(Field, ValueReceipt)> {
        let model = &self.choice.receipt;
        // Who was named is no reason; why nobody was, or who among several, is one.
        let is_reasoned = self.choice.by == ChosenBy::Session || !self.choice.runners_up.is_empty();
        let model = ValueReceipt {
            requested: model.requested.as_ref().map(|name| json!(name)),
            effective: Some(json!(model.effective)),
            from: self.model_from(said),
            why: is_reasoned.then(|| model.why.clone()),
        };
        let dropped: Vec<String> =
            self.granted.receipt.dropped.iter().map(|tool| format!("without {}: {}", tool.name, tool.why)).collect();
        let dropped = (!dropped.is_empty()).then(|| dropped.join("; "));
        let tools = self.value(said, (Field::Tools, json!(self.granted.receipt.effective)), None, dropped);
        [(Field::Model, model), tools].into_iter().chain(self.other_values(said)).collect()
    }

    /// Those of them that a receipt tells nowhere else.
    fn other_values(&self, said: &[(&'static str, Json)]) -> Vec<(Field, ValueReceipt)> {
        let value = |effective, called, why| self.value(said, effective, called, why);
        let unreached = &self.granted.unreached;
        let unreached = (!unreached.is_empty()).then(|| unreached.join("; "));
        let isolation = self.entry.isolation.map(|asked| json!(asked));
        let mut values = vec![
            value((Field::MaxTurns, json!(self.max_turns)), None, self.clamped.map(str::to_owned)),
            value((Field::Isolation, json!(self.isolation)), isolation, None),
            value((Field::McpServers, json!(self.granted.servers)), None, unreached),
        ];
        if let Some(seconds) = self.timeout_s {
            values.push(value((Field::Timeout, json!(seconds)), self.entry.timeout.map(|asked| json!(asked)), None));
        }
        values
    }

    /// A value that the task has, with who said it: the call, or somebody before it.
    fn value(
        &self,
        said: &[(&'static str, Json)],
        (field, effective): (Field, Json),
        called: Option<Json>,
        why: Option<String>,
    ) -> (Field, ValueReceipt) {
        let from = if called.is_some() { CALL.to_owned() } else { self.said_by(field.as_str(), said) };
        let asked = || said.iter().find(|(name, _)| *name == field.as_str()).map(|(_, value)| value.clone());
        (field, ValueReceipt { requested: called.or_else(asked), effective: Some(effective), from, why })
    }

    /// Who chose the model.
    fn model_from(&self, said: &[(&'static str, Json)]) -> String {
        match self.choice.by {
            ChosenBy::Call => CALL.to_owned(),
            ChosenBy::Agent => self.said_by(Field::Model.as_str(), said),
            ChosenBy::Session => "session".to_owned(),
        }
    }

    /// Who said what the agent asks for: itself, or one of its fallbacks.
    fn said_by(&self, field: &str, said: &[(&'static str, Json)]) -> String {
        match self.completed.origin(field) {
            Some(fallback) => fallback.to_owned(),
            None if said.iter().any(|(name, _)| *name == field) => agent_origin(&self.completed.agent),
            None => BUILT_IN.to_owned(),
        }
    }
}

/// An agent as somebody who says a value.
pub fn agent_origin(agent: &AgentSpec) -> String {
    match agent.source.path() {
        Some(path) => format!("agent {path}"),
        None => format!("agent ({})", agent.source.as_str()),
    }
}

/// What a value is called in a receipt.
fn receipt_name(field: Field) -> &'static str {
    match field {
        Field::MaxTurns => "max_turns",
        Field::McpServers => "mcp_servers",
        other => other.as_str(),
    }
}

/// Refuses a plan that gives less than was asked for, or something else.
pub(super) fn check_losses(plan: &Plan) -> Result<(), Refusal> {
    let receipt = &plan.receipt;
    let tools = receipt.tools.dropped.iter().map(|tool| format!("the tool `{}`: {}", tool.name, tool.why));
    let kept = receipt.not_honoured.iter().map(|field| format!("`{}`: {}", field.name, field.why));
    let losses: Vec<String> = tools.chain(kept).chain(plan.warnings.iter().cloned()).collect();
    if losses.is_empty() {
        return Ok(());
    }
    let message = format!("the task would not get all that was asked for: {}", losses.join("; "));
    Err(Refusal::invalid(message).hint("change the agent or the call, or leave --strict out"))
}
