//! An MCP server as settings describe it.

use std::path::PathBuf;

use locum_core::limits;
use locum_core::permission::HostPattern;
use secrecy::SecretString;

use crate::sandbox::Level;
use crate::tools::content_hash;

/// An MCP server that agents may borrow tools from.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its name: letters, digits, `-` and single `_`.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// Seconds that starting it, or one call, may take.
    pub call_seconds: u64,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Way {
    /// It is a program that is started here and spoken to over its standard files.
    Command(ServerCommand),
    /// It is spoken to over HTTP.
    Url(ServerUrl),
}

/// A server that is a program.
#[derive(Debug, Clone, Default)]
pub struct ServerCommand {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that it sees beside the few that every command sees. Their values may be secrets.
    pub variables: Vec<(String, SecretString)>,
    /// Where it starts; the project's root if this is left out.
    pub directory: Option<PathBuf>,
    /// Further directories that it may read.
    pub readable: Vec<PathBuf>,
    /// The hosts that it may reach, through a proxy that refuses all others; none if this is empty.
    pub network: Vec<HostPattern>,
    /// What it is shut into, where that is not what commands are shut into.
    pub level: Option<Level>,
}

/// A server that is somewhere else.
#[derive(Debug, Clone)]
pub struct ServerUrl {
    /// Its address.
    pub url: String,
    /// Headers of every request. Their values may be secrets.
    pub headers: Vec<(String, SecretString)>,
}

impl McpServer {
    /// A server that is a program of this name with these arguments.
    pub fn command(name: &str, program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let command = ServerCommand { program: program.to_owned(), arguments, ..ServerCommand::default() };
        Self { name: name.to_owned(), way: Way::Command(command), call_seconds: limits::MCP_CALL_SECONDS_DEFAULT }
    }

    /// A short form of what is reached: what was seen of one program or address says nothing about another.
    pub(super) fn fingerprint(&self) -> String {
        let text = match &self.way {
            Way::Command(command) => format!("{:?}", (&command.program, &command.arguments, &command.directory)),
            Way::Url(url) => url.url.clone(),
        };
        content_hash(text.as_bytes())
    }

    /// What is reached, for people.
    pub(super) fn target(&self) -> String {
        match &self.way {
            Way::Command(command) => {
                let words = std::iter::once(&command.program).chain(&command.arguments);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Way::Url(url) => url.url.clone(),
        }
    }
}

/// Why a text cannot be a server's name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_accepted = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let is_short = (1..=32).contains(&name.len());
    if is_short && name.chars().all(is_accepted) && !name.contains("__") && !name.ends_with('_') {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be an MCP server's name: use at most 32 letters, digits, - and _, with no two _ together and \
         none at the end"
    ))
}
