//! Which model answers: every row of the order, in a world with three priced models and one without a key.

use locum_core::protocol::request::{CostPreference, TaskType};
use locum_core::protocol::{Code, Refusal};
use locum_core::routing::{
    self, Catalogue, Hints, ModelEntry, Need, Ratings, RoutingRules, SessionModel, Supports, Wish, rank,
};
use locum_core::task::plan::ModelName;
use locum_core::usage::Price;
use serde_json::json;

use crate::world::World;

fn name(provider: &str, id: &str) -> ModelName {
    ModelName { provider: provider.to_owned(), id: id.to_owned() }
}

fn entry(id: &str, rating: u8, price: Option<f64>) -> ModelEntry {
    let ratings = Ratings { code: rating, vision: rating, text: rating };
    let price = price.map(|price| Price { input: price, output: price, cache_read: price, cache_write: price });
    let supports = Supports { vision: rating > 2, ..Supports::default() };
    let aliases = vec![format!("{id}-alias")];
    ModelEntry { aliases, price, ratings: Some(ratings), supports, ..ModelEntry::named(name("acme", id)) }
}

/// Small, medium and large of one provider with a key; `other:free` would be best and has none.
fn catalogue() -> Catalogue {
    let other = ModelEntry { name: name("other", "free"), aliases: Vec::new(), ..entry("free", 5, Some(0.0)) };
    Catalogue {
        session: SessionModel { name: name("acme", "session"), why: "a test".to_owned() },
        stands_in: false,
        providers: vec!["acme".to_owned(), "other".to_owned()],
        reachable: vec!["acme".to_owned()],
        models: vec![
            other,
            entry("small", 2, Some(1.0)),
            entry("medium", 3, Some(5.0)),
            entry("large", 5, Some(20.0)),
            entry("unpriced", 3, None),
        ],
        fallback: Vec::new(),
        rules: RoutingRules::default(),
    }
}

fn hints(cost: Option<CostPreference>, complexity: Option<u8>, scope: Option<&str>) -> Hints {
    Hints { cost_preference: cost, complexity, model_scope: scope.map(str::to_owned), ..Hints::default() }
}

fn chosen(wish: &Wish<'_>, catalogue: &Catalogue) -> String {
    routing::choose(wish, catalogue).map_or_else(|refusal| refusal.code.to_string(), |choice| choice.receipt.effective)
}

#[test]
fn a_name_may_be_an_alias_an_id_or_carry_its_provider() {
    let catalogue = catalogue();
    for known in ["large", "large-alias", "acme:large", "acme/large", "acme:large-alias", " large "] {
        assert_eq!(catalogue.resolve(known), Some(name("acme", "large")), "{known}");
    }
    assert_eq!(catalogue.resolve("acme:new"), Some(name("acme", "new")));
    assert_eq!(catalogue.resolve("other/a/b"), Some(name("other", "a/b")));
    assert_eq!(catalogue.resolve("session"), Some(name("acme", "session")));
    assert!(catalogue.knows("Auto-Eco") && catalogue.knows("inherit") && catalogue.knows("large"));
    for unknown in ["new", "nobody:new", "acme:", "", ":", "auto-"] {
        assert_eq!(catalogue.resolve(unknown), None, "{unknown}");
    }
}

/// A task of complexity 3 by its words.
const USUAL: &str = "Look at the retry loop of the driver and make it wait longer after a server said that it is busy";

