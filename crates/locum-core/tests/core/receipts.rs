//! What a task was asked to have, what it has, who said so, and what is left out.

use locum_core::admission::{Worktrees, listing};
use locum_core::agent::fallbacks::FallbackLayer;
use locum_core::agent::{Isolation, Source, defaults};
use locum_core::protocol::Code;
use locum_core::routing::Ratings;
use locum_core::task::plan::{Receipt, ValueReceipt};
use serde_json::{Value, json};

use crate::world::World;

fn fall_back(world: &mut World, origin: &str, text: &str) {
    let defaults = defaults::read(format!("---\n{text}\n---\n").as_bytes()).unwrap().defaults;
    world.fallbacks.push(FallbackLayer { origin: origin.to_owned(), defaults });
}

fn receipt(world: &World, agent: &str, call: &Value) -> Receipt {
    let mut input = json!({"agent": agent, "task": "t"});
    input.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
    world.accept(input).plan.receipt.clone()
}

/// A value as `requested -> effective from (why)`.
fn told(value: &ValueReceipt) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let why = value.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{} -> {} from {}{why}", shown(&value.requested), shown(&value.effective), value.from)
}

fn origins(receipt: &Receipt) -> String {
    receipt.origins.iter().map(|(name, value)| format!("{name}: {}\n", told(value))).collect()
}

