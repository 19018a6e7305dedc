//! The words in the place of a model's name that ask for one by what it costs.

use crate::protocol::request::CostPreference;

const KEYWORDS: [(&str, CostPreference); 4] = [
    ("auto-cheap", CostPreference::Eco),
    ("auto-eco", CostPreference::Eco),
    ("auto-balanced", CostPreference::Balanced),
    ("auto-premium", CostPreference::Premium),
];

/// What a keyword asks for, in any case; none for anything else.
pub(super) fn preference(name: &str) -> Option<CostPreference> {
    let name = name.trim();
    KEYWORDS.iter().find(|(keyword, _)| keyword.eq_ignore_ascii_case(name)).map(|(_, preference)| *preference)
}
