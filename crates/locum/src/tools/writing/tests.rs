//! Writing as a task does it: what it must know first, what stays as it was, and what never happens.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

use locum_core::task::KnownFiles;
use locum_core::transcript::ToolEnd;
use proptest::prelude::*;
use serde_json::json;

use super::super::edit::Edit;
use super::super::fixture::{CANARY, Fixture};
use super::super::write::Write;
use super::*;

fn write(fixture: &Fixture, known: &mut KnownFiles, path: &str, content: &str) -> String {
    Fixture::told(fixture.change::<Write>(known, json!({"path": path, "content": content})))
}

fn text(fixture: &Fixture, path: &str) -> String {
    String::from_utf8(fs::read(fixture.root().join(path)).unwrap()).unwrap()
}

#[test]
fn what_a_kill_left_behind_half_way_is_gone_when_the_call_is_made_again() {
    let fixture = Fixture::new(&[]);
    let hash = super::super::content::hash(b"a.txt\nwhole");
    let half = fixture.root().join(format!(".locum-{}.tmp", &hash[hash.len() - 16..]));
    fs::write(&half, "ha").unwrap();
    write(&fixture, &mut KnownFiles::default(), "a.txt", "whole");
    assert_eq!(text(&fixture, "a.txt"), "whole");
    assert!(!half.exists());
}

#[test]
fn a_file_is_made_with_its_directories_and_replaced_once_it_is_known() {
    let fixture = Fixture::new(&[("there.txt", "one\n"), ("empty.txt", "")]);
    let mut known = KnownFiles::default();
    assert_eq!(write(&fixture, &mut known, "new/deep/a.txt", "one\ntwo\n"), "`new/deep/a.txt`: created (2 lines, 8 B)");
    assert_eq!(text(&fixture, "new/deep/a.txt"), "one\ntwo\n");
    // What it wrote, it knows.
    assert_eq!(write(&fixture, &mut known, "new/deep/a.txt", "x"), "`new/deep/a.txt`: replaced (1 line, 1 B)");
    for path in ["there.txt", "empty.txt", "./new/../there.txt"] {
        let expected = format!("failed: `{path}` exists and was not read in this task: read it first");
        assert_eq!(write(&fixture, &mut known, path, "x"), expected);
    }
    for path in ["there.txt", "empty.txt"] {
        fixture.know(&mut known, path);
        assert_eq!(write(&fixture, &mut known, path, "x"), format!("`{path}`: replaced (1 line, 1 B)"));
    }
    fs::write(fixture.root().join("there.txt"), "by somebody else").unwrap();
    let expected = "failed: `there.txt` has changed since it was last read in this task: read it again, then decide";
    assert_eq!(write(&fixture, &mut known, "there.txt", "y"), expected);
    assert_eq!(text(&fixture, "there.txt"), "by somebody else");
    fixture.know(&mut known, "there.txt");
    assert_eq!(write(&fixture, &mut known, "there.txt", "y"), "`there.txt`: replaced (1 line, 1 B)");
    let left: Vec<_> = fs::read_dir(fixture.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains(".tmp")), "{left:?}");
}

#[test]
fn a_change_between_the_intent_and_the_act_is_seen() {
    let fixture = Fixture::new(&[("a.txt", "one\n")]);
    let mut known = KnownFiles::default();
    fixture.know(&mut known, "a.txt");
    let input: Write = input::parse(json!({"path": "a.txt", "content": "mine\n"})).unwrap();
    let intent = plan(&input, fixture.scope.clone(), &known).unwrap();
    let act = || carry_out(&input, &intent, fixture.scope.clone()).unwrap();
    fs::write(fixture.root().join("a.txt"), "theirs\n").unwrap();
    assert_eq!(act().end, ToolEnd::Failed);
    assert_eq!(text(&fixture, "a.txt"), "theirs\n");
    // As after a crash: before the act it is carried out, after it nothing is left to do.
    fs::write(fixture.root().join("a.txt"), "one\n").unwrap();
    assert_eq!(act().text, "`a.txt`: replaced (1 line, 5 B)");
    let inode = fs::metadata(fixture.root().join("a.txt")).unwrap().ino();
    assert_eq!(act().text, "`a.txt`: done");
    assert_eq!(fs::metadata(fixture.root().join("a.txt")).unwrap().ino(), inode);
    // A place that leads elsewhere by now is not written to.
    fs::write(fixture.root().join("b.txt"), "one\n").unwrap();
    fs::remove_file(fixture.root().join("a.txt")).unwrap();
    fixture.link("b.txt", "a.txt");
    assert_eq!(act().end, ToolEnd::Failed);
    assert_eq!(text(&fixture, "b.txt"), "one\n");
}

