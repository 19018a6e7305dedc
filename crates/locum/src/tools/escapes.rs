//! Attempts to leave the root, to hang and to exhaust: each tool against each trick. The oracle is a secret in a file
//! beside the root.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use locum_core::limits::TOOL_OUTPUT_BYTES_MAX;
use locum_core::task::KnownFiles;
use locum_core::transcript::{ToolEnd, ToolOutput};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::edit::Edit;
use super::find::Find;
use super::fixture::{CANARY, Fixture};
use super::grep::Grep;
use super::ls::Ls;
use super::read::Read;
use super::tree::Tree;
use super::write::Write;

/// A root with every way out and every obstacle.
fn hostile() -> Fixture {
    let fixture = Fixture::new(&[("src/main.rs", "fn main() {}\n"), ("src/deep/er/file.txt", "inside\n")]);
    let outside = fixture.outside();
    fixture.link(outside.join("canary.txt"), "file_out");
    fixture.link("../outside/canary.txt", "file_out_relative");
    fixture.link(&outside, "directory_out");
    fixture.link("../outside", "src/../directory_out_relative");
    fixture.link("chain_2", "chain_1");
    fixture.link("chain_3", "chain_2");
    fixture.link("src/../../outside/canary.txt", "chain_3");
    fixture.link("loop_2", "loop_1");
    fixture.link("loop_1", "loop_2");
    fixture.link(".", "self");
    fixture.link("/proc/self/root", "proc_root");
    fixture.link("/dev/zero", "zero");
    fixture.link("src/main.rs", "inside_link");
    fixture.link("src", "inside_directory");
    fixture.fifo("fifo");
    fixture.fifo("src/.gitignore");
    fixture.link(outside.join("canary.txt"), ".ignore");
    drop(UnixListener::bind(fixture.root().join("socket")).unwrap());
    fixture
}

/// Every tool that takes a path, with that path.
fn ask_all(fixture: &Fixture, path: &str) -> Vec<(&'static str, ToolOutput)> {
    vec![
        ("read", fixture.call::<Read>(json!({ "path": path }))),
        ("grep", fixture.call::<Grep>(json!({ "pattern": ".", "path": path }))),
        ("find", fixture.call::<Find>(json!({ "pattern": "*", "path": path }))),
        ("ls", fixture.call::<Ls>(json!({ "path": path }))),
        ("tree", fixture.call::<Tree>(json!({ "path": path, "depth": 10 }))),
    ]
}

fn assert_harmless(path: &str, tool: &str, output: &ToolOutput) {
    assert!(!output.text.contains(CANARY), "{tool} {path:?}: {}", output.text);
    assert!(output.text.len() <= TOOL_OUTPUT_BYTES_MAX, "{tool} {path:?}");
}

#[test]
fn no_path_leads_outside() {
    let fixture = hostile();
    let outside = fixture.outside();
    let absolute = |name: &str| outside.join(name).to_str().unwrap().to_owned();
    let through_root = |name: &str| format!("{}/{name}", fixture.root().to_str().unwrap());
    for path in [
        "..",
        "../outside",
        "../outside/canary.txt",
        "src/../../outside/canary.txt",
        "src/deep/../../../outside/canary.txt",
        "././../outside/canary.txt",
        "/",
        "/etc",
        "/etc/passwd",
        "/proc/self/environ",
        &absolute("canary.txt"),
        &absolute(""),
        &through_root("../outside/canary.txt"),
        &format!("{}x/../outside/canary.txt", through_root("").trim_end_matches('/')),
        "file_out",
        "file_out_relative",
        "directory_out",
        "directory_out/canary.txt",
        "directory_out/.",
        "directory_out_relative/canary.txt",
        "directory_out/../root/src/main.rs",
        "chain_1",
        "self/self/../../outside/canary.txt",
        "inside_directory/../../outside/canary.txt",
        "proc_root",
        "proc_root/etc/passwd",
        "zero",
    ] {
        for (tool, output) in ask_all(&fixture, path) {
            assert_harmless(path, tool, &output);
            assert_eq!(output.end, ToolEnd::Denied, "{tool} {path:?}: {}", output.text);
            assert!(output.text.contains("outside the task's directory"), "{tool} {path:?}: {}", output.text);
        }
    }
}

