//! Which tools of MCP servers a task gets.

use locum_core::admission::KnownServer;
use locum_core::task::plan::GrantedTool;
use locum_core::transcript::Repeat;
use serde_json::json;

use crate::world::World;

fn server(name: &str, tools: &[&str], suspended: &[&str], problem: Option<&str>) -> KnownServer {
    let full = |tool: &&str| format!("mcp__{name}__{tool}");
    let granted = |tool: &&str| GrantedTool { name: full(tool), repeat: Repeat::Unsafe, chars: 10 };
    KnownServer {
        name: name.to_owned(),
        tools: tools.iter().map(granted).collect(),
        suspended: suspended.iter().map(full).collect(),
        problem: problem.map(str::to_owned),
        sandbox: (name == "git").then(|| "full".to_owned()),
    }
}

fn world() -> World {
    let mut world = World::new();
    world.servers = vec![
        server("git", &["log", "show"], &["push"], None),
        server("web", &["get"], &[], None),
        server("gone", &[], &[], Some("it was never reached")),
    ];
    world
}

/// What an agent gets: its tools, its servers, and how many tools and servers it is told that it does not get.
fn check(tools: Option<&str>, servers: Option<&str>, parent: Option<&[&str]>) -> (String, String, String) {
    let mut world = world();
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    world.add("a", |agent| (agent.tools, agent.mcp_servers) = (tools.map(list), servers.map(list)));
    if let Some(parent) = parent {
        world.called_by_task(parent, 1);
    }
    let plan = world.accept(json!({"agent": "a", "task": "t"})).plan;
    let receipt = plan.receipt.clone();
    let dropped: Vec<String> =
        receipt.tools.dropped.iter().map(|tool| format!("{}: {}", tool.name, tool.why)).collect();
    let told: Vec<String> = dropped.into_iter().chain(plan.warnings.clone()).collect();
    (receipt.tools.effective.join(" "), receipt.mcp_servers.join(" "), told.join("\n"))
}

#[test]
fn names_and_servers_bound_each_other() {
    type Case = (Option<&'static str>, Option<&'static str>, &'static str, &'static str, &'static str);
    let cases: [Case; 12] = [
        (Some("find"), None, "find", "", ""),
        (Some(""), Some("git"), "", "", "the agent's MCP server `git` is not reached: no tool of it is granted"),
        (Some("find mcp__git__log"), None, "find mcp__git__log", "git", ""),
        (Some("mcp__git__log"), Some("git web"), "mcp__git__log mcp__web__get", "git web", ""),
        (Some("find"), Some("web"), "find mcp__web__get", "web", ""),
        (Some("mcp__web"), None, "mcp__web__get", "web", ""),
        (Some("mcp__web__*"), None, "mcp__web__get", "web", ""),
        (Some("mcp__web"), Some("git"), "mcp__git__log mcp__git__show", "git", "mcp__web__get: the agent's mcpServers"),
        (Some("mcp__git__push"), None, "", "", "mcp__git__push: it has changed since it was first seen"),
        (Some("mcp__git__pull mcp__no__x"), None, "", "", "mcp__git__pull: the MCP server `git` has no such tool"),
        (Some("mcp__gone"), None, "", "", "mcp__gone: the MCP server `gone` cannot be used: it was never reached"),
        (Some("find"), Some("nobody"), "find", "", "the agent's MCP server `nobody` is not reached: there is no such"),
    ];
    for (tools, servers, effective, reached, told) in cases {
        let (found, found_servers, said) = check(tools, servers, None);
        assert_eq!((found.as_str(), found_servers.as_str()), (effective, reached), "{tools:?} {servers:?}");
        assert!(said.starts_with(told) && said.is_empty() == told.is_empty(), "{tools:?} {servers:?}: {said}");
    }
    let (everything, reached, _) = check(None, Some("web"), None);
    assert!(everything.starts_with("read ") && everything.ends_with(" mcp__web__get") && reached == "web");
}

#[test]
fn a_child_borrows_no_more_than_its_parent() {
    let (tools, reached, said) = check(Some("find mcp__git"), None, Some(&["find", "mcp__git__log"]));
    assert_eq!((tools.as_str(), reached.as_str()), ("find mcp__git__log", "git"));
    assert!(said.contains("mcp__git__show: the task that delegates does not have it"), "{said}");
}

#[test]
fn the_receipt_says_what_the_programs_of_servers_are_shut_into() {
    let mut world = world();
    world.add("a", |agent| {
        agent.tools = None;
        agent.mcp_servers = Some(vec!["git".to_owned(), "web".to_owned()]);
    });
    let receipt = world.accept(json!({"agent": "a", "task": "t"})).plan.receipt.clone();
    assert_eq!(receipt.mcp_servers, ["git", "web"]);
    assert_eq!(json!(receipt)["mcp_sandboxes"], json!({"git": "full"}));
}
