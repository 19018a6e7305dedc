//! Settings about command tools: `tools.NAME.command` and the like. Their names are not known beforehand, so they are
//! checked by the fields that a tool may have. Only the user's own file may hold them.

use std::path::Path;

use locum_core::agent::roster::nearest;
use locum_core::agent::tool_names::{self, OURS};
use locum_core::transcript::Repeat;
use locum_core::{input_schema, limits};
use serde_json::json;
use toml::Value;

use super::{Origin, Settings, SettingsError};

/// The table of all command tools in a settings file.
pub(super) const TOOLS: &str = "tools";

/// What may be said about a tool.
const FIELDS: [&str; 5] = ["description", "command", "schema", "timeout", "repeat"];

/// A tool that the user has made out of a command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandToolSettings {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) command: ToolCommand,
    /// The JSON schema of its input.
    pub(crate) schema: serde_json::Value,
    /// How long a call may take.
    pub(crate) seconds: u64,
    pub(crate) repeat: Repeat,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolCommand {
    /// A line for the shell.
    Line(String),
    /// A program with its arguments.
    Program(Vec<String>),
}

impl Settings {
    /// Takes the command tools of a settings file.
    pub(super) fn take_command_tools(&mut self, value: &Value, path: &Path, text: &str) -> Result<(), SettingsError> {
        let refused =
            |line: usize, message: String| Err(SettingsError { place: format!("{}:{line}", path.display()), message });
        let Some(all) = value.as_table() else {
            return refused(line_of(text, TOOLS, None), "`tools` must be a table, as in [tools.NAME]".to_owned());
        };
        for (name, value) in all {
            if let Err(why) = check_name(name) {
                return refused(line_of(text, name, None), why);
            }
            let Some(fields) = value.as_table() else {
                let message = format!("`tools.{name}` must be a table, as in [tools.{name}]");
                return refused(line_of(text, name, None), message);
            };
            for (field, value) in fields {
                if let Err(wrong) = check_field(name, field, value) {
                    let line = line_of(text, name, Some(field));
                    return refused(line_of_word(text, line, &wrong.word), wrong.message);
                }
            }
            for field in ["description", "command"] {
                if !fields.contains_key(field) {
                    return refused(line_of(text, name, None), format!("`tools.{name}` needs a {field}"));
                }
            }
            for (field, value) in fields {
                self.put_any(format!("{TOOLS}.{name}.{field}"), value.clone(), Origin::File(path.to_owned()));
            }
        }
        Ok(())
    }

    /// The tools that the user has made out of commands.
    pub(crate) fn command_tools(&self) -> Vec<CommandToolSettings> {
        let named = self.all().iter().filter_map(|setting| setting.name.strip_prefix("tools."));
        let mut names: Vec<&str> = named.filter_map(|rest| rest.split('.').next()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.command_tool(name)).collect()
    }

    /// Their names and descriptions.
    pub fn described_tools(&self) -> Vec<(String, String)> {
        self.command_tools().into_iter().map(|tool| (tool.name, tool.description)).collect()
    }

