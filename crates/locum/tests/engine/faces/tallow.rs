//! Tallow: the tool `subagent` with its three modes.

use std::time::Duration;

use locum::faces::Face;
use locum::models::scripted::{Say, Scripted};
use locum::transcript::Repeat;
use locum::{Desk, DeskBuilder};
use locum_core::agent::Source;
use locum_core::task::event::FailureKind;
use locum_core::usage::TokenCount;
use serde_json::{Value, json};

use super::{call, text};
use crate::cast::Witness;
use crate::stage::{Ledger, agent, ask, builder, check, noting_tool};

async fn subagent(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Tallow, "subagent", input).await
}

/// `ann` repeats her task, `bob` fails, `hal` hangs.
fn cast() -> (DeskBuilder, Witness) {
    let script = Scripted::new()
        .agent("ann", [Say::text("<{{task}}>").after(Duration::from_secs(1))])
        .agent("bob", [Say::error(FailureKind::Auth, "no key")])
        .agent("hal", [Say::hang()])
        .agent("*", [Say::text("Made up.")]);
    let model = Witness::new(script);
    (builder(model.clone()).agent(agent("hal", &[])), model)
}

fn desk() -> Desk {
    cast().0.build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn single_mode_asks_one_agent_and_tells_everything_of_it() {
    let tokens = TokenCount { input: 100, output: 20, cache_read: 7, cache_write: 3 };
    let script = Scripted::new().agent(
        "ann",
        [Say::calls([("ls", json!({}))]).with_text("I look.").using(tokens), Say::text("Two files.").using(tokens)],
    );
    let desk = builder(script).agent(agent("ann", &["ls"])).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "ann", "task": "Count."})).await;
    assert_eq!((text(&answer), &answer["isError"]), ("Two files.", &json!(false)));
    let usage = json!({
        "input": 200, "output": 40, "cacheRead": 14, "cacheWrite": 6, "cost": 0.0, "contextTokens": 130, "turns": 2,
        "denials": 0,
    });
    let expected = json!({
        "mode": "single", "agentScope": "both", "projectAgentsDir": null,
        "results": [{
            "agent": "ann", "agentSource": "user", "task": "Count.", "exitCode": 0, "stderr": "", "usage": usage,
            "stopReason": "stop", "errorMessage": null, "model": "cast",
        }],
    });
    check(&answer["details"], &expected);
    let result = answer["details"]["results"][0].as_object().unwrap();
    assert!(!result.contains_key("requestedAgent") && !result.contains_key("step"), "{result:?}");
    let roles: Vec<&Value> = result["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
}

