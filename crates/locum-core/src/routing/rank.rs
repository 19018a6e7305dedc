//! Which of the models that can be had fits a task best: a score for each, and why the others were passed over.

use crate::protocol::request::{CostPreference, TaskType};
use crate::routing::{Catalogue, Hints, ModelEntry, RoutingRules, classify};
use crate::task::plan::ModelName;
use crate::usage::Price;

/// What a task needs of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What kind of task it is.
    pub task_type: TaskType,
    /// How hard it is, from 1 to 5.
    pub complexity: u8,
    /// What matters more, money or quality.
    pub preference: CostPreference,
    /// A name, or a part of one, that the model must have.
    pub scope: Option<String>,
    /// Whether it must call tools.
    pub tools: bool,
    /// Where each of these comes from, in words.
    pub because: String,
}

impl Need {
    /// What a task needs: what the hints say, else the settings, else its own words.
    pub fn of(task: &str, hints: &Hints, rules: &RoutingRules, tools: bool) -> Self {
        let judged = classify::judge(task);
        let filled = |value: Option<TaskType>| value.filter(|_| rules.enabled);
        let (task_type, by_type) = match (hints.task_type, filled(rules.primary_type), judged.task_type) {
            (Some(hint), _, _) => (hint, "the hint"),
            (None, Some(primary), _) => (primary, "routing.primary_type"),
            (None, None, Some(judged)) => (judged, "the task's words"),
            (None, None, None) => (TaskType::Code, "the default"),
        };
        let (complexity, by_complexity) = match hints.complexity {
            Some(hint) => (hint, "the hint"),
            None => (judged.complexity, "the task's words"),
        };
        let (preference, by_preference) = match (hints.cost_preference, rules.cost_preference.filter(|_| rules.enabled))
        {
            (Some(hint), _) => (hint, "as asked"),
            (None, Some(setting)) => (setting, "routing.cost_preference"),
            (None, None) => (CostPreference::Balanced, "the default"),
        };
        let because = format!(
            "{} by {by_type}, complexity {complexity} by {by_complexity}, {} by {by_preference}",
            task_type.as_str(),
            preference.as_str()
        );
        Self { task_type, complexity, preference, scope: hints.model_scope.clone(), tools, because }
    }
}

/// A model that can do the task.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The model.
    pub name: ModelName,
    /// How good it is at this type of task.
    pub rating: u8,
    /// What it costs, where that is known.
    pub price: Option<Price>,
    /// The higher the better; 100 fits and costs nothing.
    pub score: f64,
}

/// The models, judged for a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// What the task needs.
    pub need: Need,
    /// Those that can do it, best first.
    pub candidates: Vec<Candidate>,
    /// Those that cannot, each with the reason.
    pub passed_over: Vec<(ModelName, String)>,
}

/// Judges every model of the catalogue.
pub fn rank(need: Need, catalogue: &Catalogue) -> Ranking {
    let mut ranking = Ranking { need, candidates: Vec::new(), passed_over: Vec::new() };
    for entry in &catalogue.models {
        match judge(entry, &ranking.need, catalogue) {
            Ok(candidate) => ranking.candidates.push(candidate),
            Err(why) => ranking.passed_over.push((entry.name.clone(), why)),
        }
    }
    // The order of the catalogue decides between equals.
    ranking.candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranking
}

fn judge(entry: &ModelEntry, need: &Need, catalogue: &Catalogue) -> Result<Candidate, String> {
    if let Some(scope) = need.scope.as_ref().filter(|scope| !is_within(entry, scope)) {
        return Err(format!("its names do not have `{scope}` in them"));
    }
    if !catalogue.is_reachable(&entry.name) {
        return Err("no key and no server for it is set".to_owned());
    }
    let Some(ratings) = entry.ratings else { return Err("it has no ratings".to_owned()) };
    if need.tools && !entry.supports.tools && !entry.supports.tools_as_schema {
        return Err("it cannot call tools".to_owned());
    }
    if need.task_type == TaskType::Vision && !entry.supports.vision {
        return Err("it cannot see".to_owned());
    }
    let rating = match need.task_type {
        TaskType::Code => ratings.code,
        TaskType::Vision => ratings.vision,
        TaskType::Text => ratings.text,
    };
    Ok(Candidate { name: entry.name.clone(), rating, price: entry.price, score: score(need, rating, entry.price) })
}

/// Whether one of a model's names has this in it, in any case.
pub(super) fn is_within(entry: &ModelEntry, scope: &str) -> bool {
    let scope = scope.trim().to_lowercase();
    let names = [entry.name.to_string(), entry.name.to_string().replacen(':', "/", 1)];
    names.iter().chain(&entry.aliases).any(|name| name.to_lowercase().contains(&scope))
}

/// A rating below what the task needs outweighs everything else; what is left of 100 is fit and money, as the
/// preference weighs them.
fn score(need: &Need, rating: u8, price: Option<Price>) -> f64 {
    const SHORTFALL: f64 = 50.0;
    const EXCESS: f64 = 10.0;
    let (rating, complexity) = (f64::from(rating), f64::from(need.complexity));
    let shortfall = (complexity - rating).max(0.0);
    let misfit = match need.preference {
        CostPreference::Eco => shortfall * SHORTFALL,
        CostPreference::Balanced => shortfall * SHORTFALL + (rating - complexity).max(0.0) * EXCESS,
        CostPreference::Premium => (f64::from(crate::limits::COMPLEXITY_MAX) - rating) * SHORTFALL,
    };
    100.0 - misfit - cost_points(price)
}

/// From 0 for a model that costs nothing to nearly 10; a model of unknown price may cost anything.
fn cost_points(price: Option<Price>) -> f64 {
    const POINTS_MAX: f64 = 10.0;
    /// The price that costs half of the points: it sets apart cheap models as well as dear ones.
    const HALF: f64 = 5.0;
    match price.map(|price| price.typical()) {
        None => POINTS_MAX,
        Some(price) => POINTS_MAX * price / (price + HALF),
    }
}
