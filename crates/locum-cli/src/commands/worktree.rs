//! `locum worktree`: what tasks left in their worktrees, and what becomes of it.

use locum::worktrees::{Comparison, Consent, Finding, WorktreeLine};
use locum::{Executor, Refusal};
use serde::Serialize;
use serde_json::json;

use crate::args::{Global, WorktreeVerb};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) async fn worktree(verb: WorktreeVerb, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let desk = &door.opened.desk;
    Ok(match verb {
        WorktreeVerb::List => show(output, desk.worktrees().await, list),
        WorktreeVerb::Diff { name, against } => show(output, desk.worktree_diff(&name, against.as_deref()).await, diff),
        WorktreeVerb::Apply { name } => show(output, desk.apply_worktree(&name).await, |output, applied| {
            output.answer(&applied.files.join("\n"));
            output.note("these are changed and not committed: git diff --cached shows how");
        }),
        WorktreeVerb::Drop { name, yes } => {
            let consent = if yes { Consent::Given } else { Consent::Missing };
            show(output, desk.drop_worktree(&name, consent).await, |output, dropped| {
                output.answer(&format!("{} dropped", dropped.path.as_ref().unwrap_or(&dropped.branch)));
                if dropped.branch_kept {
                    output.note(&format!("its work is on the branch {}", dropped.branch));
                }
            })
        }
        WorktreeVerb::Fsck => show(output, desk.check_worktrees().await, findings),
    })
}

/// Prints an answer for machines or for people.
fn show<T: Serialize>(output: Output, answer: Result<T, Refusal>, print: impl FnOnce(Output, &T)) -> Exit {
    match answer {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) => {
            if output.is_json() {
                let value = json!(answer);
                // Lists are one object too.
                output.json(&if value.is_array() { json!({"worktrees": value}) } else { value });
            } else {
                print(output, &answer);
            }
            Exit::Done
        }
    }
}

fn list(output: Output, lines: &Vec<WorktreeLine>) {
    if lines.is_empty() {
        output.note("no task left a worktree");
        return;
    }
    let mut table = Table::new(&["TASK", "STATUS", "CHANGED", "UNCOMMITTED", "BRANCH", "CONFLICTS WITH"]);
    for line in lines {
        let (task, status) = match &line.task {
            Some(task) => (format!("{} {}", task.task_id, task.agent), task.status.as_str()),
            None => ("-".to_owned(), "-"),
        };
        let conflicts: Vec<&str> = line.conflicts.iter().map(|conflict| conflict.with.as_str()).collect();
        let place = if line.path.is_some() { "" } else { " (no directory)" };
        table.row([
            task,
            status.to_owned(),
            line.files_changed.to_string(),
            line.uncommitted.to_string(),
            format!("{}{place}", line.branch),
            conflicts.join(" "),
        ]);
    }
    output.answer(&table.render(output.width()));
}

fn diff(output: Output, comparison: &Comparison) {
    output.answer(&comparison.patch);
    if comparison.cut {
        output.note("there is more: read it with git");
    }
    if comparison.uncommitted > 0 {
        output.note(&format!("{} files in its directory are not on its branch", comparison.uncommitted));
    }
    if !comparison.conflicts.is_empty() {
        output.note(&format!("conflicts: {}", comparison.conflicts.join(", ")));
    }
}

fn findings(output: Output, findings: &Vec<Finding>) {
    if findings.is_empty() {
        output.note("nothing was left behind");
    }
    for finding in findings {
        output.answer(&format!("{}: {}\n    {}", finding.place, finding.what, finding.advice));
    }
}
