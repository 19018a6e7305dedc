//! What a rule wants to be asked: at a terminal the person is, and elsewhere it is refused.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use nix::pty::openpty;
use serde_json::json;

use crate::home::{Home, run};

/// What `scribe` does.
fn command(home: &Home) -> Command {
    let write = |path: &str| json!({"tool_calls": [{"name": "write", "input": {"path": path, "content": "x"}}]});
    let model = home.script(&json!({"*": [write("src/a.txt"), write("src/b.txt"), {"text": "Done."}]}));
    home.command(&["--agents", "agents", "--model", &model, "run", "scribe", "Go."])
}

/// Runs at a terminal and answers each question in turn; what was on the screen, and what was answered.
fn at_terminal(home: &Home, answers: &[&str]) -> (String, String) {
    let pty = openpty(None, None).unwrap();
    let mut command = command(home);
    command.stdin(Stdio::from(pty.slave.try_clone().unwrap())).stderr(Stdio::from(pty.slave)).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The terminal ends when its last user does.
    drop(command);
    let mut terminal = File::from(pty.master);
    let (mut screen, mut asked) = (String::new(), 0);
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut piece) {
        screen.push_str(&String::from_utf8_lossy(&piece[..count]));
        while asked < screen.matches("[N]o").count() {
            terminal.write_all(format!("{}\n", answers[asked]).as_bytes()).unwrap();
            asked += 1;
        }
    }
    assert_eq!(asked, answers.len(), "{screen}");
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    child.wait().unwrap();
    (screen, answer)
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    for (answers, written) in [
        (&["y", "yes"][..], [true, true]),
        (&["y", "n"], [true, false]),
        (&["", "Y"], [false, true]),
        (&["a"], [true, true]),
    ] {
        let home = Home::with_scribe();
        let (screen, answer) = at_terminal(&home, answers);
        assert!(
            screen.contains("wants to use") && screen.contains("write") && screen.contains("src/a.txt"),
            "{screen}"
        );
        assert!(screen.contains("the rule `ask write(src/**)` wants you to agree"), "{screen}");
        assert_eq!(answer.trim(), "Done.", "{answers:?} {screen}");
        for (name, expected) in ["src/a.txt", "src/b.txt"].iter().zip(written) {
            assert_eq!(home.project().join(name).exists(), expected, "{answers:?} {name}");
        }
        let denied = written.contains(&false);
        assert_eq!(screen.contains("wants a person to agree, and the person did not"), denied, "{screen}");
    }
}

#[test]
fn where_nobody_can_be_asked_the_rule_is_told() {
    let home = Home::with_scribe();
    let ran = run(command(&home), b"");
    assert_eq!(ran.stdout.trim(), "Done.");
    let why = "the rule `ask write(src/**)` wants a person to agree, and nobody can be asked here";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert!(!home.project().join("src/a.txt").exists());
}