#[test]
fn mode_stays_and_other_names_of_a_file_are_not_written_through() {
    let fixture = Fixture::new(&[("run.sh", "old\n"), ("target.txt", "old\n")]);
    fs::set_permissions(fixture.root().join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(fixture.outside().join("canary.txt"), fixture.root().join("hard.txt")).unwrap();
    fixture.link("target.txt", "link.txt");
    let mut known = KnownFiles::default();
    for path in ["run.sh", "hard.txt", "link.txt"] {
        fixture.know(&mut known, path);
        let told = write(&fixture, &mut known, path, "new\n");
        assert!(told.ends_with("replaced (1 line, 4 B)"), "{told}");
    }
    assert_eq!(fs::metadata(fixture.root().join("run.sh")).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_to_string(fixture.outside().join("canary.txt")).unwrap(), format!("{CANARY}\n"));
    assert!(fs::symlink_metadata(fixture.root().join("link.txt")).unwrap().is_symlink());
    assert_eq!(text(&fixture, "target.txt"), "new\n");
}

#[test]
fn what_is_no_file_is_not_written() {
    let fixture = Fixture::new(&[("directory/", ""), ("file.txt", "")]);
    fixture.fifo("fifo");
    fixture.link("nowhere", "dangling");
    fixture.link("loop_2", "loop_1");
    fixture.link("loop_1", "loop_2");
    for (path, expected) in [
        ("", "`` is not the name of a file"),
        ("a/", "`a/` is not the name of a file"),
        (".", "`.` is a directory; only files are written"),
        ("directory", "`directory` is a directory; only files are written"),
        ("fifo", "`fifo` is a FIFO; only files are written"),
        ("dangling", "`dangling` is a symbolic link that leads nowhere"),
        ("dangling/a", "`dangling/a` is a symbolic link that leads nowhere"),
        ("loop_1", "`loop_1` leads through too many symbolic links"),
        ("file.txt/a", "`file.txt/a` leads through something that is no directory"),
        ("missing/../a", "`missing/../a` leads through a directory that does not exist"),
        ("a\0b", "the path contains a NUL character"),
    ] {
        let told = write(&fixture, &mut KnownFiles::default(), path, "x");
        assert_eq!(told, format!("failed: {expected}"), "{path}");
    }
    let long = "x".repeat(locum_core::limits::WRITTEN_BYTES_MAX + 1);
    let told = write(&fixture, &mut KnownFiles::default(), "long.txt", &long);
    assert_eq!(told, "failed: the content has 8.0 MiB; 8.0 MiB are the most");
}

#[test]
fn whoever_reads_meanwhile_sees_the_old_or_the_new_and_never_a_part() {
    let fixture = Fixture::new(&[]);
    let pages = ["a".repeat(200_000), "b".repeat(300_000)];
    fixture.write("page.txt", &pages[0]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut seen = 0_usize;
            while !is_done.load(Ordering::Relaxed) || seen == 0 {
                let page = text(&fixture, "page.txt");
                assert!(pages.contains(&page), "{} bytes", page.len());
                seen += 1;
            }
        });
        let scope = fixture.scope.clone();
        let files = Beneath::open(scope).unwrap();
        for page in pages.iter().cycle().take(60) {
            files.replace(Path::new("page.txt"), page.as_bytes()).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_written_is_read_back_and_an_edit_changes_nothing_else(
        before in "[a-c\\n\u{e9}]{0,40}",
        middle in "[x-z]{1,6}",
        after in "[a-c\\n]{0,40}",
        new in "[A-C\\n]{0,12}",
        is_dos in any::<bool>(),
        has_mark in any::<bool>(),
    ) {
        let fixture = Fixture::new(&[]);
        let mut known = KnownFiles::default();
        let ends = |text: &str| if is_dos { text.replace('\n', "\r\n") } else { text.to_owned() };
        let mark = if has_mark { "\u{feff}" } else { "" };
        let old = format!("{mark}{}", ends(&format!("{before}{middle}{after}\n")));
        let written = fixture.change::<Write>(&mut known, json!({"path": "a.txt", "content": old}));
        prop_assert_eq!(written.end, ToolEnd::Ok);
        prop_assert_eq!(text(&fixture, "a.txt"), old);
        let edited = fixture.change::<Edit>(&mut known, json!({"path": "a.txt", "old": middle, "new": new}));
        prop_assert_eq!(edited.end, ToolEnd::Ok, "{}", edited.text);
        prop_assert_eq!(text(&fixture, "a.txt"), format!("{mark}{}", ends(&format!("{before}{new}{after}\n"))));
    }
}
