//! `locum mcp install`: what it shows, and what it does to the files of hosts.

use std::fs;

use serde_json::{Value, json};

use crate::home::Home;

/// A host, its file for a user and its file for a project.
const HOSTS: &[(&str, &str, &str)] = &[
    ("claude", ".claude.json", ".mcp.json"),
    ("codex", ".codex/config.toml", ".codex/config.toml"),
    ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json", ".vscode/mcp.json"),
    ("zed", ".config/zed/settings.json", ".zed/settings.json"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
];

/// What a project's file of a host says when there is nothing else in it.
fn words(host: &str) -> String {
    let with_type = "\"type\": \"stdio\",\n      ";
    let (folder, kind) = match host {
        "codex" => return "[mcp_servers.locum]\ncommand = \"locum\"\nargs = [\"mcp\"]\n".to_owned(),
        "claude" => ("mcpServers", with_type),
        "vscode" => ("servers", with_type),
        "zed" => ("context_servers", ""),
        _ => ("mcpServers", ""),
    };
    let entry = format!("\"locum\": {{\n      {kind}\"command\": \"locum\",\n      \"args\": [\"mcp\"]\n    }}");
    format!("{{\n  \"{folder}\": {{\n    {entry}\n  }}\n}}\n")
}

#[test]
fn the_words_are_shown_and_nothing_is_written() {
    for (host, file, _) in HOSTS {
        let home = Home::new();
        let ran = home.locum(&["mcp", "install", host, "--project"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), words(host).as_str()), "{host}");
        assert!(ran.stderr.contains("--write"), "{ran:?}");
        let ran = home.locum(&["mcp", "install", host]);
        assert!(ran.stderr.contains(file), "{ran:?}");
        // A user's file names the program where it is.
        assert!(ran.stdout.contains("/locum\""), "{ran:?}");
        assert!(!home.project().join(".mcp.json").exists());
    }
}

#[test]
fn the_words_are_written_once_and_the_rest_stays() {
    for (host, _, file) in HOSTS {
        let home = Home::new();
        let path = home.project().join(file);
        let ran = home.locum(&["mcp", "install", host, "--project", "--write", "--json"]);
        let said: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&said["changed"], &said["host"]), (&json!(true), &json!(host)), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), words(host));
        let again = home.locum(&["mcp", "install", host, "--project", "--write", "--json"]);
        assert!(again.stdout.contains("\"changed\":false"), "{again:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), words(host));
        // Beside what is there.
        let named = home.locum(&["mcp", "install", host, "--project", "--write", "--name", "other", "--face", "pi"]);
        assert_eq!(named.code, Some(0), "{named:?}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("other") && text.contains("locum") && text.contains("--face"), "{text}");
        // One that cannot be understood is left alone.
        fs::write(&path, "{ broken").unwrap();
        let refused = home.locum(&["mcp", "install", host, "--project", "--write"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("line 1") && refused.stderr.contains("nothing was changed"), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ broken");
    }
}

#[test]
fn a_linked_file_is_changed_where_it_is() {
    let home = Home::new();
    let real = home.project().join("dotfiles.json");
    fs::write(&real, "{\n  // kept\n  \"a\": 1\n}\n").unwrap();
    std::os::unix::fs::symlink(&real, home.project().join(".mcp.json")).unwrap();
    let ran = home.locum(&["mcp", "install", "claude", "--project", "--write"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::symlink_metadata(home.project().join(".mcp.json")).unwrap().is_symlink());
    let text = fs::read_to_string(&real).unwrap();
    assert!(text.starts_with("{\n  // kept\n  \"a\": 1,\n  \"mcpServers\": {"), "{text}");
}

#[test]
fn what_makes_no_sense_is_said() {
    let home = Home::new();
    for arguments in
        [vec!["mcp", "install", "moon"], vec!["mcp", "install"], vec!["mcp", "install", "zed", "--name", "a b"]]
    {
        assert_eq!(home.locum(&arguments).code, Some(2), "{arguments:?}");
    }
}