#[test]
fn obstacles_are_named_and_do_not_hang() {
    let fixture = hostile();
    let long = "x/".repeat(1 << 19);
    let long_name = "x".repeat(300);
    let deep = "x/".repeat(2_000);
    for (path, expected) in [
        ("loop_1", "`loop_1` leads through too many symbolic links"),
        ("fifo", "is a FIFO"),
        ("socket", "is a socket"),
        ("a\0b", "the path contains a NUL character"),
        (long.as_str(), "the path is too long: 1048576 bytes"),
        (long_name.as_str(), "cannot be read: File name too long"),
        (deep.as_str(), "no such file: x/x/"),
        ("~/x", "no such file: ~/x"),
        ("src/main.rs/x", "no such file: src/main.rs/x"),
        ("\u{1b}[31m", "no such file: \\u{1b}[31m"),
    ] {
        for (tool, output) in ask_all(&fixture, path) {
            assert_harmless(path, tool, &output);
            assert_eq!(output.end, ToolEnd::Failed, "{tool}: {}", output.text);
            assert!(output.text.contains(expected), "{tool}: {}", output.text);
        }
    }
}

#[test]
fn links_inside_are_followed_when_named_and_not_walked_through() {
    let fixture = hostile();
    for path in ["inside_link", "inside_directory/main.rs", "self/self/src/main.rs", "src/../src/main.rs"] {
        assert_eq!(fixture.ask::<Read>(json!({ "path": path })), "1\tfn main() {}", "{path}");
        let found = fixture.ask::<Grep>(json!({"pattern": "main", "path": path}));
        assert_eq!(found, "src/main.rs:1:fn main() {}", "{path}");
    }
    // The walk from the top meets every link, the FIFOs and the socket.
    let found = fixture.ask::<Grep>(json!({"pattern": "main|inside|canary"}));
    assert_eq!(found, "src/deep/er/file.txt:1:inside\nsrc/main.rs:1:fn main() {}");
}

#[test]
fn a_root_that_cannot_be_opened_is_an_error_of_the_tool_layer() {
    let mut fixture = Fixture::new(&[("file", "")]);
    for root in ["missing", "file"] {
        fixture.scope.root = fixture.root().parent().unwrap().join(root);
        let input = super::input::parse::<Ls>(json!({})).unwrap();
        let error = super::reading::run(input, fixture.scope.clone()).unwrap_err();
        assert!(error.to_string().contains("cannot be opened"), "{error}");
    }
}

#[test]
fn directories_can_be_deeper_than_a_path_is_long() {
    let fixture = Fixture::new(&[("top.txt", "needle\n")]);
    let mut directory = Dir::open_ambient_dir(fixture.root(), ambient_authority()).unwrap();
    let name = "d".repeat(200);
    for _ in 0..40 {
        directory.create_dir(&name).unwrap();
        directory = directory.open_dir(&name).unwrap();
    }
    directory.write("bottom.txt", "needle\n").unwrap();
    let found = fixture.ask::<Grep>(json!({"pattern": "needle"}));
    assert_eq!(found, "top.txt:1:needle\n[1 directory could not be read]");
    let found = fixture.ask::<Find>(json!({"pattern": "*.txt"}));
    assert_eq!(found, "top.txt\n[1 directory could not be read]");
    assert_eq!(fixture.ask::<Tree>(json!({"depth": 99})).lines().count(), 12);
}

#[test]
fn hostile_ignore_files_cost_little_and_the_search_goes_on() {
    let fixture = Fixture::new(&[("a/b/c/file.txt", "needle\n"), ("a/skipped.txt", "needle\n")]);
    let heavy = format!("skipped.txt\n{}\n[\n{{{{\n**/**/**\\\n", "{a,b}?[!x]".repeat(50)).repeat(2_000);
    for directory in ["", "a", "a/b", "a/b/c"] {
        fixture.write(format!("{directory}/.ignore").trim_start_matches('/'), &heavy);
        fixture.write(format!("{directory}/.gitignore").trim_start_matches('/'), b"\xff\xfe\0\n".repeat(1_000));
    }
    let start = Instant::now();
    let text = fixture.ask::<Grep>(json!({"pattern": "needle"}));
    assert!(text.contains("a/b/c/file.txt:1:needle"), "{text}");
    // Minutes would be exponential; a busy machine alone takes seconds.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn names_that_are_not_text_are_shown_lossily() {
    let fixture = Fixture::new(&[]);
    fixture.write(OsStr::from_bytes(b"\xff\xfe.txt"), "needle\n");
    fixture.write("line\nbreak.txt", "needle\n");
    assert_eq!(
        fixture.ask::<Grep>(json!({"pattern": "needle"})),
        "line\\nbreak.txt:1:needle\n\u{fffd}\u{fffd}.txt:1:needle"
    );
    for text in [fixture.ask::<Ls>(json!({})), fixture.ask::<Find>(json!({"pattern": "txt"}))] {
        assert!(text.starts_with("line\\nbreak.txt") && text.contains("\n\u{fffd}\u{fffd}.txt"), "{text}");
    }
    assert_eq!(fixture.ask::<Tree>(json!({})), "./\n  line\\nbreak.txt\n  \u{fffd}\u{fffd}.txt");
}