#[tokio::test(start_paused = true)]
async fn exactly_one_mode_is_taken_and_otherwise_the_agents_are_listed() {
    let desk = desk();
    let task = json!({"agent": "ann", "task": "t"});
    for input in [
        json!({}),
        json!({"agent": "ann"}),
        json!({"task": "t"}),
        json!({"tasks": []}),
        json!({"centipede": []}),
        json!({"agent": "ann", "task": "t", "tasks": [task]}),
        json!({"tasks": [task], "centipede": [task]}),
        json!({"agent": "ann", "tasks": [task]}),
    ] {
        let answer = subagent(&desk, input.clone()).await;
        let expected =
            "Invalid parameters. Provide exactly one mode.\nAvailable agents: ann (user), bob (user), hal (user)";
        assert_eq!((text(&answer), &answer["isError"]), (expected, &json!(true)), "{input}");
        check(&answer["details"], &json!({"mode": "single", "agentScope": "both", "results": []}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_unknown_or_wrong_is_named() {
    let desk = desk();
    for (more, expected) in [
        (json!({"colour": "red"}), "`colour`"),
        (json!({"isolation": "process"}), "isolation"),
        (json!({"agentScope": "all"}), "agentScope"),
        (json!({"costPreference": "cheap"}), "costPreference"),
        (json!({"taskType": "music"}), "taskType"),
        (json!({"background": "yes"}), "background"),
        (json!({"session": "No Name"}), "session"),
        (json!({"complexity": 6}), "complexity"),
        (json!({"cwd": "/elsewhere"}), "cwd"),
        (json!({"model": "nothing-like-it"}), "nothing-like-it"),
    ] {
        let mut input = json!({"agent": "ann", "task": "t"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = subagent(&desk, input).await;
        assert_eq!(answer["isError"], true, "{more}");
        assert!(text(&answer).contains(expected), "{more}: {answer}");
    }
    let steps = json!([{"agent": "ann", "task": "t"}]);
    let answer = subagent(&desk, json!({"centipede": steps, "background": true})).await;
    assert!(text(&answer).contains("single and parallel"), "{answer}");
    for tasks in [json!("not json"), json!("{}"), json!([{"agent": "ann"}]), json!([["ann", "t"]])] {
        let answer = subagent(&desk, json!({"tasks": tasks})).await;
        assert!(text(&answer).starts_with("Invalid parameters. "), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_option_reaches_the_task() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("src")).unwrap();
    let (builder, _) = cast();
    let desk = builder.root(place.path()).build().unwrap();
    let root = place.path().canonicalize().unwrap();
    for cwd in [json!("src"), json!(root.join("src"))] {
        let input = json!({
            "agent": "ann", "task": "t", "cwd": cwd, "model": "cast", "agentScope": "user", "session": "other",
            "costPreference": "eco", "taskType": "code", "complexity": 2, "modelScope": "c",
        });
        let answer = subagent(&desk, input).await;
        assert_eq!(text(&answer), "<t>", "{answer}");
        assert_eq!(answer["details"]["agentScope"], "user");
    }
    let other = desk.in_session(locum::SessionId::parse("other").unwrap());
    let log = other.log_of("t_02").await.unwrap();
    let locum::task::TaskEvent::Accepted { plan, .. } = &log[0].event else { panic!("{log:?}") };
    assert_eq!((plan.grants.cwd.as_str(), plan.assignment.task.as_str()), ("src", "t"));
    // Outside of a repository there is no worktree, and that is said.
    let answer = subagent(&desk, json!({"agent": "ann", "task": "t", "isolation": "worktree"})).await;
    assert!(text(&answer).contains("isolation `worktree`"), "{answer}");
    let tasks = json!([{"agent": "ann", "task": "t", "isolation": "worktree", "cwd": "src", "model": "cast"}]);
    let answer = subagent(&desk, json!({"tasks": tasks})).await;
    assert!(text(&answer).contains("isolation `worktree`"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn parallel_runs_four_at_once_and_gives_every_result_whole() {
    let (builder, model) = cast();
    let desk = builder.build().unwrap();
    let long = "x".repeat(5000);
    let tasks: Vec<Value> = (0..5).map(|n| json!({"agent": "ann", "task": format!("{n}{long}")})).collect();
    let answer = subagent(&desk, json!({"tasks": tasks})).await;
    let results: Vec<String> = (0..5).map(|n| format!("\n\n[ann] completed:\n<{n}{long}>")).collect();
    let expected = format!("Parallel: 5/5 done (5 completed, 0 failed, 0 stalled){}", results.concat());
    assert_eq!((text(&answer), &answer["isError"]), (expected.as_str(), &json!(false)));
    assert_eq!(model.most_at_once(), 4);
    assert_eq!(
        (&answer["details"]["mode"], answer["details"]["results"].as_array().unwrap().len()),
        (&json!("parallel"), 5)
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_takes_any_number_and_reports_batches_of_eight() {
    let desk = desk();
    let tasks: Vec<Value> = (0..17).map(|n| json!({"agent": "ann", "task": n.to_string()})).collect();
    // Models write lists as texts now and then.
    let answer = subagent(&desk, json!({"tasks": json!(tasks).to_string()})).await;
    let text = text(&answer);
    assert!(text.starts_with("Parallel: 17/17 done (17 completed, 0 failed, 0 stalled)\n\nBatch 1 of 3\n\n"), "{text}");
    let batches: Vec<usize> =
        text.split("\n\nBatch ").skip(1).map(|batch| batch.matches("[ann] completed:").count()).collect();
    assert_eq!(batches, [8, 8, 1]);
}

#[tokio::test(start_paused = true)]
async fn parallel_is_an_error_if_any_failed_or_stalled_and_keeps_the_others() {
    let desk = desk();
    let tasks = json!([{"agent": "ann", "task": "a"}, {"agent": "bob", "task": "b"}, {"agent": "hal", "task": "c"}]);
    let answer = subagent(&desk, json!({"tasks": tasks})).await;
    let head = "Parallel: 3/3 done (1 completed, 1 failed, 1 stalled)\n\n[ann] completed:\n<a>\n\n\
                [bob] failed:\nModel API error: no key\n\n[hal] stalled:\nStalled: no activity for";
    assert!(text(&answer).starts_with(head), "{answer}");
    assert!(text(&answer).contains("Stalled workers can be asked again"), "{answer}");
    assert_eq!(answer["isError"], true);
    let codes: Vec<&Value> =
        answer["details"]["results"].as_array().unwrap().iter().map(|result| &result["exitCode"]).collect();
    assert_eq!(codes, [0, 1, 124]);
    check(&answer["details"]["results"][2], &json!({"stopReason": "stalled"}));
    // One that is refused refuses only itself.
    let tasks = json!([{"agent": "ann", "task": " "}, {"agent": "ann", "task": "b"}]);
    let answer = subagent(&desk, json!({"tasks": tasks})).await;
    assert!(text(&answer).contains("[ann] failed:\n`task` is empty") && text(&answer).contains("<b>"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn centipede_hands_each_result_on_and_stops_where_it_fails() {
    let (builder, model) = cast();
    let desk = builder.build().unwrap();
    let steps = json!([
        {"agent": "ann", "task": "one"},
        {"agent": "ann", "task": "{previous} and {previous}"},
        {"agent": "ann", "task": "three"},
    ]);
    let answer = subagent(&desk, json!({"centipede": steps})).await;
    assert_eq!((text(&answer), &answer["isError"]), ("<three>", &json!(false)));
    let asked: Vec<String> = model.asked().iter().map(|asked| asked.task().to_owned()).collect();
    assert_eq!(asked, ["one", "<one> and <one>", "three"]);
    check(&answer["details"], &json!({"mode": "centipede", "results": [{"step": 1}, {"step": 2}, {"step": 3}]}));
    let steps = json!([{"agent": "ann", "task": "a"}, {"agent": "bob", "task": "b"}, {"agent": "ann", "task": "c"}]);
    let answer = subagent(&desk, json!({"centipede": steps.to_string()})).await;
    assert_eq!(text(&answer), "Centipede stopped at step 2 (bob): Model API error: no key");
    assert_eq!(answer["isError"], true);
    check(&answer["details"]["results"], &json!([{"step": 1, "exitCode": 0}, {"step": 2, "exitCode": 1}]));
}

#[tokio::test(start_paused = true)]
async fn a_failed_agent_keeps_what_it_said() {
    let says = [Say::calls([("ls", json!({}))]).with_text("So far."), Say::error(FailureKind::Auth, "no key")];
    let desk = builder(Scripted::new().agent("ann", says)).agent(agent("ann", &["ls"])).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "ann", "task": "t"})).await;
    assert_eq!(text(&answer), "Agent failed: Model API error: no key\n\nPartial result:\nSo far.");
    let result = &answer["details"]["results"][0];
    check(result, &json!({"exitCode": 1, "stopReason": "error", "errorMessage": "Model API error: no key"}));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_turns_counts_replies_that_use_tools_and_ends_without_another() {
    let ledger = Ledger::default();
    let turn =
        |n: u32| Say::calls([("look", json!({"n": n})), ("look", json!({"n": n}))]).with_text(format!("Turn {n}."));
    for (turns, says, expected, calls) in [
        (
            2,
            vec![turn(1), turn(2), Say::text("Never.")],
            "Agent failed: Turn 2.\n\n[Terminated: reached maxTurns limit of 2]",
            2,
        ),
        (3, vec![turn(1), turn(2), Say::text("In time.")], "In time.", 3),
    ] {
        let model = Witness::new(Scripted::new().agent("quick", says));
        let mut quick = agent("quick", &["look"]);
        quick.max_turns = Some(turns);
        let desk =
            builder(model.clone()).tool(noting_tool("look", Repeat::Safe, &ledger)).agent(quick).build().unwrap();
        let answer = subagent(&desk, json!({"agent": "quick", "task": "t"})).await;
        assert_eq!(text(&answer), expected);
        assert_eq!(model.calls(), calls);
        let sentence = format!(
            "You have a maximum of {turns} tool-use turns for this task. Plan your approach to complete within this \
             budget. If you are running low, output your best result immediately."
        );
        assert!(model.asked()[0].system.ends_with(&sentence), "{}", model.asked()[0].system);
        assert!(model.asked().iter().all(|asked| asked.notice.is_none()), "no turn is announced as the last");
    }
    // The tools of the last turn have run: two calls in each of two turns, for both agents.
    assert_eq!(ledger.lines().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_nobody_has_is_matched_or_an_agent_is_made_and_both_are_shown() {
    let (builder, model) = cast();
    let desk = builder.agent(agent("code-reviewer", &[])).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "reviewer", "task": "t"})).await;
    assert_eq!(text(&answer), "[agent: reviewer → code-reviewer (match)]\nMade up.");
    let result = &answer["details"]["results"][0];
    check(result, &json!({"agent": "code-reviewer", "requestedAgent": "reviewer", "agentSource": "user"}));
    let answer = subagent(&desk, json!({"agent": "zoologist", "task": "t"})).await;
    assert_eq!(text(&answer), "[agent: zoologist → zoologist (ephemeral)]\nMade up.");
    let result = &answer["details"]["results"][0];
    check(result, &json!({"agent": "zoologist", "requestedAgent": "zoologist", "agentSource": "ephemeral"}));
    let made = model.asked().pop().unwrap();
    assert_eq!(made.tools, ["read", "bash", "edit", "write", "grep", "find", "ls"]);
    assert!(made.system.contains("`zoologist`"), "{}", made.system);
}

#[tokio::test(start_paused = true)]
async fn without_a_list_an_agent_has_the_seven_tools_less_what_it_denies() {
    let (builder, model) = cast();
    let mut plain = agent("plain", &[]);
    plain.tools = None;
    let mut safe = plain.clone();
    safe.name = locum::AgentName::parse("safe-analyzer").unwrap();
    safe.denied_tools = Some(["bash", "write", "edit"].map(str::to_owned).to_vec());
    let mut both = agent("both", &["read", "bash", "edit", "write"]);
    both.denied_tools = Some(["bash", "write"].map(str::to_owned).to_vec());
    let desk = builder.agent(plain).agent(safe).agent(both).build().unwrap();
    for (name, expected) in [
        ("plain", vec!["read", "bash", "edit", "write", "grep", "find", "ls"]),
        ("safe-analyzer", vec!["read", "grep", "find", "ls"]),
        ("both", vec!["read", "edit"]),
    ] {
        subagent(&desk, json!({"agent": name, "task": "t"})).await;
        assert_eq!(model.asked().pop().unwrap().tools, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_leaves_out_the_agents_of_others() {
    let (builder, model) = cast();
    let mut theirs = agent("theirs", &[]);
    theirs.source = Source::Project("p/theirs.md".to_owned());
    let desk = builder.agent(theirs).build().unwrap();
    for (scope, name, source) in [
        ("user", "ann", "user"),
        ("project", "theirs", "project"),
        ("both", "theirs", "project"),
        ("user", "theirs", "ephemeral"),
        ("project", "ann", "ephemeral"),
    ] {
        let answer = subagent(&desk, json!({"agent": name, "task": "t", "agentScope": scope})).await;
        check(&answer["details"], &json!({"agentScope": scope, "results": [{"agentSource": source}]}));
    }
    assert_eq!(model.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_shown_to_200_kib_and_the_rest_can_be_had() {
    let whole = "y".repeat(200 * 1024 + 1);
    let desk = builder(Scripted::new().agent("ann", [Say::text(whole.clone())])).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "ann", "task": "t"})).await;
    let expected = format!("{}\n[cut at 200 KiB: `locum result t_01 --session main` has all of it]", &whole[1..]);
    assert_eq!(text(&answer), expected);
    let result = ask(&desk, json!({"action": "result", "task_id": "t_01", "offset": 200 * 1024})).await;
    check(&result, &json!({"text": "y", "total_chars": whole.len()}));
}

#[tokio::test(start_paused = true)]
async fn a_task_may_have_a_hundred_thousand_characters() {
    let desk = desk();
    let long = "é".repeat(100_000);
    let answer = subagent(&desk, json!({"agent": "ann", "task": long})).await;
    assert_eq!(text(&answer), format!("<{long}>"));
    let answer = subagent(&desk, json!({"agent": "ann", "task": format!("{long}x")})).await;
    assert!(text(&answer).contains("tokens"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn without_delegation_nothing_is_started() {
    let (builder, model) = cast();
    let desk = builder.enabled(false).build().unwrap();
    let task = json!({"agent": "ann", "task": "t"});
    for input in [task.clone(), json!({"tasks": [task]}), json!({"centipede": [task]})] {
        assert_eq!(subagent(&desk, input).await["isError"], true);
    }
    assert_eq!(model.calls(), 0);
}
