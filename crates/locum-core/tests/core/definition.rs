//! What `define` makes, what it refuses, and which tools and turns the tasks of an agent get.

use locum_core::admission::list_agents;
use locum_core::agent::{Dialect, Source, markdown};
use locum_core::protocol::face::DefaultTools;
use serde_json::{Value, json};

use crate::admission::line;
use crate::world::World;

fn named(name: &str) -> Value {
    json!({"name": name, "description": "d", "system_prompt": "p"})
}

fn with(fields: &Value) -> Value {
    let mut input = named("new");
    input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    input
}

fn refused(input: Value) -> String {
    line(World::new().define(input))
}

#[test]
fn each_refusal_names_its_thing() {
    insta::assert_snapshot!(refused(json!({"name": "a", "system_prompt": "p"})), @"INVALID_REQUEST: define: missing field `description`");
    insta::assert_snapshot!(refused(json!({"name": "a", "description": "d"})), @"INVALID_REQUEST: define: missing field `system_prompt`");
    insta::assert_snapshot!(refused(json!({"description": "d", "system_prompt": "p"})), @"INVALID_REQUEST: define: missing field `name`");
    insta::assert_snapshot!(refused(with(&json!({"system_prompt_append": "x"}))), @"INVALID_REQUEST: define: `system_prompt_append` needs `extends`");
    insta::assert_snapshot!(refused(with(&json!({"description": " "}))), @"INVALID_REQUEST: define: `description` is empty");
    insta::assert_snapshot!(refused(with(&json!({"system_prompt": "\n"}))), @"INVALID_REQUEST: define: `system_prompt` is empty");
    insta::assert_snapshot!(refused(with(&json!({"description": "d".repeat(1001)}))), @"INVALID_REQUEST: define: `description` is longer than 1000 characters");
    insta::assert_snapshot!(refused(with(&json!({"tools": vec!["read"; 129]}))), @"INVALID_REQUEST: define: more than 128 tools");
    insta::assert_snapshot!(refused(named("No Name")), @"INVALID_AGENT_NAME: `No Name` is not a valid agent name: only a-z, 0-9, `_` and `-` are allowed ([a-z0-9_-], 1 to 64 characters)");
    insta::assert_snapshot!(refused(named("")), @"INVALID_AGENT_NAME: `` is not a valid agent name: it is empty ([a-z0-9_-], 1 to 64 characters)");
    insta::assert_snapshot!(refused(with(&json!({"extends": "nobody"}))), @"AGENT_NOT_FOUND: no agent is called `nobody` (the agents are reader, worker)");
    insta::assert_snapshot!(refused(with(&json!({"tools": ["read", "raed"]}))), @"INVALID_TOOL: there is no tool called `raed` (did you mean read)");
    insta::assert_snapshot!(refused(with(&json!({"tools": ["zzz"]}))), @"INVALID_TOOL: there is no tool called `zzz` (the tools are read, grep, find, think, shared_context, write, bash, subagent)");
    insta::assert_snapshot!(refused(with(&json!({"model": "nothing"}))), @"MODEL_NOT_FOUND: no model is called `nothing` (name it as provider:model, with one of the providers acme, or leave it out for the session's model, scripted:s)");
    insta::assert_snapshot!(refused(named("reader")), @"AGENT_ALREADY_EXISTS: an agent is called `reader` already (choose another name, or say replace: true)");
    insta::assert_snapshot!(refused(with(&json!({"system_prompt": "é".repeat(16_001)}))), @"PROMPT_TOO_LARGE: the system prompt has 4001 tokens; at most 4000 are allowed (keep instructions in the prompt and move knowledge to tools or shared context)");
}

#[test]
fn names_and_prompts_are_bounded_by_characters() {
    for name in ["a".repeat(64), "0_-".to_owned()] {
        assert!(World::new().define(named(&name)).is_ok(), "{name}");
    }
    assert!(refused(named(&"a".repeat(65))).contains("it is longer than 64 characters"));
    for letter in ["p", "é", "🦀"] {
        assert!(World::new().define(with(&json!({"system_prompt": letter.repeat(16_000)}))).is_ok());
    }
    let mut world = World::new();
    world.define(with(&json!({"system_prompt": "p".repeat(15_998)}))).unwrap();
    let joined = |more: &str| json!({"name": "more", "extends": "new", "system_prompt_append": more, "replace": true});
    assert!(line(world.define(joined("x"))).starts_with("PROMPT_TOO_LARGE: the system prompt has 4001 tokens"));
}

