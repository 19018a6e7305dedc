//! Agents that write: what they must have read, what rules and scopes forbid, and who writes what meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use locum::permission::Rule;
use serde_json::{Value, json};

use crate::cast::Witness;
use crate::stage::{agent, builder, check, run, tool};

const TOOLS: [&str; 3] = ["read", "write", "edit"];

fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.txt"), "one\n").unwrap();
    root
}

fn rules(rules: &[&str]) -> Vec<Rule> {
    rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect()
}

/// A desk whose `eve` makes these calls, one in each turn.
fn desk(root: &Path, said: &[&str], scope: Option<&[&str]>, calls: Vec<(&str, Value)>) -> (Desk, Witness) {
    let turns = calls.into_iter().map(|call| Say::calls([call])).chain([Say::text("Done.")]);
    let model = Witness::new(Scripted::new().agent("eve", turns));
    let mut eve = agent("eve", &TOOLS);
    eve.locum.write_scope = scope.map(|globs| globs.iter().map(|glob| (*glob).to_owned()).collect());
    let desk = builder(model.clone()).standard_tools().root(root).rules(rules(said)).agent(eve).build().unwrap();
    (desk, model)
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

#[tokio::test]
async fn a_task_changes_what_it_has_read() {
    let root = root();
    let calls = vec![
        write("a.txt", "two\n"),
        ("read", json!({"path": "a.txt"})),
        ("edit", json!({"path": "a.txt", "old": "one", "new": "two"})),
        ("edit", json!({"path": "a.txt", "old": "two", "new": "three"})),
        write("new/b.txt", "b"),
    ];
    let (desk, model) = desk(root.path(), &[], None, calls);
    check(&run(&desk, "eve", "Go.").await, &json!({"status": "completed", "usage": {"tool_calls": 5, "denials": 0}}));
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).unwrap(), "three\n");
    assert_eq!(fs::read_to_string(root.path().join("new/b.txt")).unwrap(), "b");
    let told = |turn: usize| model.asked()[turn].tool_answers();
    assert_eq!(told(1), ["`a.txt` exists and was not read in this task: read it first"]);
    assert_eq!(told(4), ["`a.txt`: changed, at line 1"]);
}

#[tokio::test]
async fn what_is_not_allowed_is_answered_counted_and_told() {
    let protected = "`.git` is a protected name: other programs act on what is there. Only a user can allow it, with \
                     the rule `allow write(.git/config)` in their settings";
    let nobody = "the rule `ask write(b)` wants a person to agree, and nobody can be asked here";
    type Case = (&'static [&'static str], Option<&'static [&'static str]>, &'static str, Option<&'static str>);
    let cases: [Case; 6] = [
        (&["deny write(b)"], None, "b/c.txt", Some("the rule `deny write(b)` forbids it")),
        (&["ask write(b)"], None, "b/c.txt", Some(nobody)),
        (&["ask write(b)", "allow write(b/c.txt)"], None, "b/c.txt", None),
        (&[], Some(&["src/**"]), "b/c.txt", Some("`b/c.txt` is outside of what this agent may write to: src/**")),
        (&[], None, ".git/config", Some(protected)),
        (&["allow write(.git/config)"], None, ".git/config", None),
    ];
    for (said, scope, path, denied) in cases {
        let root = root();
        let (desk, model) = desk(root.path(), said, scope, vec![write(path, "x")]);
        let answer = run(&desk, "eve", "Go.").await;
        let denials = u32::from(denied.is_some());
        check(&answer, &json!({"status": "completed", "usage": {"tool_calls": 1, "denials": denials}}));
        assert_eq!(root.path().join(path).exists(), denied.is_none(), "{said:?} {path}");
        let told = &model.asked()[1].tool_answers()[0];
        match denied {
            Some(why) => {
                assert_eq!(*told, format!("Not allowed: {why}."));
                assert_eq!(answer["warnings"], json!([format!("write was denied: {why}")]));
            }
            None => assert!(told.contains("created"), "{told}"),
        }
    }
}

#[tokio::test]
async fn two_tasks_do_not_write_one_file_at_once() {
    let root = root();
    // The first one writes and then waits until the second one has tried.
    let (tried, gate) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (wait, go) = {
        let (tried, gate) = (Arc::clone(&tried), Arc::clone(&gate));
        let (tried_too, gate_too) = (Arc::clone(&tried), Arc::clone(&gate));
        let repeat = locum::transcript::Repeat::Unsafe;
        let wait = tool("wait", repeat, move |_, _| {
            let (tried, gate) = (Arc::clone(&tried), Arc::clone(&gate));
            async move {
                gate.notify_one();
                tried.notified().await;
                Ok(locum::transcript::ToolOutput::ok("waited"))
            }
        });
        let go = tool("go", repeat, move |input, _| {
            let (tried, gate) = (Arc::clone(&tried_too), Arc::clone(&gate_too));
            async move {
                if input["when"] == "first" {
                    gate.notified().await;
                } else {
                    tried.notify_one();
                }
                Ok(locum::transcript::ToolOutput::ok("went"))
            }
        });
        (wait, go)
    };
    let model = Witness::new(
        Scripted::new()
            .agent("ann", [Say::calls([write("b.txt", "ann")]), Say::calls([("wait", json!({}))]), Say::text("Done.")])
            .agent(
                "bob",
                [
                    Say::calls([("go", json!({"when": "first"}))]),
                    Say::calls([("read", json!({"path": "b.txt"}))]),
                    Say::calls([write("b.txt", "bob")]),
                    Say::calls([("go", json!({"when": "last"}))]),
                    Say::text("Done."),
                ],
            ),
    );
    let desk = builder(model.clone())
        .standard_tools()
        .root(root.path())
        .tool(wait)
        .tool(go)
        .agent(agent("ann", &["write", "wait"]))
        .agent(agent("bob", &["read", "write", "go"]))
        .build()
        .unwrap();
    let both = json!({"action": "parallel", "tasks": [{"agent": "ann", "task": "a"}, {"agent": "bob", "task": "b"}]});
    let answer = serde_json::to_value(desk.call("subagent", both).await.unwrap()).unwrap();
    assert_eq!(answer["completed"], 2, "{answer}");
    assert_eq!(fs::read_to_string(root.path().join("b.txt")).unwrap(), "ann");
    let told: Vec<String> = model.asked().iter().flat_map(|asked| asked.tool_answers()).collect();
    let refused = "`b.txt` is being written by subagent:ann:t_01, which has not ended; leave this file to it";
    assert!(told.iter().any(|text| text == refused), "{told:?}");
}
