//! Agent files as people and programs write them, and what becomes of each: the agent with its remarks, or the errors
//! with their places. The files lie beside this one, a directory for each dialect; what cannot be seen in an editor is
//! made here.

use std::path::Path;

use locum_core::agent::markdown::{self, Reading};
use locum_core::agent::note::{Note, Place};
use locum_core::agent::{Dialect, Source, defaults, hidden};
use proptest::prelude::*;

/// What a file becomes, as text.
fn shown(bytes: &[u8], stem: &str, dialect: Dialect) -> String {
    match markdown::read(bytes, stem, Source::Application, dialect) {
        Ok(reading) => format!("{}{}", agent(&reading), notes(&reading.notes)),
        Err(broken) => format!("not an agent\n{}", notes(broken.notes())),
    }
}

fn agent(reading: &Reading) -> String {
    let value = serde_json::to_value(&reading.agent).unwrap();
    let fields = value.as_object().unwrap();
    let mut text = String::new();
    for (field, value) in fields {
        // The same in every case.
        if matches!(field.as_str(), "source" | "version") || (field == "sampling" && value == &serde_json::json!({})) {
            continue;
        }
        let json = hidden::escape(&value.to_string());
        let long = json.chars().count() > 300;
        let value = if long { format!("{}… ({} bytes)", &json[..60], json.len()) } else { json };
        text.push_str(&format!("  {field} = {value}\n"));
    }
    let written = |(field, origin): (&String, &locum_core::agent::Origin)| {
        let Place { line, column } = origin.at;
        let spelled = if &origin.written == field { String::new() } else { format!(" as {}", origin.written) };
        format!("{field} {line}:{column}{spelled}")
    };
    let origins: Vec<String> = reading.origins.iter().map(written).collect();
    format!("{text}  from {}\n", origins.join(", "))
}

fn notes(notes: &[Note]) -> String {
    notes.iter().map(|note| format!("  {} {note}\n", note.severity.as_str())).collect()
}

/// Every file of a directory, by name.
fn report(directory: &str, show: impl Fn(&[u8], &str) -> String) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core/agent_files").join(directory);
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut text = String::new();
    for path in paths {
        let stem = path.file_stem().unwrap().to_string_lossy();
        text.push_str(&format!("{stem}\n{}\n", show(&std::fs::read(&path).unwrap(), &stem)));
    }
    text
}

#[test]
fn every_dialect_is_read_as_its_documents_say() {
    for (directory, dialect) in [
        ("native", Dialect::Native),
        ("claude", Dialect::Claude),
        ("acai", Dialect::Acai),
        ("tallow", Dialect::Tallow),
        ("pi", Dialect::Pi),
    ] {
        insta::assert_snapshot!(directory, report(directory, |bytes, stem| shown(bytes, stem, dialect)));
    }
}

#[test]
fn mistakes_are_named_with_their_place_and_remedy() {
    for directory in ["warned", "broken"] {
        insta::assert_snapshot!(directory, report(directory, |bytes, stem| shown(bytes, stem, Dialect::Native)));
    }
}

#[test]
fn defaults_are_read_like_agents() {
    let show = |bytes: &[u8], _: &str| match defaults::read(bytes) {
        Ok(read) => {
            let (missing, fallback) = (read.defaults.missing_agent, &read.defaults.fallback_agent);
            let fields =
                Reading { agent: read.defaults.fields().clone(), notes: Vec::new(), origins: read.origins.clone() };
            format!("{}  missing {missing:?}, fallback {fallback:?}\n{}", agent(&fields), notes(&read.notes))
        }
        Err(broken) => format!("no defaults\n{}", notes(broken.notes())),
    };
    insta::assert_snapshot!("defaults", report("defaults", show));
}

