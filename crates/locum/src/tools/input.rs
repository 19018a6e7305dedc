//! From an input type to what a model is told about a tool, and from what a model wrote back to that type.

use locum_core::protocol::schema::{ToolDefinition, strip_noise};
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::bounded;

/// Bytes of a complaint about an input: serde quotes the value, and the value may be megabytes.
const COMPLAINT_BYTES_MAX: usize = 400;

/// What a model is told about a tool whose input is an `I`.
pub(crate) fn spec<I: JsonSchema>(name: &str, description: &str, repeat: Repeat) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.trim().to_owned(), input_schema: schema::<I>(), repeat }
}

/// The same of a tool that a face shows.
pub(crate) fn definition<I: JsonSchema>(name: &str, description: &str) -> ToolDefinition {
    let description = description.trim().to_owned();
    ToolDefinition { name: name.to_owned(), description, input_schema: schema::<I>() }
}

/// The input as its type, or what the model is told about its mistake.
pub(crate) fn parse<I: DeserializeOwned>(input: Value) -> Result<I, ToolOutput> {
    let Value::Object(fields) = input else {
        return Err(ToolOutput::failed("the input must be a JSON object with the fields of the tool's schema"));
    };
    // The type is tried on a copy, because the original is needed to find the field at fault.
    let complaint = match beginning::<I>(&fields, fields.len()) {
        Ok(input) => return Ok(input),
        Err(complaint) => complaint,
    };
    // serde names the field that is missing or unknown, but not the one whose value is wrong. It reads the fields in
    // order and stops at the first bad one, so the shortest beginning with the same complaint ends with that field.
    let field = if complaint.contains("field `") {
        None
    } else {
        let ends_with_it = |count: &usize| beginning::<I>(&fields, *count).is_err_and(|other| other == complaint);
        let count = (1..=fields.len()).find(ends_with_it);
        count.and_then(|count| fields.keys().nth(count - 1))
    };
    let complaint = bounded::cut(complaint.as_bytes(), COMPLAINT_BYTES_MAX);
    Err(ToolOutput::failed(match field {
        Some(field) => format!("invalid input: `{field}`: {complaint}"),
        None => format!("invalid input: {complaint}"),
    }))
}

/// The first `count` fields as an `I`, or serde's complaint about them.
fn beginning<I: DeserializeOwned>(fields: &Map<String, Value>, count: usize) -> Result<I, String> {
    let beginning: Map<String, Value> =
        fields.iter().take(count).map(|(name, value)| (name.clone(), value.clone())).collect();
    I::deserialize(Value::Object(beginning)).map_err(|error| error.to_string())
}

fn schema<I: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<I>().to_value();
    if let Value::Object(object) = &mut schema {
        // The tool's own description says it better.
        object.remove("title");
        object.remove("description");
        if let Some(Value::Object(fields)) = object.get_mut("properties") {
            fields.values_mut().for_each(strip_noise);
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Not shown to a model.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// The first.
        first: String,
        /// The second.
        second: Option<NonZero<u32>>,
        third: Option<bool>,
    }

    #[test]
    fn a_schema_says_only_what_a_model_needs() {
        assert_eq!(
            schema::<Sample>(),
            json!({
                "type": "object",
                "properties": {
                    "first": {"type": "string", "description": "The first."},
                    "second": {"type": "integer", "description": "The second."},
                    "third": {"type": "boolean"},
                },
                "required": ["first"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_wrong_input_names_its_field() {
        for (input, expected) in [
            (json!("{\"first\":"), "the input must be a JSON object with the fields of the tool's schema"),
            (json!({}), "invalid input: missing field `first`"),
            (
                json!({"first": "a", "other": 1}),
                "invalid input: unknown field `other`, expected one of `first`, `second`, `third`",
            ),
            (json!({"first": 1}), "invalid input: `first`: invalid type: integer `1`, expected a string"),
            (
                json!({"first": "a", "second": 0}),
                "invalid input: `second`: invalid value: integer `0`, expected a nonzero u32",
            ),
            (
                json!({"first": "a", "second": "x", "third": "x"}),
                "invalid input: `second`: invalid type: string \"x\", expected a nonzero u32",
            ),
            (
                json!({"second": null, "third": "x"}),
                "invalid input: `third`: invalid type: string \"x\", expected a boolean",
            ),
        ] {
            assert_eq!(parse::<Sample>(input.clone()), Err(ToolOutput::failed(expected)), "{input}");
        }
    }

    #[test]
    fn a_complaint_does_not_repeat_megabytes() {
        let output = parse::<Sample>(json!({"first": "a", "third": "x".repeat(1 << 20)})).unwrap_err();
        assert!(output.text.len() < 600, "{}", output.text.len());
    }

    #[test]
    fn absent_and_null_are_the_same() {
        let expected = Sample { first: "a".to_owned(), second: None, third: None };
        assert_eq!(parse(json!({"first": "a", "second": null})), Ok(expected));
    }
}
