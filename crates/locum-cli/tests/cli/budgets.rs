//! Money at the command line: the flag, the field and the settings, and what they refuse.

use serde_json::{Value, json};

use crate::home::Home;

fn home() -> (Home, String) {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "Done.", "usage": {"input_tokens": 10, "output_tokens": 5}}]}));
    (home, model)
}

#[test]
fn an_amount_is_refused_where_nobody_knows_the_price() {
    let (home, model) = home();
    let ran = home.locum(&["run", "--model", &model, "--max-cost", "0.5", "--json", "explore", "Go."]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["error"]), (Some(1), &json!("INVALID_REQUEST")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("is not known, so that max_cost_usd cannot be kept"));
    assert_eq!(answer["hint"], "bound it with max_input_tokens and max_output_tokens");
    // The defaults do not apply, and the cost is left out.
    let ran = home.locum(&["run", "--model", &model, "--json", "explore", "Go."]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, answer["usage"].get("cost_usd")), (Some(0), None), "{answer}");
}

#[test]
fn an_amount_that_is_none_is_refused() {
    let (home, model) = home();
    for (amount, code) in [("-1", 1), ("0", 1), ("NaN", 1), ("inf", 1), ("much", 2), ("", 2)] {
        let flag = format!("--max-cost={amount}");
        let ran = home.locum(&["run", "--model", &model, &flag, "explore", "Go."]);
        assert_eq!(ran.code, Some(code), "{amount}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
    let entries = [json!(-0.5), json!(f64::INFINITY), json!("1"), json!([1]), json!(0)];
    let lines: Vec<u8> = entries
        .iter()
        .flat_map(|amount| {
            let input = json!({"action": "spawn", "agent": "explore", "task": "t", "max_cost_usd": amount});
            format!("{}\n", json!({"tool": "subagent", "input": input})).into_bytes()
        })
        .collect();
    let errors: Vec<Value> = home.call(&model, &lines).into_iter().map(|answer| answer["error"].clone()).collect();
    let invalid = "INVALID_REQUEST";
    // JSON has no infinity: it is written as null, which is the same as leaving the field out.
    assert_eq!(json!(errors), json!([invalid, null, invalid, invalid, "BUDGET_EXCEEDED"]));
}

#[test]
fn settings_name_an_amount_or_spell_unlimited() {
    let shown = |value: Option<&str>| {
        let home = match value {
            Some(value) => Home::new().with("LOCUM_MAX_COST_USD", value),
            None => Home::new(),
        };
        let ran = home.locum(&["config", "show"]);
        let line = ran.stdout.lines().find(|line| line.contains("max_cost_usd")).map(str::to_owned);
        (ran.code, line.unwrap_or(ran.stderr))
    };
    for (value, code, text) in [
        (None, 0, "1.0"),
        (Some("unlimited"), 0, "unlimited"),
        (Some("0.25"), 0, "0.25"),
        (Some("none"), 1, "must be an amount of US dollars or \"unlimited\", not `none`"),
        (Some("-1"), 1, "must be an amount of US dollars or \"unlimited\""),
    ] {
        let (found, line) = shown(value);
        assert_eq!(found, Some(code), "{value:?}: {line}");
        assert!(line.contains(text), "{value:?}: {line}");
    }
}
