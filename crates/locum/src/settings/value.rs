//! What a setting may be: values as variables and flags spell them, and whether a value fits its setting.

use locum_core::permission::Rule;
use toml::Value;

use super::table::{Key, Kind};

/// How a limit on money is taken away: it must be spelled.
const UNLIMITED: &str = "unlimited";

/// The value that a text means for a setting.
pub(super) fn read(key: &Key, text: &str) -> Result<Value, String> {
    let value = match key.kind {
        Kind::Text | Kind::Choice(_) => Ok(Value::String(text.to_owned())),
        Kind::List | Kind::Rules => Ok(Value::Array(read_list(text))),
        Kind::Switch => read_switch(text).map(Value::Boolean).ok_or("must be true or false"),
        Kind::Money => read_money(text).ok_or("must be an amount of US dollars or \"unlimited\""),
        Kind::Number { .. } => text.trim().parse().map(Value::Integer).map_err(|_| "must be a whole number"),
    };
    let value = value.map_err(|why| format!("`{}` {why}, not `{text}`", key.name))?;
    check(key, &value)?;
    Ok(value)
}

fn read_list(text: &str) -> Vec<Value> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| Value::String(item.to_owned())).collect()
}

fn read_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// An amount of money as a variable or a flag gives it.
fn read_money(text: &str) -> Option<Value> {
    let text = text.trim();
    if text == UNLIMITED {
        return Some(Value::String(text.to_owned()));
    }
    text.parse().ok().map(Value::Float)
}

/// Whether a setting may have this value.
pub(super) fn check(key: &Key, value: &Value) -> Result<(), String> {
    let name = key.name;
    match (key.kind, value) {
        (Kind::Text, Value::String(_)) | (Kind::Switch, Value::Boolean(_)) => Ok(()),
        (Kind::Choice(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(()),
        (Kind::Choice(words), _) => Err(format!("`{name}` must be one of {}", words.join(", "))),
        (Kind::List, Value::Array(items)) if items.iter().all(Value::is_str) => Ok(()),
        (Kind::Rules, Value::Array(items)) if items.iter().all(Value::is_str) => {
            let wrong = items.iter().filter_map(Value::as_str).find_map(|text| Rule::parse(text).err());
            wrong.map_or(Ok(()), |wrong| Err(format!("`{name}`: {wrong}")))
        }
        (Kind::List | Kind::Rules, _) => Err(format!("`{name}` must be a list of texts in quotes")),
        (Kind::Money, Value::String(word)) if word == UNLIMITED => Ok(()),
        (Kind::Money, Value::Float(amount)) if amount.is_finite() && *amount >= 0.0 => Ok(()),
        (Kind::Money, Value::Integer(amount)) if *amount >= 0 => Ok(()),
        (Kind::Money, _) => Err(format!("`{name}` must be an amount of US dollars or \"unlimited\"")),
        (Kind::Number { least, most }, Value::Integer(number)) if (least..=most).contains(number) => Ok(()),
        (Kind::Number { least, most }, Value::Integer(number)) => {
            Err(format!("`{name}` is {number}; it must be from {least} to {most}"))
        }
        (Kind::Text, _) => Err(format!("`{name}` must be a text in quotes")),
        (Kind::Switch, _) => Err(format!("`{name}` must be true or false")),
        (Kind::Number { .. }, _) => Err(format!("`{name}` must be a whole number")),
    }
}
