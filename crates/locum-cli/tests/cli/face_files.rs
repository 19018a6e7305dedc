//! What faces make of agent files, settings and the environment.

use serde_json::{Value, json};

use crate::home::{Home, Ran};

fn write_home(home: &Home, path: &str, text: &str) {
    let path = home.root().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn file(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: The {name}\n{more}---\nYou are {name}.\n")
}

fn call(home: &Home, face: &str, tool: &str, input: &Value, model: &str) -> (Value, Ran) {
    let ran = home.locum(&["call", "--face", face, tool, &input.to_string(), "--model", model]);
    let answer = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (answer, ran)
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer:#}"))
}

#[test]
fn acai_reads_its_files_the_projects_over_the_users_and_a_broken_one_breaks_no_other() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "Done: {{task}}", "usage": {}}]}));
    write_home(&home, ".acai/subagents/digger.md", &file("digger", ""));
    write_home(&home, ".acai/subagents/other.md", &file("not-other", ""));
    write_home(&home, ".acai/subagents/wrong.md", "---\nname: wrong\ntimeout: soon\n---\nYou.\n");
    write_home(&home, ".acai/subagents/odd.md", &file("odd", "model: nobody:knows\n"));
    let agent = |kind: &str| {
        let (answer, ran) = call(&home, "acai", "Agent", &json!({"type": kind, "prompt": "dig"}), &model);
        (text(&answer).to_owned(), ran.code)
    };
    assert_eq!(agent("digger"), ("Done: dig".to_owned(), Some(0)));
    assert_eq!(agent("odd"), ("Done: dig".to_owned(), Some(0)), "the session's model answers");
    let (broken, code) = agent("wrong");
    assert!(broken.starts_with("Invalid subagent file: ") && broken.contains("wrong.md:"), "{broken}");
    assert_eq!(code, Some(1));
    let (mismatch, _) = agent("other");
    assert!(mismatch.starts_with("Invalid subagent file: ") && mismatch.contains("other.md:"), "{mismatch}");
    let (unknown, _) = agent("nobody");
    assert!(unknown.starts_with("Unknown subagent type: \"nobody\". Available: "), "{unknown}");
    assert!(unknown.contains("digger, "), "{unknown}");
    // The project's own, once it is trusted.
    home.write(".acai/subagents/digger.md", &file("digger", "").replace("The digger", "Of the project"));
    assert_eq!(home.locum(&["agents", "trust", "--yes"]).code, Some(0));
    let tools = home.locum(&["tools", "--face", "acai"]).stdout;
    assert!(tools.contains("- digger: Of the project\n"), "{tools}");
    assert_eq!(agent("digger").0, "Done: dig");
}

#[test]
fn pi_refuses_what_is_not_trusted_and_names_files_that_are_there() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": format!("See {}/a.rs", home.root().display()), "usage": {}}]}));
    home.write(".pi/agents/deployer.md", &file("deployer", ""));
    let input = json!({"agent": "deployer", "task": "t"});
    let (answer, ran) = call(&home, "pi", "subagent", &input, &model);
    assert_eq!(answer["details"]["error"]["code"], "SUBAGENT_DISABLED");
    assert_eq!((&answer["details"]["mode"], ran.code), (&json!("management"), Some(1)));
    assert_eq!(home.locum(&["agents", "trust", "--yes"]).code, Some(0));
    let (answer, ran) = call(&home, "pi", "subagent", &input, &model);
    assert_eq!((text(&answer), ran.code), ("See ~/a.rs", Some(0)));
    let session_file = answer["details"]["results"][0]["sessionFile"].as_str().unwrap();
    assert!(std::path::Path::new(session_file).is_file(), "{session_file}");
}

#[test]
fn pi_only_reads_until_the_user_allows_more_and_marks_the_children() {
    let home = Home::new();
    let command = json!({"command": "echo $PI_SUBAGENT_CHILD $LOCUM_SUBAGENT_CHILD"});
    let model = home.script(&json!({
        "doer": [{"tool_calls": [{"name": "bash", "input": command}], "usage": {}}, {"text": "Done.", "usage": {}}],
    }));
    write_home(&home, ".pi/agent/agents/doer.md", &file("doer", "tools: bash, read\n"));
    let run = |home: &Home| {
        let (answer, _) = call(home, "pi", "subagent", &json!({"agent": "doer", "task": "t"}), &model);
        let session_file = answer["details"]["results"][0]["sessionFile"].as_str().unwrap().to_owned();
        std::fs::read_to_string(session_file).unwrap()
    };
    let said = run(&home);
    assert!(said.contains("You have no tool named `bash`. You have: read."), "{said}");
    write_home(&home, "home/config/config.toml", "[subagents]\nallow_write = true\n");
    let said = run(&home);
    assert!(said.contains("1 1") || said.contains("the command was not run"), "{said}");
    // A project may not say it.
    std::fs::remove_file(home.root().join("home/config/config.toml")).unwrap();
    home.write(".locum/config.toml", "[subagents]\nallow_write = true\n");
    assert_eq!(home.locum(&["agents", "trust", "--yes"]).code, Some(3));
}

#[test]
fn tallow_follows_the_defaults_of_the_agents_directory() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "Done.", "usage": {}}]}));
    let input = json!({"agent": "xylophonist", "task": "t"});
    let (answer, _) = call(&home, "tallow", "subagent", &input, &model);
    assert_eq!(text(&answer), "[agent: xylophonist → xylophonist (ephemeral)]\nDone.");
    write_home(&home, ".tallow/agents/_defaults.md", "---\ntools: read, ls\nmaxTurns: 3\n---\n");
    let (answer, _) = call(&home, "tallow", "subagent", &input, &model);
    assert_eq!(answer["isError"], false);
    write_home(&home, ".tallow/agents/_defaults.md", "---\nmissingAgentBehavior: error\n---\n");
    let (answer, ran) = call(&home, "tallow", "subagent", &input, &model);
    assert!(text(&answer).starts_with("Agent failed: no agent is called `xylophonist`"), "{answer}");
    assert_eq!(ran.code, Some(1));
    // The directory of the project's agents is named where there is one.
    home.write(".tallow/agents/ours.md", &file("ours", ""));
    let (answer, _) = call(&home, "tallow", "subagent", &json!({"agent": "ours", "task": "t"}), &model);
    assert!(text(&answer).contains("not trusted"), "{answer}");
    let directory = answer["details"]["projectAgentsDir"].as_str().unwrap();
    assert_eq!(directory, home.project().join(".tallow/agents").to_str().unwrap());
}

/// "Built-in agents are all readonly."
#[test]
fn the_bundled_agents_only_read_in_pis_face() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "Done.", "usage": {}}]}));
    let listed = home.locum(&["agents", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> = listed["agents"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 5, "{names:?}");
    for (place, name) in names.iter().enumerate() {
        let input = json!({"agent": name, "task": "t"}).to_string();
        let call = ["call", "--face", "pi", "subagent", &input, "--model", &model, "--session", "pi"];
        assert_eq!(home.locum(&call).code, Some(0), "{name}");
        let log = home.locum(&["logs", &format!("t_{:02}", place + 1), "--session", "pi", "--json"]).stdout;
        let accepted: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let tools = accepted["event"]["plan"]["grants"]["tools"].as_array().unwrap();
        for tool in tools.iter().map(|tool| tool["name"].as_str().unwrap()) {
            assert!(!["write", "edit", "bash", "apply_patch", "subagent"].contains(&tool), "{name} has {tool}");
        }
    }
}
