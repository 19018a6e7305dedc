//! Repositories whose configuration names programs to run. Whatever locum does with git, none of them runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use locum::Desk;
use locum::agent::Isolation;
use locum::models::scripted::{Say, Scripted};
use locum::transcript::{Repeat, ToolOutput};
use locum::worktrees::Consent;
use serde_json::json;

use crate::repository::{Repository, git_in};
use crate::stage::{agent, ask, builder, check, tool};

/// A program that leaves a mark when it runs.
struct Trap {
    program: PathBuf,
    mark: PathBuf,
}

impl Trap {
    fn beside(repository: &Repository) -> Self {
        let trap = Self { program: repository.beside("trap.sh"), mark: repository.beside("sprung") };
        // It passes on what it is given, so that a filter which runs does not fail and hide behind that.
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat 2>/dev/null\nexit 0\n", trap.mark.display());
        write_program(&trap.program, &script);
        trap
    }

    fn path(&self) -> &str {
        self.program.to_str().unwrap()
    }

    fn is_sprung(&self) -> bool {
        self.mark.exists()
    }
}

fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every hook that git knows about here.
const HOOKS: [&str; 12] = [
    "post-checkout",
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-merge",
    "pre-merge-commit",
    "reference-transaction",
    "post-index-change",
    "post-rewrite",
    "pre-auto-gc",
    "fsmonitor-watchman",
];

type Arm = fn(&Repository, &Trap);

fn set(repository: &Repository, key: &str, value: &str) {
    repository.git(&["config", key, value]);
}

fn attributes(repository: &Repository, line: &str) {
    repository.write(".gitattributes", &format!("{line}\n"));
    repository.git(&["add", ".gitattributes"]);
    repository.git(&["commit", "-q", "-m", "attributes"]);
}

fn hooks(directory: &Path, trap: &Trap) {
    for hook in HOOKS {
        write_program(&directory.join(hook), &format!("#!/bin/sh\nexec {} {hook}\n", trap.path()));
    }
}

