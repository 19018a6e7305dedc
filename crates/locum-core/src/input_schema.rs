//! The JSON schemas of tools that a user makes, and whether an input fits one. It is the part of the standard that
//! describes a tool's input; a schema with anything else is refused when it is read, so that no keyword is there and not
//! in force.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::limits::{INPUT_SCHEMA_DEPTH_MAX, INPUT_SCHEMA_PARTS_MAX};

/// What a value can be.
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// Keywords that bound a number.
const BOUNDS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// Keywords that bound how long something is.
const SIZES: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];

/// Keywords that offer several schemas.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The other keywords that are in force.
const OTHERS: [&str; 7] = ["type", "properties", "required", "additionalProperties", "items", "enum", "const"];

/// Keywords that say something to people and models alone.
const REMARKS: [&str; 10] =
    ["$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "format", "readOnly", "title"];

/// Why a schema is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSchema {
    /// The keyword that is at fault.
    pub keyword: String,
    /// What is wrong, to be read after the schema's name.
    pub message: String,
}

impl fmt::Display for WrongSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Whether a schema is one that inputs can be held against.
pub fn check(schema: &Value) -> Result<(), WrongSchema> {
    let mut parts = 0;
    check_part(schema, "", 0, &mut parts)
}

fn check_part(schema: &Value, place: &str, depth: usize, parts: &mut usize) -> Result<(), WrongSchema> {
    *parts += 1;
    let wrong = |keyword: &str, why: String| Err(WrongSchema { keyword: keyword.to_owned(), message: why });
    if depth > INPUT_SCHEMA_DEPTH_MAX || *parts > INPUT_SCHEMA_PARTS_MAX {
        return wrong("", format!("has more than {INPUT_SCHEMA_DEPTH_MAX} levels or {INPUT_SCHEMA_PARTS_MAX} parts"));
    }
    let words = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(words) => words,
        _ => return wrong(last(place), format!("has something else than a schema{}", at(place))),
    };
    for (keyword, value) in words {
        if let Err(what) = check_keyword(keyword, value) {
            return wrong(keyword, format!("has `{keyword}`{}, {what}", at(place)));
        }
        for (name, part) in parts_of(keyword, value) {
            let name = name.map_or_else(|| keyword.clone(), str::to_owned);
            let place = if place.is_empty() { name } else { format!("{place}.{name}") };
            check_part(part, &place, depth + 1, parts)?;
        }
    }
    Ok(())
}

/// Whether a keyword has a value that it may have.
fn check_keyword(keyword: &str, value: &Value) -> Result<(), String> {
    let must = |is_so: bool, what: &str| if is_so { Ok(()) } else { Err(format!("which must be {what}")) };
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_list = |is_item: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(is_item));
    let types = || format!("one of {}, or a list of them", TYPES.join(", "));
    match keyword {
        "type" => must(is_type(value) || is_list(&is_type), &types()),
        "properties" => must(value.is_object(), "a table of schemas"),
        "required" => must(is_list(&Value::is_string), "a list of names"),
        "enum" => must(value.as_array().is_some_and(|values| !values.is_empty()), "a list of values"),
        "additionalProperties" | "items" => must(value.is_object() || value.is_boolean(), "a schema"),
        "const" => Ok(()),
        _ if BOUNDS.contains(&keyword) => must(value.is_number(), "a number"),
        _ if SIZES.contains(&keyword) => must(value.is_u64(), "a whole number from 0 on"),
        _ if CHOICES.contains(&keyword) => {
            must(value.as_array().is_some_and(|schemas| !schemas.is_empty()), "a list of schemas")
        }
        _ if REMARKS.contains(&keyword) => Ok(()),
        _ => {
            let known: Vec<&str> = OTHERS.into_iter().chain(BOUNDS).chain(SIZES).chain(CHOICES).collect();
            Err(format!("which is not checked here; what is: {}", known.join(", ")))
        }
    }
}

/// The schemas in a keyword's value, with the fields that they are for.
fn parts_of<'a>(keyword: &str, value: &'a Value) -> Vec<(Option<&'a str>, &'a Value)> {
    match (keyword, value) {
        ("properties", Value::Object(fields)) => {
            fields.iter().map(|(name, schema)| (Some(name.as_str()), schema)).collect()
        }
        ("additionalProperties" | "items", schema) => vec![(None, schema)],
        (_, Value::Array(schemas)) if CHOICES.contains(&keyword) => {
            schemas.iter().map(|schema| (None, schema)).collect()
        }
        _ => Vec::new(),
    }
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" at `{place}`") }
}

fn last(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or(place)
}

/// What does not fit about an input, with the name of the field; none if it fits. The schema must have passed [`check`].
pub fn misfit(schema: &Value, input: &Value) -> Option<String> {
    misfit_at(schema, input, "")
}

