//! `locum tools`: the tools as a model sees them.

use locum::protocol::schema::native_tools;
use serde_json::json;

use crate::output::{Exit, Output};

pub(super) fn show(output: Output) -> Exit {
    let tools = native_tools();
    if output.is_json() {
        output.json(&json!({"tools": tools}));
        return Exit::Done;
    }
    for tool in &tools {
        let fields = tool.input_schema["properties"].as_object();
        let names: Vec<&str> = fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect();
        output.answer(&format!("{}\n{}\nfields: {}\n", tool.name, tool.description, names.join(", ")));
    }
    Exit::Done
}