/// What a repository may say, and how.
const CASES: [(&str, Arm); 37] = [
    ("core.fsmonitor", |r, t| set(r, "core.fsmonitor", t.path())),
    ("hooks", |r, t| hooks(&r.root().join(".git/hooks"), t)),
    ("core.hooksPath", |r, t| {
        hooks(&r.beside("hooks"), t);
        set(r, "core.hooksPath", r.beside("hooks").to_str().unwrap());
    }),
    ("hooks within the project", |r, t| {
        hooks(&r.root().join(".husky"), t);
        set(r, "core.hooksPath", ".husky");
    }),
    ("filter.clean", |r, t| {
        attributes(r, "*.txt filter=x");
        set(r, "filter.x.clean", t.path());
    }),
    ("filter.smudge", |r, t| {
        attributes(r, "*.txt filter=x");
        set(r, "filter.x.smudge", t.path());
    }),
    ("filter.process", |r, t| {
        attributes(r, "*.txt filter=x");
        set(r, "filter.x.process", t.path());
    }),
    ("filter.required", |r, t| {
        attributes(r, "*.txt filter=x");
        set(r, "filter.x.clean", t.path());
        set(r, "filter.x.smudge", t.path());
        set(r, "filter.x.required", "true");
    }),
    ("a filter with dots in its name", |r, t| {
        attributes(r, "*.txt filter=a.b.c");
        set(r, "filter.a.b.c.clean", t.path());
        set(r, "filter.a.b.c.smudge", t.path());
    }),
    ("info/attributes", |r, t| {
        fs::create_dir_all(r.root().join(".git/info")).unwrap();
        fs::write(r.root().join(".git/info/attributes"), "* filter=x diff=x merge=x\n").unwrap();
        set(r, "filter.x.clean", t.path());
        set(r, "filter.x.smudge", t.path());
        set(r, "diff.x.textconv", t.path());
        set(r, "diff.x.command", t.path());
        set(r, "merge.x.driver", t.path());
    }),
    ("core.attributesFile", |r, t| {
        fs::write(r.beside("attributes"), "* filter=x\n").unwrap();
        set(r, "core.attributesFile", r.beside("attributes").to_str().unwrap());
        set(r, "filter.x.clean", t.path());
        set(r, "filter.x.smudge", t.path());
    }),
    ("diff.external", |r, t| set(r, "diff.external", t.path())),
    ("diff.command", |r, t| {
        attributes(r, "*.txt diff=x");
        set(r, "diff.x.command", t.path());
    }),
    ("diff.textconv", |r, t| {
        attributes(r, "*.txt diff=x");
        set(r, "diff.x.textconv", t.path());
    }),
    ("merge.driver", |r, t| {
        attributes(r, "*.txt merge=x");
        set(r, "merge.x.driver", &format!("{} %O %A %B", t.path()));
    }),
    ("merge.default", |r, t| {
        set(r, "merge.default", "x");
        set(r, "merge.x.driver", &format!("{} %O %A %B", t.path()));
    }),
    ("core.pager", |r, t| set(r, "core.pager", t.path())),
    ("pager of a verb", |r, t| {
        for verb in ["diff", "status", "worktree", "for-each-ref", "config", "diff-tree", "ls-files"] {
            set(r, &format!("pager.{verb}"), t.path());
        }
    }),
    ("core.sshCommand", |r, t| {
        set(r, "core.sshCommand", t.path());
        set(r, "remote.origin.url", "ssh://localhost/x");
    }),
    ("credential.helper", |r, t| set(r, "credential.helper", &format!("!{}", t.path()))),
    ("alias", |r, t| {
        for verb in ["status", "worktree", "ls-files", "merge-tree", "update-index", "x"] {
            set(r, &format!("alias.{verb}"), &format!("!{}", t.path()));
        }
    }),
    ("include.path", |r, t| {
        let text = format!("[core]\nfsmonitor = {0}\n[filter \"x\"]\nclean = {0}\nsmudge = {0}\n", t.path());
        fs::write(r.beside("included"), text).unwrap();
        attributes(r, "*.txt filter=x");
        set(r, "include.path", r.beside("included").to_str().unwrap());
    }),
    ("includeIf", |r, t| {
        let text = format!("[filter \"y\"]\nclean = {0}\nsmudge = {0}\nprocess = {0}\n", t.path());
        fs::write(r.beside("included"), text).unwrap();
        attributes(r, "*.txt filter=y");
        set(r, "includeIf.gitdir:**.path", r.beside("included").to_str().unwrap());
    }),
    ("gpg.program", |r, t| {
        set(r, "gpg.program", t.path());
        set(r, "commit.gpgSign", "true");
        set(r, "user.signingKey", "x");
    }),
    ("gpg.ssh.program", |r, t| {
        set(r, "gpg.format", "ssh");
        set(r, "gpg.ssh.program", t.path());
        set(r, "gpg.ssh.defaultKeyCommand", t.path());
        set(r, "commit.gpgSign", "true");
    }),
    ("core.editor", |r, t| {
        set(r, "core.editor", t.path());
        set(r, "sequence.editor", t.path());
    }),
    ("core.askPass", |r, t| set(r, "core.askPass", t.path())),
    ("uploadpack.packObjectsHook", |r, t| set(r, "uploadpack.packObjectsHook", t.path())),
    ("a submodule with a configuration of its own", |r, t| {
        let inner = r.beside("inner");
        fs::create_dir(&inner).unwrap();
        git_in(&inner, &["init", "-q"]);
        git_in(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
        r.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.to_str().unwrap(), "sub"]);
        r.git(&["commit", "-q", "-m", "submodule"]);
        set(r, "submodule.recurse", "true");
        git_in(&r.root().join("sub"), &["config", "core.fsmonitor", t.path()]);
        r.write("sub/new.txt", "new");
    }),
    ("submodule.update", |r, t| set(r, "submodule.sub.update", &format!("!{}", t.path()))),
    ("core.worktree", |r, t| {
        fs::create_dir(r.beside("elsewhere")).unwrap();
        set(r, "core.worktree", r.beside("elsewhere").to_str().unwrap());
        hooks(&r.root().join(".git/hooks"), t);
    }),
    ("a configuration for the worktree", |r, t| {
        set(r, "extensions.worktreeConfig", "true");
        r.git(&["config", "--worktree", "core.fsmonitor", t.path()]);
    }),
    ("init.templateDir", |r, t| {
        hooks(&r.beside("template/hooks"), t);
        set(r, "init.templateDir", r.beside("template").to_str().unwrap());
    }),
    ("core.alternateRefsCommand", |r, t| set(r, "core.alternateRefsCommand", t.path())),
    ("gc and maintenance", |r, t| {
        set(r, "gc.auto", "1");
        set(r, "gc.recentObjectsHook", t.path());
        hooks(&r.root().join(".git/hooks"), t);
    }),
    ("tools", |r, t| {
        for key in ["difftool.x.cmd", "mergetool.x.cmd", "interactive.diffFilter", "man.x.cmd", "core.gitProxy"] {
            set(r, key, t.path());
        }
        set(r, "diff.tool", "x");
        set(r, "merge.tool", "x");
    }),
    ("a partial clone", |r, t| {
        set(r, "remote.origin.url", &format!("ext::{} %S", t.path()));
        set(r, "remote.origin.promisor", "true");
        set(r, "protocol.ext.allow", "always");
    }),
];