#[test]
fn every_row_of_the_order() {
    use CostPreference::{Eco, Premium};
    let premium = || hints(Some(Premium), None, None);
    let on = RoutingRules::default();
    let off = RoutingRules { enabled: false, ..RoutingRules::default() };
    let thrifty = RoutingRules { cost_preference: Some(Eco), ..RoutingRules::default() };
    type Case<'a> = (&'a str, Option<&'a str>, Hints, Option<&'a str>, &'a RoutingRules, &'a str);
    let cases: [Case<'_>; 22] = [
        ("the call's model is first", Some("small"), premium(), Some("medium"), &on, "acme:small"),
        ("by its alias", Some("small-alias"), Hints::default(), None, &on, "acme:small"),
        ("by provider/model", Some("acme/small"), Hints::default(), None, &on, "acme:small"),
        ("passed through", Some("other:new"), Hints::default(), None, &on, "other:new"),
        ("or refused", Some("smal"), Hints::default(), Some("medium"), &on, "MODEL_NOT_FOUND"),
        ("a keyword of the call routes", Some("auto-premium"), Hints::default(), Some("small"), &on, "acme:large"),
        ("hints beat the agent's model", None, premium(), Some("small"), &on, "acme:large"),
        ("hints beat the agent's keyword", None, premium(), Some("auto-cheap"), &on, "acme:large"),
        ("a keyword fills what hints leave", None, hints(None, Some(5), None), Some("auto-cheap"), &on, "acme:large"),
        ("settings fill what hints leave", None, hints(None, Some(1), None), None, &thrifty, "acme:small"),
        ("a scope bounds the choice", None, hints(Some(Premium), None, Some("MED")), None, &on, "acme:medium"),
        ("a scope without a model", None, hints(None, None, Some("zebra")), None, &on, "MODEL_NOT_FOUND"),
        ("a scope without a key", None, hints(None, None, Some("other")), None, &on, "MODEL_NOT_FOUND"),
        ("the agent's model", None, Hints::default(), Some("large"), &on, "acme:large"),
        ("the agent's keyword, in any case", None, Hints::default(), Some("AUTO-Cheap"), &on, "acme:medium"),
        ("auto-eco is auto-cheap", None, Hints::default(), Some("auto-eco"), &on, "acme:medium"),
        ("auto-premium", None, Hints::default(), Some("auto-premium"), &on, "acme:large"),
        ("disabled, keywords route", None, Hints::default(), Some("auto-premium"), &off, "acme:large"),
        ("disabled, hints alone do not", None, premium(), Some("small"), &off, "acme:small"),
        ("disabled, hints refine a keyword", None, premium(), Some("auto-cheap"), &off, "acme:large"),
        ("an unknown model of the agent", None, Hints::default(), Some("nobody"), &on, "acme:session"),
        ("settings alone replace nothing", None, Hints::default(), None, &thrifty, "acme:session"),
    ];
    for (case, call, hints, agent, rules, expected) in cases {
        let catalogue = Catalogue { rules: rules.clone(), ..catalogue() };
        assert_eq!(
            chosen(&Wish { call, hints, agent, task: USUAL, ..Wish::default() }, &catalogue),
            expected,
            "{case}"
        );
    }
}

#[test]
fn a_session_model_that_stands_in_is_what_routing_chooses() {
    let mut catalogue = catalogue();
    catalogue.stands_in = true;
    let with_hints = Wish { hints: hints(None, Some(5), Some("nobody")), task: USUAL, ..Wish::default() };
    let wishes = ["auto-cheap", "AUTO-ECO", "auto-balanced", "auto-premium"].map(|keyword| Wish {
        agent: Some(keyword),
        task: USUAL,
        ..Wish::default()
    });
    for wish in wishes.iter().chain([&with_hints]) {
        assert_eq!(chosen(wish, &catalogue), "acme:session", "{wish:?}");
        assert!(routing::choose(wish, &catalogue).unwrap().runners_up.is_empty());
    }
    let named = Wish { call: Some("large"), ..Wish::default() };
    assert_eq!(chosen(&named, &catalogue), "acme:large", "a name is a name");
}

#[test]
fn without_a_model_to_choose_from_it_is_the_sessions() {
    let mut catalogue = catalogue();
    catalogue.reachable.clear();
    let wish = Wish { agent: Some("auto-cheap"), task: USUAL, ..Wish::default() };
    let choice = routing::choose(&wish, &catalogue).unwrap();
    assert_eq!(choice.receipt.effective, "acme:session");
    assert!(choice.receipt.why.contains("no model can be chosen"), "{}", choice.receipt.why);
}

