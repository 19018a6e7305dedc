//! The tools as a model sees them: name, description, one flat input schema over all actions.
//!
//! The schema is merged from the same types that requests are parsed into, so the two cannot differ.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent::tool_names;
use crate::protocol::parse::{BOARD_ACTIONS, CONTEXT_ACTIONS, SUBAGENT_ACTIONS};
use crate::protocol::request;

/// A tool as a door shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name to call.
    pub name: String,
    /// When and how to use it.
    pub description: String,
    /// The JSON schema of its input.
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
}

/// The tools of the native face.
pub fn native_tools() -> Vec<ToolDefinition> {
    vec![subagent(), shared_context(), manage_tasks()]
}

/// The tool `subagent`.
pub fn subagent() -> ToolDefinition {
    ToolDefinition {
        name: tool_names::SUBAGENT.to_owned(),
        description: include_str!("subagent.md").trim().to_owned(),
        input_schema: Flat::new(&SUBAGENT_ACTIONS)
            .with::<request::Define>()
            .with::<request::SpawnEntry>()
            .with::<request::Many>()
            .with::<request::MapInputs>()
            .with::<request::Wait>()
            .with::<request::ResultPage>()
            .self_evident(&[
                "agent",
                "label",
                "isolation",
                "max_input_tokens",
                "max_output_tokens",
                "offset",
                "system_prompt_append",
                "task_id",
                "task_type",
            ])
            .into_schema(),
    }
}

/// The tool `shared_context`.
pub fn shared_context() -> ToolDefinition {
    ToolDefinition {
        name: tool_names::SHARED_CONTEXT.to_owned(),
        description: include_str!("shared_context.md").trim().to_owned(),
        input_schema: Flat::new(&CONTEXT_ACTIONS)
            .with::<request::ContextWrite>()
            .with::<request::ContextBatch>()
            .with::<request::ContextHistory>()
            .with::<request::ContextLabel>()
            .self_evident(&["keys", "label", "ttl_seconds", "writable_by"])
            .into_schema(),
    }
}

/// The tool `manage_tasks`.
pub fn manage_tasks() -> ToolDefinition {
    ToolDefinition {
        name: tool_names::MANAGE_TASKS.to_owned(),
        description: include_str!("manage_tasks.md").trim().to_owned(),
        input_schema: Flat::new(&BOARD_ACTIONS)
            .with::<request::BoardUpdate>()
            .with::<request::BoardClaim>()
            .with::<request::BoardList>()
            .with::<request::BoardAdd>()
            .self_evident(&["comment", "description", "subject"])
            .into_schema(),
    }
}

/// One object schema over the fields of several actions.
struct Flat {
    generator: SchemaGenerator,
    properties: Map<String, Value>,
}

impl Flat {
    fn new(actions: &[&str]) -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let mut properties = Map::new();
        properties.insert("action".to_owned(), json!({"type": "string", "enum": actions}));
        Self { generator: settings.into_generator(), properties }
    }

    fn with<T: JsonSchema>(mut self) -> Self {
        let mut schema = self.generator.subschema_for::<T>().to_value();
        let Some(Value::Object(fields)) = schema.get_mut("properties").map(Value::take) else { return self };
        for (name, mut field) in fields {
            flatten(&mut field);
            self.properties.entry(name).or_insert(field);
        }
        self
    }

    /// Leaves out the words about fields whose names say it all: every token is paid for in every request.
    fn self_evident(mut self, names: &[&str]) -> Self {
        for name in names {
            if let Some(Value::Object(field)) = self.properties.get_mut(*name) {
                field.remove("description");
            }
        }
        self
    }

    fn into_schema(self) -> Value {
        json!({
            "type": "object",
            "properties": self.properties,
            "required": ["action"],
            "additionalProperties": false,
        })
    }
}

/// Leaves out of a field's schema what says nothing to a model: every token is paid for in every request, an optional
/// field is known by not being required, and a number's format helps nobody.
pub fn strip_noise(field: &mut Value) {
    let Value::Object(object) = field else { return };
    for noise in ["title", "format", "minimum", "maximum", "default"] {
        object.remove(noise);
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
}

/// A field as the flat schema shows it; the entries of `tasks` are described once, at the top level.
fn flatten(field: &mut Value) {
    strip_noise(field);
    let Value::Object(object) = field else { return };
    if let Some(Value::Array(choices)) = object.get("anyOf")
        && let Some(Value::Object(choice)) = choices.iter().find(|choice| choice["type"] != "null").cloned()
    {
        object.remove("anyOf");
        for (name, value) in choice {
            object.entry(name).or_insert(value);
        }
    }
    name_choices(object);
    if let Some(items) = object.get("items").filter(|items| items["type"] == "object") {
        let short = json!({"type": "object", "required": items["required"]});
        object.insert("items".to_owned(), short);
    }
}

/// `oneOf` constants become one `enum`.
fn name_choices(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let names: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(names) = names {
        object.remove("oneOf");
        object.insert("type".to_owned(), json!("string"));
        object.insert("enum".to_owned(), Value::Array(names));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_tools_as_a_model_sees_them() {
        insta::assert_json_snapshot!("native_tools", native_tools());
    }
}
