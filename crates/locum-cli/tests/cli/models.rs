//! Models at the command line: what is known, what would be chosen, who answers when one cannot.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// Two models of the user's own, which no change of the built-in catalogue moves.
const OWN: &str = r#"
[[model]]
provider = "openai"
id = "test-small"
aliases = ["tiny"]
price = { input = 0.1, output = 0.2 }
ratings = { code = 2, vision = 0, text = 2 }

[[model]]
provider = "openai"
id = "test-large"
price = { input = 10.0, output = 20.0 }
ratings = { code = 5, vision = 5, text = 5 }
supports = { vision = true }
"#;

fn with_key() -> Home {
    let home = Home::new().with("OPENAI_API_KEY", "sk-of-a-test-0123456789");
    write_config(&home, "catalogue.toml", OWN);
    home
}

fn write_config(home: &Home, name: &str, text: &str) {
    let directory = home.locum_home().join("config");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
}

fn json_of(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn models_are_listed_with_what_they_cost_and_whether_they_can_be_used() {
    let usable = |home: &Home| -> Vec<(String, bool)> {
        let listed = json_of(&home.locum(&["models", "list", "--json"]));
        let models = listed["models"].as_array().unwrap().iter();
        let line = |model: &Value| (model["model"].as_str().unwrap().to_owned(), model["usable"].as_bool().unwrap());
        models.map(line).collect()
    };
    let without = usable(&Home::new());
    assert!(without.contains(&("offline".to_owned(), true)), "{without:?}");
    assert!(without.iter().filter(|(name, _)| name.starts_with("openai:")).all(|(_, usable)| !usable), "{without:?}");
    let with = usable(&with_key());
    assert!(with.contains(&("openai:test-small".to_owned(), true)), "{with:?}");
    let table = with_key().locum(&["models", "list"]).stdout;
    let line = table.lines().find(|line| line.contains("test-small")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["openai:test-small", "yes", "0.1", "0.2", "?", "2/0/2", "tiny"]);
}

#[test]
fn a_model_is_shown_by_any_of_its_names_and_an_unknown_one_suggests_the_nearest() {
    let home = with_key();
    for name in ["tiny", "test-small", "openai:test-small", "openai/test-small"] {
        let shown = json_of(&home.locum(&["models", "show", name, "--json"]));
        assert_eq!(shown["model"], "openai:test-small");
        assert_eq!(shown["price"]["output"], 0.2);
        assert_eq!(shown["price"]["cache_read"], 0.1, "a cache without a price costs what input costs");
    }
    let ran = home.locum(&["models", "show", "test-smal"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("MODEL_NOT_FOUND") && ran.stderr.contains("test-small"), "{}", ran.stderr);
}

#[test]
fn routing_is_explained() {
    let home = with_key();
    let cases = [
        (vec!["complexity=1", "cost_preference=eco"], "openai:test-small"),
        (vec!["complexity=4", "cost_preference=eco"], "openai:test-large"),
        (vec!["complexity=1", "cost_preference=premium"], "openai:test-large"),
        (vec!["task_type=vision"], "openai:test-large"),
        (vec!["complexity=2"], "openai:test-small"),
    ];
    for (hints, expected) in cases {
        let mut arguments = vec!["models", "route", "Do it", "--json", "--hint", "model_scope=test-"];
        for hint in &hints {
            arguments.extend(["--hint", hint]);
        }
        let routed = json_of(&home.locum(&arguments));
        assert_eq!(routed["model"], expected, "{hints:?}: {routed}");
        assert_eq!(routed["candidates"][0]["model"], expected);
        assert!(routed["candidates"][0]["score"].as_f64().unwrap() <= 100.0);
        assert!(routed["passed_over"].as_array().unwrap().len() > 1, "{routed}");
    }
    let text = home.locum(&["models", "route", "Find the bug", "--hint", "model_scope=test-"]).stdout;
    assert!(text.starts_with("openai:test-small\n"), "{text}");
    assert!(text.contains("code by the task's words, complexity 1 by the task's words"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = with_key();
    let cases = [
        (vec!["models", "route", "x", "--hint", "speed=1"], 2, "no hint is called `speed`"),
        (vec!["models", "route", "x", "--hint", "complexity"], 2, "KEY=VALUE"),
        (vec!["run", "explore", "x", "--complexity", "9"], 2, "from 1 to 5"),
        (vec!["run", "explore", "x", "--cost-preference", "cheap"], 2, "eco, balanced, premium"),
        (vec!["models", "route", "x", "--hint", "model_scope=zebra"], 1, "MODEL_NOT_FOUND"),
        (vec!["run", "explore", "x", "--model-scope", "zebra"], 1, "MODEL_NOT_FOUND"),
    ];
    for (arguments, code, expected) in cases {
        let ran = home.locum(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_broken_catalogue_or_list_is_told_with_its_place() {
    let cases = [
        ("catalogue.toml", "[[model]]\nprovider = \"nobody\"\nid = \"x\"\n", "catalogue.toml:1:1: no provider"),
        ("catalogue.toml", "[[model]]\nprovider = \"openai\"\nid = \"x\"\nprise = 1\n", "catalogue.toml:4:1: unknown"),
        ("config.toml", "[models]\nfallback = [\"gtp\"]\n", "the model `gtp` cannot be used"),
        ("config.toml", "[routing]\nprimary_type = \"poetry\"\n", "config.toml:2: `routing.primary_type`"),
    ];
    for (file, text, expected) in cases {
        let home = Home::new();
        write_config(&home, file, text);
        let ran = home.locum(&["models", "list"]);
        assert_eq!(ran.code, Some(1), "{text}");
        assert!(ran.stderr.contains(expected), "{text}: {}", ran.stderr);
    }
}

#[test]
fn keywords_of_agent_files_route_in_any_case_and_resolve_to_a_script() {
    let home = with_key();
    for (name, model) in [("thrifty", "AUTO-Cheap"), ("lavish", "auto-premium"), ("lost", "no-such-model")] {
        let text = format!("---\nname: {name}\ndescription: d\nmodel: {model}\n---\nYou help.\n");
        home.write(&format!("agents/{name}.md"), &text);
    }
    let models = |arguments: &[&str]| -> Vec<String> {
        let listed = json_of(&home.locum(&[&["agents", "list", "--json", "--agents", "agents"], arguments].concat()));
        let agents = listed["agents"].as_array().unwrap().clone();
        let model = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap()["model"].clone();
        ["thrifty", "lavish", "lost"].map(|name| model(name).as_str().unwrap().to_owned()).to_vec()
    };
    let routed = models(&[]);
    assert_eq!(routed[0], "openai:test-small", "the cheapest of all that can do an easy task");
    assert_ne!(routed[1], routed[0]);
    let script = home.script(&json!({"*": [{"text": "done"}]}));
    let run = |agent: &str| {
        let input = json!({"action": "run", "agent": agent, "task": "Go"}).to_string();
        let arguments = ["call", "--agents", "agents", "--model", &script, "subagent", &input];
        json_of(&home.locum(&arguments))
    };
    for agent in ["thrifty", "lavish"] {
        assert_eq!(run(agent)["receipt"]["model"]["effective"], script.as_str());
    }
    let lost = run("lost");
    assert_eq!(lost["receipt"]["model"]["effective"], script.as_str());
    assert!(lost["warnings"].to_string().contains("no-such-model"), "{lost}");
}

#[test]
fn hints_of_a_call_are_taken_by_every_form_and_resolve_to_a_script() {
    let home = Home::new();
    let script = home.script(&json!({"*": [{"text": "done"}]}));
    let hints = json!({"cost_preference": "eco", "task_type": "code", "complexity": 2, "model_scope": "x"});
    let entry = |extra: Value| {
        let mut entry = json!({"agent": "explore", "task": "Go"});
        entry.as_object_mut().unwrap().extend(hints.as_object().unwrap().clone());
        entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        entry
    };
    let inputs = [
        entry(json!({"action": "spawn"})),
        entry(json!({"action": "run"})),
        json!({"action": "parallel", "tasks": [entry(json!({}))]}),
        json!({"action": "chain", "tasks": [entry(json!({}))]}),
    ];
    for input in inputs {
        let answer = json_of(&home.locum(&["call", "--model", &script, "subagent", &input.to_string()]));
        assert!(answer.get("error").is_none(), "{answer}");
    }
    let flags = ["--cost-preference", "eco", "--task-type", "code", "--complexity", "2", "--model-scope", "x"];
    for verb in [&["run", "explore", "Go"][..], &["parallel", "explore=Go"], &["chain", "explore=Go"]] {
        let ran = home.locum(&[verb, &["--json", "--model", &script], &flags].concat());
        assert_eq!(ran.code, Some(0), "{verb:?}: {}", ran.stderr);
        assert!(ran.stdout.contains("its hints are not used"), "{verb:?}: {}", ran.stdout);
    }
}

/// A script of its own for each name.
fn script(home: &Home, name: &str, reply: &Value) -> String {
    let path = home.root().join(name);
    std::fs::write(&path, json!({"agents": {"*": [reply]}}).to_string()).unwrap();
    format!("scripted:{}", path.display())
}

#[test]
fn another_model_answers_only_where_a_list_says_so_and_never_silently() {
    let home = Home::new();
    let first = script(&home, "first.json", &json!({"error": {"kind": "auth", "message": "the key is wrong"}}));
    let second = script(&home, "second.json", &json!({"error": {"kind": "not_found", "message": "no such model"}}));
    let third = script(&home, "third.json", &json!({"text": "done", "usage": {"input_tokens": 5, "output_tokens": 7}}));
    let arguments = ["run", "explore", "Go", "--json", "--model", &first];

    let alone = home.locum(&arguments);
    assert_eq!(alone.code, Some(1));
    assert!(alone.stdout.contains("Model API error: the key is wrong"), "{}", alone.stdout);

    write_config(&home, "config.toml", &format!("[models]\nfallback = [{second:?}, {third:?}]\n"));
    let answer = json_of(&home.locum(&arguments));
    assert_eq!((&answer["result"], &answer["turns_used"]), (&json!("done"), &json!(1)));
    let model = &answer["receipt"]["model"];
    assert_eq!((&model["requested"], &model["effective"]), (&json!(first), &json!(third)));
    let told = format!("{third} answered in the place of {second}: no such model");
    assert!(model["why"].as_str().unwrap().ends_with(&told), "{model}");
    assert!(answer["warnings"].to_string().contains(&told), "{answer}");
    let log = home.locum(&["logs", answer["task_id"].as_str().unwrap()]).stdout;
    assert!(log.contains(&format!("{second} takes the place of {first}: the key is wrong")), "{log}");

    let overflow = script(&home, "first.json", &json!({"error": {"kind": "context_overflow", "message": "too long"}}));
    let ran = home.locum(&["run", "explore", "Go", "--json", "--model", &overflow]);
    assert_eq!(ran.code, Some(1), "another model does not help: {}", ran.stdout);
}

#[test]
fn servers_say_which_models_they_have_when_they_are_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).unwrap();
        let body = r#"{"object":"list","data":[{"id":"llama-9"},{"id":"tiny-1"}]}"#;
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let home = Home::new().with("OPENAI_BASE_URL", &url);
    let probed = json_of(&home.locum(&["models", "probe", "--json"]));
    let servers = probed["servers"].as_array().unwrap();
    let own = servers.iter().find(|server| server["url"] == url).unwrap();
    assert_eq!(own["models"], json!(["llama-9", "tiny-1"]));
    assert!(server.join().unwrap().starts_with("GET /v1/models HTTP/1.1"));
}