#[test]
fn money_and_quality_are_weighed_as_asked() {
    use CostPreference::{Balanced, Eco, Premium};
    let cases = [
        (Eco, 1, ["small", "medium", "large", "unpriced"]),
        (Eco, 3, ["medium", "large", "unpriced", "small"]),
        (Eco, 5, ["large", "medium", "unpriced", "small"]),
        (Balanced, 1, ["small", "medium", "unpriced", "large"]),
        (Balanced, 3, ["medium", "unpriced", "large", "small"]),
        (Balanced, 5, ["large", "medium", "unpriced", "small"]),
        (Premium, 1, ["large", "medium", "unpriced", "small"]),
    ];
    for (preference, complexity, order) in cases {
        let need = Need::of("x", &hints(Some(preference), Some(complexity), None), &RoutingRules::default(), false);
        let ranking = rank(need, &catalogue());
        let names: Vec<&str> = ranking.candidates.iter().map(|candidate| candidate.name.id.as_str()).collect();
        assert_eq!(names, order, "{preference:?} {complexity}: {ranking:?}");
        assert!(ranking.candidates.is_sorted_by(|a, b| a.score >= b.score));
        assert_eq!(ranking.passed_over.len(), 1, "{:?}", ranking.passed_over);
    }
}

#[test]
fn a_model_that_cannot_do_the_task_is_passed_over_with_the_reason() {
    let mut catalogue = catalogue();
    catalogue.models[1].supports.tools = false;
    catalogue.models[2].ratings = None;
    let need = |task_type, tools| {
        let hints = Hints { task_type: Some(task_type), ..Hints::default() };
        Need::of("x", &hints, &RoutingRules::default(), tools)
    };
    let reasons = |need| -> Vec<String> {
        rank(need, &catalogue).passed_over.iter().map(|(name, why)| format!("{name}: {why}")).collect()
    };
    let (no_key, unrated) = ("other:free: no key and no server for it is set", "acme:medium: it has no ratings");
    assert_eq!(reasons(need(TaskType::Code, true)), [no_key, "acme:small: it cannot call tools", unrated]);
    assert_eq!(reasons(need(TaskType::Vision, false)), [no_key, "acme:small: it cannot see", unrated]);
    assert_eq!(reasons(need(TaskType::Text, false)), [no_key, unrated]);
}

#[test]
fn the_type_is_the_hints_then_the_settings_then_the_words() {
    let type_of = |hint, primary_type, enabled, task: &str| {
        let rules = RoutingRules { enabled, primary_type, cost_preference: None };
        Need::of(task, &Hints { task_type: hint, ..Hints::default() }, &rules, false).task_type
    };
    let (code, vision, text) = (TaskType::Code, TaskType::Vision, TaskType::Text);
    assert_eq!(type_of(Some(vision), Some(text), true, "fix the bug"), vision);
    assert_eq!(type_of(None, Some(text), true, "fix the bug"), text);
    assert_eq!(type_of(None, Some(text), false, "fix the bug"), code, "disabled, settings fill nothing");
    assert_eq!(type_of(None, None, true, "what is in the screenshot"), vision);
    assert_eq!(type_of(None, None, true, "go"), code);
}

#[test]
fn the_list_of_those_who_answer_next() {
    let mut catalogue = catalogue();
    catalogue.fallback = vec![name("acme", "large"), name("acme", "small")];
    let list = |wish: &Wish<'_>, agent: &[&str]| -> (Vec<String>, usize) {
        let agent: Vec<String> = agent.iter().map(|name| (*name).to_owned()).collect();
        let choice = routing::choose(wish, &catalogue).unwrap();
        let (list, warnings) = routing::fallback(&choice, &agent, &catalogue);
        (list.iter().map(|next| next.model.id.clone()).collect(), warnings.len())
    };
    let session = Wish { task: USUAL, ..Wish::default() };
    let large = Wish { call: Some("large"), ..session.clone() };
    let routed = Wish { agent: Some("auto-premium"), ..session.clone() };
    let strings = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    assert_eq!(list(&session, &[]), (strings(&["large", "small"]), 0), "the settings' list");
    assert_eq!(list(&large, &[]), (strings(&["small"]), 0), "without the chosen one");
    assert_eq!(list(&session, &["medium", "nobody"]), (strings(&["medium"]), 1), "the agent's list is in its place");
    assert_eq!(list(&routed, &[]), (strings(&["medium", "unpriced", "small"]), 0), "who came next, then the list");
    catalogue.fallback.clear();
    let choice = routing::choose(&session, &catalogue).unwrap();
    assert!(routing::fallback(&choice, &[], &catalogue).0.is_empty(), "nobody without a list");
}

