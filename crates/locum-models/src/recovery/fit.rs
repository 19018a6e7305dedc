//! Whether a value fits a JSON schema, as far as the schemas of tools go. It is stricter than the standard in one
//! point: a field that a schema does not name does not fit, because a text that only looks like a call often has some.

use serde_json::Value;

/// Schemas are looked into so deep: one may be nested without end.
const DEPTH_MAX: usize = 32;

/// Whether a value fits a schema.
pub(super) fn fits(value: &Value, schema: &Value) -> bool {
    fits_at(value, schema, 0)
}

fn fits_at(value: &Value, schema: &Value, depth: usize) -> bool {
    let Some(words) = schema.as_object() else { return schema != &Value::Bool(false) };
    // What cannot be judged here is judged by the tool.
    if depth > DEPTH_MAX || words.contains_key("$ref") {
        return true;
    }
    let one_of = words.get("anyOf").or_else(|| words.get("oneOf")).and_then(Value::as_array);
    let values = words.get("enum").and_then(Value::as_array);
    words.get("type").is_none_or(|kind| is_of_type(value, kind))
        && values.is_none_or(|values| values.contains(value))
        && words.get("const").is_none_or(|constant| constant == value)
        && one_of.is_none_or(|schemas| schemas.iter().any(|schema| fits_at(value, schema, depth + 1)))
        && fields_fit(value, schema, depth)
        && items_fit(value, schema, depth)
}

fn is_of_type(value: &Value, kind: &Value) -> bool {
    match kind {
        Value::String(kind) => match kind.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            _ => true,
        },
        Value::Array(kinds) => kinds.iter().any(|kind| is_of_type(value, kind)),
        _ => true,
    }
}

fn fields_fit(value: &Value, schema: &Value, depth: usize) -> bool {
    let Some(fields) = value.as_object() else { return true };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let known = schema["properties"].as_object();
    let is_open = schema["additionalProperties"].as_bool() == Some(true) || schema["additionalProperties"].is_object();
    let field_fits = |(name, value): (&String, &Value)| match known.and_then(|known| known.get(name)) {
        Some(schema) => fits_at(value, schema, depth + 1),
        None => is_open || known.is_none(),
    };
    required.into_iter().all(|name| fields.contains_key(name)) && fields.iter().all(field_fits)
}

fn items_fit(value: &Value, schema: &Value, depth: usize) -> bool {
    match (value.as_array(), schema.get("items")) {
        (Some(items), Some(schema)) => items.iter().all(|item| fits_at(item, schema, depth + 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_fit_their_schemas_and_no_others() {
        let schema = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": ["integer", "null"]},
                "c": {"type": "array", "items": {"type": "number"}}, "d": {"anyOf": [{"const": 1}, {"type": "string"}]},
                "e": {"type": "object", "additionalProperties": true, "properties": {"f": {"type": "boolean"}}},
                "g": {"$ref": "#/anything"}, "h": false, "i": {"type": "object"},
            },
        });
        for value in [
            json!({"a": "x"}),
            json!({"a": "y", "b": 3, "c": [1, 2.5], "d": 1, "e": {"f": true, "z": 1}, "g": [], "i": {"any": 1}}),
            json!({"a": "x", "b": null, "d": "text"}),
        ] {
            assert!(fits(&value, &schema), "{value}");
        }
        for value in [
            json!({}),
            json!([]),
            json!({"a": "z"}),
            json!({"a": "x", "b": 1.5}),
            json!({"a": "x", "c": ["1"]}),
            json!({"a": "x", "d": 2}),
            json!({"a": "x", "e": {"f": 1}}),
            json!({"a": "x", "h": 1}),
            json!({"a": "x", "unknown": 1}),
        ] {
            assert!(!fits(&value, &schema), "{value}");
        }
    }
}
