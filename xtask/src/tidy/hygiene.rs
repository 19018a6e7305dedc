//! Small habits: no forgotten work notes, no silenced tests or lints, no value dropped without a word.

use super::report::Problem;
use super::source::SourceFile;
use super::words::contains_word;

/// Reports every broken habit, in tests too unless a rule says otherwise.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut report = |line, rule, message| {
            problems.push(Problem::failure(&file.path, line, rule, message));
        };
        let mut comment_above = "";
        for ((line, code), (_, comment)) in file.code_lines().zip(file.comment_lines()) {
            if let Some(message) = work_note(comment) {
                report(line, "work-note", message);
            }
            if contains_word(code, "#[ignore") {
                report(line, "no-ignored-test", "assert what happens today instead, with a note");
            }
            if allows_lint(code) {
                let message = "use #[expect(…, reason = \"…\")], which tells when it is not needed";
                report(line, "no-allow", message);
            }
            if contains_word(code, ".unwrap()") && !file.is_test(line) {
                let message = "handle the failure, or use expect with why it cannot happen";
                report(line, "no-unwrap", message);
            }
            let is_explained = !(comment.trim().is_empty() && comment_above.trim().is_empty());
            if drops_value(code) && !is_explained {
                let message = "say on this line or the one above why the value may be dropped";
                report(line, "dropped-value", message);
            }
            comment_above = comment;
        }
    }
    problems
}

fn work_note(comment: &str) -> Option<&'static str> {
    if contains_word(comment, "FIXME") || contains_word(comment, "XXX") {
        return Some("fix it now, or open an issue and note its number");
    }
    (contains_word(comment, "TODO") && !has_issue_number(comment))
        .then_some("add the number of its issue, as in #12, or do it now")
}

fn has_issue_number(comment: &str) -> bool {
    comment.split('#').skip(1).any(|rest| rest.starts_with(|character: char| character.is_ascii_digit()))
}

fn allows_lint(code: &str) -> bool {
    code.contains("#[allow(")
        || code.contains("#![allow(")
        || (code.contains("cfg_attr(") && contains_word(code, "allow("))
}

fn drops_value(code: &str) -> bool {
    contains_word(code, "let _ =") || contains_word(code, "let _:")
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        found(check, "crates/a/src/b.rs", text)
    }

    #[test]
    fn work_notes_need_an_issue() {
        assert_eq!(rules("// TODO later"), [(1, "work-note")]);
        assert_eq!(rules("/// TODO: see # 12"), [(1, "work-note")]);
        assert_eq!(rules("f(); /* FIXME #12 */"), [(1, "work-note")]);
        assert_eq!(rules("// XXX"), [(1, "work-note")]);
        assert_eq!(rules("// TODO(#12): later"), []);
        assert_eq!(rules("// mktemp XXXXXX"), []);
        assert_eq!(rules("let a = \"TODO\";"), []);
    }

    #[test]
    fn tests_and_lints_are_not_silenced() {
        assert_eq!(rules("#[ignore]\nfn f() {}"), [(1, "no-ignored-test")]);
        assert_eq!(rules("#[ignore = \"slow\"]"), [(1, "no-ignored-test")]);
        assert_eq!(rules("#[allow(dead_code)]"), [(1, "no-allow")]);
        assert_eq!(rules("#![allow(dead_code)]"), [(1, "no-allow")]);
        assert_eq!(rules("#[cfg_attr(test, allow(dead_code))]"), [(1, "no-allow")]);
        assert_eq!(rules("#[expect(dead_code, reason = \"a\")]\nfn allow() {}"), []);
    }

    #[test]
    fn unwrap_is_for_tests() {
        assert_eq!(rules("f()\n    .unwrap();"), [(2, "no-unwrap")]);
        assert_eq!(rules("f().unwrap_or(1); g().expect(\"a\");"), []);
        assert_eq!(rules("#[cfg(test)]\nmod tests { fn f() { g().unwrap() } }"), []);
    }

    #[test]
    fn dropped_values_are_explained() {
        assert_eq!(rules("\nlet _ = f();"), [(2, "dropped-value")]);
        assert_eq!(rules("let _: Result<()> = f();"), [(1, "dropped-value")]);
        assert_eq!(rules("// The receiver may be gone.\nlet _ = f();"), []);
        assert_eq!(rules("let _ = f(); // The receiver may be gone."), []);
        assert_eq!(rules("let _guard = f();"), []);
    }
}