fn misfit_at(schema: &Value, value: &Value, place: &str) -> Option<String> {
    let named = if place.is_empty() { "the input".to_owned() } else { format!("`{place}`") };
    let words = match schema {
        Value::Bool(false) => return Some(format!("{named} must not be there")),
        Value::Object(words) => words,
        _ => return None,
    };
    if let Some(what) = wrong_by_itself(words, value) {
        return Some(format!("{named} must be {what}"));
    }
    if let Some(what) = wrong_choice(words, value, place, &named) {
        return Some(what);
    }
    match value {
        Value::Object(fields) => wrong_field(words, fields, place),
        Value::Array(items) => words.get("items").and_then(|schema| {
            items.iter().enumerate().find_map(|(at, item)| misfit_at(schema, item, &format!("{place}[{at}]")))
        }),
        _ => None,
    }
}

/// What a value must be, seen for itself, and is not.
fn wrong_by_itself(words: &Map<String, Value>, value: &Value) -> Option<String> {
    if let Some(kind) = words.get("type").filter(|kind| !is_of(kind, value)) {
        let kinds = match kind {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
            kind => kind.as_str().unwrap_or_default().to_owned(),
        };
        return Some(format!("of the type {kinds}, and is of the type {}", type_of(value)));
    }
    if let Some(Value::Array(values)) = words.get("enum").filter(|values| !has(values, value)) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return Some(format!("one of {}", values.join(", ")));
    }
    if let Some(constant) = words.get("const").filter(|constant| *constant != value) {
        return Some(constant.to_string());
    }
    let bound = |name: &str| words.get(name).and_then(Value::as_f64);
    let wrong_number = value.as_f64().and_then(|number| {
        let out = |name: &str, is_out: &dyn Fn(f64) -> bool| bound(name).filter(|bound| is_out(*bound));
        let least = out("minimum", &|bound| number < bound).map(|bound| format!("at least {bound}"));
        let most = || out("maximum", &|bound| number > bound).map(|bound| format!("at most {bound}"));
        let above = || out("exclusiveMinimum", &|bound| number <= bound).map(|bound| format!("above {bound}"));
        let below = || out("exclusiveMaximum", &|bound| number >= bound).map(|bound| format!("below {bound}"));
        least.or_else(most).or_else(above).or_else(below)
    });
    let length = |(least, most, unit): (&str, &str, &str), length: usize| {
        let limit = |name: &str| words.get(name).and_then(Value::as_u64);
        let length = length as u64;
        let short = limit(least).filter(|limit| length < *limit).map(|limit| format!("at least {limit} {unit} long"));
        short
            .or_else(|| limit(most).filter(|limit| length > *limit).map(|limit| format!("at most {limit} {unit} long")))
    };
    wrong_number.or_else(|| match value {
        Value::String(text) => length(("minLength", "maxLength", "characters"), text.chars().count()),
        Value::Array(items) => length(("minItems", "maxItems", "entries"), items.len()),
        _ => None,
    })
}

/// What is wrong about a value that must fit all, any or one of several schemas.
fn wrong_choice(words: &Map<String, Value>, value: &Value, place: &str, named: &str) -> Option<String> {
    let schemas = |name: &str| words.get(name).and_then(Value::as_array);
    if let Some(wrong) = schemas("allOf").and_then(|all| all.iter().find_map(|one| misfit_at(one, value, place))) {
        return Some(wrong);
    }
    let misfits = |schemas: &[Value]| schemas.iter().map(|one| misfit_at(one, value, place)).collect::<Vec<_>>();
    for (name, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
        let Some(found) = schemas(name).map(|schemas| misfits(schemas)) else { continue };
        let fitting = found.iter().filter(|misfit| misfit.is_none()).count();
        if fitting > most {
            return Some(format!("{named} fits {fitting} of the forms that it may have one of"));
        }
        if fitting == 0 {
            let why: BTreeSet<String> = found.into_iter().flatten().collect();
            return Some(why.into_iter().collect::<Vec<_>>().join(", or "));
        }
    }
    None
}

fn wrong_field(words: &Map<String, Value>, fields: &Map<String, Value>, place: &str) -> Option<String> {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let required = words.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("`{}` is missing", below(missing)));
    }
    let known = words.get("properties").and_then(Value::as_object);
    fields.iter().find_map(|(name, value)| match known.and_then(|known| known.get(name)) {
        Some(schema) => misfit_at(schema, value, &below(name)),
        None => match words.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                let names: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                Some(format!("`{}` is no field of it; those are: {}", below(name), names.join(", ")))
            }
            Some(schema) => misfit_at(schema, value, &below(name)),
            None => None,
        },
    })
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
        kind => match kind.as_str() {
            Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Some("number") => value.is_number(),
            kind => kind == Some(type_of(value)),
        },
    }
}

