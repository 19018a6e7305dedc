//! Tools that the user has made out of commands: `[tools.NAME]` in the settings.

use serde_json::{Value, json};

use crate::commands::{LEVELS, is_possible};
use crate::home::{Home, Ran};

const SETTINGS: &str = r#"
[tools.shout]
description = "Says it louder"
command = ["tr", "a-z", "A-Z"]
repeat = "safe"
timeout = 60

[tools.shout.schema]
type = "object"
required = ["text"]
properties.text.type = "string"

[tools.broken]
description = "Fails"
command = "echo half; echo why >&2; exit 3"

[tools.slow]
description = "Takes its time"
command = "echo begun; sleep 1000"
timeout = 1

[tools.deaf]
description = "Reads nothing, says much"
command = "echo warned >&2; seq 100000"

[tools.missing]
description = "Is not there"
command = ["no-such-program"]
"#;

fn home(settings: &str) -> Home {
    let home = Home::new();
    let config = home.locum_home().join("config");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), settings).unwrap();
    home.write(
        "agents/maker.md",
        "---\nname: maker\ndescription: Makes\ntools: shout, broken, slow, deaf, missing\n---\nGo.\n",
    );
    home
}

fn run(home: &Home, level: &str, calls: &[(&str, Value)]) -> Ran {
    let calls = calls.iter().map(|(name, input)| json!({"tool_calls": [{"name": name, "input": input}]}));
    let replies: Vec<Value> = calls.chain([json!({"text": "done"})]).collect();
    let model = home.script(&json!({ "maker": replies }));
    home.locum(&["run", "maker", "go", "--json", "--sandbox", level, "--agents", "agents", "--model", &model])
}

/// What every call was answered.
fn answered(home: &Home, level: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let ran = run(home, level, calls);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["receipt"]["sandbox"], level);
    let logs = home.locum(&["logs", answer["task_id"].as_str().unwrap(), "--json"]);
    let records = logs.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.to_owned())).collect()
}

#[test]
fn a_command_is_a_tool() {
    for level in LEVELS {
        let home = home(SETTINGS);
        if !is_possible(&home, level) {
            continue;
        }
        let nothing = json!({});
        let calls = [
            ("shout", json!({"text": "hällo"})),
            ("broken", nothing.clone()),
            ("slow", nothing.clone()),
            ("deaf", json!({"much": "x".repeat(100_000)})),
            ("missing", nothing),
        ];
        let told = answered(&home, level, &calls);
        assert_eq!(told[0], "{\"TEXT\":\"HäLLO\"}", "{level}");
        assert_eq!(told[1], "half\n\n[it complained: why]\n[exit code 3]", "{level}");
        assert!(told[2].starts_with("begun\n[timed out after 1 s and was stopped ("), "{level} {}", told[2]);
        assert!(told[3].starts_with("1\n2\n") && told[3].ends_with("\n100000") && told[3].contains("the whole is in"));
        assert!(told[4].contains("no-such-program") && told[4].ends_with("[exit code 127]"), "{level} {}", told[4]);
    }
}

#[test]
fn an_input_that_does_not_fit_its_schema_runs_nothing() {
    let settings = "[tools.mark]\ndescription = \"Marks\"\ncommand = \"cat > marked\"\n[tools.mark.schema]\n\
                    type = \"object\"\nrequired = [\"city\"]\nadditionalProperties = false\n\
                    properties.city = { type = \"string\", enum = [\"Rome\", \"Oslo\"] }\n";
    let home = home(settings);
    home.write("agents/maker.md", "---\nname: maker\ndescription: Makes\ntools: mark\n---\nGo.\n");
    let calls = [
        ("mark", json!({})),
        ("mark", json!({"city": 3})),
        ("mark", json!({"city": "Rom"})),
        ("mark", json!({"city": "Rome", "town": 1})),
        ("mark", json!(["Rome"])),
    ];
    let told = answered(&home, "none", &calls);
    assert!(!home.project().join("marked").exists());
    assert_eq!(
        told,
        [
            "invalid input: `city` is missing",
            "invalid input: `city` must be of the type string, and is of the type number",
            "invalid input: `city` must be one of \"Rome\", \"Oslo\"",
            "invalid input: `town` is no field of it; those are: city",
            "The input must be a JSON object.",
        ]
    );
    assert_eq!(answered(&home, "none", &[("mark", json!({"city": "Oslo"}))]), ["[no output]"]);
    assert!(home.project().join("marked").exists());
}

#[test]
fn the_names_of_command_tools_are_known() {
    let home = home(SETTINGS);
    home.write("agents/typo.md", "---\nname: typo\ndescription: Errs\ntools: shout, shuot\n---\nGo.\n");
    let lint = home.locum(&["agents", "lint", "agents"]);
    assert!(lint.stdout.contains("no tool is called `shuot`"), "{lint:?}");
    assert!(!lint.stdout.contains("no tool is called `shout`"), "{lint:?}");
    let tools = home.locum(&["tools"]);
    assert!(tools.stdout.contains("shout") && tools.stdout.contains("Says it louder"), "{tools:?}");
}

#[test]
fn wrong_settings_are_named_with_their_place() {
    let home = home("[tools.shout]\ndescription = \"Says it louder\"\ncomand = \"x\"\n");
    let ran = home.locum(&["agents", "list"]);
    assert_eq!(ran.code, Some(1));
    let expected = "config.toml:3: unknown setting `tools.shout.comand`; did you mean `command`?";
    assert!(ran.stderr.contains(expected), "{ran:?}");
}
