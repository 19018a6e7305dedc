//! Settings from a file of the user or of a trusted project: what each may set, and the line of what is wrong.

use std::path::Path;

use locum_core::agent::roster::nearest;
use locum_core::permission::{Effect, Rule};
use toml::{Table, Value};

use super::table::{KEYS, OF_PROJECTS};
use super::{Origin, PROJECT_RULES, Settings, SettingsError, command_tools, mcp_servers, providers, value};

/// The text of a file with settings, and whose it is.
#[derive(Debug, Clone)]
pub struct SettingsFile<'a> {
    /// [`Origin::File`] for the user's, [`Origin::Project`] for a trusted project's.
    pub origin: Origin,
    /// What it says.
    pub text: &'a str,
}

impl SettingsFile<'_> {
    fn origin_path(&self) -> &Path {
        match &self.origin {
            Origin::File(path) | Origin::Project(path) => path,
            Origin::Default | Origin::Variable(_) | Origin::Flag(_) => Path::new("settings"),
        }
    }
}

/// Whether a project's settings may be used, apart from whether it is trusted.
pub(crate) fn check_project(path: &Path, text: &str) -> Result<(), SettingsError> {
    let file = SettingsFile { origin: Origin::Project(path.to_owned()), text };
    Settings { values: Vec::new() }.take_file(&file)
}

impl Settings {
    /// Takes what a file says: whatever it may not say, or says wrongly, is refused with its line.
    pub(super) fn take_file(&mut self, file: &SettingsFile<'_>) -> Result<(), SettingsError> {
        let (path, text) = (file.origin_path(), file.text);
        let is_of_project = matches!(file.origin, Origin::Project(_));
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            SettingsError { place: format!("{}:{line}", path.display()), message: error.message().to_owned() }
        })?;
        // Where models are and how they are reached is the user's to say.
        let providers = if is_of_project { None } else { table.remove(providers::PROVIDERS) };
        if let Some(value) = providers {
            self.take_providers(&value, path, text)?;
        }
        let servers = if is_of_project { None } else { table.remove(mcp_servers::MCP_SERVERS) };
        if let Some(value) = servers {
            self.take_mcp_servers(&value, path, text)?;
        }
        let tools = if is_of_project { None } else { table.remove(command_tools::TOOLS) };
        if let Some(value) = tools {
            self.take_command_tools(&value, path, text)?;
        }
        for name in leaves(&table, "") {
            let line = line_of(text, &name);
            let place = format!("{}:{line}", path.display());
            let key = KEYS.iter().find(|key| key.name == name);
            if is_of_project && !OF_PROJECTS.contains(&name.as_str()) {
                let message = match key {
                    Some(_) => format!("`{name}` can be set by the user only, not by a project"),
                    None => {
                        format!("`{name}` is no setting that a project may have; it may set {}", OF_PROJECTS.join(", "))
                    }
                };
                return Err(SettingsError { place, message });
            }
            let key = key.ok_or_else(|| SettingsError { place: place.clone(), message: unknown(&name) })?;
            if let Some(value) = look_up(&table, &name) {
                value::check(key, value).map_err(|message| SettingsError { place: place.clone(), message })?;
                if is_of_project && name == "subagents.enabled" && value.as_bool() == Some(true) {
                    let message = format!("a project may only turn `{name}` off");
                    return Err(SettingsError { place, message });
                }
                if is_of_project && name == "permissions.rules" {
                    check_strict(value).map_err(|message| SettingsError { place, message })?;
                    self.put_any(PROJECT_RULES.to_owned(), value.clone(), file.origin.clone());
                    continue;
                }
                self.put(key.name, value.clone(), file.origin.clone());
            }
        }
        Ok(())
    }
}

/// A project may only narrow what the user allows.
fn check_strict(rules: &Value) -> Result<(), String> {
    let texts = rules.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut allowing = texts.filter(|text| Rule::parse(text).is_ok_and(|rule| rule.effect == Effect::Allow));
    allowing.next().map_or(Ok(()), |rule| Err(format!("a project may only add rules that deny or ask, not `{rule}`")))
}

fn unknown(name: &str) -> String {
    let near = nearest(name, KEYS.iter(), |key| key.name);
    let hint = near.first().map_or_else(
        || "`locum config show` lists the settings".to_owned(),
        |near| format!("did you mean `{}`?", near.name),
    );
    format!("unknown setting `{name}`; {hint}")
}

/// The value of a name with dots.
pub(super) fn look_up<'a>(table: &'a Table, name: &str) -> Option<&'a Value> {
    match name.split_once('.') {
        None => table.get(name),
        Some((head, rest)) => look_up(table.get(head)?.as_table()?, rest),
    }
}

/// The names of all values in a table, with dots.
fn leaves(table: &Table, path: &str) -> Vec<String> {
    let name = |key: &String| if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
    table
        .iter()
        .flat_map(|(key, value)| match value {
            Value::Table(inner) => leaves(inner, &name(key)),
            _ => vec![name(key)],
        })
        .collect()
}

fn line_of(text: &str, name: &str) -> usize {
    let last = name.rsplit('.').next().unwrap_or(name);
    let named = |line: &str| line.trim_start().trim_start_matches('"').starts_with(last);
    text.lines().position(named).map_or(1, |line| line + 1)
}
