//! Whether to trust a project, asked at a terminal: yes, no, and again when it has changed.

use serde_json::json;

use crate::home::Home;
use crate::terminal::Terminal;

const DEPLOY: &str = "---\nname: deploy\ndescription: Deploys\ntools: ls\n---\nYou deploy.\n";

/// Runs the project's agent at a terminal, and answers the question if there is one.
fn run(home: &Home, model: &str, answer: Option<&str>) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(home, &["run", "deploy", "now", "--model", model]);
    if let Some(answer) = answer {
        terminal.shows("as it is now? [y/N]");
        terminal.types(answer);
    }
    terminal.end()
}

#[test]
fn who_says_yes_is_not_asked_again_until_something_changes() {
    let home = Home::new();
    home.write(".locum/agents/deploy.md", DEPLOY);
    let model = home.script(&json!({"*": [{"text": "Deployed."}]}));
    for no in ["", "n", "no", "perhaps", "YES please"] {
        let (code, screen) = run(&home, &model, Some(no));
        assert_eq!(code, Some(3), "{no}: {screen}");
        assert!(screen.contains("NOT_TRUSTED") && !screen.contains("Deployed."), "{no}: {screen}");
    }
    let (code, screen) = run(&home, &model, Some("y"));
    assert_eq!(code, Some(0), "{screen}");
    // What would act was shown before the question.
    let (before, after) = screen.split_once("[y/N]").unwrap();
    assert!(
        before.contains(".locum/agents/deploy.md") && before.contains("agent deploy: tools ls: Deploys"),
        "{before}"
    );
    assert!(after.contains("Deployed."), "{after}");
    let (code, screen) = run(&home, &model, None);
    assert_eq!((code, screen.contains("[y/N]")), (Some(0), false), "{screen}");
    home.write(".locum/agents/deploy.md", &DEPLOY.replace("You deploy.", "You deploy elsewhere."));
    let (code, screen) = run(&home, &model, Some("n"));
    assert_eq!(code, Some(3), "{screen}");
    assert!(screen.contains("it has changed since it was trusted"), "{screen}");
    let (code, screen) = run(&home, &model, Some("yes"));
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn the_verb_asks_too_and_takes_no_for_an_answer() {
    let home = Home::new();
    home.write(".locum/agents/deploy.md", &DEPLOY.replace("Deploys", "De\u{202e}ploys"));
    let trust = |answer: &str| {
        let mut terminal = Terminal::start(&home, &["agents", "trust"]);
        terminal.shows("[1 HIDDEN CHARACTERS]");
        terminal.shows("[y/N]");
        terminal.types(answer);
        terminal.end()
    };
    let (code, screen) = trust("n");
    assert_eq!(code, Some(3), "{screen}");
    assert!(!screen.contains('\u{202e}'), "{screen}");
    assert_eq!(trust("y").0, Some(0));
    let (code, screen) = Terminal::start(&home, &["agents", "trust"]).end();
    assert!(code == Some(0) && screen.contains("trusted already"), "{screen}");
}

#[test]
fn nobody_is_asked_without_a_terminal_or_where_machines_read() {
    let home = Home::new();
    home.write(".locum/agents/deploy.md", DEPLOY);
    let model = home.script(&json!({"*": [{"text": "Deployed."}]}));
    let ran = home.locum_reading(&["run", "deploy", "now", "--model", &model], b"y\n");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("locum agents trust"), "{ran:?}");
    let (code, screen) = Terminal::start(&home, &["run", "deploy", "now", "--json", "--model", &model]).end();
    assert_eq!(code, Some(3), "{screen}");
    assert!(!screen.contains("[y/N]"), "{screen}");
}
