//! What other programs make of an agent file: which keys and tools they honour, which they spell differently and which
//! they lose. The tables say what their documents say; where those are silent, nothing is claimed.

use super::dialect::Dialect;
use super::fields::{self, Field};
use super::frontmatter::Halves;
use super::note::{Note, Place, Topic};
use super::tool_names::{ELSEWHERE, canonical};
use super::values::pieces_of;
use super::yaml::{Entry, Value, short};

/// A program, as far as agent files are concerned.
struct Program {
    name: &'static str,
    /// The keys it knows, in its spelling.
    keys: &'static [(Field, &'static str)],
    /// Our tools in its spelling.
    tools: &'static [(&'static str, &'static str)],
    /// Keys that must be there.
    required: &'static [Field],
    /// What it does that a table of keys does not say.
    habits: &'static [Habit],
}

/// Something that one program does with a value and another does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// `auto-cheap` and its like choose a model.
    RoutingWords,
    /// A model is called by a short name or an id, without its provider.
    ModelsWithoutProvider,
    /// Of `isolation`, only `worktree`.
    WorktreeOnly,
    /// Tools are one text with commas; a list is not read.
    ToolsAsText,
    /// Tools of MCP servers are named as `mcp__server__tool`.
    ServerTools,
    /// A server may be defined in the file.
    ServersInPlace,
    /// Further tools that locum does not have.
    MoreTools,
    /// `{{task}}` in the body stands for the task.
    TaskInBody,
    /// A file is called as its agent.
    NameOfFile,
}

const CLAUDE: Program = Program {
    name: "Claude Code",
    keys: &[
        (Field::Name, "name"),
        (Field::Description, "description"),
        (Field::Model, "model"),
        (Field::Tools, "tools"),
        (Field::DisallowedTools, "disallowedTools"),
        (Field::MaxTurns, "maxTurns"),
        (Field::McpServers, "mcpServers"),
        (Field::Isolation, "isolation"),
        (Field::Background, "background"),
        (Field::Effort, "effort"),
        (Field::Color, "color"),
        (Field::Skills, "skills"),
        (Field::Memory, "memory"),
        (Field::Hooks, "hooks"),
        (Field::PermissionMode, "permissionMode"),
        (Field::InitialPrompt, "initialPrompt"),
    ],
    tools: &[
        ("read", "Read"),
        ("write", "Write"),
        ("edit", "Edit"),
        ("bash", "Bash"),
        ("grep", "Grep"),
        ("find", "Glob"),
        ("web_fetch", "WebFetch"),
        ("web_search", "WebSearch"),
        ("subagent", "Agent"),
    ],
    required: &[Field::Name, Field::Description],
    habits: &[
        Habit::ModelsWithoutProvider,
        Habit::WorktreeOnly,
        Habit::ServerTools,
        Habit::ServersInPlace,
        Habit::MoreTools,
    ],
};

const TALLOW: Program = Program {
    name: "tallow",
    keys: &[
        (Field::Name, "name"),
        (Field::Description, "description"),
        (Field::Model, "model"),
        (Field::Tools, "tools"),
        (Field::DisallowedTools, "disallowedTools"),
        (Field::MaxTurns, "maxTurns"),
        (Field::McpServers, "mcpServers"),
        (Field::Isolation, "isolation"),
        (Field::MissingAgentBehavior, "missingAgentBehavior"),
    ],
    tools: &[
        ("read", "read"),
        ("write", "write"),
        ("edit", "edit"),
        ("bash", "bash"),
        ("grep", "grep"),
        ("find", "find"),
        ("ls", "ls"),
    ],
    required: &[],
    habits: &[Habit::RoutingWords, Habit::WorktreeOnly],
};

