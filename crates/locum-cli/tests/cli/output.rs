//! What every verb keeps to, whatever it says: JSON for programs, nothing beside the answer for those who want quiet, no
//! colour where nobody sees it, and tables as wide as the terminal.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::home::Home;
use crate::pages::project;
use crate::terminal::Terminal;

/// Every verb that ends by itself, in an order in which each has something to say. `MODEL` stands for a model that
/// answers.
const VERBS: [&str; 56] = [
    "run explore t --model MODEL",
    "parallel explore=a explore=b --model MODEL",
    "chain explore=a explore=b --model MODEL",
    "race explore=a explore=b --model MODEL",
    "map explore {input} a b --model MODEL",
    "ask t --model MODEL",
    "spawn explore t --model MODEL",
    "wait",
    "status",
    "status LAST",
    "logs t_01",
    "result t_01",
    "cancel t_01",
    "collect LAST",
    "agents list",
    "agents show explore",
    "agents new harbour-scout --from explore",
    "agents lint",
    "agents trust --yes",
    "agents trust --list",
    "agents trust --revoke",
    "models list",
    "models show offline",
    "models route words",
    "models probe",
    "worktree list",
    "worktree fsck",
    "context write goal words",
    "context read goal",
    "context read-batch goal",
    "context list",
    "context history goal",
    "context snapshot first",
    "context snapshots",
    "context restore first",
    "context delete goal",
    "context session create other",
    "context session list",
    "context session archive other",
    "context session delete other --yes",
    "board add something to do",
    "board list",
    "board show b_01",
    "board update b_01 --comment words",
    "board claim b_01",
    "board complete b_01",
    "board complete-all",
    "board clear",
    "call subagent {\"action\":\"status\"}",
    "tools",
    "tools --face acai",
    "config show",
    "mcp servers",
    "gc",
    "doctor",
    "prompt",
];

/// Verbs that do not belong here: they draw, serve, or print a text for another program.
const OTHERS: [&str; 6] = ["watch", "serve", "mcp", "completions", "help", "man"];

/// Verbs whose answer is a text for somebody else, in whatever form they are asked for it.
const TEXTS: [&str; 1] = ["prompt"];

fn home() -> (Home, String) {
    let home = project();
    let model = home.script(&json!({"*": [{"text": "Done.", "usage": {}}]}));
    (home, model)
}

/// The words of a verb; the last task that was started has its id in `last`.
fn words<'a>(verb: &'a str, model: &'a str, last: &'a str) -> Vec<&'a str> {
    let word = |word: &'a str| match word {
        "MODEL" => model,
        "LAST" => last,
        word => word,
    };
    verb.split(' ').map(word).collect()
}

/// Runs every verb with these words behind it, and hands on how it went.
fn each(more: &[&str], look: impl Fn(&str, &crate::home::Ran)) {
    let (home, model) = home();
    let mut last = String::new();
    for verb in VERBS {
        let ran = home.locum(&[words(verb, &model, &last).as_slice(), more].concat());
        if verb.starts_with("spawn") {
            let said = ran.stdout.split(['"', '\n']).find(|word| word.starts_with("t_"));
            last = said.unwrap_or_default().to_owned();
        }
        // A doctor may find something to do, and a task that has ended is not cancelled.
        let may_fail = verb.starts_with("doctor") || verb.starts_with("cancel");
        assert!(may_fail || ran.code == Some(0), "locum {verb}: {ran:?}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "locum {verb}: {ran:?}");
        look(verb, &ran);
    }
}

#[test]
fn every_verb_is_looked_at() {
    let help = Home::new().locum(&["--help"]).stdout;
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A description may go on in the next line, further to the right.
    let verbs = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    for verb in verbs.filter_map(|line| line.split_whitespace().next()) {
        let is_here = VERBS.iter().any(|line| line.split(' ').next() == Some(verb)) || OTHERS.contains(&verb);
        assert!(is_here, "`{verb}` is not looked at");
    }
}

#[test]
fn programs_get_json_from_every_verb() {
    each(&["--json"], |verb, ran| {
        if !TEXTS.iter().any(|text| verb.starts_with(text)) {
            let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
            assert!(!ran.stdout.is_empty() && ran.stdout.lines().all(is_json), "locum {verb} --json: {}", ran.stdout);
        }
        assert_eq!(ran.stderr, "", "locum {verb} --json");
    });
}

#[test]
fn who_wants_quiet_gets_the_answer_alone() {
    each(&["--quiet"], |verb, ran| {
        // What went wrong is said all the same.
        assert!(ran.stderr.is_empty() || ran.code != Some(0), "locum {verb} --quiet: {}", ran.stderr);
    });
}

#[test]
fn answers_in_a_pipe_are_plain() {
    each(&[], |verb, ran| {
        assert!(!ran.stdout.contains('…') || verb.starts_with("tools"), "locum {verb}: {}", ran.stdout);
    });
}

/// What is on a screen without what tells the terminal how to show it; whether there were colours.
fn plain(screen: &str) -> (String, bool) {
    let (mut text, mut has_colour) = (String::new(), false);
    let mut rest = screen;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
        has_colour |= after[..end].starts_with("[3") && after[..end].ends_with('m');
        rest = &after[end..];
    }
    (text + rest, has_colour)
}

