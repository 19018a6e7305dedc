//! Budgets: what is admitted and refused, and what is set aside at the edges of every limit.

use locum_core::agent::AgentSpec;
use locum_core::budget::{self, Drawn, Purse, PurseKey, PurseState, Reservation, Room, Wish, dollars, money};
use locum_core::protocol::FaceDefaults;
use locum_core::task::Plan;
use locum_core::usage::{Budget, Price};
use serde_json::json;

use crate::world::{World, uid};

/// A millionth of a dollar for a token that goes in, ten for one that comes out.
pub(crate) const PRICE: Price = Price { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 1.25 };

/// A world in which `large` has a price.
pub(crate) fn priced() -> World {
    let mut world = World::new();
    world.catalogue.models[0].price = Some(PRICE);
    world
}

fn line(world: &World, input: serde_json::Value) -> String {
    match world.spawn(input) {
        Err(refusal) => format!("{refusal} ({})", refusal.hint.clone().unwrap_or_default()),
        Ok(_) => "admitted".to_owned(),
    }
}

fn drawn(money: f64) -> PurseState {
    PurseState { drawn: Drawn { money: budget::money(money), ..Drawn::default() }, spawned: 0 }
}

fn plan(world: &World, input: serde_json::Value) -> Plan {
    std::sync::Arc::unwrap_or_clone(world.accept(input).plan)
}

fn keys(plan: &Plan) -> Vec<String> {
    plan.bounds.purses.iter().map(|purse| purse.key.to_string()).collect()
}

#[test]
fn amounts_are_counted_in_billionths_and_shown_in_cents() {
    for (usd, billionths, shown) in [
        (0.0, 0, "US$0.00"),
        (1.0, 1_000_000_000, "US$1.00"),
        (0.1 + 0.2, 300_000_000, "US$0.30"),
        (0.000_000_000_4, 1, "US$0.00"),
        (0.0123, 12_300_000, "US$0.0123"),
        (12.5, 12_500_000_000, "US$12.50"),
        (f64::MAX, u64::MAX, "US$18446744073.709553"),
        (f64::NAN, 0, "US$0.00"),
        (-1.0, 0, "US$0.00"),
    ] {
        assert_eq!((money(usd), dollars(billionths).as_str()), (billionths, shown), "{usd}");
    }
}

#[test]
fn a_task_with_a_price_has_the_default_and_spends_from_its_session() {
    let mut world = priced();
    let entry = json!({"agent": "reader", "task": "t", "model": "large"});
    let bounds = plan(&world, entry.clone()).bounds;
    assert_eq!(bounds.budget, Budget { max_cost_usd: Some(1.0), ..Budget::default() });
    let session = Budget { max_cost_usd: Some(5.0), ..Budget::default() };
    assert_eq!(bounds.purses, [Purse { key: PurseKey::Session, limit: session }]);
    // Without a price nothing is bounded, and nothing is looked at.
    let unpriced = plan(&world, json!({"agent": "reader", "task": "t"})).bounds;
    assert_eq!((unpriced.budget, unpriced.purses), (Budget::default(), Vec::new()));
    // What is spelled unlimited is.
    (world.limits.max_cost_usd, world.limits.session_cost_usd) = (None, None);
    let unlimited = plan(&world, entry).bounds;
    assert_eq!((unlimited.budget, unlimited.purses), (Budget::default(), Vec::new()));
}

#[test]
fn a_task_that_may_delegate_has_a_purse_of_its_own_and_a_person_one_for_the_command() {
    let mut world = priced();
    world.limits.max_depth = Some(2);
    let entry = json!({"agent": "worker", "task": "t", "model": "large", "max_input_tokens": 5000});
    let lead = plan(&world, entry.clone());
    assert_eq!(keys(&lead), ["session", "task:uid-500"]);
    assert_eq!(lead.bounds.purses[1].limit.max_input_tokens, Some(5000));
    world.face = FaceDefaults::person();
    assert_eq!(keys(&plan(&world, entry)), ["command:uid-500", "task:uid-500"]);
    // One task that delegates nothing is bounded by itself.
    assert_eq!(keys(&plan(&world, json!({"agent": "reader", "task": "t", "model": "large"}))), [""; 0]);
}