const ACAI: Program = Program {
    name: "acai",
    keys: &[
        (Field::Name, "name"),
        (Field::Description, "description"),
        (Field::Model, "model"),
        (Field::Tools, "tools"),
        (Field::Timeout, "timeout"),
    ],
    tools: &[
        ("read", "Read"),
        ("write", "Write"),
        ("edit", "Edit"),
        ("bash", "Bash"),
        ("grep", "Grep"),
        ("find", "Glob"),
        ("ls", "LS"),
        ("tree", "DirectoryTree"),
        ("think", "Think"),
        ("Skill", "Skill"),
        ("subagent", "Subagent"),
        ("subagent", "Agent"),
    ],
    required: &[Field::Name, Field::Description],
    habits: &[Habit::ToolsAsText, Habit::TaskInBody, Habit::NameOfFile],
};

const PI: Program = Program {
    name: "pi",
    keys: &[
        (Field::Name, "name"),
        (Field::Description, "description"),
        (Field::Model, "model"),
        (Field::Tools, "tools"),
        (Field::Effort, "thinking"),
    ],
    tools: &[
        ("read", "read"),
        ("write", "write"),
        ("edit", "edit"),
        ("bash", "bash"),
        ("grep", "grep"),
        ("find", "find"),
        ("ls", "ls"),
        ("web_fetch", "web_fetch"),
        ("web_search", "web_search"),
    ],
    required: &[],
    habits: &[Habit::ModelsWithoutProvider],
};

/// What the program does with a file; nothing for locum itself, whose own notes say it.
///
/// `stem` is the file's name without its ending; a file with defaults has none, because it is no agent.
pub(super) fn check(halves: &Halves<'_>, stem: Option<&str>, dialect: Dialect) -> Vec<Note> {
    let program = match dialect {
        Dialect::Native => return Vec::new(),
        Dialect::Claude => &CLAUDE,
        Dialect::Tallow => &TALLOW,
        Dialect::Acai => &ACAI,
        Dialect::Pi => &PI,
    };
    let mut check = Check { program, notes: Vec::new(), honoured: Vec::new() };
    for entry in &halves.entries {
        check.entry(entry);
    }
    if let Some(stem) = stem {
        check.whole(halves, stem);
    }
    let honoured = match check.honoured.as_slice() {
        [] => "none".to_owned(),
        keys => keys.join(", "),
    };
    let message = format!("keys that {} honours as they are: {honoured}", program.name);
    check.notes.push(Note::info(Place::START, Topic::Portability, message));
    check.notes
}

struct Check {
    program: &'static Program,
    notes: Vec<Note>,
    honoured: Vec<String>,
}

impl Check {
    fn entry(&mut self, entry: &Entry) {
        // What locum does not know either has its own note.
        let Some(row) = fields::find(&entry.key) else { return };
        let name = self.program.name;
        let Some((_, theirs)) = self.program.keys.iter().find(|(field, _)| *field == row.field) else {
            return self
                .warn(entry.at, format!("{name} does not know `{}` and loses it{}", entry.key, instead(row.field)));
        };
        if *theirs == entry.key {
            self.honoured.push(entry.key.clone());
        } else {
            let unit = if row.field == Field::Timeout { ", in seconds" } else { "" };
            self.warn(entry.at, format!("{name} calls `{}` `{theirs}`{unit}: it loses this spelling", entry.key));
        }
        match row.field {
            Field::Model => self.model(entry),
            Field::Isolation => self.isolation(entry),
            Field::McpServers => self.servers(entry),
            Field::Tools | Field::DisallowedTools => self.tools(entry),
            _ => {}
        }
    }

    fn model(&mut self, entry: &Entry) {
        let Value::Scalar { text, .. } = &entry.value.value else { return };
        let name = self.program.name;
        if text.to_ascii_lowercase().starts_with("auto-") && !self.has(Habit::RoutingWords) {
            return self.warn(entry.value.at, format!("{name} does not choose a model for `{}`", short(text)));
        }
        if text.contains(':') && self.has(Habit::ModelsWithoutProvider) {
            let message = format!("{name} names a model without its provider; it may not find `{}`", short(text));
            self.warn(entry.value.at, message);
        }
    }

