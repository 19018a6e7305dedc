//! The names of tools: what other systems call ours, and which sets stand for "the reading tools".

/// The tool through which agents delegate.
pub const SUBAGENT: &str = "subagent";
/// The tool through which agents share state.
pub const SHARED_CONTEXT: &str = "shared_context";
/// The tool through which agents see and claim what there is to do.
pub const MANAGE_TASKS: &str = "manage_tasks";

/// What an agent gets in the native face when its file names no tools.
pub const READING: [&str; 7] = ["read", "grep", "find", "ls", "tree", "think", SHARED_CONTEXT];

/// What an agent gets in the tallow face when its file names no tools.
pub const WORKING: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// The tools that an agent may be given where nothing may be changed.
pub(crate) const CHANGING_NOTHING: [&str; 10] =
    ["read", "grep", "find", "ls", "tree", "think", SHARED_CONTEXT, MANAGE_TASKS, "web_fetch", "web_search"];

/// The tools that read files; what is said about the first in a rule holds for all.
pub(crate) const READING_FILES: [&str; 5] = ["read", "grep", "find", "ls", "tree"];

/// The tools that write files; what is said about the first in a rule holds for all.
pub(crate) const WRITING: [&str; 2] = ["write", "edit"];

/// Every tool of locum's own; servers and applications have more.
pub const OURS: [&str; 14] = [
    "read",
    "write",
    "edit",
    "bash",
    "grep",
    "find",
    "ls",
    "tree",
    "think",
    "web_fetch",
    "web_search",
    SUBAGENT,
    SHARED_CONTEXT,
    MANAGE_TASKS,
];

/// Other spellings of our tools, from other systems' agent files.
const ALIASES: [(&str, &str); 29] = [
    ("Read", "read"),
    ("read_file", "read"),
    ("Write", "write"),
    ("write_file", "write"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("edit_file", "edit"),
    ("Bash", "bash"),
    ("exec", "bash"),
    ("run_shell_command", "bash"),
    ("Grep", "grep"),
    ("Glob", "find"),
    ("glob", "find"),
    ("Find", "find"),
    ("LS", "ls"),
    ("Ls", "ls"),
    ("list_dir", "ls"),
    ("list_directory", "ls"),
    ("DirectoryTree", "tree"),
    ("Tree", "tree"),
    ("Think", "think"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("Agent", SUBAGENT),
    ("Subagent", SUBAGENT),
    ("Task", SUBAGENT),
    ("SharedContext", SHARED_CONTEXT),
    ("shared-context", SHARED_CONTEXT),
    ("ManageTasks", MANAGE_TASKS),
];

/// Tools of other systems that locum does not have, with what to do without them.
pub(super) const ELSEWHERE: [(&str, &str); 9] = [
    ("Skill", "locum has no skills yet"),
    ("NotebookEdit", "notebooks are edited as files, with `edit`"),
    ("NotebookRead", "notebooks are read as files, with `read`"),
    ("TodoWrite", "`think` and `shared_context` keep notes"),
    ("BashOutput", "`bash` answers when its command has ended"),
    ("KillShell", "`bash` answers when its command has ended"),
    ("KillBash", "`bash` answers when its command has ended"),
    ("AskUserQuestion", "an agent asks nobody: it answers with what it does not know"),
    ("ExitPlanMode", "there is no plan mode"),
];

/// Our name of a tool that may be written as another system writes it.
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, ours)| ours)
}

/// Whether an entry of a tool list stands for this tool: by name, or as `mcp__server` or `mcp__server__*` for all
/// tools of a server.
pub fn covers(entry: &str, tool: &str) -> bool {
    if canonical(entry) == tool {
        return true;
    }
    let server = entry.strip_suffix("__*").unwrap_or(entry);
    let is_server = server.strip_prefix("mcp__").is_some_and(|name| !name.is_empty() && !name.contains("__"));
    is_server && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_leads_to_a_tool_and_none_is_one() {
        for (alias, ours) in ALIASES {
            assert!(OURS.contains(&ours), "{alias}");
            assert!(!OURS.contains(&alias), "{alias}");
            assert_eq!(canonical(alias), ours);
        }
        assert_eq!(canonical("mcp__github__search"), "mcp__github__search");
    }

    #[test]
    fn a_server_stands_for_its_tools() {
        for (entry, tool, expected) in [
            ("Bash", "bash", true),
            ("bash", "bash", true),
            ("mcp__github", "mcp__github__search", true),
            ("mcp__github__*", "mcp__github__search", true),
            ("mcp__github__search", "mcp__github__search", true),
            ("mcp__git", "mcp__github__search", false),
            ("mcp__github__s", "mcp__github__search", false),
            ("mcp__", "mcp__github__search", false),
            ("read", "bash", false),
        ] {
            assert_eq!(covers(entry, tool), expected, "{entry} {tool}");
        }
    }
}