fn plan_of(input: serde_json::Value) -> Result<locum_core::task::Plan, Refusal> {
    let mut world = World::new();
    world.catalogue = catalogue();
    match world.spawn(input)? {
        locum_core::admission::Admitted::New(acceptance) => Ok(std::sync::Arc::unwrap_or_clone(acceptance.plan)),
        locum_core::admission::Admitted::Same(same) => panic!("{same:?}"),
    }
}

#[test]
fn a_plan_freezes_model_price_and_successors() {
    let plan = plan_of(json!({"agent": "reader", "task": "Go", "cost_preference": "premium"})).unwrap();
    assert_eq!(plan.model, name("acme", "large"));
    assert_eq!(plan.price.map(|price| price.input), Some(20.0));
    let next: Vec<(&str, bool)> =
        plan.fallback.iter().map(|next| (next.model.id.as_str(), next.price.is_some())).collect();
    assert_eq!(next, [("medium", true), ("unpriced", false), ("small", true)]);
    assert_eq!(plan.receipt.model.requested.as_deref(), Some("the call's hints"));
    let plan = plan_of(json!({"agent": "reader", "task": "Go"})).unwrap();
    assert_eq!((plan.price, plan.fallback.len()), (None, 0));
}

#[test]
fn an_agents_own_list_is_frozen_into_the_plan() {
    let mut world = World::new();
    world.catalogue = catalogue();
    world.add("careful", |agent| {
        agent.locum.fallback_models = Some(vec!["small".to_owned(), "nobody".to_owned()]);
    });
    let plan = world.accept(json!({"agent": "careful", "task": "Go"})).plan;
    assert_eq!(plan.fallback.iter().map(|next| next.model.id.as_str()).collect::<Vec<_>>(), ["small"]);
    assert!(plan.warnings.iter().any(|warning| warning.contains("nobody")), "{:?}", plan.warnings);
}

#[test]
fn hints_that_make_no_sense_are_refused_by_name() {
    let cases = [
        (json!({"complexity": 0}), Code::InvalidRequest, "complexity"),
        (json!({"complexity": 6}), Code::InvalidRequest, "complexity"),
        (json!({"complexity": "hard"}), Code::InvalidRequest, "complexity"),
        (json!({"cost_preference": "cheap"}), Code::InvalidRequest, "cost_preference"),
        (json!({"task_type": "poetry"}), Code::InvalidRequest, "task_type"),
        (json!({"model_scope": " "}), Code::InvalidRequest, "model_scope"),
        (json!({"model_scope": "x".repeat(1000)}), Code::InvalidRequest, "model_scope"),
        (json!({"model_scope": "larg3"}), Code::ModelNotFound, "larg3"),
    ];
    for (hint, code, field) in cases {
        let mut input = json!({"agent": "reader", "task": "Go"});
        input.as_object_mut().unwrap().extend(hint.as_object().unwrap().clone());
        let refusal = plan_of(input).unwrap_err();
        assert_eq!(refusal.code, code, "{hint}");
        assert!(refusal.message.contains(field), "{hint}: {}", refusal.message);
    }
    let refusal = plan_of(json!({"agent": "reader", "task": "Go", "model": "larg"})).unwrap_err();
    assert!(refusal.hint.unwrap().contains("large"));
}
