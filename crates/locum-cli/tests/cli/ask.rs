//! `locum ask`: an orchestrator that delegates, answers, and says who did what.

use serde_json::{Value, json};

use crate::home::Home;

fn script(home: &Home) -> String {
    let tasks = json!([{"agent": "explore", "task": "the clock"}, {"agent": "scout", "task": "the tide"}]);
    home.script(&json!({
        "orchestrator": [
            {"text": "I ask two.", "tool_calls": [{"name": "subagent", "input": {"action": "parallel", "tasks": tasks}}]},
            {"text": "Both are there."},
        ],
        "*": [{"text": "Found {{task}}."}],
    }))
}

#[test]
fn an_orchestrator_delegates_and_the_table_says_who_did_what() {
    let home = Home::new();
    let ran = home.locum(&["ask", "Find clock and tide", "--model", &script(&home)]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Both are there.\n"), "{}", ran.stderr);
    let rows: Vec<Vec<&str>> = ran.stderr.lines().map(|line| line.split_whitespace().take(4).collect()).collect();
    for row in [
        ["WHO", "TASK", "STATUS", "TURNS"],
        ["@orchestrator", "t_01", "completed", "2"],
        ["@explore", "t_02", "completed", "1"],
        ["@scout", "t_03", "completed", "1"],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?} is missing: {}", ran.stderr);
    }
}

#[test]
fn machines_get_the_answer_and_the_family() {
    let home = Home::new();
    let ran = home.locum(&["ask", "--json", "Find clock and tide", "--model", &script(&home)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&answer["result"], &answer["agent"]), (&json!("Both are there."), &json!("orchestrator")));
    let agents: Vec<&Value> = answer["family"].as_array().unwrap().iter().map(|task| &task["agent"]).collect();
    assert_eq!(agents, ["orchestrator", "explore", "scout"]);
    // What it asks may ask nobody: one level is all that the settings give.
    assert_eq!(answer["receipt"]["tools"]["dropped"], json!([]));
}

#[test]
fn without_a_model_explorers_search_and_their_findings_are_joined() {
    let home = Home::new();
    let ran = home.locum(&["ask", "Where is the clock? And where is the height of the tide?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("Asked 2 explorers (offline search, no language model)."), "{}", ran.stdout);
    for found in ["## Where is the clock?", "src/clock.rs:", "## And where is the height of the tide?", "src/tide.rs:"]
    {
        assert!(ran.stdout.contains(found), "{found} is missing: {}", ran.stdout);
    }
    assert_eq!(ran.stderr.matches("@explore").count(), 2, "{}", ran.stderr);
}

#[test]
fn a_goal_that_fails_is_not_called_done() {
    let home = Home::new();
    let model = home.script(&json!({"orchestrator": [{"error": {"kind": "auth"}}]}));
    let ran = home.locum(&["ask", "Find it", "--model", &model]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("Model API error"), "{}", ran.stderr);
}
