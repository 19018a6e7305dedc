//! Names that programs outside of locum act on: whoever writes there runs code, or changes what agents may do. Writing
//! to them takes a rule that names them. It is the one list: file tools refuse these names wherever they are in a path,
//! and the sandbox keeps commands from changing or making those at a project's root.

/// Directories of a project that agents are read from, and their settings. Making one changes what agents there are, so
/// commands are kept from that from the first moment.
pub const AGENT_DIRECTORIES: [&str; 5] = [".locum", ".claude", ".acai", ".pi", ".tallow"];

/// Further names that protect everything beneath them too, wherever they are in a path.
const NAMES: [&str; 47] = [
    // git runs hooks and obeys its configuration.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".githooks",
    ".husky",
    // Settings of agents.
    ".claude.json",
    ".cursor",
    ".cursorrules",
    ".codex",
    ".gemini",
    ".opencode",
    ".windsurf",
    ".mcp.json",
    // Editors and shells that run what they find.
    ".vscode",
    ".idea",
    ".devcontainer",
    ".envrc",
    ".direnv",
    // What a shell reads at its start.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".pam_environment",
    // Keys, and who may log in.
    ".ssh",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".aws",
    ".docker",
];

/// The same for two names in a row.
const PAIRS: [(&str, &str); 7] = [
    (".config", "locum"),
    (".config", "git"),
    (".config", "fish"),
    (".config", "systemd"),
    (".config", "autostart"),
    (".cargo", "config.toml"),
    (".cargo", "config"),
];

/// The protected name in a path, if there is one. Letters are compared without their case, as some file systems do.
pub fn protected_name(path: &str) -> Option<&'static str> {
    let parts: Vec<String> = path.split('/').map(plain).collect();
    let single = AGENT_DIRECTORIES.iter().chain(&NAMES).find(|name| parts.iter().any(|part| part == *name));
    let pair = |(first, second): &&(&str, &str)| parts.windows(2).any(|two| two[0] == *first && two[1] == *second);
    single.copied().or_else(|| PAIRS.iter().find(pair).map(|(_, second)| *second))
}

/// Every protected name, as a path below a project's root.
pub fn protected_paths() -> impl Iterator<Item = String> {
    let names = AGENT_DIRECTORIES.iter().chain(&NAMES).map(|name| (*name).to_owned());
    names.chain(PAIRS.iter().map(|(first, second)| format!("{first}/{second}")))
}

/// A name as the laxest file system compares it: without case, invisible characters and dots or blanks at its end.
fn plain(part: &str) -> String {
    let visible = part.chars().filter(|char| !matches!(char, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'));
    let lower: String = visible.flat_map(char::to_lowercase).collect();
    lower.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_list_is_protected_and_is_there_once() {
        let mut paths: Vec<String> = protected_paths().collect();
        assert!(paths.iter().all(|path| protected_name(path).is_some()));
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }

    #[test]
    fn protected_names_are_found_anywhere() {
        for (path, expected) in [
            (".git/config", Some(".git")),
            (".git", Some(".git")),
            (".GIT/hooks/pre-commit", Some(".git")),
            (".git /hooks/pre-commit", Some(".git")),
            (".g\u{200c}it/config", Some(".git")),
            ("vendor/sub/.git/hooks/post-checkout", Some(".git")),
            (".claude/agents/a.md", Some(".claude")),
            (".locum/config.toml", Some(".locum")),
            ("home/.bashrc", Some(".bashrc")),
            (".config/locum/config.toml", Some("locum")),
            (".config/other/x", None),
            (".gitignore", None),
            (".github/workflows/ci.yml", None),
            ("src/git/config", None),
            ("locum/src/a.rs", None),
            (".profile.md", None),
            ("", None),
        ] {
            assert_eq!(protected_name(path), expected, "{path}");
        }
    }
}
