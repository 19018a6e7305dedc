//! Settings, as a user meets them at the command line.

use serde_json::{Value, json};

use crate::home::Home;

fn with_file(text: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir(home.own().join("config")).unwrap();
    std::fs::write(home.own().join("config/config.toml"), text).unwrap();
    home
}

#[test]
fn what_is_wrong_in_the_file_is_named_with_its_line() {
    let cases = [
        (
            "\n[limits]\nmax_runing = 1\n",
            "config.toml:3: unknown setting `limits.max_runing`; did you mean `limits.max_running`?",
        ),
        ("[limits]\nmax_depth = 6\n", "config.toml:2: `limits.max_depth` is 6; it must be from 1 to 5"),
        ("\n\nmodel = 3\n", "config.toml:3: `model` must be a text in quotes"),
        ("model = \"offline\"\n[limits\n", "config.toml:2: "),
    ];
    for (text, expected) in cases {
        let home = with_file(text);
        for arguments in [vec!["config", "show"], vec!["status"], vec!["run", "explore", "x"]] {
            let output = home.output(&arguments);
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(told.contains(expected), "{arguments:?}: {told}");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}");
        }
    }
}

#[test]
fn every_value_names_its_origin() {
    let mut home = with_file("[limits]\nmax_running = 7\nmax_turns = 30\n");
    home.set("LOCUM_MAX_RUNNING", "9");
    let shown = home.json(&["config", "show", "--model", "offline"]);
    let setting = |name: &str| {
        let all = shown["settings"].as_array().unwrap().iter();
        let found = all.filter(|setting| setting["name"] == name).collect::<Vec<&Value>>();
        assert_eq!(found.len(), 1, "{name}");
        (found[0]["value"].clone(), found[0]["origin"].as_str().unwrap().to_owned())
    };
    assert_eq!(setting("limits.max_running"), (json!(9), "$LOCUM_MAX_RUNNING".to_owned()));
    let (value, origin) = setting("limits.max_turns");
    assert_eq!(value, 30);
    assert!(origin.ends_with("config/config.toml"), "{origin}");
    assert_eq!(setting("limits.max_depth"), (json!(1), "default".to_owned()));
    assert_eq!(setting("model"), (json!("offline"), "--model".to_owned()));
    for line in ["limits.max_running", "$LOCUM_MAX_RUNNING", "limits.max_depth", "default"] {
        let output = home.output(&["config", "show"]);
        assert!(String::from_utf8(output.stdout).unwrap().contains(line), "{line}");
    }
}

#[test]
fn a_variable_that_cannot_be_used_is_named() {
    let mut home = Home::new();
    home.set("LOCUM_MAX_TURNS", "many");
    let output = home.output(&["status"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("$LOCUM_MAX_TURNS: `limits.max_turns` must be a whole number, not `many`"), "{told}");
}