#[test]
fn a_session_defines_at_most_200_agents() {
    let mut world = World::new();
    for number in 0..200 {
        world.define(named(&format!("agent-{number}"))).unwrap();
    }
    assert_eq!(line(world.define(named("one-more"))), "INVALID_REQUEST: a session defines at most 200 agents");
    let in_place = json!({"name": "reader", "description": "d", "system_prompt": "p", "replace": true});
    assert_eq!(line(world.define(in_place)), "INVALID_REQUEST: a session defines at most 200 agents");
    let again = json!({"name": "agent-7", "description": "d", "system_prompt": "p", "replace": true});
    assert_eq!(world.define(again).unwrap().version, 2);
}

#[test]
fn turns_are_clamped_and_it_is_said() {
    let cases = [
        (json!({}), 10, None),
        (json!({"max_turns": 1}), 1, None),
        (json!({"max_turns": 25}), 25, None),
        (json!({"max_turns": 26}), 25, Some("max_turns 26 was set to 25; it may be 1 to 25")),
        (json!({"max_turns": 0}), 1, Some("max_turns 0 was set to 1; it may be 1 to 25")),
        (json!({"max_turns": i64::MIN}), 1, Some("max_turns -9223372036854775808 was set to 1; it may be 1 to 25")),
    ];
    for (fields, turns, warning) in cases {
        let mut world = World::new();
        let defined = world.define(with(&fields)).unwrap();
        assert_eq!(defined.warnings.first().map(String::as_str), warning, "{fields}");
        let plan = world.accept(json!({"agent": "new", "task": "t"})).plan;
        assert_eq!((plan.bounds.max_turns, plan.receipt.max_turns), (turns, turns), "{fields}");
        assert_eq!(plan.warnings, [""; 0], "it was said when the agent was defined");
    }
    let mut world = World::new();
    world.add("long", |agent| agent.max_turns = Some(u32::MAX));
    let warnings = world.accept(json!({"agent": "long", "task": "t"})).plan.warnings.clone();
    assert_eq!(warnings, ["max_turns 4294967295 was set to 25; it may be 1 to 25"]);
    world.limits.max_turns = 40;
    world.add("longer", |agent| agent.max_turns = Some(40));
    let plan = world.accept(json!({"agent": "longer", "task": "t"})).plan;
    assert_eq!((plan.bounds.max_turns, plan.warnings.len()), (40, 0), "the settings raise the cap");
}

#[test]
fn a_setting_of_0_turns_leaves_one() {
    let mut world = World::new();
    world.limits.max_turns = 0;
    world.define(with(&json!({"max_turns": 3}))).unwrap();
    for agent in ["new", "reader"] {
        assert_eq!(world.accept(json!({"agent": agent, "task": "t"})).plan.bounds.max_turns, 1);
    }
    assert_eq!(list_agents(&world.premises(), &world.face, &world.view).agents[0].max_turns, 1);
}

#[test]
fn what_is_left_out_is_inherited() {
    let mut world = World::new();
    let base = with(&json!({"tools": ["read", "write"], "max_turns": 4, "model": "large"}));
    world.define(base).unwrap();
    let child = json!({"name": "child", "extends": "New", "system_prompt_append": "And more."});
    assert_eq!(world.define(child).unwrap().version, 1);
    let child = world.view.defined.iter().find(|agent| agent.name.as_str() == "child").unwrap();
    assert_eq!((child.description.as_str(), child.prompt.as_str()), ("d", "p\n\nAnd more."));
    assert_eq!((child.max_turns, child.model.as_deref()), (Some(4), Some("large")));
    assert_eq!(child.tools, Some(vec!["read".to_owned(), "write".to_owned()]));
    assert_eq!(child.source, Source::Defined);
    let own =
        json!({"name": "own", "extends": "child", "system_prompt": "q", "system_prompt_append": "r", "tools": []});
    world.define(own).unwrap();
    let own = world.view.defined.last().unwrap();
    assert_eq!((own.prompt.as_str(), own.tools.clone()), ("q\n\nr", Some(vec![])));
}

