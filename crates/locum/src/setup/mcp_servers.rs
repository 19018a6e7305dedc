//! The MCP servers of the user, gathered from the settings and the environment.

use std::path::PathBuf;

use locum_core::limits;
use secrecy::SecretString;

use crate::mcp_servers::{McpServer, ServerCommand, ServerUrl, Way};
use crate::settings::environment::{Environment, LOCUM_MCP_SERVERS, PI_MCP_SERVERS};
use crate::settings::{McpServerSettings, Settings};

/// Parts of names of variables that hold secrets.
const SECRET_WORDS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) usable: Vec<McpServer>,
    /// The others, with why.
    pub(super) left_out: Vec<(String, String)>,
    /// What must not be stored or shown.
    pub(super) secrets: Vec<String>,
}

/// Every server of the user.
pub(super) fn find(settings: &Settings, environment: &Environment) -> Found {
    let mut found = Found::default();
    let filter = [LOCUM_MCP_SERVERS, PI_MCP_SERVERS]
        .into_iter()
        .find_map(|variable| Some((variable, environment.get_list(variable)?)));
    for name in settings.mcp_server_names() {
        let said = settings.mcp_server(name);
        let filtered = filter.filter(|(_, names)| !names.split(',').any(|listed| listed.trim() == name));
        let described = described(name, &said, environment, &mut found.secrets);
        match (filtered, described) {
            (Some((variable, _)), _) => found.left_out.push((name.to_owned(), format!("${variable} leaves it out"))),
            (None, Ok(server)) => found.usable.push(server),
            (None, Err(why)) => found.left_out.push((name.to_owned(), why)),
        }
    }
    found
}

fn described(
    name: &str,
    said: &McpServerSettings,
    environment: &Environment,
    secrets: &mut Vec<String>,
) -> Result<McpServer, String> {
    let home = environment.home();
    let place = |path: &String| match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let variables = values(&said.env, environment, secrets)?;
    let mut headers = values(&said.headers, environment, secrets)?;
    if let Some(variable) = &said.key_variable {
        let key = environment.get(variable).ok_or_else(|| not_set(variable))?;
        secrets.push(key.to_owned());
        headers.push(("Authorization".to_owned(), SecretString::from(format!("Bearer {key}"))));
    }
    let way = match (&said.command, &said.url) {
        (Some(command), _) => Way::Command(ServerCommand {
            program: place(command).to_string_lossy().into_owned(),
            arguments: said.args.clone(),
            variables,
            directory: said.cwd.as_ref().map(place),
            readable: said.readable.iter().map(place).collect(),
            network: said.network.clone(),
            level: said.sandbox,
        }),
        (None, Some(url)) => Way::Url(ServerUrl { url: url.clone(), headers }),
        (None, None) => return Err("it has neither a command nor a url".to_owned()),
    };
    let call_seconds = said.timeout.unwrap_or(limits::MCP_CALL_SECONDS_DEFAULT).min(limits::MCP_CALL_SECONDS_MAX);
    Ok(McpServer { name: name.to_owned(), way, call_seconds })
}

/// Names with their values, those of variables looked up. What came from a variable, or has a name like a secret's, is
/// one.
fn values(
    pairs: &[(String, String)],
    environment: &Environment,
    secrets: &mut Vec<String>,
) -> Result<Vec<(String, SecretString)>, String> {
    let mut found = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let value = match value.strip_prefix('$') {
            Some(variable) => {
                let value = environment.get(variable).ok_or_else(|| not_set(variable))?;
                secrets.push(value.to_owned());
                value
            }
            None => value,
        };
        let upper = name.to_ascii_uppercase();
        if upper == "AUTHORIZATION" || SECRET_WORDS.iter().any(|word| upper.contains(word)) {
            secrets.push(value.to_owned());
        }
        found.push((name.clone(), SecretString::from(value)));
    }
    Ok(found)
}

fn not_set(variable: &str) -> String {
    format!("the variable {variable}, which the settings name for it, is not set")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Origin, SettingsFile};

    const FILE: &str = "[mcp_servers.a]\ncommand = \"~/bin/a\"\nenv = { TOKEN = \"$A_TOKEN\", API_KEY = \"literal-key\" }\n\
                        [mcp_servers.b]\nurl = \"http://b/mcp\"\nkey_variable = \"B_KEY\"\n\
                        [mcp_servers.c]\ncommand = \"c\"";

    fn check(variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>, Found) {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::new(variables, "/".into());
        let file = SettingsFile { origin: Origin::File("c.toml".into()), text: FILE };
        let settings = Settings::resolve(&[file], &environment, &[]).unwrap();
        let found = find(&settings, &environment);
        let usable = found.usable.iter().map(|server| server.name.clone()).collect();
        let left_out = found.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        (usable, left_out, found)
    }

    #[test]
    fn servers_are_left_out_that_are_not_listed_or_lack_a_variable() {
        let all = [("A_TOKEN", "a-secret-token"), ("B_KEY", "b-secret-key"), ("HOME", "/home/x")];
        let (usable, left_out, found) = check(&all);
        assert_eq!((usable, left_out), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], Vec::new()));
        assert_eq!(found.secrets, ["literal-key", "a-secret-token", "a-secret-token", "b-secret-key"]);
        let Way::Command(a) = &found.usable[0].way else { panic!("a is a program") };
        assert_eq!(a.program, "/home/x/bin/a");
        let not_set = "the variable A_TOKEN, which the settings name for it, is not set";
        let no_key = "the variable B_KEY, which the settings name for it, is not set";
        for (variables, usable, left_out) in [
            (vec![], vec!["c"], vec![format!("a: {not_set}"), format!("b: {no_key}")]),
            (
                vec![("LOCUM_MCP_SERVERS", "b , x"), ("PI_MCP_SERVERS", "a"), all[0], all[1]],
                vec!["b"],
                vec![
                    "a: $LOCUM_MCP_SERVERS leaves it out".to_owned(),
                    "c: $LOCUM_MCP_SERVERS leaves it out".to_owned(),
                ],
            ),
            (
                vec![("PI_MCP_SERVERS", "")],
                vec![],
                ["a", "b", "c"].map(|name| format!("{name}: $PI_MCP_SERVERS leaves it out")).to_vec(),
            ),
        ] {
            let (found_usable, found_left_out, _) = check(&variables);
            assert_eq!((found_usable, found_left_out), (usable.into_iter().map(str::to_owned).collect(), left_out));
        }
    }
}