#[test]
fn a_child_gets_no_more_than_is_left_above_it() {
    let mut world = priced();
    world.called_by_task(&["read"], 1);
    let limit = Budget { max_cost_usd: Some(0.5), max_output_tokens: Some(3000), ..Budget::default() };
    let above = Purse { key: PurseKey::Task(uid(900)), limit };
    world.caller.parent.as_mut().unwrap().purses = vec![above.clone()];
    let entry = |more: serde_json::Value| {
        let mut entry = json!({"agent": "reader", "task": "t", "model": "large"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let budget = |world: &World, more| plan(world, entry(more)).bounds;
    // A tenth stays out of its reach, for the last answer of the task above.
    let whole = budget(&world, json!({}));
    assert_eq!((whole.budget.max_cost_usd, whole.purses), (Some(0.45), vec![above.below()]));
    assert_eq!((above.below().limit.max_cost_usd, above.below().limit.max_output_tokens), (Some(0.45), Some(2700)));
    let mut have = |money: u64, output: u64| {
        let state = PurseState { drawn: Drawn { money, output, input: 0 }, spawned: 3 };
        world.view.purses.insert(above.key.clone(), state);
        world.clone()
    };
    let rest = budget(&have(200_000_000, 2600), json!({"max_output_tokens": 1000, "max_cost_usd": 0.2})).budget;
    assert_eq!((rest.max_cost_usd, rest.max_output_tokens), (Some(0.2), Some(100)));
    assert_eq!(budget(&have(200_000_000, 0), json!({"max_cost_usd": 0.9})).budget.max_cost_usd, Some(0.25));
    for (world, expected) in [
        (
            have(450_000_000, 0),
            "BUDGET_EXCEEDED: the first request needs US$0.000096 more than is left of the budget of the task above \
             (US$0.00 of US$0.45) (do the rest yourself, with what is left)",
        ),
        (
            have(600_000_000, 0),
            "BUDGET_EXCEEDED: the first request needs US$0.000096 more than is left of the budget of the task above \
             (US$0.00 of US$0.45) (do the rest yourself, with what is left)",
        ),
        (
            have(0, 2700),
            "BUDGET_EXCEEDED: the first request needs 1 output tokens more than is left of the budget of the task above \
             (0 output tokens of 2700 output tokens) (do the rest yourself, with what is left)",
        ),
    ] {
        assert_eq!(line(&world, entry(json!({}))), expected);
    }
}

#[test]
fn refusals_say_by_how_much() {
    let entry = json!({"agent": "reader", "task": "t", "model": "large"});
    let free = json!({"agent": "reader", "task": "t"});
    let asking = |usd: f64| json!({"agent": "reader", "task": "t", "model": "large", "max_cost_usd": usd});
    for (spent, input, expected) in [
        (0.0, asking(1.0), "admitted"),
        (
            0.0,
            asking(1.000_001),
            "BUDGET_EXCEEDED: max_cost_usd is US$0.000001 more than a task may cost (US$1.00) (limits.max_cost_usd raises it)",
        ),
        (
            0.0,
            asking(0.00005),
            "BUDGET_EXCEEDED: the first request costs US$0.000046 more than the budget (US$0.00005) (raise max_cost_usd)",
        ),
        (
            0.0,
            json!({"agent": "reader", "task": "t", "max_cost_usd": 1.0}),
            "INVALID_REQUEST: the price of scripted:s is not known, so that max_cost_usd cannot be kept \
             (bound it with max_input_tokens and max_output_tokens)",
        ),
        (4.9999, entry.clone(), "admitted"),
        (
            4.99991,
            entry.clone(),
            "BUDGET_EXCEEDED: the first request needs US$0.000006 more than is left of the budget of the session \
             (US$0.00009 of US$5.00) (limits.session_cost_usd raises it)",
        ),
        (
            5.02,
            entry,
            "BUDGET_EXCEEDED: the first request needs US$0.000096 more than is left of the budget of the session \
             (US$0.00 of US$5.00) (limits.session_cost_usd raises it)",
        ),
        // Who pays nothing is not refused for what others paid.
        (5.02, free, "admitted"),
    ] {
        let mut world = priced();
        world.view.purses.insert(PurseKey::Session, drawn(spent));
        assert_eq!(line(&world, input.clone()), expected, "{spent} {input}");
    }
}

#[test]
fn what_every_request_says_about_tools_is_part_of_the_first_one() {
    let mut world = priced();
    let asking = json!({"agent": "reader", "task": "t", "max_input_tokens": 1000});
    assert_eq!(line(&world, asking.clone()), "admitted");
    for tool in &mut world.tools {
        tool.chars = 4000;
    }
    assert_eq!(
        line(&world, asking),
        "BUDGET_EXCEEDED: the first request needs about 5086 input tokens, 4086 more than the budget (raise max_input_tokens)"
    );
}

#[test]
fn an_agent_file_bounds_its_tasks() {
    let mut world = priced();
    let own = |usd: f64| {
        move |agent: &mut AgentSpec| {
            agent.locum.budget = Some(Budget { max_cost_usd: Some(usd), ..Budget::default() });
        }
    };
    world.add("thrifty", own(0.25));
    world.add("lavish", own(25.0));
    world.add("broke", own(0.00005));
    let ask = |agent: &str, more: serde_json::Value| {
        let mut entry = json!({"agent": agent, "task": "t", "model": "large"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    for (agent, more, expected) in [
        ("thrifty", json!({}), Some(0.25)),
        ("thrifty", json!({"max_cost_usd": 0.5}), Some(0.5)),
        // What a file names cannot raise what the settings allow.
        ("lavish", json!({}), Some(1.0)),
    ] {
        assert_eq!(plan(&world, ask(agent, more.clone())).bounds.budget.max_cost_usd, expected, "{agent} {more}");
    }
    assert_eq!(
        line(&world, ask("broke", json!({}))),
        "BUDGET_EXCEEDED: the first request costs US$0.000045 more than the budget (US$0.00005) (raise max_cost_usd)"
    );
    // Where nobody knows the price, the file cannot be kept to: the task runs, and says so.
    let unpriced = plan(&world, json!({"agent": "thrifty", "task": "t"}));
    assert_eq!(unpriced.bounds.budget.max_cost_usd, None);
    let warning = "the price of scripted:s is not known, so that the agent's max_cost_usd of US$0.25 is not kept";
    assert_eq!(unpriced.warnings, [warning]);
}

#[test]
fn tasks_that_models_start_below_a_command_are_counted_there() {
    let mut world = priced();
    world.called_by_task(&["read"], 1);
    let command = PurseKey::Command(uid(1));
    world.caller.parent.as_mut().unwrap().purses = vec![Purse { key: command.clone(), limit: Budget::default() }];
    world.view.spawned = 50;
    let entry = json!({"agent": "reader", "task": "t"});
    for (spawned, expected) in [
        (0, "admitted"),
        (49, "admitted"),
        (50, "SPAWN_LIMIT_EXCEEDED: the command has started 50 tasks; 50 are allowed (limits.max_spawns raises it)"),
    ] {
        world.view.purses.insert(command.clone(), PurseState { spawned, ..PurseState::default() });
        assert_eq!(line(&world, entry.clone()), expected);
    }
}

/// What is set aside for a request of 1000 tokens, of which `money` millionths of a dollar may be spent.
fn set_aside(goes_on: bool, output: u64, millionths: u64) -> String {
    let wish = Wish { input: 1000, output, price: Some(PRICE), goes_on };
    let limit = Budget { max_cost_usd: Some(millionths as f64 / 1e6), ..Budget::default() };
    match budget::reserve(&wish, &limit, Drawn::default(), None) {
        Ok(Reservation { tokens, closing: None }) => format!("{}", tokens.output),
        Ok(Reservation { tokens, closing: Some(_) }) => format!("{} and no more", tokens.output),
        Err(shortage) => format!("{} short", shortage.over / 1000),
    }
}

#[test]
fn a_request_is_made_whole_or_shorter_or_as_the_last_or_not_at_all() {
    // 1000 in and 4096 out are 41,960; an answer after it, with 2000 in and 1000 out, is 12,000.
    for (goes_on, output, millionths, expected) in [
        (true, 4096, 53_960, "4096"),
        (true, 4096, 53_959, "4095"),
        (true, 4096, 23_000, "1000"),
        (true, 4096, 22_999, "2199 and no more"),
        (true, 20_000, 213_000, "20000"),
        (true, 20_000, 212_999, "4096 and no more"),
        (true, 100, 14_000, "100"),
        (true, 100, 13_999, "100 and no more"),
        (true, 4096, 1010, "1 and no more"),
        (true, 4096, 1009, "1 short"),
        (true, 4096, 0, "1010 short"),
        (false, 4096, 41_960, "4096"),
        (false, 4096, 41_959, "4095"),
        (false, 4096, 1010, "1"),
        (false, 4096, 1009, "1 short"),
    ] {
        assert_eq!(set_aside(goes_on, output, millionths), expected, "{goes_on} {output} {millionths}");
    }
}

#[test]
fn what_is_free_needs_no_money() {
    let free = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
    let wish = Wish { input: u64::MAX, output: u64::MAX, price: Some(free), goes_on: true };
    let limit = Budget { max_cost_usd: Some(0.0), ..Budget::default() };
    assert_eq!(budget::reserve(&wish, &limit, Drawn::default(), None).unwrap().tokens.output, u64::MAX);
    assert_eq!(Room::within(&limit, Drawn::default()).money, Some(0));
}
