//! Manual pages: one for each verb, with what `--help` says, and readable by `man`.

use std::process::Command;

use crate::completions::is_there;
use crate::home::{Home, run};

#[test]
fn there_is_a_page_for_every_verb_and_man_reads_it() {
    let home = Home::new();
    let directory = home.root().join("man/man1");
    let ran = home.locum(&["man", directory.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_else(|_| panic!("no {name}"));
    for (name, says) in [
        ("locum.1", "Ask a specialist, get an answer"),
        ("locum-run.1", "Ask one agent and wait for its answer"),
        ("locum-agents-lint.1", "\\-\\-for"),
        ("locum-context-session-delete.1", "Do not ask"),
        ("locum-man.1", "manual page"),
    ] {
        assert!(page(name).contains(says), "{name}: {}", page(name));
    }
    let names = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden = names.into_iter().any(|name| name.to_string_lossy().contains("__"));
    assert!(!hidden, "what is hidden has no page");
    assert_eq!(home.locum(&["man"]).stdout, page("locum.1"));
    if !is_there("groff") {
        return;
    }
    // What the formatter would complain about, it says on standard error.
    for name in ["locum.1", "locum-run.1", "locum-serve.1"] {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(directory.join(name));
        let ran = run(groff, b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
    }
    let file = home.write("a-file", "");
    let refused = home.locum(&["man", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("cannot be made"), "{}", refused.stderr);
}
