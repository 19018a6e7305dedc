//! The figures of a run: as a table for people, as JSON for the next comparison.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One figure with what it may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The value, in `unit`.
    pub(crate) value: f64,
    /// What the value counts.
    pub(crate) unit: String,
    /// What it may be at the most, where something was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) most: Option<f64>,
}

/// All figures of a run, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// By name; the names sort into groups.
    pub(crate) figures: BTreeMap<String, Figure>,
    /// What should be measured and is not yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_measured: Vec<String>,
    /// How busy the machine was: it decides what the figures are worth.
    #[serde(default)]
    pub(crate) load_before: String,
    #[serde(default)]
    pub(crate) load_after: String,
}

impl Report {
    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &str, most: Option<f64>) {
        self.figures.insert(name.to_owned(), Figure { value, unit: unit.to_owned(), most });
    }

    /// Notes a figure that is not measured yet.
    pub(crate) fn leave_out(&mut self, name: &str) {
        self.not_measured.push(name.to_owned());
    }

    /// The figures that are above what was promised.
    pub(crate) fn missed(&self) -> Vec<&str> {
        let over = |figure: &Figure| figure.most.is_some_and(|most| figure.value > most);
        self.figures.iter().filter(|(_, figure)| over(figure)).map(|(name, _)| name.as_str()).collect()
    }

    /// A table, with the change since an older run where there is one.
    pub(crate) fn table(&self, old: Option<&Self>) -> String {
        let mut text = String::new();
        for (name, figure) in &self.figures {
            let most = figure.most.map(|most| format!("  (at most {most})")).unwrap_or_default();
            let mark = if figure.most.is_some_and(|most| figure.value > most) { "  MISSED" } else { "" };
            let before = old.and_then(|old| old.figures.get(name)).filter(|before| before.value != 0.0);
            let change = before.map(|before| format!("  [{:+.0} %]", (figure.value / before.value - 1.0) * 100.0));
            // Writing to a text cannot fail.
            writeln!(
                text,
                "{name:<64} {:>10.3} {}{most}{}{mark}",
                figure.value,
                figure.unit,
                change.unwrap_or_default()
            )
            .ok();
        }
        for name in &self.not_measured {
            writeln!(text, "{name:<64} {:>10}", "not measured yet").ok();
        }
        text
    }
}
