//! A tool's JSON schema, reduced to what Gemini takes: other words are refused there, and with them the whole request.
//! What is left out only makes the schema wider; the tool itself checks its input.

use serde_json::{Map, Value, json};

/// Words that are kept as they are.
const KEPT: [&str; 11] = [
    "title",
    "description",
    "nullable",
    "required",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
];

/// Formats that are kept, by type.
const FORMATS: [&str; 6] = ["int32", "int64", "float", "double", "date-time", "enum"];

/// References are followed so deep: a schema may refer to itself.
const DEPTH_MAX: usize = 8;

/// The schema of a tool's parameters; none if the tool takes none.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let reduced = reduce(schema, schema, 0);
    let has_fields = reduced["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    has_fields.then_some(reduced)
}

fn reduce(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(words) = schema.as_object() else { return anything() };
    if depth > DEPTH_MAX {
        return anything();
    }
    if let Some(target) = words.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(anything, |target| reduce(target, root, depth + 1));
    }
    let mut reduced = Map::new();
    for word in KEPT {
        if let Some(value) = words.get(word) {
            reduced.insert(word.to_owned(), value.clone());
        }
    }
    take_type(words, &mut reduced);
    take_values(words, &mut reduced);
    take_choices(words, root, depth, &mut reduced);
    if let Some(items) = words.get("items") {
        reduced.insert("items".to_owned(), reduce(items, root, depth + 1));
    } else if reduced.get("type") == Some(&json!("array")) {
        reduced.insert("items".to_owned(), anything());
    }
    if let Some(fields) = words.get("properties").and_then(Value::as_object) {
        let fields: Map<String, Value> =
            fields.iter().map(|(name, field)| (name.clone(), reduce(field, root, depth + 1))).collect();
        keep_known_fields(&mut reduced, &fields);
        reduced.insert("properties".to_owned(), Value::Object(fields));
    }
    if !reduced.contains_key("type") && !reduced.contains_key("anyOf") {
        let kind = if reduced.contains_key("properties") { "object" } else { "string" };
        reduced.insert("type".to_owned(), json!(kind));
    }
    Value::Object(reduced)
}

/// A schema about which nothing can be said.
fn anything() -> Value {
    json!({ "type": "string" })
}

/// One type, and whether the value may be null.
fn take_type(words: &Map<String, Value>, reduced: &mut Map<String, Value>) {
    match words.get("type") {
        Some(Value::Array(kinds)) => {
            if kinds.iter().any(|kind| kind == "null") {
                reduced.insert("nullable".to_owned(), Value::Bool(true));
            }
            if let Some(kind) = kinds.iter().find(|kind| *kind != "null") {
                reduced.insert("type".to_owned(), kind.clone());
            }
        }
        Some(kind) => {
            reduced.insert("type".to_owned(), kind.clone());
        }
        None => {}
    }
    let format = words.get("format").filter(|format| FORMATS.iter().any(|known| *format == known));
    if let Some(format) = format {
        reduced.insert("format".to_owned(), format.clone());
    }
}

/// The values that a text may have; other lists of values are not taken.
fn take_values(words: &Map<String, Value>, reduced: &mut Map<String, Value>) {
    let constant = words.get("const").cloned().map(|value| Value::Array(vec![value]));
    let Some(Value::Array(values)) = words.get("enum").cloned().or(constant) else { return };
    let texts: Vec<Value> =
        values.into_iter().filter(|value| value.as_str().is_some_and(|text| !text.is_empty())).collect();
    let is_text = reduced.get("type").is_none_or(|kind| kind == "string");
    if is_text && !texts.is_empty() {
        reduced.insert("type".to_owned(), json!("string"));
        reduced.insert("enum".to_owned(), Value::Array(texts));
    }
}

/// One of several schemas. Null among them is a word of its own here.
fn take_choices(words: &Map<String, Value>, root: &Value, depth: usize, reduced: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = words.get("anyOf").or_else(|| words.get("oneOf")) else { return };
    if choices.iter().any(|choice| choice["type"] == "null") {
        reduced.insert("nullable".to_owned(), Value::Bool(true));
    }
    let mut others: Vec<Value> = choices
        .iter()
        .filter(|choice| choice["type"] != "null")
        .map(|choice| reduce(choice, root, depth + 1))
        .collect();
    if others.len() > 1 {
        reduced.remove("type");
        reduced.insert("anyOf".to_owned(), Value::Array(others));
    } else if let Some(Value::Object(only)) = others.pop() {
        for (word, value) in only {
            reduced.entry(word).or_insert(value);
        }
    }
}

/// A field that is required must be described.
fn keep_known_fields(reduced: &mut Map<String, Value>, fields: &Map<String, Value>) {
    if let Some(Value::Array(required)) = reduced.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| fields.contains_key(name)));
        if required.is_empty() {
            reduced.remove("required");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_reduced_to_what_is_taken() {
        let cases = [
            (json!({"type": "object", "additionalProperties": false}), None),
            (json!({"type": "object", "properties": {}}), None),
            (
                json!({"$schema": "x", "type": "object", "additionalProperties": false, "required": ["a", "z"],
                       "properties": {"a": {"type": "string", "format": "uri", "default": "x", "examples": []}}}),
                Some(json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}})),
            ),
            (
                json!({"properties": {
                    "a": {"type": ["integer", "null"], "format": "int32", "exclusiveMinimum": 0},
                    "b": {"const": "x"}, "c": {"enum": ["x", "", 3]}, "d": {"type": "integer", "enum": [1, 2]},
                    "e": {"type": "array"}, "f": true}}),
                Some(json!({"type": "object", "properties": {
                    "a": {"type": "integer", "nullable": true, "format": "int32"},
                    "b": {"type": "string", "enum": ["x"]}, "c": {"type": "string", "enum": ["x"]},
                    "d": {"type": "integer"}, "e": {"type": "array", "items": {"type": "string"}},
                    "f": {"type": "string"}}})),
            ),
            (
                json!({"type": "object", "$defs": {"N": {"type": "number"}}, "properties": {
                    "a": {"$ref": "#/$defs/N"}, "b": {"$ref": "#/nowhere"},
                    "c": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/N"}]},
                    "d": {"description": "x", "anyOf": [{"type": "string"}, {"type": "null"}]}}}),
                Some(json!({"type": "object", "properties": {
                    "a": {"type": "number"}, "b": {"type": "string"},
                    "c": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                    "d": {"description": "x", "type": "string", "nullable": true}}})),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(parameters(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_has_an_end() {
        let schema = json!({"type": "object", "properties": {"child": {"$ref": "#"}}});
        assert!(parameters(&schema).unwrap().to_string().len() < 2_000);
    }
}
