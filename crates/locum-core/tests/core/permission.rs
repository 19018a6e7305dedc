//! What rules, write scopes and protected names decide about a call.

use locum_core::permission::{Permissions, Rule, Subject, Verdict};

fn permissions(layers: &[&[&str]], scopes: &[&[&str]]) -> Permissions {
    let rules = layers.iter().map(|layer| layer.iter().map(|rule| Rule::parse(rule).unwrap()).collect());
    let scopes = scopes.iter().map(|scope| scope.iter().map(|glob| (*glob).to_owned()).collect());
    Permissions { rules: rules.collect(), write_scopes: scopes.collect(), ..Permissions::default() }
}

fn said(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allowed => "allowed".to_owned(),
        Verdict::Ask { rule } => format!("ask: {rule}"),
        Verdict::Denied { why } => format!("denied: {why}"),
    }
}

fn path(path: &str) -> Subject {
    Subject::Path(path.to_owned())
}

fn command(line: &str) -> Subject {
    Subject::Command(line.to_owned())
}

#[test]
fn the_last_rule_of_a_layer_and_the_strictest_layer_decide() {
    let check = |layers: &[&[&str]], tool: &str, subject: Subject, expected: &str| {
        assert_eq!(said(permissions(layers, &[]).judge(tool, &subject)), expected, "{layers:?} {tool} {subject:?}");
    };
    check(&[], "bash", command("rm -rf x"), "allowed");
    check(&[&["deny bash(rm *)"]], "bash", command("rm -rf x"), "denied: the rule `deny bash(rm *)` forbids it");
    check(&[&["deny bash(rm *)"]], "bash", command("cd y && rm x"), "denied: the rule `deny bash(rm *)` forbids it");
    check(&[&["deny bash(rm *)"]], "bash", command("echo $(rm x)"), "denied: the rule `deny bash(rm *)` forbids it");
    check(&[&["deny bash(rm *)"]], "bash", command("rmdir x"), "allowed");
    check(&[&["deny bash", "allow bash(git *)"]], "bash", command("git log"), "allowed");
    check(
        &[&["deny bash", "allow bash(git *)"]],
        "bash",
        command("git log; ls"),
        "denied: the rule `deny bash` forbids it",
    );
    check(&[&["ask write(src/**)"]], "write", path("src/a.rs"), "ask: ask write(src/**)");
    check(&[&["ask write(src/**)"]], "edit", path("src/a.rs"), "ask: ask write(src/**)");
    check(&[&["ask write(src/**)"]], "edit", path("docs/a.md"), "allowed");
    check(&[&["ask edit(src/**)"]], "write", path("src/a.rs"), "allowed");
    check(&[&["ask write", "allow write(docs)"]], "write", path("docs/a/b.md"), "allowed");
    check(&[&["allow write(docs)", "ask write"]], "write", path("docs/a.md"), "ask: ask write");
    check(&[&["ask write"], &["deny write(a)"]], "write", path("a"), "denied: the rule `deny write(a)` forbids it");
    check(&[&["allow write(a)"], &["ask write"]], "write", path("a"), "ask: ask write");
    check(&[&["deny read(.env*)"]], "grep", path(".env.local"), "denied: the rule `deny read(.env*)` forbids it");
    check(&[&["deny *"]], "think", Subject::Nothing, "denied: the rule `deny *` forbids it");
    check(
        &[&["deny mcp__github"]],
        "mcp__github__x",
        Subject::Nothing,
        "denied: the rule `deny mcp__github` forbids it",
    );
    check(
        &[&["deny web_fetch(*.example.com)"]],
        "web_fetch",
        Subject::Address("https://a.EXAMPLE.com/x".to_owned()),
        "denied: the rule `deny web_fetch(*.example.com)` forbids it",
    );
    // Without a subject, a pattern fits nothing.
    check(&[&["deny bash(*)"]], "bash", Subject::Nothing, "allowed");
}

#[test]
fn protected_names_need_a_rule_that_names_them() {
    let hook = path(".git/hooks/pre-commit");
    let refused = "denied: `.git` is a protected name: other programs act on what is there. Only a user can allow it, \
                   with the rule `allow write(.git/hooks/pre-commit)` in their settings";
    for (layers, expected) in [
        (&[][..], refused),
        (&[&["allow write"][..]][..], refused),
        (&[&["allow write(**)"][..]][..], refused),
        (&[&["allow write(**/hooks/**)"][..]][..], refused),
        (&[&["allow write(.git/hooks/**)"][..]][..], "allowed"),
        (&[&["allow write(.git/hooks/**)", "deny write(.git)"][..]][..], refused),
        (&[&["allow write(.git/hooks/**)"][..], &["ask write"][..]][..], "ask: ask write"),
    ] {
        assert_eq!(said(permissions(layers, &[]).judge("write", &hook)), expected, "{layers:?}");
        assert_eq!(said(permissions(layers, &[]).judge("edit", &hook)), expected, "{layers:?}");
    }
    assert_eq!(said(permissions(&[], &[]).judge("read", &hook)), "allowed");
}

#[test]
fn every_write_scope_must_fit() {
    for (scopes, file, expected) in [
        (&[][..], "a/b.rs", "allowed"),
        (&[&["a/**"][..]][..], "a/b.rs", "allowed"),
        (&[&["docs", "a/*.rs"][..]][..], "a/b.rs", "allowed"),
        (&[&["docs"][..]][..], "a/b.rs", "denied: `a/b.rs` is outside of what this agent may write to: docs"),
        (
            &[&["a"][..], &["*.md"][..]][..],
            "a/b.rs",
            "denied: `a/b.rs` is outside of what this agent may write to: *.md",
        ),
        (&[&[][..]][..], "a/b.rs", "denied: `a/b.rs` is outside of what this agent may write to: nothing"),
    ] {
        assert_eq!(said(permissions(&[], scopes).judge("edit", &path(file))), expected, "{scopes:?}");
        assert_eq!(said(permissions(&[], scopes).judge("read", &path(file))), "allowed", "{scopes:?}");
    }
}
