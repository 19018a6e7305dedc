//! What is said about models: the verb `models`, and the hints that let locum choose one.

use clap::{Args, Subcommand};
use locum::protocol::request::SpawnEntry;
use locum::routing::Hints;

/// Hints for the choice of a model. With any of them, locum chooses.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RoutingOptions {
    /// What matters more: eco, balanced or premium. With any of these four hints locum chooses the model
    #[arg(long, value_name = "PREFERENCE", value_parser = hint_parser("cost_preference"))]
    pub(crate) cost_preference: Option<Hints>,
    /// What kind of task it is: code, vision or text
    #[arg(long, value_name = "TYPE", value_parser = hint_parser("task_type"))]
    pub(crate) task_type: Option<Hints>,
    /// How hard it is, 1 to 5
    #[arg(long, value_name = "1..5", value_parser = hint_parser("complexity"))]
    pub(crate) complexity: Option<Hints>,
    /// A name, or a part of one, that the model must have
    #[arg(long, value_name = "NAME", value_parser = hint_parser("model_scope"))]
    pub(crate) model_scope: Option<Hints>,
}

impl RoutingOptions {
    /// Writes the hints into an entry that has none of its own.
    pub(crate) fn fill(&self, entry: &mut SpawnEntry) {
        let Hints { cost_preference, task_type, complexity, model_scope } = self.hints();
        entry.cost_preference = entry.cost_preference.or(cost_preference);
        entry.task_type = entry.task_type.or(task_type);
        entry.complexity = entry.complexity.or(complexity);
        entry.model_scope = entry.model_scope.take().or(model_scope);
    }

    /// All of them together.
    pub(crate) fn hints(&self) -> Hints {
        let said = [&self.cost_preference, &self.task_type, &self.complexity, &self.model_scope];
        together(said.into_iter().flatten())
    }
}

/// A reader for one hint; the library knows what each may be.
fn hint_parser(name: &'static str) -> impl Fn(&str) -> Result<Hints, String> + Clone + Send + Sync + 'static {
    move |value| read_hint(name, value)
}

fn read_hint(name: &str, value: &str) -> Result<Hints, String> {
    let mut hints = Hints::default();
    hints.set(name, value).map(|()| hints)
}

/// A hint given as `KEY=VALUE`.
fn parse_pair(text: &str) -> Result<Hints, String> {
    let (name, value) = text.split_once('=').ok_or("write it as KEY=VALUE, for example complexity=2")?;
    read_hint(name.trim(), value.trim())
}

/// Several hints as one; a later one wins.
fn together<'a>(said: impl Iterator<Item = &'a Hints>) -> Hints {
    said.fold(Hints::default(), |all, one| Hints {
        cost_preference: one.cost_preference.or(all.cost_preference),
        task_type: one.task_type.or(all.task_type),
        complexity: one.complexity.or(all.complexity),
        model_scope: one.model_scope.clone().or(all.model_scope),
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List the models that are known by name, and which of them can be used
    List,
    /// Show what is known about a model
    Show {
        /// Its name: provider:model, an id or an alias
        name: String,
    },
    /// Ask the servers on this machine, and those that are configured, which models they have
    Probe,
    /// Show which model routing would choose for a task, and why
    Route(RouteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RouteArgs {
    /// The task
    #[arg(required = true)]
    pub(crate) task: Vec<String>,
    /// cost_preference=, task_type=, complexity= or model_scope=; several times for several
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) hint: Vec<Hints>,
}

impl RouteArgs {
    /// All hints together.
    pub(crate) fn hints(&self) -> Hints {
        together(self.hint.iter())
    }
}
