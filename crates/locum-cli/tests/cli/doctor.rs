//! `locum doctor`: what is there, what is not, and what to do.

use std::os::unix::fs::DirBuilderExt as _;

use serde_json::{Value, json};

use crate::home::Home;

fn checks(home: &Home) -> (Option<i32>, Vec<Value>) {
    let ran = home.locum(&["doctor", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.code, answer["checks"].as_array().unwrap().clone())
}

fn of<'a>(checks: &'a [Value], topic: &str) -> Vec<&'a Value> {
    checks.iter().filter(|check| check["topic"] == topic).collect()
}

#[test]
fn every_topic_is_looked_at_and_what_is_not_well_has_advice() {
    let (_, checks) = checks(&Home::new());
    for topic in ["settings", "store", "models", "agents", "sandbox", "git", "terminal"] {
        assert!(!of(&checks, topic).is_empty(), "{topic}: {checks:#?}");
    }
    for check in &checks {
        assert_eq!(check["health"] == "good", check["advice"].is_null(), "{check}");
    }
}

#[test]
fn without_a_key_the_model_is_only_fair_and_with_one_it_is_good() {
    let (_, without) = checks(&Home::new());
    assert_eq!(of(&without, "models")[0]["health"], "fair");
    let (_, with) = checks(&Home::new().with("ANTHROPIC_API_KEY", "sk-ant-canary-key-0001"));
    let models = of(&with, "models");
    assert_eq!(models[0]["health"], "good", "{models:?}");
    assert!(models.iter().any(|check| check["found"].as_str().unwrap().contains("anthropic")), "{models:?}");
    assert!(!json!(with).to_string().contains("canary"), "{with:?}");
}

#[test]
fn a_server_that_is_named_and_not_there_is_told_of() {
    // Nobody listens at the port of a listener that is gone.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::new().with("OLLAMA_HOST", &gone.to_string());
    let home = home.with("LOCUM_SERVER", &format!("http://{gone}")).with("LOCUM_TOKEN", &"t".repeat(40));
    let (code, found) = checks(&home);
    assert_eq!(code, Some(1));
    for topic in ["models", "server"] {
        let poor = of(&found, topic).into_iter().find(|check| check["health"] == "poor");
        let poor = poor.unwrap_or_else(|| panic!("{topic}: {found:#?}"));
        assert!(poor["found"].as_str().unwrap().contains(&gone.to_string()), "{poor}");
        assert!(poor["advice"].is_string(), "{poor}");
    }
}

#[test]
fn broken_agents_an_untrusted_project_and_a_broken_store_are_found() {
    let home = Home::new();
    home.write(".locum/agents/broken.md", "---\nname: [\n---\nx\n");
    let (code, found) = checks(&home);
    let agents = of(&found, "agents");
    assert!(agents.iter().any(|check| check["found"].as_str().unwrap().contains("broken.md")), "{agents:?}");
    assert!(agents.iter().any(|check| check["advice"].as_str().is_some_and(|advice| advice.contains("agents trust"))));
    assert_eq!(code, Some(1));

    let database = std::fs::read_dir(home.locum_home().join("data")).into_iter().flatten().flatten();
    let database = database.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|kind| kind == "db"));
    let database = database.unwrap_or_else(|| panic!("no database below {}", home.locum_home().display()));
    std::fs::write(database, "this is no database, whatever its name says, and it is long enough to be looked at")
        .unwrap();
    let (code, found) = checks(&home);
    assert_eq!((code, &of(&found, "store")[0]["health"]), (Some(1), &json!("poor")), "{found:?}");
    assert_eq!(of(&found, "models")[0]["advice"], "see to the store first", "no model is at fault: {found:?}");
}

#[test]
fn what_a_killed_command_left_in_the_project_is_removed() {
    let home = Home::new();
    let left = home.project().join(".claude");
    std::fs::DirBuilder::new().mode(0o1500).create(&left).unwrap();
    let said = |checks: &[Value]| {
        let lines: Vec<&str> = of(checks, "sandbox").iter().filter_map(|check| check["found"].as_str()).collect();
        lines.iter().any(|line| line.starts_with("1 empty directories that a killed command left"))
    };
    assert!(said(&checks(&home).1) && !left.exists());
    std::fs::create_dir(&left).unwrap();
    assert!(!said(&checks(&home).1) && left.exists(), "an empty directory of the user stays");
}

#[test]
fn a_setting_that_cannot_be_used_is_named_with_its_line() {
    let home = Home::new().with("LOCUM_MAX_DEPTH", "9");
    let (code, found) = checks(&home);
    assert_eq!((code, found.len()), (Some(1), 2), "{found:?}");
    assert!(found[0]["found"].as_str().unwrap().contains("limits.max_depth"), "{found:?}");
}
