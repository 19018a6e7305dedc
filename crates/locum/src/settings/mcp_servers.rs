//! Settings about MCP servers: `mcp_servers.NAME.command` and the like. Only the user's own file may hold them.

use std::path::Path;

use locum_core::agent::roster::nearest;
use locum_core::limits;
use locum_core::permission::HostPattern;
use toml::{Table, Value};

use super::providers::{line_beginning, texts};
use super::{Origin, Setting, Settings, SettingsError};
use crate::mcp_servers::check_name;
use crate::sandbox::Level;

/// The table of all servers in a settings file.
pub(super) const MCP_SERVERS: &str = "mcp_servers";

/// What may be said about a server.
const FIELDS: [&str; 11] =
    ["command", "args", "env", "cwd", "readable", "network", "sandbox", "url", "headers", "key_variable", "timeout"];

/// What makes no sense without a program, and what makes none without an address.
const OF_COMMANDS: [&str; 6] = ["args", "env", "cwd", "readable", "network", "sandbox"];
const OF_URLS: [&str; 2] = ["headers", "key_variable"];

/// What the user said about one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct McpServerSettings {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    /// Names and values; a value that begins with `$` names a variable.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<String>,
    pub(crate) readable: Vec<String>,
    pub(crate) network: Vec<HostPattern>,
    pub(crate) sandbox: Option<Level>,
    pub(crate) url: Option<String>,
    /// The same as in `env`.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) key_variable: Option<String>,
    pub(crate) timeout: Option<u64>,
}

impl Settings {
    /// Takes the servers of a settings file.
    pub(super) fn take_mcp_servers(&mut self, value: &Value, path: &Path, text: &str) -> Result<(), SettingsError> {
        let refused = |name: &str, message: String| {
            let place = format!("{}:{}", path.display(), line_beginning(text, name));
            Err(SettingsError { place, message })
        };
        let Some(all) = value.as_table() else {
            return refused(MCP_SERVERS, "`mcp_servers` must be a table, as in [mcp_servers.NAME]".to_owned());
        };
        if all.len() > limits::MCP_SERVERS_MAX {
            return refused("[mcp_servers", format!("there are more than {} MCP servers", limits::MCP_SERVERS_MAX));
        }
        for (name, value) in all {
            let line = format!("[mcp_servers.{name}");
            if let Err(why) = check_name(name) {
                return refused(&line, why);
            }
            let Some(fields) = value.as_table() else {
                return refused(name, format!("`mcp_servers.{name}` must be a table, as in [mcp_servers.{name}]"));
            };
            if let Err(why) = check_kind(name, fields) {
                return refused(&line, why);
            }
            for (field, value) in fields {
                match leaves(name, field, value) {
                    Ok(leaves) => leaves.into_iter().for_each(|(name, value)| {
                        self.put_any(name, value, Origin::File(path.to_owned()));
                    }),
                    Err(why) => return refused(field, why),
                }
            }
        }
        Ok(())
    }

