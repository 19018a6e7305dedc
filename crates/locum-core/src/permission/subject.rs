//! What a call is about: the part of its input that rules look at.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Nothing that a pattern could be about.
    #[default]
    Nothing,
    /// A file or directory, from the root, without links and `..`.
    Path(String),
    /// A command line.
    Command(String),
    /// An address in the web.
    Address(String),
    /// Any other text, such as what is searched for.
    Text(String),
}

impl Subject {
    /// What an input is about, by the names that tools give to such fields. A tool whose paths must be resolved first
    /// says it itself.
    pub fn of(input: &Value) -> Self {
        let text = |field: &str| input.get(field).and_then(Value::as_str).map(str::to_owned);
        text("command")
            .map(Self::Command)
            .or_else(|| text("url").map(Self::Address))
            .or_else(|| text("path").map(Self::Path))
            .or_else(|| text("query").map(Self::Text))
            .unwrap_or_default()
    }

    /// Each part that is judged for itself, in all its spellings.
    pub(super) fn pieces(&self) -> Vec<Vec<String>> {
        match self {
            Self::Nothing => vec![Vec::new()],
            Self::Path(text) | Self::Text(text) => vec![vec![text.clone()]],
            Self::Command(command) => commands(command),
            Self::Address(address) => {
                let spelled = host(address).map(str::to_ascii_lowercase);
                vec![[address.clone()].into_iter().chain(spelled).collect()]
            }
        }
    }
}

/// A command line and the commands in it: one that is forbidden is so behind another one too.
fn commands(line: &str) -> Vec<Vec<String>> {
    let separators = |char: char| matches!(char, ';' | '|' | '&' | '\n' | '(' | ')' | '`' | '{' | '}');
    let parts = line.split(separators).map(|part| part.trim_start_matches(['$', ' ', '\t', '!']).trim());
    let whole = line.trim();
    let parts = parts.filter(|part| !part.is_empty() && *part != whole);
    [whole].into_iter().chain(parts).map(|part| vec![part.to_owned()]).collect()
}

/// The host in an address.
fn host(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let end = if host.starts_with('[') { host.find(']').map(|end| end + 1) } else { host.find(':') };
    Some(&host[..end.unwrap_or(host.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_judged_by_each_of_its_commands() {
        let pieces = |line: &str| {
            let pieces = Subject::Command(line.to_owned()).pieces();
            pieces.into_iter().flatten().collect::<Vec<_>>().join(" / ")
        };
        assert_eq!(pieces("ls"), "ls");
        assert_eq!(pieces("cd x && rm -rf y"), "cd x && rm -rf y / cd x / rm -rf y");
        assert_eq!(pieces("echo $(rm x)"), "echo $(rm x) / echo $ / rm x");
        assert_eq!(pieces("a;b|c\nd & `e`"), "a;b|c\nd & `e` / a / b / c / d / e");
    }

    #[test]
    fn an_address_is_also_its_host() {
        for (address, expected) in [
            ("https://Docs.rs/serde", Some("Docs.rs")),
            ("http://user:word@host:80/x", Some("host")),
            ("http://[::1]:80/x", Some("[::1]")),
            ("https://a?b", Some("a")),
            ("nothing", None),
        ] {
            assert_eq!(host(address), expected, "{address}");
        }
    }
}
