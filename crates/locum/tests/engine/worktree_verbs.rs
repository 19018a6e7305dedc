//! What a person does with worktrees: nothing that is not committed is written over, and nothing goes that is nowhere
//! else.

use std::fs;
use std::path::PathBuf;

use locum::models::scripted::{Say, Scripted};
use locum::models::{BoxFuture, Deltas, Model, ModelError, Prefix};
use locum::transcript::{Prompt, Repeat, Reply, Stop, ToolCall, ToolOutput};
use locum::usage::TokenCount;
use locum::worktrees::{Consent, WorktreeLine};
use locum::{Code, Desk, Refusal};
use serde_json::{Value, json};

use crate::repository::Repository;
use crate::stage::{agent, ask, builder, tool};

/// A desk whose agent writes what its task says: a JSON object of names and texts.
fn desk(repository: &Repository) -> Desk {
    let put = tool("put", Repeat::Unsafe, |input, scope| async move {
        let files: Value = serde_json::from_str(input["files"].as_str().unwrap()).unwrap();
        for (name, text) in files.as_object().unwrap() {
            let path = scope.root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap()).unwrap();
        }
        Ok(ToolOutput::ok("written"))
    });
    builder(Echo)
        .tool(put)
        .agent(agent("coder", &["put"]))
        .root(repository.root())
        .worktrees(repository.worktrees())
        .build()
        .unwrap()
}

/// A model that has its task written, then answers.
struct Echo;

impl Model for Echo {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let call = ToolCall { id: "a".to_owned(), name: "put".to_owned(), input: json!({"files": prompt.task}) };
        let (text, tool_calls) = if prompt.call == 0 { ("", vec![call]) } else { ("done", Vec::new()) };
        let stop = if tool_calls.is_empty() { Stop::End } else { Stop::ToolUse };
        let reply = Reply { text: text.to_owned(), tool_calls, stop, tokens: TokenCount::default(), opaque: None };
        Box::pin(async move { Ok(reply) })
    }
}

