//! The names of tools: what other systems call ours, and which sets stand for "the reading tools".

/// The tool through which agents delegate.
pub const SUBAGENT: &str = "subagent";
/// The tool through which agents share state.
pub const SHARED_CONTEXT: &str = "shared_context";

/// What an agent gets in the native face when its file names no tools.
pub const READING: [&str; 7] = ["read", "grep", "find", "ls", "tree", "think", SHARED_CONTEXT];

/// Other spellings of our tools, from other systems' agent files.
const ALIASES: [(&str, &str); 21] = [
    ("Read", "read"),
    ("read_file", "read"),
    ("Write", "write"),
    ("write_file", "write"),
    ("Edit", "edit"),
    ("Bash", "bash"),
    ("exec", "bash"),
    ("Grep", "grep"),
    ("Glob", "find"),
    ("Find", "find"),
    ("LS", "ls"),
    ("list_dir", "ls"),
    ("DirectoryTree", "tree"),
    ("Tree", "tree"),
    ("Think", "think"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("Agent", SUBAGENT),
    ("Subagent", SUBAGENT),
    ("Task", SUBAGENT),
    ("SharedContext", SHARED_CONTEXT),
];

/// Our name of a tool that may be written as another system writes it.
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, ours)| ours)
}