#[test]
fn tables_are_as_wide_as_the_terminal_and_no_colour_is_none() {
    let (home, model) = home();
    let long = "a label that is much longer than any line of the terminal that it is going to be shown on, by far";
    for arguments in [
        &["spawn", "explore", "t", "--label", long, "--model", &model][..],
        &["wait"],
        &["board", "add", long],
        &["context", "write", "goal", long],
        &["run", "explore", "t", "--isolation", "worktree", "--model", &model],
    ] {
        let ran = home.locum(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let uncoloured = home.with("NO_COLOR", "1");
    for verb in [
        "status",
        "wait t_01",
        "agents list",
        "models list",
        "board list",
        "context list",
        "context session list",
        "worktree list",
    ] {
        let words: Vec<&str> = verb.split(' ').collect();
        let (code, screen) = Terminal::start(&uncoloured, &words).end();
        let (text, has_colour) = plain(&screen);
        assert_eq!((code, has_colour), (Some(0), false), "locum {verb}:\n{screen}");
        // Notes below a table may be as long as they like.
        let rows = text.lines().take_while(|line| !line.starts_with("IN and OUT") && !line.is_empty());
        for line in rows {
            assert!(line.trim_end().width() <= 80, "locum {verb}: {} columns: {line}", line.width());
        }
    }
    let refused = Terminal::start(&uncoloured, &["run", "nobody", "t"]).end();
    assert!(refused.0 == Some(1) && !plain(&refused.1).1, "{refused:?}");
}

#[test]
fn hints_name_verbs_to_people_and_actions_to_programs() {
    let (home, model) = home();
    assert_eq!(home.locum(&["run", "explore", "t", "--model", &model]).code, Some(0));
    let cases: [(&str, &str, &str); 6] = [
        ("run exploer t", "`locum agents list` shows all", "list_agents shows all"),
        ("board show b_77", "`locum board list` shows them", "list shows them"),
        ("context read nothing", "`locum context list` shows them", "list_keys shows them"),
        ("context restore nothing", "`locum context snapshots` shows them", "list_snapshots shows them"),
        ("status t_77", "`locum status` lists the tasks", "status without task_id lists the tasks"),
        ("collect t_01", "`locum result` still has it", "use the action result"),
    ];
    for (verb, person, program) in cases {
        let words: Vec<&str> = verb.split(' ').collect();
        let said = home.locum(&words);
        assert!(said.code == Some(1) && said.stderr.contains(person), "locum {verb}: {said:?}");
        let refusal: Value = serde_json::from_str(&home.locum(&[&words[..], &["--json"]].concat()).stdout).unwrap();
        assert!(refusal["hint"].as_str().unwrap_or_default().contains(program), "locum {verb}: {refusal}");
    }
}
