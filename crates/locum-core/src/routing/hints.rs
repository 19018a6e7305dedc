//! What is said about the model of a task without naming it: by the call, and by the settings.

use crate::limits;
use crate::protocol::request::{CostPreference, SpawnEntry, TaskType};

/// What a call or a keyword says about the model, as far as it says anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// What matters more, money or quality.
    pub cost_preference: Option<CostPreference>,
    /// What kind of task it is.
    pub task_type: Option<TaskType>,
    /// How hard it is, from 1 to 5.
    pub complexity: Option<u8>,
    /// A name, or a part of one, that the model must have.
    pub model_scope: Option<String>,
}

impl Hints {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes a hint by its name in a request, as a person writes it; what is wrong with it otherwise.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let choices = |words: &[&str]| format!("`{name}` is one of {}, not `{value}`", words.join(", "));
        match name {
            "cost_preference" => {
                let preference = CostPreference::parse(value);
                self.cost_preference = Some(preference.ok_or_else(|| choices(&CostPreference::WORDS))?);
            }
            "task_type" => {
                self.task_type = Some(TaskType::parse(value).ok_or_else(|| choices(&TaskType::WORDS))?);
            }
            "complexity" => {
                let number = value.parse().ok().filter(|number| (1..=limits::COMPLEXITY_MAX).contains(number));
                let wrong = || format!("`complexity` is a number from 1 to {}, not `{value}`", limits::COMPLEXITY_MAX);
                self.complexity = Some(number.ok_or_else(wrong)?);
            }
            "model_scope" if !value.trim().is_empty() => self.model_scope = Some(value.to_owned()),
            "model_scope" => return Err("`model_scope` is empty".to_owned()),
            _ => {
                return Err(format!(
                    "no hint is called `{name}`; they are cost_preference, task_type, complexity and model_scope"
                ));
            }
        }
        Ok(())
    }
}

impl From<&SpawnEntry> for Hints {
    fn from(entry: &SpawnEntry) -> Self {
        Self {
            cost_preference: entry.cost_preference,
            task_type: entry.task_type,
            complexity: entry.complexity,
            model_scope: entry.model_scope.clone(),
        }
    }
}

/// What the settings say about routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingRules {
    /// Whether hints of a call route, and whether the rest of this fills what they leave out.
    pub enabled: bool,
    /// The type of task where nobody names one; the task's own words decide if this is left out.
    pub primary_type: Option<TaskType>,
    /// What matters more where nobody says; balanced if this is left out.
    pub cost_preference: Option<CostPreference>,
}

impl Default for RoutingRules {
    fn default() -> Self {
        Self { enabled: true, primary_type: None, cost_preference: None }
    }
}
