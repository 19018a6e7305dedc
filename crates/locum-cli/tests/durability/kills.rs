//! Processes are killed at random moments, again and again in one home. Afterwards nothing may be lost and nothing may
//! be there twice. Set `LOCUM_TEST_SEED` to the seed of a failure to choose the same moments again.

mod campaign;

use serde_json::json;

use self::campaign::{Campaign, Point};
use crate::home::subagent_lines;

/// Kills of each campaign; there are three.
const KILLS: u32 = 34;

/// Not every victim lives until it is to be killed.
const ROUNDS_MAX: u32 = 20 * KILLS;

#[test]
fn a_killed_run_is_finished_by_others() {
    let mut campaign = Campaign::new();
    for round in 0..ROUNDS_MAX {
        if campaign.kills >= KILLS {
            break;
        }
        let agent = campaign.any_agent();
        let victim = campaign.start(&["run", agent, &format!("r{round}"), "--json"], "");
        let point = campaign.point(24);
        campaign.kill(victim, point);
        if campaign.is_lucky() {
            campaign.look();
            let point = campaign.point(24);
            campaign.kill_worker(point);
        }
    }
    campaign.finish();
}

#[test]
fn a_killed_call_is_finished_by_others() {
    let mut campaign = Campaign::new();
    for round in 0..ROUNDS_MAX {
        if campaign.kills >= KILLS {
            break;
        }
        let inputs = [
            json!({"action": "spawn", "agent": campaign.any_agent(), "task": format!("s{round}"), "queue": true}),
            json!({"action": "chain", "background": true, "tasks": [
                {"agent": "plain", "task": format!("c{round}")},
                {"agent": "plain", "task": "after {previous}"},
            ]}),
            json!({"action": "parallel", "background": true, "tasks": [
                {"agent": "plain", "task": format!("p{round}")},
                {"agent": "flaky", "task": format!("q{round}"), "depends_on": ["t_01"]},
            ]}),
            json!({"action": "wait", "timeout_ms": 40_000}),
        ];
        let victim = campaign.start(&["call", "-"], &subagent_lines(&inputs));
        let point = campaign.point_or_answer(3);
        campaign.kill(victim, point);
        if campaign.is_lucky() {
            campaign.look();
        }
    }
    campaign.check_it_meant_something(KILLS);
    campaign.finish();
}

#[test]
fn a_killed_worker_is_followed_by_another() {
    let mut campaign = Campaign::new();
    for round in 0..ROUNDS_MAX {
        if campaign.kills >= KILLS {
            break;
        }
        let agent = campaign.any_agent();
        let task = format!("w{round}");
        if campaign.is_lucky() {
            campaign.answered(&["spawn", agent, &task, "--queue"]);
        } else {
            let victim = campaign.start(&["spawn", agent, &task, "--queue", "--json"], "");
            let point = if campaign.is_lucky() { Point::Answer(1) } else { campaign.moment(20_000) };
            campaign.kill(victim, point);
        }
        campaign.look();
        let point = campaign.point(24);
        campaign.kill_worker(point);
    }
    campaign.check_it_meant_something(KILLS);
    campaign.finish();
}

/// Whoever goes on with a task is as mortal as the one before: no kill comes too early to be noticed.
#[test]
fn a_worker_that_is_killed_right_after_its_claim_leaves_an_orphan_that_is_found() {
    let mut campaign = Campaign::new();
    campaign.answered(&["spawn", "slow", "x"]);
    // A third would be the end of the task: it may have been what ends them.
    for _ in 0..2 {
        campaign.kill_worker(Point::Claimed);
        campaign.look();
    }
    campaign.finish();
}
