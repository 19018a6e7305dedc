//! Edits on their own: what matches, what is said when nothing does, and what stays.

use serde_json::{Value, json};

use super::super::input;
use super::*;

fn edit(before: &[u8], mut input: Value) -> Result<String, String> {
    input["path"] = "a.txt".into();
    let edit: Edit = input::parse(input).map_err(|output| output.text)?;
    let revision = edit.revise(Some(before)).map_err(|output| output.text)?;
    Ok(format!("{:?} {}", String::from_utf8_lossy(&revision.content), revision.said))
}

#[test]
fn exact_text_is_replaced() {
    let check = |before: &str, input: Value, expected: &str| {
        assert_eq!(edit(before.as_bytes(), input.clone()).unwrap(), expected, "{before:?} {input}");
    };
    check("a b c\n", json!({"old": "b", "new": "x"}), r#""a x c\n" changed, at line 1"#);
    check("a\nb\n", json!({"old_string": "b\n", "new_string": ""}), r#""a\n" changed, at line 2"#);
    check("a\nb\n", json!({"old": "b\n", "new": "x"}), r#""a\nx\n" changed, at line 2"#);
    check("a\nb", json!({"old": "b", "new": "x"}), r#""a\nx" changed, at line 2"#);
    check("a\n", json!({"old": "a\n", "new": ""}), r#""" changed, at line 1"#);
    check(
        "a\na\n",
        json!({"old": "a", "new": "b\nb", "replace_all": true}),
        r#""b\nb\nb\nb\n" 2 changes, at lines 1, 3"#,
    );
    // Line ends are meant as the file has them.
    check("a\r\nb\r\n", json!({"old": "a\nb", "new": "x\ny\nz"}), r#""x\r\ny\r\nz\r\n" changed, at line 1"#);
    check("a\r\nb\r\n", json!({"old": "a\r\nb", "new": "x\r\ny"}), r#""x\r\ny\r\n" changed, at line 1"#);
    check("a\r\nb\r\n", json!({"old": "b\n", "new": "x"}), r#""a\r\nx\r\n" changed, at line 2"#);
    check("a\r\nb\nc\n", json!({"old": "a\nb", "new": "x\ny"}), r#""x\r\ny\nc\n" changed, at line 1"#);
    check("a\r\nb\nc\n", json!({"old": "b\nc", "new": "x\ny"}), r#""a\r\nx\ny\n" changed, at line 2"#);
    check("\u{feff}a\n", json!({"old": "a", "new": "b"}), r#""\u{feff}b\n" changed, at line 1"#);
    // Each change sees what those before it made.
    let edits = json!({"edits": [{"old": "a", "new": "b"}, {"old": "b\nc", "new": "d"}]});
    check("a\nc\n", edits, r#""d\n" 2 changes, at lines 1, 1"#);
}

#[test]
fn bytes_that_are_no_text_stay() {
    let edited = edit(b"caf\xe9\nb\n", json!({"old": "b", "new": "c"}));
    assert_eq!(edited.unwrap(), "\"caf\u{fffd}\\nc\\n\" changed, at line 2");
}

#[test]
fn what_cannot_be_done_is_explained() {
    let check = |before: &str, input: Value, expected: &str| {
        assert_eq!(edit(before.as_bytes(), input.clone()).unwrap_err(), expected, "{before:?} {input}");
    };
    check("a", json!({}), "invalid input: `old` and `new` are needed, or `edits`");
    check("a", json!({"old": "a"}), "invalid input: `old` and `new` are needed, or `edits`");
    check("a", json!({"edits": []}), "invalid input: `edits` is empty");
    check("a", json!({"old": "a", "edits": []}), "invalid input: give `old` and `new`, or `edits`, not both");
    check("a", json!({"old": "", "new": "b"}), "`a.txt`: `old` is empty: name the text to replace, or use `write`");
    check("a", json!({"old": "a", "new": "a"}), "`a.txt`: `old` and `new` are the same");
    check("a\0", json!({"old": "a", "new": "b"}), "`a.txt` is a binary file and cannot be edited");
    check(
        "a\nb a\na",
        json!({"old": "a", "new": "x"}),
        "`a.txt`: `old` occurs 3 times (lines 1, 2, 3); add lines around it, or say replace_all",
    );
    check("one", json!({"old": "zzzzzz", "new": "x"}), "`a.txt`: `old` does not occur in it; read the file again");
    check(
        "fn main() {\n\tlet x = 1;\n}\n",
        json!({"old": "fn main() {\n    let x = 1;", "new": "x"}),
        "`a.txt`: `old` does not occur in it; only the white space differs:\n1\tfn main() {\n2\t\tlet x = 1;",
    );
    check(
        "first\nlet value = compute(1);\nlast\n",
        json!({"old": "let value = compute(2);", "new": "x"}),
        "`a.txt`: `old` does not occur in it; the nearest is:\n2\tlet value = compute(1);",
    );
    check(
        "a\nb\n",
        json!({"edits": [{"old": "a", "new": "x"}, {"old": "qqqqqqqq", "new": "y"}]}),
        "`a.txt`: change 2 of 2: `old` does not occur in it; read the file again; nothing was changed",
    );
}

#[test]
fn a_missing_file_is_not_edited() {
    let edit: Edit = input::parse(json!({"path": "a.txt", "old": "a", "new": "b"})).unwrap();
    assert_eq!(edit.revise(None).unwrap_err().text, "no such file: a.txt; `write` makes new files");
}