    fn command_tool(&self, name: &str) -> Option<CommandToolSettings> {
        let field = |field: &str| self.value(&format!("{TOOLS}.{name}.{field}")).map(|setting| &setting.value);
        let seconds = field("timeout").and_then(Value::as_integer).and_then(|seconds| u64::try_from(seconds).ok());
        Some(CommandToolSettings {
            name: name.to_owned(),
            description: field("description")?.as_str()?.trim().to_owned(),
            command: command_of(field("command")?)?,
            schema: field("schema").map_or_else(|| Ok(json!({"type": "object"})), schema_of).ok()?,
            seconds: seconds.unwrap_or(limits::COMMAND_SECONDS_DEFAULT),
            repeat: if field("repeat").and_then(Value::as_str) == Some("safe") { Repeat::Safe } else { Repeat::Unsafe },
        })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_accepted = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    if name.len() > limits::NAME_CHARS_MAX || !name.starts_with(|char: char| char.is_ascii_lowercase()) {
        return Err(format!("`{name:.80}` cannot be a tool's name: it begins with a-z and has at most 64 characters"));
    }
    if !name.chars().all(is_accepted) {
        return Err(format!("`{name}` cannot be a tool's name: use a-z, 0-9 and _"));
    }
    let is_ours = OURS.contains(&name) || tool_names::canonical(name) != name || name == "job";
    if is_ours || name.starts_with("mcp__") {
        return Err(format!("`{name}` is a tool of locum's own: choose another name"));
    }
    Ok(())
}

/// What is wrong about a field, and the word in it that is at fault.
struct WrongField {
    word: String,
    message: String,
}

impl From<String> for WrongField {
    fn from(message: String) -> Self {
        Self { word: String::new(), message }
    }
}

fn check_field(tool: &str, field: &str, value: &Value) -> Result<(), WrongField> {
    let name = format!("{TOOLS}.{tool}.{field}");
    let must = |what: &str| Err(format!("`{name}` must be {what}").into());
    match (field, value) {
        ("description", Value::String(text)) if !text.trim().is_empty() => Ok(()),
        ("description", _) => must("a text in quotes that says when to use the tool"),
        ("command", value) if command_of(value).is_some() => Ok(()),
        ("command", _) => must("a command line in quotes, or a list of a program and its arguments"),
        ("schema", value) => {
            let schema = schema_of(value).map_err(|why| format!("`{name}` {why}"))?;
            input_schema::check(&schema)
                .map_err(|wrong| WrongField { message: format!("`{name}` {wrong}"), word: wrong.keyword })
        }
        ("timeout", Value::Integer(seconds)) if (1..=limits::COMMAND_SECONDS_MAX as i64).contains(seconds) => Ok(()),
        ("timeout", _) => must(&format!("a number of seconds from 1 to {}", limits::COMMAND_SECONDS_MAX)),
        ("repeat", Value::String(word)) if matches!(word.as_str(), "safe" | "unsafe") => Ok(()),
        ("repeat", _) => must("\"safe\", if a call may be made twice, or \"unsafe\""),
        _ => {
            let near = nearest(field, FIELDS.iter(), |known| known);
            let hint = near.first().map_or_else(
                || format!("the settings of a tool are {}", FIELDS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            Err(format!("unknown setting `{name}`; {hint}").into())
        }
    }
}

fn command_of(value: &Value) -> Option<ToolCommand> {
    match value {
        Value::String(line) if !line.trim().is_empty() => Some(ToolCommand::Line(line.clone())),
        Value::Array(words) if !words.is_empty() => {
            let words: Option<Vec<String>> = words.iter().map(|word| Some(word.as_str()?.to_owned())).collect();
            words.filter(|words| !words[0].is_empty()).map(ToolCommand::Program)
        }
        _ => None,
    }
}

/// A schema as a table, or as a text of JSON.
fn schema_of(value: &Value) -> Result<serde_json::Value, String> {
    let schema = match value {
        Value::Table(table) => serde_json::to_value(table).map_err(|error| format!("cannot be JSON: {error}"))?,
        Value::String(text) => serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?,
        _ => return Err("must be a table or a text of JSON".to_owned()),
    };
    let Some(object) = schema.as_object() else { return Err("must be a JSON object".to_owned()) };
    match object.get("type").and_then(serde_json::Value::as_str) {
        Some("object") => Ok(schema),
        _ => Err("must have the type \"object\": a tool's input is one".to_owned()),
    }
}

/// The line of a tool's table, or of a field in it; 1 if it is written in another way.
fn line_of(text: &str, tool: &str, field: Option<&str>) -> usize {
    let begins = |line: &str, word: &str| line.trim_start().starts_with(word);
    let header = text
        .lines()
        .position(|line| begins(line, &format!("[tools.{tool}")) || begins(line, &format!("[tools.\"{tool}")));
    let start = header.or_else(|| text.lines().position(|line| begins(line, tool))).unwrap_or(0);
    let within = field.and_then(|field| {
        text.lines().skip(start).position(|line| begins(line, field) || line.contains(&format!(".{field}]")))
    });
    start + within.unwrap_or(0) + 1
}

/// The first line from this one on that has a word; this one where none has it.
fn line_of_word(text: &str, line: usize, word: &str) -> usize {
    let found = text.lines().skip(line - 1).position(|line| !word.is_empty() && line.contains(word));
    line + found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::SettingsFile;
    use super::super::environment::Environment;
    use super::*;

    fn resolve(text: &str) -> Result<Settings, String> {
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text };
        Settings::resolve(&[file], &Environment::new([], PathBuf::from("/")), &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_tool_is_described_by_its_fields() {
        let text = "[tools.weather]\ndescription = \"Says the weather\"\ncommand = [\"weather\", \"--json\"]\ntimeout = 5\n\
                    repeat = \"safe\"\n[tools.weather.schema]\ntype = \"object\"\nrequired = [\"city\"]\n\
                    [tools.weather.schema.properties.city]\ntype = \"string\"\n\
                    [tools.note]\ndescription = \"Notes\"\ncommand = \"cat >> notes\"\n\
                    [tools.other]\ndescription = \"Other\"\ncommand = \"cat\"\nschema = '{\"type\": \"object\", \"title\": \"X\"}'";
        let tools = resolve(text).unwrap().command_tools();
        let note = CommandToolSettings {
            name: "note".to_owned(),
            description: "Notes".to_owned(),
            command: ToolCommand::Line("cat >> notes".to_owned()),
            schema: json!({"type": "object"}),
            seconds: 120,
            repeat: Repeat::Unsafe,
        };
        let weather = CommandToolSettings {
            name: "weather".to_owned(),
            description: "Says the weather".to_owned(),
            command: ToolCommand::Program(vec!["weather".to_owned(), "--json".to_owned()]),
            schema: json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}),
            seconds: 5,
            repeat: Repeat::Safe,
        };
        assert_eq!(tools[0], note);
        assert_eq!(tools[1].schema, json!({"type": "object", "title": "X"}));
        assert_eq!(tools[2], weather);
    }

    #[test]
    fn what_is_wrong_about_a_tool_is_said_with_its_place() {
        let tool = |fields: &str| format!("[limits]\nmax_turns = 3\n[tools.x]\n{fields}");
        let whole = "description = \"X\"\ncommand = \"x\"\n";
        for (text, expected) in [
            ("tools = 3".to_owned(), "c.toml:1: `tools` must be a table, as in [tools.NAME]"),
            (
                "\n[tools.Bad]\ncommand = \"x\"".to_owned(),
                "c.toml:2: `Bad` cannot be a tool's name: it begins with a-z",
            ),
            ("[tools.a-b]\ncommand = \"x\"".to_owned(), "c.toml:1: `a-b` cannot be a tool's name: use a-z, 0-9 and _"),
            (
                "[tools.bash]\ncommand = \"x\"".to_owned(),
                "c.toml:1: `bash` is a tool of locum's own: choose another name",
            ),
            (
                "[tools.exec]\ncommand = \"x\"".to_owned(),
                "c.toml:1: `exec` is a tool of locum's own: choose another name",
            ),
            (tool("command = \"x\""), "c.toml:3: `tools.x` needs a description"),
            (tool("description = \"X\""), "c.toml:3: `tools.x` needs a command"),
            (tool("description = 3"), "c.toml:4: `tools.x.description` must be a text in quotes"),
            (tool("\ncommand = []"), "c.toml:5: `tools.x.command` must be a command line in quotes, or a list"),
            (tool("command = [1]"), "c.toml:4: `tools.x.command` must be a command line in quotes, or a list"),
            (tool(&format!("{whole}schema = 3")), "c.toml:6: `tools.x.schema` must be a table or a text of JSON"),
            (tool(&format!("{whole}schema = \"{{\"")), "c.toml:6: `tools.x.schema` is not JSON: EOF"),
            (tool(&format!("{whole}schema = {{ type = \"array\" }}")), "c.toml:6: `tools.x.schema` must have the type"),
            (
                tool(&format!("{whole}[tools.x.schema]\ntype = \"object\"\nproperties.a.pattern = \"x\"")),
                "c.toml:8: `tools.x.schema` has `pattern` at `a`, which is not checked here; what is: type, ",
            ),
            (
                tool(&format!("{whole}schema = {{ type = \"object\", required = 3 }}")),
                "c.toml:6: `tools.x.schema` has `required`, which must be a list of names",
            ),
            (
                tool(&format!("{whole}timeout = 0")),
                "c.toml:6: `tools.x.timeout` must be a number of seconds from 1 to 540",
            ),
            (tool(&format!("{whole}repeat = true")), "c.toml:6: `tools.x.repeat` must be \"safe\""),
            (
                tool(&format!("{whole}comand = 1")),
                "c.toml:6: unknown setting `tools.x.comand`; did you mean `command`?",
            ),
        ] {
            let error = resolve(&text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