#[test]
fn a_stopped_call_ends_at_once() {
    let fixture = hostile();
    for number in 0..200 {
        fixture.write(format!("many/{number}.txt"), "needle\n".repeat(1_000));
    }
    fixture.scope.stop.cancel();
    let start = Instant::now();
    for input in [json!({"pattern": "needle"}), json!({"pattern": "needle", "path": "many/1.txt"})] {
        assert_eq!(fixture.call::<Grep>(input), super::beneath::stopped());
    }
    assert_eq!(fixture.call::<Read>(json!({"path": "src/main.rs"})), super::beneath::stopped());
    assert_eq!(fixture.call::<Find>(json!({"pattern": "*"})), super::beneath::stopped());
    assert_eq!(fixture.call::<Ls>(json!({})), super::beneath::stopped());
    assert_eq!(fixture.call::<Tree>(json!({})), super::beneath::stopped());
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_directory_exchanged_for_a_link_does_not_lead_outside() {
    let fixture = Fixture::new(&[("swap/a.txt", "inside\n")]);
    let (root, outside) = (fixture.root().to_owned(), fixture.outside());
    let is_done = AtomicBool::new(false);
    let outputs = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                fs::rename(root.join("swap"), root.join("kept")).unwrap();
                std::os::unix::fs::symlink(&outside, root.join("swap")).unwrap();
                fs::remove_file(root.join("swap")).unwrap();
                fs::rename(root.join("kept"), root.join("swap")).unwrap();
            }
        });
        let paths = ["swap", "swap/canary.txt", "."].into_iter().cycle().take(180);
        let outputs: Vec<_> = paths.map(|path| (path, ask_all(&fixture, path))).collect();
        is_done.store(true, Ordering::Relaxed);
        outputs
    });
    for (path, outputs) in outputs {
        outputs.iter().for_each(|(tool, output)| assert_harmless(path, tool, output));
    }
}

/// Parts that are interesting in a path.
const PARTS: &[&str] = &[
    "..",
    ".",
    "",
    "src",
    "self",
    "file_out",
    "directory_out",
    "directory_out_relative",
    "chain_1",
    "chain_3",
    "canary.txt",
    "outside",
    "root",
    "proc_root",
    "inside_directory",
    "deep",
    "fifo",
    "loop_1",
    ".git",
    "~",
    "\0",
    "\u{202e}",
    "tmp",
    "zero",
    "*",
];

/// Where a path begins: at the working directory, at the root directory of the system, or at the task's root.
const BEGINNINGS: &[&str] = &["", "/", "{root}/", "{root}/../"];

