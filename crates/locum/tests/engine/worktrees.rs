//! Tasks with a worktree to themselves: what they leave is on their branch, and the user's checkout is as it was.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use locum::models::scripted::{Say, Scripted};
use locum::tools::Tool;
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, DeskBuilder};
use serde_json::{Value, json};

use crate::repository::{Repository, git_in};
use crate::stage::{agent, ask, builder, check, tool};

/// A tool that writes files below its root, as the tools of locum do.
fn put() -> Arc<dyn Tool> {
    tool("put", Repeat::Unsafe, |input, scope| async move {
        for (name, text) in input.as_object().unwrap() {
            let path = scope.root.join(name);
            match text.as_str() {
                Some(text) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
                None => fs::remove_file(path).unwrap(),
            }
        }
        Ok(ToolOutput::ok("written"))
    })
}

/// A tool that runs git in its root, as an agent with a shell would.
fn git_tool() -> Arc<dyn Tool> {
    tool("git", Repeat::Unsafe, |input, scope| async move {
        let said = input["verbs"].as_array().unwrap().iter().map(|verb| {
            let words: Vec<&str> = verb.as_str().unwrap().split(' ').collect();
            git_in(&scope.root, &words)
        });
        Ok(ToolOutput::ok(said.collect::<Vec<_>>().join("\n")))
    })
}

fn with_script(repository: &Repository, says: impl IntoIterator<Item = Say>) -> DeskBuilder {
    builder(Scripted::new().agent("*", says))
        .tool(put())
        .tool(git_tool())
        .agent(agent("coder", &["put", "git", "read"]))
        .root(repository.root())
        .worktrees(repository.worktrees())
}

async fn run(desk: &Desk) -> Value {
    ask(desk, json!({"action": "run", "agent": "coder", "task": "Change it", "isolation": "worktree"})).await
}

async fn changes(repository: &Repository, input: Value) -> Value {
    let desk = with_script(repository, [Say::calls([("put", input)]), Say::text("done")]).build().unwrap();
    run(&desk).await
}

fn text<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer["worktree"][field].as_str().unwrap_or_else(|| panic!("no {field} in {answer:#}"))
}

#[tokio::test]
async fn what_an_agent_changes_is_on_its_branch_and_nowhere_else() {
    let repository = Repository::new();
    repository.write("a.txt", "one\nTWO\nthree\n");
    repository.write("untracked.txt", "mine");
    let before = repository.everything();
    let input = json!({"a.txt": "ONE\ntwo\nthree\n", "new/b.txt": "new", "src/lib.rs": null, "c.log": "ignored"});
    let answer = changes(&repository, input).await;
    check(
        &answer,
        &json!({
            "status": "completed",
            "result": "done",
            "receipt": {"isolation": "worktree"},
            "worktree": {"files_changed": 3, "uncommitted": 1, "dirty_left_out": 2, "base": repository.git(&["rev-parse", "HEAD"])},
        }),
    );
    let branch = text(&answer, "branch");
    assert!(branch.starts_with("locum/"), "{branch}");
    assert!(text(&answer, "diff_stat").contains("3 files changed"), "{answer:#}");
    assert_eq!(repository.file_on(branch, "a.txt"), "ONE\ntwo\nthree");
    assert_eq!(repository.file_on(branch, "new/b.txt"), "new");
    assert_eq!(repository.git(&["ls-tree", "-r", "--name-only", branch]), ".gitignore\na.txt\nnew/b.txt");
    let author = repository.git(&["log", "-1", "--format=%an %ae %s", branch]);
    assert_eq!(author, "locum locum@localhost coder t_01: Change it");
    let path = PathBuf::from(text(&answer, "path"));
    assert!(path.starts_with(repository.worktrees()), "{path:?}");
    assert_eq!(git_in(&path, &["status", "--porcelain"]), "", "the worktree is as its branch says");
    assert_eq!(fs::read_to_string(path.join("c.log")).unwrap(), "ignored", "what cannot be committed stays");
    assert_eq!(repository.everything(), before);
}

/// Git tells a changed file by its size and time first: these have both in common.
#[tokio::test]
async fn a_change_of_the_same_size_in_the_same_second_is_seen() {
    for _ in 0..4 {
        let repository = Repository::new();
        let answer = changes(&repository, json!({"a.txt": "one\ntwo\nTHREE\n"})).await;
        check(&answer, &json!({"worktree": {"files_changed": 1}}));
        assert_eq!(repository.file_on(text(&answer, "branch"), "a.txt"), "one\ntwo\nTHREE");
    }
}

#[tokio::test]
async fn a_worktree_in_which_nothing_is_goes_with_its_task() {
    let repository = Repository::new();
    let before = repository.everything();
    let answer = changes(&repository, json!({})).await;
    check(
        &answer,
        &json!({"status": "completed", "worktree": {"files_changed": 0, "uncommitted": 0, "removed": true}}),
    );
    assert!(!PathBuf::from(text(&answer, "path")).exists());
    assert_eq!(repository.git(&["branch", "--list", "locum/*"]), "");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.everything(), before);
}

