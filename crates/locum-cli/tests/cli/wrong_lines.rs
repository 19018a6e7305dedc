//! Command lines that are wrong: each is answered with a sentence that says what to do, on standard error, and with a
//! code that scripts can go by.

use crate::home::Home;

/// What a line is answered with: its code, and what the sentence has.
fn check(cases: &[(&[&str], i32, &[&str])]) {
    let home = Home::new();
    home.write("bad.jsonl", "{bad\n");
    home.write("list.jsonl", "[\"explore\", \"t\"]\n");
    for (words, code, says) in cases {
        let ran = home.locum(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(*code), ""), "{words:?}: {}", ran.stderr);
        for part in *says {
            assert!(ran.stderr.contains(part), "{words:?} does not say {part:?}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains('\u{1b}'), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn words_that_are_misspelt_are_answered_with_the_nearest() {
    check(&[
        (&["rnu", "explore", "t"], 2, &["unrecognized subcommand 'rnu'", "'run'"]),
        (&["statsu"], 2, &["'status'"]),
        (&["help", "rnu"], 1, &["there is no verb `rnu`", "`locum help` lists the verbs"]),
        (&["run", "explroe", "t"], 1, &["no agent is called `explroe`", "did you mean explore"]),
        (&["run", "explore", "t", "--modle", "offline"], 2, &["'--modle'", "'--model'"]),
        (&["run", "explore", "t", "--model", "gpt9"], 1, &["no model is called `gpt9`", "did you mean gpt"]),
        (&["run", "explore", "t", "--isolation", "tree"], 2, &["worktree, process, none"]),
        (&["run", "explore", "t", "--sandbox", "hard"], 1, &["full, landlock, none"]),
        (&["run", "explore", "t", "--task-type", "x"], 2, &["one of code, vision, text"]),
        (&["board", "update", "b_01", "--status", "done"], 2, &["pending, in_progress, completed"]),
        (&["completions", "csh"], 2, &["bash, zsh, fish"]),
        (&["mcp", "install", "vim"], 2, &["claude, codex, cursor"]),
    ]);
}

#[test]
fn what_is_not_there_is_said_with_where_to_look() {
    check(&[
        (&["status", "t_99"], 1, &["no task `t_99`", "`locum status` lists the tasks"]),
        (&["wait", "t_99"], 1, &["no task `t_99`"]),
        (&["collect", "foo"], 1, &["no task `foo`"]),
        (&["result", "t_99"], 1, &["no task `t_99`"]),
        (&["cancel", "t_99"], 1, &["no task `t_99`"]),
        (&["logs", "t_99"], 1, &["no task `t_99`"]),
        (&["worktree", "diff", "t_99"], 1, &["no task `t_99`"]),
        (&["board", "show", "b_99"], 1, &["no task `b_99`", "`locum board list` shows them"]),
        (&["context", "read", "nope"], 1, &["no key `nope`", "`locum context list` shows them"]),
        (&["context", "restore", "nope"], 1, &["nope", "`locum context snapshots` shows them"]),
        (&["agents", "show", "nope"], 1, &["no agent is called `nope`", "the agents are architect"]),
        (&["agents", "lint", "nope"], 1, &["no such file", "name a file, or a directory"]),
        (&["parallel", "--tasks", "nope"], 1, &["nope cannot be read"]),
        (&["map", "explore", "{input}", "--inputs", "nope"], 1, &["nope cannot be read"]),
        (&["run", "explore", "t", "--model", "scripted:nope"], 1, &["nope"]),
        (&["run", "explore", "t", "--model", "replay:nope"], 1, &["nope"]),
    ]);
}

#[test]
fn values_that_do_not_fit_are_said_with_what_would() {
    let timeout = ["run", "explore", "t", "--timeout"];
    check(&[
        (&["run", "explore"], 2, &["<TASK>"]),
        (&["run", "explore", ""], 1, &["`task` is empty", "say what the agent should do"]),
        (&[&timeout[..], &["soon"]].concat(), 2, &["write a whole number, for example 600"]),
        (&[&timeout[..], &["-1"]].concat(), 2, &["write a whole number, for example 600"]),
        (&[&timeout[..], &["0"]].concat(), 1, &["at least 1"]),
        (&["run", "explore", "t", "--max-cost", "-1"], 1, &["max_cost_usd"]),
        (&["run", "explore", "t", "--max-cost", "1"], 1, &["price of offline", "--max-input-tokens"]),
        (&["run", "explore", "t", "--complexity", "9"], 2, &["a number from 1 to 5"]),
        (&["run", "explore", "t", "--cwd", ".."], 1, &["below the project's root"]),
        (&["run", "explore", "t", "--cwd", "nope"], 1, &["`cwd` names `nope`", "no such directory", "leave it out"]),
        (&["parallel", "explore"], 2, &["write it as AGENT=TASK, for example"]),
        (&["parallel", "explore=t", "--concurrency", "0"], 2, &["1 or more"]),
        (&["parallel", "--tasks", "bad.jsonl"], 1, &["bad.jsonl:1", "a task is a JSON object such as {\"agent\""]),
        (&["chain", "--tasks", "list.jsonl"], 1, &["list.jsonl:1", "a task is a JSON object such as {\"agent\""]),
        (&["map", "explore", "what", "a"], 1, &["no {input}", "write {input} where"]),
        (&["agents", "new", "Bad Name"], 1, &["only a-z, 0-9"]),
        (&["context", "write", "k", "v", "--expected-version", "9"], 1, &["the key does not exist"]),
        (&["board", "add", "s", "--metadata", "{bad"], 1, &["metadata"]),
        (&["models", "route", "t", "--hint", "size"], 2, &["write it as KEY=VALUE"]),
        (&["call", "subagent"], 2, &["<INPUT>"]),
        (&["status", "--server", "nowhere"], 1, &["http://"]),
    ]);
}

#[test]
fn help_is_a_verb_too() {
    let home = Home::new();
    for (verbs, flags) in
        [(&[][..], &["--help"][..]), (&["run"], &["run", "--help"]), (&["agents", "new"], &["agents", "new", "-h"])]
    {
        let asked = home.locum(&[&["help"], verbs].concat());
        assert_eq!((asked.code, asked.stderr.as_str()), (Some(0), ""), "{verbs:?}");
        assert_eq!(asked.stdout, home.locum(flags).stdout, "{verbs:?}");
        assert!(asked.stdout.contains("Options of every verb:"), "what a verb takes stands apart: {}", asked.stdout);
    }
    assert!(home.locum(&["help", "run"]).stdout.contains("Examples:\n  locum run explore "));
}
