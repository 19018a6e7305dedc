//! The examples, run as they are written: what a newcomer sees first must be what the text says.

use std::path::PathBuf;
use std::process::Command;

/// What an example prints. `cargo test` builds the examples of a package before its tests, beside them.
fn run(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let target: PathBuf = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(&target).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{} cannot be run ({error}); `cargo test -p locum` builds it, `--test` alone does not", target.display())
    });
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_agent_loop_delegates_through_the_native_tools() {
    insta::assert_snapshot!(run("embed"), @r#"
    call    subagent {"action":"run","agent":"researchr","task":"Why did throughput drop on Feb 18?"}
    answer  AGENT_NOT_FOUND, "did you mean researcher? list_agents shows all"
    call    subagent {"action":"run","agent":"researcher","task":"Why did throughput drop on Feb 18?"}
    answer  "completed": "The connection pool was cut from 200 to 20."
    said    The pool was cut; I will revert it.
    "#);
}

#[test]
fn an_agent_is_defined_and_tasks_run_in_the_background() {
    insta::assert_snapshot!(run("define_and_spawn"), @r#"
    define
        defined: "sql-reviewer"
        version: 1
    define
        defined: "archivist"
        version: 1
    spawn
        task_id: "t_01"
        status: "running"
    spawn
        task_id: "t_02"
        status: "running"
    wait
        timed_out: false
        tasks.0.status: "completed"
    collect
        status: "completed"
        result: "The migration locks the table: add the index concurrently."
        turns_used: 1
    collect
        error: "TASK_NOT_FOUND"
    result
        text: "The migration locks the table: add the index concurrently."
        total_chars: 58
    collect
        error: "TASK_NOT_READY"
    cancel
        status: "cancelled"
        receipt.confirmed: true
    0 tasks left for others
    "#);
}

#[test]
fn what_happens_is_told_as_it_happens() {
    insta::assert_snapshot!(run("watch_progress"), @r#"
    @writer t_01 #1 accepted
    @writer t_01 #2 turn 1 begins
    @writer t_01 #3 replied, with 1 tool calls
    @writer t_01 #4 think begins
    @writer t_01 #5 a tool ended: Ok
    @writer t_01 #6 turn 2 begins
    @writer t_01 says "Begin "
    @writer t_01 says "with t"
    @writer t_01 says "he glo"
    @writer t_01 says "ssary."
    @writer t_01 #7 replied, with 0 tool calls
    @writer t_01 #8 ended: completed
    8 entries in the log
    "#);
}

#[test]
fn two_agents_share_context() {
    insta::assert_snapshot!(run("shared_notes"), @r#"
    shared_context write problem_summary
        version: 1
        written_by: orchestrator
    subagent spawn researcher
        task_id: t_01
        status: running
    subagent wait
        timed_out: false
    subagent collect t_01
        status: completed
        result: Root cause: the connection pool was cut from 200 to 20.
        turns_used: 3
    shared_context read findings_summary
        value: Pool size fell from 200 to 20 on Feb 18.
        written_by: subagent:researcher:t_01
    subagent define remediator
        defined: remediator
    subagent run remediator
        status: completed
        result: Reverted in staging; throughput is back.
        turns_used: 2
    "#);
}