#[test]
fn a_redefinition_counts_its_version_and_running_tasks_keep_theirs() {
    let mut world = World::new();
    world.define(named("new")).unwrap();
    let plan = world.accept(json!({"agent": "new", "task": "t"})).plan;
    assert_eq!(world.define(with(&json!({"replace": true, "system_prompt": "q"}))).unwrap().version, 2);
    assert_eq!(world.define(with(&json!({"replace": true}))).unwrap().version, 3);
    assert_eq!((plan.agent.version, plan.agent.prompt.as_str()), (1, "p"));
    assert_eq!(world.accept(json!({"agent": "new", "task": "t"})).plan.agent.version, 3);
    assert_eq!(
        world
            .define(json!({"name": "first", "description": "d", "system_prompt": "p", "replace": true}))
            .unwrap()
            .version,
        1
    );
}

/// A file's agent counts as its first version; what is inherited from it is what it says when it is asked for.
#[test]
fn a_file_s_agent_is_replaced_and_built_upon_for_this_session_alone() {
    let text =
        "---\ndescription: Files\ntools: [read, write]\nreadonly: true\nmaxTurns: 4\ntimeout: 60\n---\nYou file.";
    let filed = markdown::read(text.as_bytes(), "filed", Source::User("/u/filed.md".to_owned()), Dialect::Native);
    let mut world = World::new();
    world.roster.insert(filed.unwrap().agent);
    let before = world.accept(json!({"agent": "filed", "task": "t"})).plan;
    assert!(line(world.define(named("filed"))).starts_with("AGENT_ALREADY_EXISTS"));
    world.define(json!({"name": "clerk", "extends": "filed", "system_prompt_append": "Neatly."})).unwrap();
    let clerk = world.accept(json!({"agent": "clerk", "task": "t"})).plan;
    assert_eq!((clerk.agent.prompt.as_str(), clerk.agent.description.as_str()), ("You file.\n\nNeatly.", "Files"));
    assert_eq!((clerk.bounds.max_turns, clerk.bounds.budget.timeout_s), (4, Some(60)));
    assert_eq!(clerk.agent.source, Source::Defined);
    // A base that only reads makes agents that only read, whatever they name.
    world.define(json!({"name": "scribe", "extends": "filed", "tools": ["read", "write"]})).unwrap();
    assert_eq!(tools(&world, "scribe"), "read | write: the agent is read-only");
    // In the place of the file's, upon the file's: the next one builds upon what is there then.
    let again =
        |append: &str| json!({"name": "filed", "extends": "filed", "system_prompt_append": append, "replace": true});
    assert_eq!(world.define(again("One.")).unwrap().version, 2);
    assert_eq!(world.define(again("Two.")).unwrap().version, 3);
    let after = world.accept(json!({"agent": "filed", "task": "t"})).plan;
    assert_eq!((after.agent.prompt.as_str(), after.agent.version), ("You file.\n\nOne.\n\nTwo.", 3));
    assert_eq!((before.agent.prompt.as_str(), before.agent.version), ("You file.", 1));
    assert_eq!(world.roster.get("filed").unwrap().version, 1, "the file's own stays for other sessions");
}

/// The tools of a task: those that it has, then those that were dropped and why.
fn tools(world: &World, agent: &str) -> String {
    let receipt = world.accept(json!({"agent": agent, "task": "t"})).plan.receipt.tools.clone();
    let dropped: Vec<String> = receipt.dropped.iter().map(|tool| format!("{}: {}", tool.name, tool.why)).collect();
    format!("{} | {}", receipt.effective.join(" "), dropped.join(", "))
}

