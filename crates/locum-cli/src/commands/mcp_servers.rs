//! `locum mcp servers` and `locum mcp accept`: the servers that agents borrow tools from.

use locum::Executor;
use locum::mcp_servers::{ServerStanding, ToolStanding};
use serde_json::json;

use crate::args::{Global, McpVerb};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

pub(super) async fn mcp_servers(verb: McpVerb, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let desk = &door.opened.desk;
    match verb {
        McpVerb::Servers { connect } => {
            let servers = if connect { desk.reach_mcp_servers().await } else { desk.mcp_servers() };
            show(output, &servers);
        }
        // It needs no desk.
        McpVerb::Install(_) => {}
        McpVerb::Accept { name, tools } => match desk.accept_mcp_tools(&name, &tools) {
            Err(refusal) => return Ok(output.refuse(&refusal)),
            Ok(accepted) if output.is_json() => output.json(&json!({"server": name, "accepted": accepted})),
            Ok(accepted) if accepted.is_empty() => output.note("nothing of it has changed"),
            Ok(accepted) => output.answer(&format!("accepted as it is now: {}", accepted.join(", "))),
        },
    }
    door.leave().await;
    Ok(Exit::Done)
}

fn show(output: Output, servers: &[ServerStanding]) {
    if output.is_json() {
        output.json(&json!({ "servers": servers }));
        return;
    }
    if servers.is_empty() {
        output.note("no MCP server is in your settings: [mcp_servers.NAME] in config.toml names one");
    }
    for server in servers {
        let sandbox = server.sandbox.as_ref().map_or(String::new(), |level| format!(" (sandbox {level})"));
        let mut lines = vec![format!("{}: {}{sandbox}", server.name, server.target)];
        lines.extend(server.problem.iter().map(|problem| format!("    cannot be used: {problem}")));
        lines.extend(server.tools.iter().flat_map(tool_lines));
        output.answer(&lines.join("\n"));
    }
}

fn tool_lines(tool: &ToolStanding) -> Vec<String> {
    let first = |text: &str| text.lines().next().unwrap_or_default().chars().take(100).collect::<String>();
    let Some(changed) = &tool.changed else { return vec![format!("    {}  {}", tool.name, first(&tool.description))] };
    let mut lines = vec![format!("    {}  SUSPENDED: it has changed since it was first seen", tool.name)];
    let mut compare = |what: &str, before: &str, now: &str| {
        if before != now {
            lines.push(format!("        {what} before: {before}"));
            lines.push(format!("        {what} now:    {now}"));
        }
    };
    compare("description", &tool.description, &changed.description);
    compare("input", &tool.input_schema.to_string(), &changed.input_schema.to_string());
    lines
}
