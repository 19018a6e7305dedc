//! A user's own rows over the catalogue: a row for a known model changes what it says, any other adds a model. What is
//! wrong is told with its place.

use std::ops::Range;

use locum_core::limits::COMPLEXITY_MAX;
use locum_core::routing::{ModelEntry, Ratings, Supports};
use locum_core::task::plan::ModelName;
use locum_core::usage::Price;
use serde::Deserialize;
use toml::Spanned;

use super::PriceRow;

/// What is wrong with a catalogue, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<Spanned<Row>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    provider: String,
    id: String,
    aliases: Option<Vec<String>>,
    context_window: Option<u64>,
    price: Option<PriceRow>,
    ratings: Option<Ratings>,
    supports: Option<SupportsRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SupportsRow {
    tools: Option<bool>,
    vision: Option<bool>,
    thinking: Option<bool>,
    tools_as_schema: Option<bool>,
}

/// Puts a user's rows over the models that are known. Each row names one of the `providers`.
///
/// # Errors
///
/// The text is not a catalogue, or a row cannot be meant.
pub fn merge(mut models: Vec<ModelEntry>, text: &str, providers: &[String]) -> Result<Vec<ModelEntry>, Problem> {
    let file: File = toml::from_str(text)
        .map_err(|error| problem(text, error.span().unwrap_or_default(), error.message().to_owned()))?;
    for row in file.model {
        let span = row.span();
        let row = row.into_inner();
        check(&row, providers, &models).map_err(|message| problem(text, span, message))?;
        lay_over(&mut models, row);
    }
    Ok(models)
}

fn problem(text: &str, span: Range<usize>, message: String) -> Problem {
    let before = text.get(..span.start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Problem { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, message }
}

fn check(row: &Row, providers: &[String], models: &[ModelEntry]) -> Result<(), String> {
    if !providers.contains(&row.provider) {
        return Err(format!("no provider is called `{}`; there are {}", row.provider, providers.join(", ")));
    }
    if row.id.trim().is_empty() {
        return Err("`id` is empty".to_owned());
    }
    let name = ModelName { provider: row.provider.clone(), id: row.id.clone() };
    for alias in row.aliases.iter().flatten() {
        let taken = models.iter().find(|entry| entry.name != name && entry.is_called(alias));
        if let Some(taken) = taken {
            return Err(format!("`{alias}` is a name of {} already", taken.name));
        }
    }
    if let Some(PriceRow { input, output, cache_read, cache_write }) = row.price {
        let prices = [Some(input), Some(output), cache_read, cache_write];
        if prices.into_iter().flatten().any(|price| !price.is_finite() || price < 0.0) {
            return Err("a price is a number of US dollars, 0 or more".to_owned());
        }
    }
    if let Some(Ratings { code, vision, text }) = row.ratings
        && (![code, text].iter().all(|rating| (1..=COMPLEXITY_MAX).contains(rating)) || vision > COMPLEXITY_MAX)
    {
        return Err(format!("ratings go from 1 to {COMPLEXITY_MAX}; vision may be 0"));
    }
    Ok(())
}

fn lay_over(models: &mut Vec<ModelEntry>, row: Row) {
    let name = ModelName { provider: row.provider, id: row.id };
    let place = models.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
        models.push(ModelEntry::named(name));
        models.len() - 1
    });
    let entry = &mut models[place];
    if let Some(aliases) = row.aliases {
        entry.aliases = aliases;
    }
    entry.context_window = row.context_window.or(entry.context_window);
    entry.price = row.price.map(Price::from).or(entry.price);
    entry.ratings = row.ratings.or(entry.ratings);
    if let Some(SupportsRow { tools, vision, thinking, tools_as_schema }) = row.supports {
        let now = entry.supports;
        entry.supports = Supports {
            tools: tools.unwrap_or(now.tools),
            vision: vision.unwrap_or(now.vision),
            thinking: thinking.unwrap_or(now.thinking),
            tools_as_schema: tools_as_schema.unwrap_or(now.tools_as_schema),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str) -> Result<Vec<ModelEntry>, String> {
        let known = ModelName { provider: "acme".to_owned(), id: "one".to_owned() };
        let price = Price { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 1.0 };
        let known = ModelEntry { aliases: vec!["uno".to_owned()], price: Some(price), ..ModelEntry::named(known) };
        merge(vec![known], text, &["acme".to_owned()]).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_row_changes_what_it_says_and_adds_what_is_new() {
        let text = r#"
            [[model]]
            provider = "acme"
            id = "one"
            price = { input = 3.0, output = 4.0 }
            supports = { vision = true }

            [[model]]
            provider = "acme"
            id = "two"
            aliases = ["dos"]
            ratings = { code = 1, vision = 0, text = 5 }
        "#;
        let models = merged(text).unwrap();
        assert_eq!(models.len(), 2);
        assert_eq!(models[0].aliases, ["uno"]);
        assert_eq!(models[0].price, Some(Price { input: 3.0, output: 4.0, cache_read: 3.0, cache_write: 3.0 }));
        assert_eq!(models[0].supports, Supports { vision: true, ..Supports::default() });
        assert_eq!((models[1].name.id.as_str(), models[1].price), ("two", None));
        assert_eq!(merged("").unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let cases = [
            ("[[model]]\nprovider = \"acme\"\n", "1:1: missing field `id`"),
            ("[[model]]\nprovider = \"acme\"\nid = \"x\"\ncolour = 1\n", "4:1: unknown field `colour`"),
            ("\n[[model]]\nprovider = \"nobody\"\nid = \"x\"\n", "2:1: no provider is called `nobody`"),
            ("[[model]]\nprovider = \"acme\"\nid = \" \"\n", "1:1: `id` is empty"),
            ("[[model]]\nprovider = \"acme\"\nid = \"x\"\naliases = [\"uno\"]\n", "1:1: `uno` is a name of acme:one"),
            ("[[model]]\nprovider = \"acme\"\nid = \"x\"\nprice = { input = -1.0, output = 1.0 }\n", "1:1: a price"),
            ("[[model]]\nprovider = \"acme\"\nid = \"x\"\nprice = { input = 1.0 }\n", "4:9: missing field `output`"),
            (
                "[[model]]\nprovider = \"acme\"\nid = \"x\"\nratings = { code = 6, vision = 1, text = 1 }\n",
                "1:1: ratings go from 1 to 5",
            ),
            ("[[model]\n", "1:9: "),
            ("model = 3\n", "1:9: "),
        ];
        for (text, expected) in cases {
            let told = merged(text).unwrap_err();
            assert!(told.starts_with(expected), "{text:?}: {told}");
        }
    }
}
