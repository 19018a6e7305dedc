//! Reading an agent from Markdown with YAML frontmatter. Pure: text in, an agent or a located error out.

use serde::Deserialize;

use crate::agent::tool_names::canonical;
use crate::agent::{AgentSpec, Isolation, Sampling, Source};
use crate::ids::AgentName;
use crate::limits;

/// Why a text is not an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct Problem {
    /// Where, from 1.
    pub line: usize,
    /// Where in the line, from 1.
    pub column: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    fn at_start(message: impl Into<String>) -> Self {
        Self { line: 1, column: 1, message: message.into() }
    }
}

/// The fields of the frontmatter, in every spelling.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frontmatter {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
    tools: Option<Names>,
    #[serde(alias = "disallowed_tools")]
    disallowed_tools: Option<Names>,
    #[serde(alias = "max_turns", alias = "steps")]
    max_turns: Option<i64>,
    timeout: Option<u64>,
    #[serde(alias = "mcp_servers")]
    mcp_servers: Option<Names>,
    isolation: Option<Isolation>,
    #[serde(default)]
    readonly: bool,
    #[serde(alias = "thinking")]
    effort: Option<String>,
    temperature: Option<f64>,
    #[serde(alias = "max_tokens")]
    max_tokens: Option<u64>,
    color: Option<String>,
}

/// A list, or one text with commas.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Commas(String),
}

impl Names {
    fn into_vec(self) -> Vec<String> {
        let names = match self {
            Self::List(names) => names,
            Self::Commas(text) => text.split(',').map(str::to_owned).collect(),
        };
        names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// Reads one agent. `stem` is the file's name without its ending, for files that do not name their agent.
pub fn parse(text: &str, stem: &str, source: Source) -> Result<AgentSpec, Problem> {
    if text.len() > limits::AGENT_FILE_BYTES_MAX {
        return Err(Problem::at_start(format!("the file is larger than {} bytes", limits::AGENT_FILE_BYTES_MAX)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (yaml, body) = split(text)?;
    let fields: Frontmatter = serde_saphyr::from_str(yaml).map_err(|error| locate(&error))?;
    let name = fields.name.as_deref().unwrap_or(stem);
    let name = AgentName::parse(name).map_err(|error| Problem::at_start(error.to_string()))?;
    let description = fields.description.filter(|text| !text.trim().is_empty());
    let description = description.ok_or_else(|| {
        Problem::at_start("`description` is missing: one line that says when to delegate to this agent")
    })?;
    if body.trim().is_empty() {
        return Err(Problem::at_start("the body is empty: it is the agent's system prompt"));
    }
    let canonical_names = |names: Names| names.into_vec().iter().map(|name| canonical(name).to_owned()).collect();
    Ok(AgentSpec {
        name,
        description: description.trim().to_owned(),
        prompt: body.replace("\r\n", "\n").trim().to_owned(),
        model: fields.model.filter(|model| !model.eq_ignore_ascii_case("inherit")),
        tools: fields.tools.map(canonical_names),
        denied_tools: fields.disallowed_tools.map(canonical_names).unwrap_or_default(),
        readonly: fields.readonly,
        max_turns: fields.max_turns.map(|turns| u32::try_from(turns.max(1)).unwrap_or(u32::MAX)),
        timeout_s: fields.timeout,
        isolation: fields.isolation,
        mcp_servers: fields.mcp_servers.map(Names::into_vec).unwrap_or_default(),
        sampling: Sampling { temperature: fields.temperature, max_tokens: fields.max_tokens, effort: fields.effort },
        color: fields.color,
        source,
        version: 1,
    })
}

/// Cuts a file into frontmatter and body.
fn split(text: &str) -> Result<(&str, &str), Problem> {
    let missing = || Problem::at_start("the file must begin with a `---` line, then YAML, then another `---` line");
    let rest = text.strip_prefix("---").and_then(|rest| rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')));
    let rest = rest.ok_or_else(missing)?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            if at > limits::FRONTMATTER_BYTES_MAX {
                let most = limits::FRONTMATTER_BYTES_MAX;
                return Err(Problem::at_start(format!("the frontmatter is larger than {most} bytes")));
            }
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err(Problem::at_start("the frontmatter is not closed with a `---` line"))
}

/// Where in the file a YAML error is: the frontmatter begins in the second line.
fn locate(error: &serde_saphyr::Error) -> Problem {
    let (line, column) = error.location().map_or((0, 1), |place| (place.line() as usize, place.column() as usize));
    let message = error.without_snippet().to_string();
    // It names the place within the frontmatter, which is not the place within the file.
    let message = message.strip_suffix(&format!(" at line {line}, column {column}")).unwrap_or(&message).to_owned();
    Problem { line: line + 1, column: column.max(1), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AgentSpec, Problem> {
        parse(text, "stem", Source::Bundled)
    }

    #[test]
    fn lists_and_comma_strings_and_foreign_names_are_the_same() {
        let expected = Some(vec!["read".to_owned(), "find".to_owned(), "grep".to_owned()]);
        let commas = read("---\ndescription: d\ntools: Read, Glob,grep\n---\nbody").unwrap();
        let list =
            read("\u{feff}---\r\ndescription: d\r\ntools:\r\n  - Read\r\n  - Glob\r\n  - grep\r\n---\r\nbody").unwrap();
        assert_eq!(commas.tools, expected);
        assert_eq!(list.tools, expected);
        assert_eq!(commas.name.as_str(), "stem");
        assert_eq!(read("---\ndescription: d\ntools: \"\"\n---\nb").unwrap().tools, Some(vec![]));
        assert_eq!(read("---\ndescription: d\n---\nb").unwrap().tools, None);
    }

    #[test]
    fn problems_say_where() {
        let cases = [
            ("no frontmatter", 1, "must begin"),
            ("---\nname: a", 1, "not closed"),
            ("---\nname: a\n---\nb", 1, "description"),
            ("---\ndescription: d\n---\n  ", 1, "body is empty"),
            ("---\nname: A B\ndescription: d\n---\nb", 1, "agent name"),
            ("---\ndescription: d\nmax_turns: many\n---\nb", 3, "invalid i64"),
            ("---\ndescription: d\ndescription: e\n---\nb", 3, "duplicate"),
        ];
        for (text, line, message) in cases {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.line, line, "{text:?}: {problem}");
            assert!(problem.message.contains(message), "{text:?}: {problem}");
            assert!(!problem.message.contains("at line"), "a second place: {problem}");
        }
    }
}