#[tokio::test]
async fn uncommitted_files_are_copied_where_the_agent_asks_for_them() {
    let repository = Repository::new();
    repository.write("a.txt", "one\nTWO\nthree\n");
    repository.write("src/staged.rs", "staged");
    repository.git(&["add", "src/staged.rs"]);
    repository.write("untracked.txt", "mine");
    repository.write("x.log", "ignored");
    fs::remove_file(repository.root().join("src/lib.rs")).unwrap();
    let before = repository.everything();
    let mut coder = agent("dirty", &["put", "git"]);
    coder.locum.include_dirty = Some(true);
    coder.isolation = Some(locum::agent::Isolation::Worktree);
    let look = Say::calls([("git", json!({"verbs": ["ls-files", "status --porcelain", "show HEAD:a.txt"]}))]);
    let says = [look, Say::calls([("put", json!({"d.txt": "d"}))]), Say::text("done")];
    let desk = with_script(&repository, says).agent(coder).build().unwrap();
    let answer = ask(&desk, json!({"action": "run", "agent": "dirty", "task": "Change it"})).await;
    check(&answer, &json!({"status": "completed", "worktree": {"files_changed": 1, "dirty_left_out": 0}}));
    let branch = text(&answer, "branch");
    let names = ".gitignore\na.txt\nd.txt\nsrc/staged.rs\nuntracked.txt";
    assert_eq!(repository.git(&["ls-tree", "-r", "--name-only", branch]), names);
    assert_eq!(repository.file_on(branch, "a.txt"), "one\nTWO\nthree");
    assert_eq!(repository.git(&["rev-parse", &format!("{branch}~2")]), repository.git(&["rev-parse", "HEAD"]));
    assert_eq!(repository.everything(), before);
}

#[tokio::test]
async fn a_project_without_a_commit_or_a_repository_is_told_apart() {
    let repository = Repository::without_commit();
    let answer = changes(&repository, json!({})).await;
    check(
        &answer,
        &json!({"status": "failed", "reason": "isolation", "error":
        "Isolation failed: the repository has no commit yet (commit something first: a worktree begins at a commit)"}),
    );
    fs::rename(repository.root().join(".git"), repository.beside("elsewhere")).unwrap();
    check(&changes(&repository, json!({})).await, &json!({"error": "ISOLATION_FAILED"}));
    fs::create_dir(repository.root().join(".git")).unwrap();
    let answer = changes(&repository, json!({})).await;
    check(&answer, &json!({"status": "failed", "reason": "isolation"}));
    assert!(answer["error"].as_str().unwrap().contains("not a git repository"), "{answer}");
    let desk = builder(Scripted::new()).root(repository.root()).build().unwrap();
    let answer = ask(&desk, json!({"action": "run", "agent": "ann", "task": "t", "isolation": "worktree"})).await;
    check(&answer, &json!({"error": "ISOLATION_FAILED"}));
}

#[tokio::test]
async fn wherever_an_agent_goes_its_commits_stay_within_reach() {
    let repository = Repository::new();
    let verbs = ["commit -q --allow-empty -m one", "checkout -q -b side HEAD~1", "commit -q --allow-empty -m two"];
    let says = [
        Say::calls([("git", json!({"verbs": verbs}))]),
        Say::calls([("put", json!({"b.txt": "b"}))]),
        Say::calls([("git", json!({"verbs": ["checkout -q --detach"]}))]),
        Say::text("done"),
    ];
    let answer = run(&with_script(&repository, says).build().unwrap()).await;
    check(&answer, &json!({"status": "completed", "worktree": {"files_changed": 1, "problem": null}}));
    let branch = text(&answer, "branch");
    assert_eq!(repository.file_on(branch, "b.txt"), "b");
    let subjects = repository.git(&["log", "--format=%s", branch]);
    for subject in ["one", "two", "first"] {
        assert!(subjects.lines().any(|line| line == subject), "{subjects}");
    }
}

#[tokio::test]
async fn a_repository_within_the_worktree_keeps_it() {
    let repository = Repository::new();
    let says = [Say::calls([("git", json!({"verbs": ["init -q inner"]}))]), Say::text("done")];
    let answer = run(&with_script(&repository, says).build().unwrap()).await;
    check(&answer, &json!({"status": "completed", "worktree": {"files_changed": 0, "removed": null}}));
    assert!(PathBuf::from(text(&answer, "path")).join("inner/.git").exists());
}

#[tokio::test]
async fn a_cancelled_task_leaves_its_work_and_says_where() {
    let repository = Repository::new();
    let (seen, mut written) = tokio::sync::mpsc::unbounded_channel();
    let forever = tool("forever", Repeat::Unsafe, move |_, _| {
        let seen = seen.clone();
        async move {
            seen.send(()).unwrap();
            std::future::pending().await
        }
    });
    let says = [Say::calls([("put", json!({"b.txt": "half"}))]), Say::calls([("forever", json!({}))])];
    let desk = with_script(&repository, says).tool(forever).agent(agent("coder", &["put", "forever"])).build().unwrap();
    let spawned = ask(&desk, json!({"action": "spawn", "agent": "coder", "task": "t", "isolation": "worktree"})).await;
    written.recv().await.unwrap();
    let answer = ask(&desk, json!({"action": "cancel", "task_id": spawned["task_id"]})).await;
    check(&answer, &json!({"status": "cancelled", "receipt": {"confirmed": true, "worktree": {"files_changed": 1}}}));
    let branch = answer["receipt"]["worktree"]["branch"].as_str().unwrap();
    assert_eq!(repository.file_on(branch, "b.txt"), "half");
}

#[tokio::test]
async fn many_at_once_do_not_meet() {
    let repository = Repository::new();
    let before = repository.everything();
    let says = [Say::calls([("put", json!({"b.txt": "b"}))]), Say::text("done")];
    let desk = with_script(&repository, says).build().unwrap();
    let entry = json!({"agent": "coder", "task": "t", "isolation": "worktree"});
    let tasks: Vec<&Value> = std::iter::repeat_n(&entry, 8).collect();
    let answer = ask(&desk, json!({"action": "parallel", "tasks": tasks})).await;
    check(&answer, &json!({"completed": 8}));
    assert_eq!(repository.git(&["branch", "--list", "locum/*"]).lines().count(), 8);
    assert_eq!(repository.everything(), before);
}
