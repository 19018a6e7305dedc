//! `locum watch` at a terminal: what it shows, what its keys do, and that it leaves the terminal as it was.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::terminal::Terminal;

/// The alternate screen, entered and left.
const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

fn home() -> Home {
    let home = Home::new();
    home.write("agents/silent.md", "---\nname: silent\ndescription: d\ntools: ls\n---\nYou help.\n");
    home
}

/// A task that waits for its model, and how to ask how it stands.
fn start(home: &Home) {
    let model = home.script(&json!({"silent": [{"error": {"kind": "hang"}}]}));
    let ran = home.locum(&["spawn", "silent", "wait for me", "--agents", "agents", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn status(home: &Home) -> String {
    let answer: Value = serde_json::from_str(&home.locum(&["status", "t_01", "--json"]).stdout).unwrap();
    answer["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn it_refuses_what_is_no_terminal_and_says_what_to_use() {
    let ran = Home::new().locum(&["watch"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("locum status"), "{ran:?}");
}

#[test]
fn escape_stops_the_agents_and_q_gives_the_terminal_back() {
    let home = home();
    start(&home);
    let mut terminal = Terminal::start(&home, &["watch"]);
    terminal.shows("agents · 1 running");
    terminal.shows("> wait for me");
    terminal.presses("\u{1b}");
    wait_until(|| status(&home) == "cancelled");
    terminal.presses("q");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.find(ENTERED) < screen.rfind(LEFT) && screen.contains("\u{1b}[?25h"), "{screen}");
}

#[test]
fn what_a_task_of_another_process_says_is_shown_before_it_is_whole() {
    let home = home();
    let mut terminal = Terminal::start(&home, &["watch"]);
    terminal.shows("@main");
    // It is said in four pieces, and never ended.
    let says = json!({"error": {"kind": "hang"}, "text": "alphabravogammadelta"});
    let model = home.script(&json!({"silent": [says]}));
    let ran = home.locum(&["spawn", "silent", "wait for me", "--agents", "agents", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    terminal.shows("> wait for me");
    terminal.shows("delta");
    terminal.presses("\u{1b}");
    wait_until(|| status(&home) == "cancelled");
    terminal.presses("q");
    assert_eq!(terminal.end().0, Some(0));
    let log = home.locum(&["logs", "t_01"]).stdout;
    assert!(log.contains("stopped: somebody asked for it\n"), "{log}");
}

#[test]
fn a_signal_gives_the_terminal_back_and_tasks_go_on() {
    let home = home();
    start(&home);
    let terminal = Terminal::start(&home, &["watch"]);
    terminal.shows("agents · 1 running");
    terminal.signal(Signal::SIGTERM);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.find(ENTERED) < screen.rfind(LEFT), "{screen}");
    assert_eq!(status(&home), "running");
    home.locum(&["cancel", "t_01"]);
}