    fn isolation(&mut self, entry: &Entry) {
        let Value::Scalar { text, .. } = &entry.value.value else { return };
        if text != "worktree" && self.has(Habit::WorktreeOnly) {
            let message = format!("{} knows `worktree` alone, not `{}`", self.program.name, short(text));
            self.warn(entry.value.at, message);
        }
    }

    fn servers(&mut self, entry: &Entry) {
        if self.has(Habit::ServersInPlace) {
            return;
        }
        let in_place = match &entry.value.value {
            Value::Map(_) => Some(entry.value.at),
            Value::List(nodes) => nodes.iter().find(|node| matches!(node.value, Value::Map(_))).map(|node| node.at),
            Value::Scalar { .. } => None,
        };
        if let Some(at) = in_place {
            self.warn(at, format!("{} skips servers that are defined in the file, as locum does", self.program.name));
        }
    }

    fn tools(&mut self, entry: &Entry) {
        let name = self.program.name;
        if matches!(entry.value.value, Value::List(_)) && self.has(Habit::ToolsAsText) {
            let message = format!("{name} reads `{}` as one text with commas, not as a list", entry.key);
            self.warn(entry.value.at, message);
        }
        for item in pieces_of(&entry.value) {
            let written = item.text.split('(').next().unwrap_or_default().trim();
            let ours = canonical(written);
            let theirs: Vec<&str> =
                self.program.tools.iter().filter(|(tool, _)| *tool == ours).map(|(_, theirs)| *theirs).collect();
            let more = self.has(Habit::MoreTools) && ELSEWHERE.iter().any(|(tool, _)| *tool == written);
            let server = self.has(Habit::ServerTools) && written.starts_with("mcp__");
            if theirs.contains(&written) || more || server || (more_claude(written) && self.has(Habit::MoreTools)) {
                continue;
            }
            match theirs.first() {
                Some(theirs) => self.warn(item.at, format!("{name} calls the tool `{}` `{theirs}`", short(written))),
                None => self.warn(item.at, format!("{name} has no tool `{}` and loses it", short(written))),
            }
        }
    }

    fn whole(&mut self, halves: &Halves<'_>, stem: &str) {
        let name = self.program.name;
        let given = |field: Field| {
            halves.entries.iter().find(|entry| fields::find(&entry.key).is_some_and(|row| row.field == field))
        };
        for field in self.program.required {
            if given(*field).is_none() {
                self.warn(Place::START, format!("{name} needs `{}`, which is missing", field.as_str()));
            }
        }
        if self.has(Habit::NameOfFile)
            && let Some(entry) = given(Field::Name)
            && let Value::Scalar { text, .. } = &entry.value.value
            && text.trim() != stem
        {
            let message = format!("{name} wants the file to be called as its agent: {}.md", short(text.trim()));
            self.warn(entry.value.at, message);
        }
        if let Some(at) = halves.body.find("{{task}}").filter(|_| !self.has(Habit::TaskInBody)) {
            let within = Place::of_byte(halves.body, at);
            let at = Place { line: halves.body_at.line + within.line - 1, column: within.column };
            self.warn(at, format!("{name} does not put the task in the place of `{{{{task}}}}`"));
        }
    }

    fn has(&self, habit: Habit) -> bool {
        self.program.habits.contains(&habit)
    }

    fn warn(&mut self, at: Place, message: String) {
        self.notes.push(Note::warning(at, Topic::Portability, message));
    }
}

/// Other spellings that Claude Code itself has had for one tool.
fn more_claude(name: &str) -> bool {
    matches!(name, "Task" | "LS" | "MultiEdit")
}

/// What to do without a field, where something comes near.
fn instead(field: Field) -> &'static str {
    match field {
        Field::Readonly => "; name only reading tools in `tools`",
        Field::Extends => "; copy what the other agent says into this file",
        Field::Timeout => "; `maxTurns` bounds a task where it is known",
        _ => "",
    }
}