#[test]
fn each_value_is_the_calls_then_the_agents_then_the_projects_then_the_users() {
    let mut world = World::new();
    world.add("plain", |agent| agent.tools = None);
    world.add("said", |agent| {
        agent.source = Source::User("/home/agents/said.md".to_owned());
        agent.model = Some("large".to_owned());
        agent.max_turns = Some(2);
        agent.timeout_s = Some(20);
        agent.tools = Some(vec!["read".to_owned()]);
        agent.isolation = Some(Isolation::None);
        agent.mcp_servers = Some(Vec::new());
    });
    let nothing = json!({});
    insta::assert_snapshot!(origins(&receipt(&world, "plain", &nothing)), @r#"
    isolation: - -> "none" from built-in
    max_turns: - -> 10 from built-in
    mcp_servers: - -> [] from built-in
    model: - -> - from session
    tools: - -> - from built-in
    "#);
    fall_back(&mut world, "user /u/_defaults.md", "maxTurns: 3\ntimeout: 60\ntools: read, grep\nmodel: large");
    fall_back(&mut world, "project /p/_defaults.md", "maxTurns: 5\ndisallowedTools: grep\nisolation: worktree");
    let plain = receipt(&world, "plain", &nothing);
    insta::assert_snapshot!(origins(&plain), @r#"
    isolation: "worktree" -> "worktree" from project /p/_defaults.md
    max_turns: 5 -> 5 from project /p/_defaults.md
    mcp_servers: - -> [] from built-in
    model: - -> - from user /u/_defaults.md
    timeout: 60 -> 60 from user /u/_defaults.md
    tools: - -> - from user /u/_defaults.md
    "#);
    assert_eq!((plain.max_turns, plain.isolation), (5, Isolation::Worktree));
    assert_eq!(plain.model.why, "named by user /u/_defaults.md");
    assert_eq!((plain.tools.effective[0].as_str(), plain.tools.dropped[0].name.as_str()), ("read", "grep"));
    insta::assert_snapshot!(origins(&receipt(&world, "said", &nothing)), @r#"
    isolation: "none" -> "none" from agent /home/agents/said.md
    max_turns: 2 -> 2 from agent /home/agents/said.md
    mcp_servers: [] -> [] from agent /home/agents/said.md
    model: - -> - from agent /home/agents/said.md
    timeout: 20 -> 20 from agent /home/agents/said.md
    tools: - -> - from agent /home/agents/said.md
    "#);
    let call = json!({"timeout": 7, "model": "acme:small", "isolation": "worktree"});
    insta::assert_snapshot!(origins(&receipt(&world, "said", &call)), @r#"
    isolation: "worktree" -> "worktree" from call
    max_turns: 2 -> 2 from agent /home/agents/said.md
    mcp_servers: [] -> [] from agent /home/agents/said.md
    model: - -> - from call
    timeout: 7 -> 7 from call
    tools: - -> - from agent /home/agents/said.md
    "#);
}

#[test]
fn a_model_that_was_asked_for_in_vain_is_from_the_session() {
    let mut world = World::new();
    world.add("keyword", |agent| agent.model = Some("auto-cheap".to_owned()));
    world.add("unknown", |agent| agent.model = Some("nobodys".to_owned()));
    world.add("inherits", |agent| agent.model = Some("inherit".to_owned()));
    for (agent, requested) in [("keyword", Some("auto-cheap")), ("unknown", Some("nobodys")), ("inherits", None)] {
        let receipt = receipt(&world, agent, &json!({}));
        assert_eq!(receipt.origins["model"].from, "session", "{agent}");
        assert_eq!(receipt.model.requested.as_deref(), requested, "{agent}");
    }
    // Where models can be chosen, it is whoever asked for the choice.
    world.catalogue.stands_in = false;
    world.catalogue.models[0].ratings = Some(Ratings { code: 3, vision: 0, text: 3 });
    let from = |call: Value| receipt(&world, "keyword", &call).origins["model"].from.clone();
    assert_eq!(from(json!({})), "agent (bundled)");
    assert_eq!(from(json!({"cost_preference": "eco"})), "call");
}

/// Each way to get less than was asked for: what the receipt says, and that `strict` refuses it.
#[test]
fn what_is_left_out_is_in_the_receipt_and_strict_refuses_it() {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let mut world = World::new();
    world.add("toolless", |agent| agent.tools = names(&["read", "teleport"]));
    world.add("endless", |agent| agent.max_turns = Some(90));
    world.add("serverless", |agent| agent.mcp_servers = names(&["github", "jira"]));
    world.add("modelless", |agent| agent.model = Some("nobodys".to_owned()));
    world.add("hooked", |agent| {
        agent.kept.insert("hooks".to_owned(), json!({"stop": "rm"}));
        agent.locum.output_schema = Some(json!({"type": "object"}));
    });
    world.add("whole", |agent| agent.tools = names(&["read"]));
    let nothing = json!({});
    let of = |agent: &str| receipt(&world, agent, &nothing);
    assert_eq!(of("toolless").tools.dropped[0].name, "teleport");
    insta::assert_snapshot!(told(&of("endless").origins["max_turns"]), @"90 -> 25 from agent (bundled) (max_turns 90 was set to 25; it may be 1 to 25)");
    insta::assert_snapshot!(told(&of("serverless").origins["mcp_servers"]), @r#"["github","jira"] -> [] from agent (bundled) (the agent's MCP server `github` is not reached: there is no such MCP server in your settings; the agent's MCP server `jira` is not reached: there is no such MCP server in your settings)"#);
    let kept: Vec<String> = of("hooked").not_honoured.into_iter().map(|kept| kept.name).collect();
    assert_eq!(kept, ["hooks", "locum.output_schema"]);
    let isolated = json!({"agent": "whole", "task": "t", "isolation": "worktree"});
    let mut strict = world.clone();
    strict.face.strict = true;
    for (agent, loss) in [
        ("toolless", "the tool `teleport`: there is no such tool here"),
        ("endless", "max_turns 90 was set to 25"),
        ("serverless", "`github` is not reached: there is no such MCP server in your settings"),
        ("serverless", "`jira` is not reached"),
        ("modelless", "`nobodys` is not known"),
        ("hooked", "`hooks`: locum runs no hooks yet"),
        ("hooked", "`locum.output_schema`: "),
    ] {
        let refusal = strict.spawn(json!({"agent": agent, "task": "t"})).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidRequest, "{agent}");
        assert!(refusal.message.contains(loss), "{agent}: {}", refusal.message);
    }
    assert!(strict.spawn(isolated.clone()).is_ok());
    assert!(strict.spawn(json!({"agent": "whole", "task": "t"})).is_ok());
    // Isolation is had or refused, strict or not.
    world.worktrees = Worktrees::NoRepository;
    assert_eq!(world.spawn(isolated).unwrap_err().code, Code::IsolationFailed);
}

#[test]
fn whoever_looks_at_an_agent_sees_what_a_task_would_get() {
    let mut world = World::new();
    world.add("looked-at", |agent| {
        agent.tools = Some(vec!["read".to_owned(), "teleport".to_owned()]);
        agent.max_turns = Some(90);
        agent.background = Some(true);
        agent.sampling.temperature = Some(0.5);
        agent.kept.insert("skills".to_owned(), json!("a"));
    });
    fall_back(&mut world, "user /u/_defaults.md", "effort: high\nlocum: {max_depth: 2}\nmodel: large");
    let agent = world.roster.get("looked-at").unwrap();
    let values = listing::explain(agent, &world.premises(), &world.face).unwrap();
    let lines: String = values.iter().map(|(field, value)| format!("{field}: {}\n", told(value))).collect();
    insta::assert_snapshot!(lines, @r#"
    model: "large" -> "acme:large-1" from user /u/_defaults.md
    tools: ["read","teleport"] -> ["read"] from agent (bundled) (without teleport: there is no such tool here)
    maxTurns: 90 -> 25 from agent (bundled) (max_turns 90 was set to 25; it may be 1 to 25)
    isolation: - -> "none" from built-in
    mcpServers: - -> [] from built-in
    background: true -> true from agent (bundled)
    effort: "high" -> "high" from user /u/_defaults.md
    temperature: 0.5 -> 0.5 from agent (bundled)
    skills: "a" -> - from agent (bundled) (locum has no skills yet)
    locum.max_depth: 2 -> 2 from user /u/_defaults.md
    "#);
    let receipt = receipt(&world, "looked-at", &json!({}));
    for (name, value) in &receipt.origins {
        let field = match name.as_str() {
            "max_turns" => "maxTurns",
            "mcp_servers" => "mcpServers",
            name => name,
        };
        let shown = values.iter().find(|(shown, _)| *shown == field).map(|(_, value)| value);
        assert_eq!(shown.map(|shown| &shown.from), Some(&value.from), "{name}");
    }
}