fn has(values: &Value, value: &Value) -> bool {
    values.as_array().is_some_and(|values| values.contains(value))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let schema = json!({
            "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": {
                "city": {"type": "string", "minLength": 2, "maxLength": 4, "description": "where"},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "unit": {"enum": ["c", "f"]},
                "near": {"type": "array", "maxItems": 2, "items": {"type": "object", "required": ["x"],
                          "properties": {"x": {"type": ["number", "null"]}}}},
                "when": {"anyOf": [{"type": "string"}, {"type": "integer", "exclusiveMinimum": 0}]},
                "one": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
                "all": {"allOf": [{"type": "number"}, {"exclusiveMaximum": 3}]},
                "fixed": {"const": 1}, "never": false,
                "free": {"type": "object", "additionalProperties": {"type": "boolean"}},
            },
        });
        assert_eq!(check(&schema), Ok(()));
        for (input, expected) in [
            (json!({"city": "Rome"}), None),
            (json!({"city": "äöüß", "days": 7.0, "unit": "f", "near": [{"x": null}, {"x": 1.5, "y": 0}]}), None),
            (json!({"city": "Rome", "when": 3, "one": 1.5, "all": 2, "fixed": 1, "free": {"a": true}}), None),
            (json!({}), Some("`city` is missing")),
            (json!([]), Some("the input must be of the type object, and is of the type array")),
            (json!({"city": 3}), Some("`city` must be of the type string, and is of the type number")),
            (json!({"city": "R"}), Some("`city` must be at least 2 characters long")),
            (json!({"city": "Paris"}), Some("`city` must be at most 4 characters long")),
            (json!({"city": "Rome", "days": 0}), Some("`days` must be at least 1")),
            (json!({"city": "Rome", "days": 8}), Some("`days` must be at most 7")),
            (
                json!({"city": "Rome", "days": 1.5}),
                Some("`days` must be of the type integer, and is of the type number"),
            ),
            (json!({"city": "Rome", "unit": "k"}), Some("`unit` must be one of \"c\", \"f\"")),
            (json!({"city": "Rome", "near": [{"x": 1}, {}]}), Some("`near[1].x` is missing")),
            (
                json!({"city": "Rome", "near": [{"x": "1"}]}),
                Some("`near[0].x` must be of the type number or null, and is of the type string"),
            ),
            (
                json!({"city": "Rome", "near": [{"x": 1}, {"x": 1}, {"x": 1}]}),
                Some("`near` must be at most 2 entries long"),
            ),
            (
                json!({"city": "Rome", "when": 0}),
                Some("`when` must be above 0, or `when` must be of the type string, and is of the type number"),
            ),
            (json!({"city": "Rome", "one": 1}), Some("`one` fits 2 of the forms that it may have one of")),
            (json!({"city": "Rome", "all": 3}), Some("`all` must be below 3")),
            (json!({"city": "Rome", "fixed": 2}), Some("`fixed` must be 1")),
            (json!({"city": "Rome", "never": 2}), Some("`never` must not be there")),
            (
                json!({"city": "Rome", "free": {"a": 1}}),
                Some("`free.a` must be of the type boolean, and is of the type number"),
            ),
            (
                json!({"city": "Rome", "town": "x"}),
                Some("`town` is no field of it; those are: all, city, days, fixed, free, near, never, one, unit, when"),
            ),
        ] {
            assert_eq!(misfit(&schema, &input).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn a_schema_with_what_is_not_checked_is_refused() {
        let mut deep = json!({"type": "string"});
        for _ in 0..=INPUT_SCHEMA_DEPTH_MAX {
            deep = json!({"items": deep});
        }
        for (schema, keyword, expected) in [
            (
                json!({"properties": {"a": {"pattern": "x"}}}),
                "pattern",
                "has `pattern` at `a`, which is not checked here; what is: type, ",
            ),
            (json!({"$ref": "#/x"}), "$ref", "has `$ref`, which is not checked here"),
            (json!({"type": "text"}), "type", "has `type`, which must be one of object, array"),
            (json!({"type": ["string", 3]}), "type", "has `type`, which must be"),
            (json!({"required": "a"}), "required", "has `required`, which must be a list of names"),
            (json!({"properties": []}), "properties", "has `properties`, which must be a table of schemas"),
            (json!({"properties": {"a": 3}}), "a", "has something else than a schema at `a`"),
            (json!({"enum": []}), "enum", "has `enum`, which must be a list of values"),
            (
                json!({"items": {"minLength": -1}}),
                "minLength",
                "has `minLength` at `items`, which must be a whole number",
            ),
            (json!({"maximum": "3"}), "maximum", "has `maximum`, which must be a number"),
            (json!({"anyOf": []}), "anyOf", "has `anyOf`, which must be a list of schemas"),
            (deep, "", "has more than 16 levels"),
        ] {
            let wrong = check(&schema).unwrap_err();
            assert!(wrong.message.starts_with(expected), "{wrong}");
            assert_eq!(wrong.keyword, keyword);
        }
    }
}