#[test]
fn whatever_the_path_no_output_contains_the_canary() {
    let part = prop_oneof![8 => prop::sample::select(PARTS).prop_map(str::to_owned), 1 => ".{0,8}"];
    let beginning = prop::sample::select(BEGINNINGS);
    let cwd = prop::sample::select(&["", "src", "src/deep", "missing", "directory_out"][..]);
    let cases = (cwd, beginning, prop::collection::vec(part, 0..9));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(500));
    let fixture = std::cell::RefCell::new(hostile());
    let outcome = runner.run(&cases, |(cwd, beginning, parts)| {
        fixture.borrow_mut().scope.cwd = cwd.into();
        let fixture = fixture.borrow();
        let root = fixture.root().to_str().expect("temporary directories have plain names");
        let path = format!("{}{}", beginning.replace("{root}", root), parts.join("/"));
        for (tool, output) in ask_all(&fixture, &path) {
            prop_assert!(!output.text.contains(CANARY), "{} {:?}: {}", tool, path, output.text);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn every_field_is_checked() {
    let fixture = Fixture::new(&[]);
    let ask: [fn(&Fixture, Value) -> String; 5] =
        [Fixture::ask::<Read>, Fixture::ask::<Grep>, Fixture::ask::<Find>, Fixture::ask::<Ls>, Fixture::ask::<Tree>];
    let cases = [
        (json!({}), "missing field `path`"),
        (json!({"pattern": "a", "regex": 1}), "unknown field `regex`"),
        (json!({"pattern": 7}), "`pattern`: invalid type: integer `7`"),
        (json!({"path": []}), "`path`: invalid type: sequence"),
        (json!({"depth": -1}), "`depth`: invalid value: integer `-1`"),
    ];
    for (ask, (input, expected)) in ask.into_iter().zip(cases) {
        let text = ask(&fixture, input);
        assert!(text.starts_with("failed: invalid input: ") && text.contains(expected), "{text}");
    }
}

/// What is outside, by name and content.
fn state_outside(fixture: &Fixture) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let above = fixture.root().parent().unwrap();
    let mut files = Vec::new();
    let mut directories = vec![above.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path == fixture.root() {
                continue;
            }
            if path.is_dir() {
                directories.push(path.clone());
            }
            let content = fs::read(&path).unwrap_or_default();
            files.push((path, content));
        }
    }
    files.sort();
    files
}

/// Every tool that writes, with that path.
fn write_all(fixture: &Fixture, path: &str) -> Vec<(&'static str, ToolOutput)> {
    let mut known = KnownFiles::default();
    fixture.know(&mut known, path);
    vec![
        ("write", fixture.change::<Write>(&mut known, json!({"path": path, "content": "escaped"}))),
        ("edit", fixture.change::<Edit>(&mut known, json!({"path": path, "old": "canary", "new": "escaped"}))),
    ]
}

#[test]
fn nothing_is_written_outside() {
    let fixture = hostile();
    let before = state_outside(&fixture);
    let outside = fixture.outside();
    let absolute = |name: &str| outside.join(name).to_str().unwrap().to_owned();
    for path in [
        "../new.txt",
        "../outside/canary.txt",
        "../outside/new.txt",
        "src/../../outside/new.txt",
        "/tmp/locum-escape.txt",
        &absolute("canary.txt"),
        &absolute("new.txt"),
        "file_out",
        "file_out_relative",
        "directory_out/canary.txt",
        "directory_out/new.txt",
        "directory_out/deep/new.txt",
        "directory_out_relative/new.txt",
        "chain_1",
        "self/self/../../outside/new.txt",
        "inside_directory/../../outside/new.txt",
        "proc_root/tmp/locum-escape.txt",
        "zero",
    ] {
        for (tool, output) in write_all(&fixture, path) {
            assert_eq!(output.end, ToolEnd::Denied, "{tool} {path:?}: {}", output.text);
        }
    }
    assert_eq!(state_outside(&fixture), before);
    assert!(!std::path::Path::new("/tmp/locum-escape.txt").exists());
}

#[test]
fn whatever_the_path_nothing_outside_changes() {
    let part = prop_oneof![8 => prop::sample::select(PARTS).prop_map(str::to_owned), 1 => ".{0,8}"];
    let beginning = prop::sample::select(BEGINNINGS);
    let cwd = prop::sample::select(&["", "src", "src/deep", "missing", "directory_out"][..]);
    let cases = (cwd, beginning, prop::collection::vec(part, 0..9));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    let fixture = std::cell::RefCell::new(hostile());
    let before = state_outside(&fixture.borrow());
    let outcome = runner.run(&cases, |(cwd, beginning, parts)| {
        fixture.borrow_mut().scope.cwd = cwd.into();
        let fixture = fixture.borrow();
        // What begins elsewhere stays elsewhere: nobody wants this test to write to the system's own directories.
        let root = fixture.root().to_str().expect("temporary directories have plain names");
        let beginning = if beginning == "/" { "/nonexistent-locum/" } else { beginning };
        let path = format!("{}{}", beginning.replace("{root}", root), parts.join("/"));
        write_all(&fixture, &path);
        prop_assert_eq!(state_outside(&fixture), before.clone(), "{:?}", path);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_directory_exchanged_for_a_link_is_not_written_through() {
    let fixture = Fixture::new(&[("swap/a.txt", "inside\n")]);
    let (root, outside) = (fixture.root().to_owned(), fixture.outside());
    let before = state_outside(&fixture);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // The writer makes directories and files of these names in between, so any step may find something in
                // its way; the next round clears it.
                fs::rename(root.join("swap"), root.join("kept")).ok();
                if std::os::unix::fs::symlink(&outside, root.join("swap")).is_ok() {
                    fs::remove_file(root.join("swap")).ok();
                } else {
                    fs::remove_dir_all(root.join("swap")).ok();
                }
                fs::rename(root.join("kept"), root.join("swap")).ok();
                fs::create_dir_all(root.join("swap")).ok();
                fs::remove_dir_all(root.join("kept")).ok();
            }
        });
        for number in 0..150 {
            write_all(&fixture, &format!("swap/{}.txt", number % 7));
            write_all(&fixture, "swap/canary.txt");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(state_outside(&fixture), before);
}