/// Files that an editor does not show as they are, or that are too large to keep.
fn unseen() -> Vec<(&'static str, Vec<u8>)> {
    let plain = "---\nname: plain\ndescription: d\ntools: Read, Grep\n---\nOne.\nTwo.\n";
    let with = |field: &str| format!("---\ndescription: d\n{field}\n---\nBody.\n").into_bytes();
    let nested = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let deep_block: String = (0..40).map(|depth| format!("{}a:\n", " ".repeat(depth + 1))).collect();
    vec![
        ("crlf", plain.replace('\n', "\r\n").into_bytes()),
        ("bom", format!("\u{feff}{plain}").into_bytes()),
        ("bom-and-crlf", format!("\u{feff}{plain}").replace('\n', "\r\n").into_bytes()),
        ("crlf-broken", b"---\r\ndescription: d\r\nmaxTurns: x\r\n---\r\nBody.\r\n".to_vec()),
        ("no-newline-at-the-end", plain.trim_end().as_bytes().to_vec()),
        ("spaces-after-dashes", plain.replace("---\n", "---  \n").into_bytes()),
        ("latin-1", b"---\ndescription: caf\xe9\n---\nBody.\n".to_vec()),
        ("latin-1-in-the-body", b"---\ndescription: d\n---\nOne.\nCaf\xe9.\n".to_vec()),
        ("utf-16", b"\xff\xfe-\0-\0-\0\n\0".to_vec()),
        ("nul", with("model: a\0b")),
        ("right-to-left-override", with("model: abc\u{202e}def")),
        ("right-to-left-in-quotes", with("model: \"abc\\u202Edef\"")),
        ("escape-in-quotes", with("color: \"\\e[31mred\"")),
        ("tags-in-the-body", format!("{plain}Do it.\u{e0041}\u{e0042}\u{e007f}\n").into_bytes()),
        ("many-hidden", format!("{plain}{}\n", "\u{2066}".repeat(50)).into_bytes()),
        ("emoji-and-arabic", "---\ndescription: 👩‍🔬 يراجع\n---\n👨‍👩‍👧 می‌خواهم ❤️\n".as_bytes().to_vec()),
        ("hidden-in-a-broken-file", "---\nname: a\u{200b}b\n---\nBody.\n".as_bytes().to_vec()),
        ("frontmatter-of-17-kib", with(&format!("# {}", "x".repeat(17 * 1024)))),
        ("file-of-300-kib", format!("{plain}{}", "x".repeat(300 * 1024)).into_bytes()),
        ("file-of-256-kib", format!("{plain}{}", "x".repeat(256 * 1024 - plain.len())).into_bytes()),
        ("deep-lists", with(&format!("hooks: {}", nested("[", "]", 5000)))),
        ("deep-maps", with(&format!("hooks: {}", nested("{a: ", "}", 1000)))),
        ("deep-blocks", with(&format!("hooks:\n{deep_block}"))),
        ("deep-but-allowed", with(&format!("hooks: {}", nested("[", "]", 30)))),
        ("many-values", with(&format!("hooks: [{}]", "1, ".repeat(2000)))),
        ("many-tools", with(&format!("tools: [{}]", "read, ".repeat(129)))),
    ]
}

#[test]
fn bytes_that_are_not_seen_are_read_or_named() {
    let text: String = unseen()
        .into_iter()
        .map(|(name, bytes)| format!("{name}\n{}\n", shown(&bytes, "stem", Dialect::Native)))
        .collect();
    insta::assert_snapshot!("unseen", text);
}

#[test]
fn line_endings_and_the_byte_order_mark_change_nothing() {
    let read = |name: &str| {
        let bytes = unseen().into_iter().find(|(known, _)| *known == name).unwrap().1;
        markdown::read(&bytes, "stem", Source::Bundled, Dialect::Native).unwrap()
    };
    assert_eq!(read("crlf"), read("bom"));
    assert_eq!(read("bom-and-crlf"), read("bom"));
    assert_eq!(read("spaces-after-dashes").agent, read("bom").agent);
}

/// Pieces of files, so that chance finds its way into the fields.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "---\n",
        "\n",
        "description: ",
        "tools: ",
        "name: ",
        "maxTurns: ",
        "timeout_mins: ",
        "locum: ",
        "hooks:\n  ",
        "[",
        "]",
        "{",
        "}",
        ": ",
        ", ",
        "- ",
        "'",
        "\"",
        "|\n  ",
        "> ",
        "&a ",
        "*a ",
        "!!str ",
        "\t",
        "# ",
        "\u{202e}",
        "\\",
        "%",
        "@",
        "1e999",
        "-1",
        "Bash(",
        ")",
        "extends: ",
        "budget: ",
        "\r\n",
        "\u{feff}",
        "é",
        "🦀",
        "? ",
    ];
    prop_oneof![prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), "[ -~]{0,8}"]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drop(shown(&bytes, "stem", Dialect::Acai));
        drop(defaults::read(&bytes));
    }

    #[test]
    fn no_pieces_make_it_panic_and_every_note_is_in_the_file(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = format!("---\n{}\n---\nBody.\n", pieces.concat());
        let lines = text.split('\n').count();
        let notes = match markdown::read(text.as_bytes(), "stem", Source::Bundled, Dialect::Native) {
            Ok(reading) => reading.notes,
            Err(broken) => broken.into_notes(),
        };
        for note in notes {
            prop_assert!(note.at.line >= 1 && note.at.line <= lines && note.at.column >= 1, "{note} in {text:?}");
            prop_assert!(!note.message.contains(char::is_control), "{note:?}");
        }
    }
}
