//! The models that are known by name. They are data, in `catalogue.toml`; no code knows one of them.

mod user;

use std::sync::LazyLock;

use locum_core::routing::{ModelEntry, Ratings, Supports};
use locum_core::task::plan::ModelName;
use locum_core::usage::Price;
use serde::Deserialize;

use crate::providers;

pub use user::{Problem, merge};

/// What answers without being a provider of anything.
const BUILT_IN: [&str; 3] = ["offline", "scripted", "replay"];

/// The table, read once, when it is first needed.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let table: File = toml::from_str(include_str!("catalogue.toml")).expect("the catalogue is tested to be readable");
    table.into()
});

struct Table {
    models: Vec<ModelEntry>,
    defaults: Vec<ModelName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    provider: String,
    id: String,
    #[serde(default)]
    aliases: Vec<String>,
    /// Whether it is used where a provider is named without a model.
    #[serde(default)]
    default: bool,
    context_window: Option<u64>,
    price: Option<PriceRow>,
    ratings: Option<Ratings>,
    #[serde(default)]
    supports: Supports,
}

/// US dollars per million tokens. A cache that has no price of its own costs what input costs.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl From<PriceRow> for Price {
    fn from(row: PriceRow) -> Self {
        Self {
            input: row.input,
            output: row.output,
            cache_read: row.cache_read.unwrap_or(row.input),
            cache_write: row.cache_write.unwrap_or(row.input),
        }
    }
}

/// The models that are known by name.
pub fn models() -> Vec<ModelEntry> {
    TABLE.models.clone()
}

/// The providers, whether or not a model of theirs is known by name.
pub fn providers() -> Vec<String> {
    let served = providers::all().iter().map(|provider| provider.id.as_str());
    served.chain(BUILT_IN).map(str::to_owned).collect()
}

/// The model of a provider where none is named. A provider without models of its own is its own model, with an empty
/// id; so is one that nobody knows.
pub fn default_model(provider: &str) -> ModelName {
    let default = TABLE.defaults.iter().find(|model| model.provider == provider);
    default.cloned().unwrap_or_else(|| ModelName { provider: provider.to_owned(), id: String::new() })
}

impl From<File> for Table {
    fn from(file: File) -> Self {
        let mut table = Self { models: Vec::new(), defaults: Vec::new() };
        for row in file.model {
            let name = ModelName { provider: row.provider, id: row.id };
            if row.default {
                table.defaults.push(name.clone());
            }
            table.models.push(ModelEntry {
                name,
                aliases: row.aliases,
                context_window: row.context_window,
                price: row.price.map(Price::from),
                ratings: row.ratings,
                supports: row.supports,
            });
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_means_one_model_and_every_provider_with_models_has_one_default() {
        let mut names = BTreeSet::new();
        for ModelEntry { name, aliases, .. } in models() {
            assert!(providers().contains(&name.provider), "{name}");
            for name in aliases.into_iter().chain([name.id]) {
                assert!(names.insert(name.clone()), "{name} is listed twice");
            }
        }
        for provider in providers() {
            let has_models = models().iter().any(|entry| entry.name.provider == provider);
            let defaults = TABLE.defaults.iter().filter(|model| model.provider == provider).count();
            // A server on the user's own machine knows best what its name alone means.
            let is_local = providers::find(&provider).is_some_and(|row| row.is_local);
            assert_eq!(defaults, usize::from(has_models && !is_local), "{provider}");
        }
    }

    #[test]
    fn what_the_rows_say_is_possible() {
        let mut prices = 0;
        for ModelEntry { name, price, ratings, supports, .. } in models() {
            if let Some(Price { input, output, cache_read, cache_write }) = price {
                prices += 1;
                assert!(input <= output && cache_read <= input && cache_write >= input && input >= 0.0, "{name}");
            }
            let Some(Ratings { code, vision, text }) = ratings else { panic!("{name} has no ratings") };
            assert!((1..=5).contains(&code) && (1..=5).contains(&text) && vision <= 5, "{name}");
            assert_eq!(vision > 0, supports.vision, "{name}: who cannot see has no rating for it");
        }
        assert!(prices > 20);
    }

    #[test]
    fn a_provider_without_models_is_its_own_model() {
        assert_eq!(default_model("openai").to_string(), "openai:gpt-5.4");
        assert_eq!(default_model("offline").to_string(), "offline");
    }
}