/// A task that writes these files in a worktree; its branch's name without the prefix.
async fn work(desk: &Desk, files: Value) -> String {
    let run = json!({"action": "run", "agent": "coder", "task": files.to_string(), "isolation": "worktree"});
    let answer = ask(desk, run).await;
    let branch = answer["worktree"]["branch"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    branch.strip_prefix("locum/").unwrap().to_owned()
}

fn said<T>(answer: Result<T, Refusal>) -> String {
    match answer {
        Ok(_) => panic!("it was not refused"),
        Err(refusal) => format!("{}: {}", refusal.code.as_str(), refusal.message),
    }
}

async fn line(desk: &Desk, uid: &str) -> WorktreeLine {
    desk.worktrees().await.unwrap().into_iter().find(|line| line.uid == uid).unwrap()
}

#[tokio::test]
async fn a_list_says_what_does_not_go_together() {
    let repository = Repository::new();
    let desk = desk(&repository);
    let one = work(&desk, json!({"a.txt": "ONE\ntwo\nthree\n"})).await;
    let two = work(&desk, json!({"a.txt": "UNO\ntwo\nthree\n", "b.txt": "b"})).await;
    let three = work(&desk, json!({"c.txt": "c"})).await;
    let lines = desk.worktrees().await.unwrap();
    let seen: Vec<(&str, u64, usize)> =
        lines.iter().map(|line| (line.uid.as_str(), line.files_changed, line.conflicts.len())).collect();
    let mut expected = vec![(one.as_str(), 1, 1), (&two, 2, 1), (&three, 1, 0)];
    expected.sort();
    let mut sorted = seen.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    let first = line(&desk, &one).await;
    assert_eq!(first.conflicts[0].files, ["a.txt"]);
    assert_eq!(first.conflicts[0].with, format!("locum/{two}"));
    assert_eq!(first.task.map(|task| task.task_id.to_string()), Some("t_01".to_owned()));
    let alone = desk.worktree_diff("t_03", None).await.unwrap();
    assert!(alone.patch.contains("+++ b/c.txt") && alone.conflicts.is_empty(), "{alone:?}");
    let beside = desk.worktree_diff(&one, Some(&two)).await.unwrap();
    assert_eq!(beside.conflicts, ["a.txt"]);
}

#[tokio::test]
async fn what_is_applied_is_merged_and_not_committed() {
    let repository = Repository::new();
    let desk = desk(&repository);
    let uid = work(&desk, json!({"a.txt": "one\ntwo\nTHREE\n", "new/b.txt": "b\n"})).await;
    repository.write("a.txt", "ONE\ntwo\nthree\n");
    repository.git(&["commit", "-q", "-a", "-m", "mine"]);
    repository.write("src/lib.rs", "fn changed() {}\n");
    repository.write("untracked.txt", "mine");
    let head = repository.git(&["rev-parse", "HEAD"]);
    let applied = desk.apply_worktree(&uid).await.unwrap();
    assert_eq!(applied.files, ["a.txt", "new/b.txt"]);
    let read = |name: &str| fs::read_to_string(repository.root().join(name)).unwrap();
    assert_eq!(read("a.txt"), "ONE\ntwo\nTHREE\n");
    assert_eq!(read("new/b.txt"), "b\n");
    assert_eq!((read("src/lib.rs"), read("untracked.txt")), ("fn changed() {}\n".to_owned(), "mine".to_owned()));
    assert_eq!(repository.git(&["rev-parse", "HEAD"]), head, "the user commits");
    assert_eq!(repository.git(&["diff", "--cached", "--name-only"]), "a.txt\nnew/b.txt");
}

#[tokio::test]
async fn nothing_uncommitted_is_written_over() {
    let repository = Repository::new();
    repository.write("sub", "a file\n");
    repository.git(&["add", "sub"]);
    repository.git(&["commit", "-q", "-m", "second"]);
    let desk = desk(&repository);
    let check = async |files: Value, prepare: &dyn Fn(), expected: &str| {
        let uid = work(&desk, files).await;
        prepare();
        let before = repository.everything();
        let refused = said(desk.apply_worktree(&uid).await);
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(repository.everything(), before, "{refused}");
        repository.git(&["reset", "-q", "--hard"]);
        repository.git(&["clean", "-q", "-f", "-d", "-x"]);
    };
    let over = "would be written over: ";
    check(json!({"a.txt": "x\n"}), &|| repository.write("a.txt", "mine\n"), &format!("{over}a.txt")).await;
    check(json!({"b.txt": "x\n"}), &|| repository.write("b.txt", "mine\n"), &format!("{over}b.txt")).await;
    check(json!({"d/e.txt": "x\n"}), &|| repository.write("d", "mine\n"), &format!("{over}d/e.txt")).await;
    // What is ignored is the user's too.
    let force = "*.log\n!kept.log\n";
    check(json!({".gitignore": force, "kept.log": "x"}), &|| repository.write("kept.log", "mine"), "kept.log").await;
    check(
        json!({"a.txt": "x\n"}),
        &|| {
            repository.write("a.txt", "staged\n");
            repository.git(&["add", "a.txt"]);
        },
        &format!("{over}a.txt"),
    )
    .await;
    let conflict = "conflicts with what is checked out in a.txt";
    check(
        json!({"a.txt": "ONE\ntwo\nthree\n"}),
        &|| {
            repository.write("a.txt", "UNO\ntwo\nthree\n");
            repository.git(&["commit", "-q", "-a", "-m", "mine"]);
        },
        conflict,
    )
    .await;
}

#[tokio::test]
async fn a_directory_goes_when_its_work_is_elsewhere() {
    let repository = Repository::new();
    let desk = desk(&repository);
    let uid = work(&desk, json!({"b.txt": "b"})).await;
    let path = PathBuf::from(line(&desk, &uid).await.path.unwrap());
    let refused = said(desk.drop_worktree(&uid, Consent::Missing).await);
    assert!(refused.contains("no other branch has the work"), "{refused}");
    // What came in afterwards is kept as well.
    fs::write(path.join("late.txt"), "late").unwrap();
    let dropped = desk.drop_worktree(&uid, Consent::Given).await.unwrap();
    assert!(dropped.branch_kept && !path.exists());
    assert_eq!(repository.file_on(&dropped.branch, "late.txt"), "late");
    let refused = said(desk.drop_worktree(&uid, Consent::Given).await);
    assert!(refused.contains("nothing is left of it but the branch"), "{refused}");
    repository.git(&["merge", "-q", &dropped.branch]);
    assert!(!desk.drop_worktree(&uid, Consent::Missing).await.unwrap().branch_kept);
    assert_eq!(repository.git(&["branch", "--list", "locum/*"]), "");
}

#[tokio::test]
async fn what_git_does_not_keep_is_not_let_go() {
    let repository = Repository::new();
    let desk = desk(&repository);
    let uid = work(&desk, json!({"b.txt": "b", "secret.log": "l"})).await;
    let path = PathBuf::from(line(&desk, &uid).await.path.unwrap());
    let refused = said(desk.drop_worktree(&uid, Consent::Given).await);
    assert!(refused.contains("1 files or directories that are ignored"), "{refused}");
    assert_eq!(fs::read_to_string(path.join("secret.log")).unwrap(), "l");
    for name in ["nobody", "", "locum/", "--all", "../x"] {
        let refused = said(desk.worktree_diff(name, None).await);
        assert!(refused.starts_with("TASK_NOT_FOUND: the project has no worktree"), "{refused}");
    }
    assert_eq!(desk.worktree_diff("t_09", None).await.unwrap_err().code, Code::TaskNotFound);
}

#[tokio::test]
async fn what_was_left_behind_is_found() {
    let repository = Repository::new();
    let desk = desk(&repository);
    assert_eq!(desk.check_worktrees().await.unwrap(), []);
    let uid = work(&desk, json!({"b.txt": "b"})).await;
    assert_eq!(desk.check_worktrees().await.unwrap(), [], "a worktree is nothing to find");
    desk.drop_worktree(&uid, Consent::Given).await.unwrap();
    let attempt = repository.worktrees().join("01lost");
    repository.git(&["worktree", "add", "-q", "--detach", attempt.to_str().unwrap()]);
    let gone = repository.worktrees().join("01gone");
    repository.git(&["worktree", "add", "-q", "-b", "locum/01gone", gone.to_str().unwrap()]);
    fs::rename(&gone, repository.beside("moved")).unwrap();
    fs::write(repository.root().join(".git/index.lock"), "").unwrap();
    let findings = desk.check_worktrees().await.unwrap();
    let mut seen: Vec<String> = findings.iter().map(|finding| finding.what.clone()).collect();
    seen.sort();
    let expected = [
        "a branch without a worktree; its work is nowhere else",
        "a branch without a worktree; other branches have its work",
        "a lock of git",
        "a worktree on no branch: its task never began, or left its branch",
        "git knows a worktree that is gone",
    ];
    assert_eq!(seen, expected, "{findings:#?}");
}

#[tokio::test]
async fn a_worktree_in_use_is_left_alone() {
    let repository = Repository::new();
    let (seen, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let forever = tool("forever", Repeat::Unsafe, move |_, _| {
        seen.send(()).unwrap();
        std::future::pending()
    });
    let desk = builder(Scripted::new().agent("*", [Say::calls([("forever", json!({}))])]))
        .tool(forever)
        .agent(agent("coder", &["forever"]))
        .root(repository.root())
        .worktrees(repository.worktrees())
        .build()
        .unwrap();
    ask(&desk, json!({"action": "spawn", "agent": "coder", "task": "t", "isolation": "worktree"})).await;
    begun.recv().await.unwrap();
    for refused in [said(desk.apply_worktree("t_01").await), said(desk.drop_worktree("t_01", Consent::Given).await)] {
        assert_eq!(refused, "TASK_NOT_READY: task t_01 of session main still works in it");
    }
}