#[test]
fn an_agent_gets_the_tools_that_it_names_and_may_have() {
    let mut world = World::new();
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    world.add("none", |agent| agent.tools = names(&[]));
    world.add("unknown", |agent| agent.tools = names(&["read", "fly", "Read"]));
    world.add("denied", |agent| {
        (agent.tools, agent.denied_tools) = (names(&["read", "bash"]), Some(vec!["Bash".into()]));
    });
    world.add("readonly", |agent| (agent.tools, agent.readonly) = (names(&["read", "write"]), Some(true)));
    world.add("less", |agent| (agent.tools, agent.denied_tools) = (None, names(&["Grep", "bash"])));
    world.define(with(&json!({"tools": ["Read", "Bash", "Task"]}))).unwrap();
    world.define(json!({"name": "bare", "description": "d", "system_prompt": "p"})).unwrap();
    world.define(json!({"name": "emptied", "description": "d", "system_prompt": "p", "tools": []})).unwrap();
    let cases = [
        ("reader", "read grep find think shared_context | "),
        ("none", " | "),
        ("bare", " | "),
        ("emptied", " | "),
        ("unknown", "read | fly: there is no such tool here"),
        ("denied", "read | bash: the agent denies it"),
        ("less", "read find think shared_context | "),
        ("readonly", "read | write: the agent is read-only"),
        ("new", "read bash | subagent: delegation is at its depth limit"),
    ];
    for (agent, expected) in cases {
        assert_eq!(tools(&world, agent), expected, "{agent}");
    }
    world.face.tools = DefaultTools::Everything;
    assert_eq!(tools(&world, "reader"), "read grep find think shared_context write bash | ");
    assert_eq!(tools(&world, "less"), "read find think shared_context write | ");
    assert_eq!(tools(&world, "none"), " | ", "an empty list is none, never all");
    world.limits.max_depth = Some(2);
    assert_eq!(tools(&world, "new"), "read bash subagent | ");
    world.called_by_task(&["read"], 2);
    assert_eq!(
        tools(&world, "new"),
        "read | bash: the task that delegates does not have it, subagent: the task that delegates does not have it"
    );
}

#[test]
fn a_file_may_name_tools_that_do_not_exist() {
    let text =
        "---\nname: filed\ndescription: d\ntools: [Read, Glob, mystery]\nmax_turns: 99\nmodel: nobody\n---\nYou file.";
    let mut world = World::new();
    world.roster.insert(markdown::read(text.as_bytes(), "filed", Source::Bundled, Dialect::Native).unwrap().agent);
    assert_eq!(tools(&world, "filed"), "read find | mystery: there is no such tool here");
    let plan = world.accept(json!({"agent": "filed", "task": "t"})).plan;
    assert_eq!(
        plan.warnings,
        [
            "max_turns 99 was set to 25; it may be 1 to 25",
            "the agent's model `nobody` is not known: the session's model scripted:s is used",
        ]
    );
}

#[test]
fn a_list_shows_what_a_task_would_have() {
    let mut world = World::new();
    world.define(with(&json!({"tools": ["read", "subagent"], "model": "large", "max_turns": 30}))).unwrap();
    let lines: Vec<String> = list_agents(&world.premises(), &world.face, &world.view)
        .agents
        .iter()
        .map(|line| serde_json::to_string(line).unwrap())
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"name":"new","description":"d","model":"acme:large-1","max_turns":25,"tools":["read"],"source":"defined","version":1}
    {"name":"reader","description":"does what a reader does","model":"scripted:s","max_turns":10,"tools":["read","grep","find","think","shared_context"],"source":"bundled"}
    {"name":"worker","description":"does what a worker does","model":"scripted:s","max_turns":10,"tools":["read","grep","find","think","shared_context","write","bash"],"source":"bundled"}
    "#);
}

#[test]
fn every_subagent_is_told_its_turns_and_how_to_answer() {
    let mut world = World::new();
    world.define(with(&json!({"system_prompt": "You are new.\n\n", "max_turns": 1}))).unwrap();
    insta::assert_snapshot!(world.accept(json!({"agent": "new", "task": "t"})).plan.assignment.system_prompt, @r"
    You are new.

    You are a subagent. Keep your final response concise (under 1000 tokens).
    Write detailed findings to shared context rather than including them
    in your response. Your response will be returned to the orchestrator
    as a summary of your work.

    You have at most one turn (each reply is one); in the last one you can only answer.
    ");
}