    /// The servers about which something was said.
    pub(crate) fn mcp_server_names(&self) -> Vec<&str> {
        let named = self.all().iter().filter_map(|setting| setting.name.strip_prefix("mcp_servers."));
        let mut names: Vec<&str> = named.filter_map(|rest| rest.split('.').next()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What was said about a server.
    pub(crate) fn mcp_server(&self, name: &str) -> McpServerSettings {
        let field = |field: &str| format!("{MCP_SERVERS}.{name}.{field}");
        let text = |name: &str| self.text(&field(name)).map(|(text, _)| text.to_owned());
        let list = |name: &str| -> Vec<String> {
            let items = self.value(&field(name)).and_then(|setting| setting.value.as_array());
            items.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let pairs = |name: &str| {
            let start = format!("{}.", field(name));
            let pair = |setting: &Setting| {
                Some((setting.name.strip_prefix(&start)?.to_owned(), setting.value.as_str()?.to_owned()))
            };
            self.all().iter().filter_map(pair).collect()
        };
        let timeout = self.value(&field("timeout")).and_then(|setting| setting.value.as_integer());
        McpServerSettings {
            command: text("command"),
            args: list("args"),
            env: pairs("env"),
            cwd: text("cwd"),
            readable: list("readable"),
            // They were read once already.
            network: list("network").iter().filter_map(|host| HostPattern::parse(host).ok()).collect(),
            sandbox: text("sandbox").and_then(|level| level.parse().ok()),
            url: text("url"),
            headers: pairs("headers"),
            key_variable: text("key_variable"),
            timeout: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
        }
    }

    /// The variables that the settings name: keys and headers of providers, and what MCP servers are told.
    pub(crate) fn named_variables(&self) -> Vec<String> {
        let of_servers = self.mcp_server_names().into_iter().flat_map(|name| {
            let McpServerSettings { env, headers, key_variable, .. } = self.mcp_server(name);
            let values =
                env.into_iter().chain(headers).filter_map(|(_, value)| Some(value.strip_prefix('$')?.to_owned()));
            values.chain(key_variable).collect::<Vec<_>>()
        });
        self.variables_of_providers().into_iter().chain(of_servers).collect()
    }
}

fn check_kind(server: &str, fields: &Table) -> Result<(), String> {
    let (has_command, has_url) = (fields.contains_key("command"), fields.contains_key("url"));
    let misplaced = |names: &[&'static str]| names.iter().copied().find(|name| fields.contains_key(*name));
    match (has_command, has_url) {
        (true, true) => Err(format!("`mcp_servers.{server}` has a command and a url: it is reached in one way")),
        (false, false) => Err(format!("`mcp_servers.{server}` needs a command, or a url")),
        (true, false) => misplaced(&OF_URLS).map_or(Ok(()), |name| {
            Err(format!("`mcp_servers.{server}.{name}` is for servers with a url, and this one has a command"))
        }),
        (false, true) => misplaced(&OF_COMMANDS).map_or(Ok(()), |name| {
            Err(format!("`mcp_servers.{server}.{name}` is for servers with a command, and this one has a url"))
        }),
    }
}

/// The settings that one field of a server makes.
fn leaves(server: &str, field: &str, value: &Value) -> Result<Vec<(String, Value)>, String> {
    let name = format!("{MCP_SERVERS}.{server}.{field}");
    let wrong = |what: &str| Err(format!("`{name}` must be {what}"));
    match (field, value) {
        ("env" | "headers", Value::Table(table)) => match texts(&name, table) {
            Some(leaves) => Ok(leaves),
            None => wrong("a table of texts, as in { NAME = \"value\" }"),
        },
        ("env" | "headers", _) => wrong("a table of texts, as in { NAME = \"value\" }"),
        ("args" | "readable", Value::Array(items)) if items.iter().all(Value::is_str) => {
            Ok(vec![(name, value.clone())])
        }
        ("args" | "readable", _) => wrong("a list of texts in quotes"),
        ("network", Value::Array(items)) if items.iter().all(Value::is_str) => {
            let wrong = items.iter().filter_map(Value::as_str).find_map(|host| HostPattern::parse(host).err());
            wrong.map_or_else(|| Ok(vec![(name.clone(), value.clone())]), |why| Err(format!("`{name}`: {why}")))
        }
        ("network", _) => wrong("a list of hosts in quotes"),
        ("timeout", Value::Integer(seconds)) if (1..=540).contains(seconds) => Ok(vec![(name, value.clone())]),
        ("timeout", _) => wrong("a whole number of seconds from 1 to 540"),
        ("sandbox", Value::String(word)) if word.parse::<Level>().is_ok() => Ok(vec![(name, value.clone())]),
        ("sandbox", _) => wrong("one of full, landlock, none"),
        ("url", Value::String(url)) if !(url.starts_with("http://") || url.starts_with("https://")) => {
            wrong("an address that begins with https:// or http://")
        }
        ("command" | "cwd" | "url" | "key_variable", Value::String(text)) if !text.is_empty() => {
            Ok(vec![(name, value.clone())])
        }
        ("command" | "cwd" | "url" | "key_variable", _) => wrong("a text in quotes"),
        _ => {
            let near = nearest(field, FIELDS.iter(), |known| known);
            let hint = near.first().map_or_else(
                || format!("the settings of an MCP server are {}", FIELDS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            Err(format!("unknown setting `{name}`; {hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SettingsFile;
    use super::super::environment::Environment;
    use super::*;

    fn resolve(file: &str) -> Result<Settings, String> {
        let environment = Environment::new([], "/".into());
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text: file };
        Settings::resolve(&[file], &environment, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_described_by_its_fields() {
        let file = "[mcp_servers.git-hub]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\ncwd = \"sub\"\n\
                    readable = [\"/opt/x\"]\nnetwork = [\"*.example\"]\nsandbox = \"none\"\ntimeout = 5\nenv = { TOKEN = \"$GITHUB_TOKEN\", A = \"b\" }\n\
                    [mcp_servers.far]\nurl = \"https://far.example/mcp\"\nkey_variable = \"FAR_KEY\"\n\
                    headers = { \"X-A\" = \"$FAR_HEADER\" }";
        let settings = resolve(file).unwrap();
        assert_eq!(settings.mcp_server_names(), ["far", "git-hub"]);
        let text = |text: &str| text.to_owned();
        let expected = McpServerSettings {
            command: Some(text("npx")),
            args: vec![text("-y"), text("server")],
            env: vec![(text("A"), text("b")), (text("TOKEN"), text("$GITHUB_TOKEN"))],
            cwd: Some(text("sub")),
            readable: vec![text("/opt/x")],
            network: vec![HostPattern::parse("*.example").unwrap()],
            sandbox: Some(Level::None),
            timeout: Some(5),
            ..McpServerSettings::default()
        };
        assert_eq!(settings.mcp_server("git-hub"), expected);
        assert_eq!(settings.mcp_server("far").url.as_deref(), Some("https://far.example/mcp"));
        assert_eq!(settings.named_variables(), ["FAR_HEADER", "FAR_KEY", "GITHUB_TOKEN"]);
    }

    #[test]
    fn what_is_wrong_about_a_server_is_said_with_its_place() {
        for (file, expected) in [
            ("mcp_servers = 3", "c.toml:1: `mcp_servers` must be a table"),
            ("\n[mcp_servers.a__b]\ncommand = \"x\"", "c.toml:2: `a__b` cannot be an MCP server's name"),
            ("[mcp_servers.a]\nargs = []", "c.toml:1: `mcp_servers.a` needs a command, or a url"),
            ("[mcp_servers.a]\ncommand = \"x\"\nurl = \"https://y\"", "c.toml:1: `mcp_servers.a` has a command and a"),
            ("[mcp_servers.a]\nurl = \"https://y\"\nenv = {}", "c.toml:1: `mcp_servers.a.env` is for servers with a"),
            ("[mcp_servers.a]\nurl = \"y\"", "c.toml:2: `mcp_servers.a.url` must be an address"),
            (
                "[mcp_servers.a]\ncomand = \"x\"\ncommand = \"x\"",
                "c.toml:2: unknown setting `mcp_servers.a.comand`; did",
            ),
            ("[mcp_servers.a]\ncommand = 3", "c.toml:2: `mcp_servers.a.command` must be a text"),
            ("[mcp_servers.a]\ncommand = \"x\"\nargs = \"y\"", "c.toml:3: `mcp_servers.a.args` must be a list"),
            ("[mcp_servers.a]\ncommand = \"x\"\nenv = { A = 1 }", "c.toml:3: `mcp_servers.a.env` must be a table"),
            ("[mcp_servers.a]\ncommand = \"x\"\nnetwork = \"y\"", "c.toml:3: `mcp_servers.a.network` must be a list"),
            (
                "[mcp_servers.a]\ncommand = \"x\"\nnetwork = [\"https://y\"]",
                "c.toml:3: `mcp_servers.a.network`: `https://y` is not a host: leave out https://",
            ),
            ("[mcp_servers.a]\ncommand = \"x\"\nsandbox = \"off\"", "c.toml:3: `mcp_servers.a.sandbox` must be one of"),
            ("[mcp_servers.a]\ncommand = \"x\"\ntimeout = 0", "c.toml:3: `mcp_servers.a.timeout` must be a whole"),
        ] {
            let error = resolve(file).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