/// An agent that brings repositories of its own along and changes what git follows.
fn desk(repository: &Repository, trap: &Trap) -> Desk {
    let program = trap.path().to_owned();
    let act = tool("act", Repeat::Unsafe, move |_, scope| {
        let program = program.clone();
        async move {
            fs::write(scope.root.join("a.txt"), "one\ntwo\nTHREE\n").unwrap();
            fs::write(scope.root.join("new.txt"), "new").unwrap();
            let inner = scope.root.join("brought");
            fs::create_dir(&inner).unwrap();
            git_in(&inner, &["init", "-q"]);
            git_in(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
            git_in(&inner, &["config", "core.fsmonitor", &program]);
            fs::write(inner.join("x.txt"), "x").unwrap();
            fs::write(scope.root.join(".git"), format!("gitdir: {}/.git\n", inner.display())).unwrap();
            Ok(ToolOutput::ok("done"))
        }
    });
    let mut coder = agent("coder", &["act"]);
    coder.isolation = Some(Isolation::Worktree);
    coder.locum.include_dirty = Some(true);
    let mut looker = agent("looker", &[]);
    looker.isolation = Some(Isolation::Worktree);
    let model = Scripted::new()
        .agent("coder", [Say::calls([("act", json!({}))]), Say::text("done")])
        .agent("looker", [Say::text("seen")]);
    builder(model)
        .tool(act)
        .agent(coder)
        .agent(looker)
        .root(repository.root())
        .worktrees(repository.worktrees())
        .build()
        .unwrap()
}

/// Everything that locum does with git.
async fn use_every_verb(repository: &Repository, trap: &Trap, case: &str) {
    let desk = desk(repository, trap);
    repository.write("dirty.txt", "dirty");
    let tasks =
        json!([{"agent": "coder", "task": "t"}, {"agent": "coder", "task": "t"}, {"agent": "looker", "task": "t"}]);
    let answer = ask(&desk, json!({"action": "parallel", "tasks": tasks})).await;
    check(&answer, &json!({"completed": 3}));
    for result in &answer["results"].as_array().unwrap()[..2] {
        check(&result["worktree"], &json!({"files_changed": 2, "problem": null}));
    }
    desk.worktrees().await.unwrap_or_else(|refusal| panic!("{case}: {refusal:?}"));
    desk.worktree_diff("t_01", None).await.unwrap();
    desk.worktree_diff("t_01", Some("t_02")).await.unwrap();
    fs::remove_file(repository.root().join("dirty.txt")).unwrap();
    // With a merge driver that must not run, both sides of a changed file conflict: that is an answer too.
    repository.write("a.txt", "ONE\ntwo\nthree\n");
    commit_quietly(repository);
    desk.apply_worktree("t_01").await.ok();
    // The agent put another repository in its place: the directory is not let go.
    assert!(desk.drop_worktree("t_02", Consent::Given).await.is_err(), "{case}");
    desk.check_worktrees().await.unwrap();
}

/// A commit that runs nothing, whatever the repository says.
fn commit_quietly(repository: &Repository) {
    let root = repository.root();
    let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"];
    let work_tree = format!("--work-tree={}", root.display());
    let filters =
        ["-c", "filter.x.clean=", "-c", "filter.x.process=", "-c", "filter.y.clean=", "-c", "filter.y.process="];
    let dotted = [
        "-c",
        "filter.x.required=false",
        "-c",
        "filter.a.b.c.clean=",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ];
    let verb = ["commit", "-q", "-m", "mine", "--", "a.txt"];
    repository.git(&[&quiet[..], &filters, &dotted, &[work_tree.as_str(), "--git-dir=.git"], &verb].concat());
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let mut works = Vec::new();
    assert!(CASES.len() >= 25);
    for (case, arm) in CASES {
        let repository = Repository::new();
        let trap = Trap::beside(&repository);
        arm(&repository, &trap);
        // Setting it up may have run it.
        fs::remove_file(&trap.mark).ok();
        use_every_verb(&repository, &trap, case).await;
        let sprung = fs::read_to_string(&trap.mark).unwrap_or_default();
        assert!(!trap.is_sprung(), "{case}: {sprung}");
        if springs_with_plain_git(&repository, &trap) {
            works.push(case);
        }
    }
    // The traps are good: many of them catch somebody who uses git as one does.
    assert!(works.len() >= 20, "only {works:?}");
}

/// Whether the ordinary use of git runs the trap.
fn springs_with_plain_git(repository: &Repository, trap: &Trap) -> bool {
    repository.write("a.txt", "something else\n");
    let verbs: [&[&str]; 8] = [
        &["status"],
        &["diff"],
        &["add", "-A"],
        &["commit", "-q", "-m", "plain"],
        &["checkout", "-q", "-b", "plain", "HEAD~1"],
        &["merge", "-q", "main"],
        &["log", "-p", "-1"],
        &["gc", "-q"],
    ];
    for verb in verbs {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=T", "-c", "user.email=t@localhost"]).args(verb).current_dir(repository.root());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.stdin(std::process::Stdio::null()).output().unwrap();
    }
    trap.is_sprung()
}
