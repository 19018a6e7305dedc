//! The full cycle of the Subagent Tool Specification, §10, statement by statement, with tools of the application.

use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::transcript::Repeat;
use locum::{AgentName, AgentSpec, Desk};
use serde_json::{Value, json};

use crate::stage::{Ledger, ask, builder, check, context, noting_tool, pass};

const ROOT_CAUSE: &str = "Root cause identified: connection pool reduced from 200 to 20 in Feb 18 config change. Thread \
                          starvation confirmed in staging. Details in shared context.";
const DRAFTED: &str = "Incident summary drafted and written to shared context key incident_report.";
const REVERTED: &str =
    "Config reverted in staging. Throughput recovered to baseline. Ready for production deployment pending approval.";

fn read(key: &str) -> (&'static str, Value) {
    ("shared_context", json!({"action": "read", "key": key}))
}

fn write(key: &str, value: &str) -> (&'static str, Value) {
    ("shared_context", json!({"action": "write", "key": key, "value": value}))
}

fn one(call: (&'static str, Value)) -> Say {
    Say::calls([call]).after(Duration::from_secs(1))
}

fn model() -> Scripted {
    let command = |command: &str| ("run_staging_command", json!({"command": command}));
    let researcher = [
        one(read("problem_summary")),
        one(read("scope")),
        one(("search_logs", json!({"query": "timeout"}))),
        one(("query_metrics", json!({"metric": "pool_size"}))),
        one(write("findings_summary", "Pool size fell from 200 to 20 on Feb 18; threads starve.")),
        one(write("open_questions", "Was the pool size change intentional?")),
        Say::text(ROOT_CAUSE).after(Duration::from_secs(1)),
    ];
    let writer = [
        Say::calls([read("findings_summary"), read("decisions_made")]).after(Duration::from_secs(1)),
        one(write("incident_report", "Throughput fell by 30%: the connection pool was cut by accident.")),
        Say::text(DRAFTED).after(Duration::from_secs(1)),
    ];
    let remediator = [
        one(read("findings_summary")),
        one(read("decisions_made")),
        one(command("throughput --before")),
        one(("update_config", json!({"key": "pool_size", "value": 200}))),
        one(command("restart")),
        one(command("throughput --after")),
        one(write("remediation_status", "Reverted in staging; production waits for approval.")),
        Say::text(REVERTED).after(Duration::from_secs(1)),
    ];
    Scripted::new().agent("researcher", researcher).agent("writer", writer).agent("remediator", remediator)
}

fn specialist(name: &str, description: &str, tools: &[&str], max_turns: u32) -> AgentSpec {
    let mut agent = AgentSpec::new(AgentName::parse(name).unwrap(), description, format!("You are a {name}."));
    agent.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    agent.max_turns = Some(max_turns);
    agent
}

fn office(ledger: &Ledger) -> Desk {
    let mut office = builder(model());
    for (name, repeat) in [
        ("search_logs", Repeat::Safe),
        ("query_metrics", Repeat::Safe),
        ("run_staging_command", Repeat::Unsafe),
        ("update_config", Repeat::Unsafe),
    ] {
        office = office.tool(noting_tool(name, repeat, ledger));
    }
    office
        .agent(specialist(
            "researcher",
            "Investigates technical issues using logs and metrics",
            &["search_logs", "query_metrics", "shared_context"],
            10,
        ))
        .agent(specialist("writer", "Drafts documentation and reports", &["shared_context"], 5))
        .build()
        .unwrap()
}

async fn spawned(desk: &Desk, agent: &str, task: &str, id: &str) {
    let answer = ask(desk, json!({"action": "spawn", "agent": agent, "task": task})).await;
    check(&answer, &json!({"task_id": id, "agent": agent, "status": "running"}));
}

async fn status(desk: &Desk, id: &str, expected: Value) {
    check(&ask(desk, json!({"action": "status", "task_id": id})).await, &expected);
}

async fn collected(desk: &Desk, id: &str, result: &str, turns: u32) {
    let collect = json!({"action": "collect", "task_id": id});
    let expected = json!({"task_id": id, "status": "completed", "result": result, "turns_used": turns, "error": null});
    check(&ask(desk, collect.clone()).await, &expected);
    check(&ask(desk, collect).await, &json!({"error": "TASK_NOT_FOUND"}));
}

async fn reads(desk: &Desk, key: &str, expected: Value) {
    check(&context(desk, json!({"action": "read", "key": key})).await, &expected);
}

async fn writes(desk: &Desk, key: &str, value: &str) {
    let written = context(desk, json!({"action": "write", "key": key, "value": value})).await;
    check(&written, &json!({"key": key, "version": 1, "written_by": "orchestrator"}));
}

async fn investigate(desk: &Desk) {
    writes(desk, "problem_summary", "Throughput dropped 30% after config change on Feb 18.").await;
    writes(desk, "scope", "Identify root cause. Read-only access to production.").await;
    let listed = ask(desk, json!({"action": "list_agents"})).await;
    check(
        &listed,
        &json!({"agents": [
            {"name": "ann"},
            {"name": "bob"},
            {
                "name": "researcher",
                "description": "Investigates technical issues using logs and metrics",
                "model": "cast",
                "max_turns": 10,
                "tools": ["search_logs", "query_metrics", "shared_context"],
            },
            {"name": "writer", "max_turns": 5, "tools": ["shared_context"]},
        ]}),
    );
    let task = "Investigate the problem described in problem_summary. Check connection pool settings and thread \
                utilization. Write findings to shared context key findings_summary.";
    spawned(desk, "researcher", task, "t_01").await;
    pass(3.5).await;
    status(desk, "t_01", json!({"status": "running", "turns_used": 4})).await;
    check(&ask(desk, json!({"action": "collect", "task_id": "t_01"})).await, &json!({"error": "TASK_NOT_READY"}));
    pass(4.0).await;
    status(desk, "t_01", json!({"status": "completed", "turns_used": 7, "error": null})).await;
    collected(desk, "t_01", ROOT_CAUSE, 7).await;
    let researcher = "subagent:researcher:t_01";
    let findings = "Pool size fell from 200 to 20 on Feb 18; threads starve.";
    reads(desk, "findings_summary", json!({"value": findings, "written_by": researcher})).await;
    let question = "Was the pool size change intentional?";
    reads(desk, "open_questions", json!({"value": question, "written_by": researcher})).await;
}

async fn remedy(desk: &Desk) {
    writes(desk, "decisions_made", "Config change was accidental. User approves revert.").await;
    let deleted = context(desk, json!({"action": "delete", "key": "open_questions"})).await;
    check(&deleted, &json!({"deleted": "open_questions", "previous_version": 1}));
    let define = json!({
        "action": "define",
        "name": "remediator",
        "description": "Executes remediation steps in staging and production",
        "system_prompt": "You are a remediation specialist. Read the findings and decisions from shared context, then \
                          execute the approved fix. Verify the fix resolves the issue. Write results to shared context.",
        "tools": ["shared_context", "run_staging_command", "update_config"],
        "max_turns": 15,
    });
    check(&ask(desk, define.clone()).await, &json!({"defined": "remediator", "version": 1, "warnings": null}));
    check(&ask(desk, define).await, &json!({"error": "AGENT_ALREADY_EXISTS"}));
    let revert = "Execute the approved revert per decisions_made. Verify throughput recovery in staging before prod.";
    spawned(desk, "remediator", revert, "t_02").await;
    let draft =
        "Draft an incident summary for stakeholders based on findings_summary and decisions_made in shared context.";
    spawned(desk, "writer", draft, "t_03").await;
    pass(3.5).await;
    status(desk, "t_02", json!({"status": "running"})).await;
    status(desk, "t_03", json!({"status": "completed"})).await;
    collected(desk, "t_03", DRAFTED, 3).await;
    pass(5.0).await;
    status(desk, "t_02", json!({"status": "completed"})).await;
    collected(desk, "t_02", REVERTED, 8).await;
    reads(desk, "incident_report", json!({"written_by": "subagent:writer:t_03"})).await;
    reads(desk, "remediation_status", json!({"written_by": "subagent:remediator:t_02"})).await;
}

#[tokio::test(start_paused = true)]
async fn the_full_interaction_cycle_of_the_specification() {
    let ledger = Ledger::default();
    let desk = office(&ledger);
    investigate(&desk).await;
    remedy(&desk).await;
    let done = [
        r#"search_logs {"query":"timeout"}"#,
        r#"query_metrics {"metric":"pool_size"}"#,
        r#"run_staging_command {"command":"throughput --before"}"#,
        r#"update_config {"key":"pool_size","value":200}"#,
        r#"run_staging_command {"command":"restart"}"#,
        r#"run_staging_command {"command":"throughput --after"}"#,
    ];
    assert_eq!(ledger.lines(), done);
    assert_eq!(ask(&desk, json!({"action": "status"})).await, json!({"tasks": []}));
}
