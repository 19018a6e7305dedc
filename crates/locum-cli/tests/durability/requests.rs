//! What a model's API receives.

use serde_json::{Value, json};

use crate::home::Home;
use crate::model_server::{Answer, ModelServer, Received};

/// What every subagent is told.
const SUFFIX: &str = "You are a subagent. Keep your final response concise (under 1000 tokens).
Write detailed findings to shared context rather than including them
in your response. Your response will be returned to the orchestrator
as a summary of your work.";

fn home_at(server: &ModelServer) -> Home {
    let mut home = Home::new();
    home.set("OPENAI_API_KEY", "sk-test-0123456789");
    home.set("OPENAI_BASE_URL", &server.base_url());
    home
}

fn tool_names(request: &Received) -> Vec<&str> {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_task_is_its_prompt_its_text_and_its_tools_and_the_last_turn_can_only_answer() {
    let server = ModelServer::start([Answer::Call("think", json!({"thought": "hm"})), Answer::text("done")]);
    let home = home_at(&server);
    home.agent("plain", "tools: think, ls\nmaxTurns: 2", "You are plain.\n\nAnd brief.");
    let answer = home.json(&["run", "plain", "Count the files.", "--model", "openai:some-model"]);
    assert_eq!((&answer["result"], &answer["turns_used"]), (&json!("done"), &json!(2)));

    let received = server.received();
    let [first, last] = received.as_slice() else { panic!("{received:?}") };
    for request in [first, last] {
        let length: usize = request.header("content-length").unwrap().parse().unwrap();
        assert!(length > 0 && request.header("transfer-encoding").is_none(), "{}", request.head);
        assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.header("authorization"), Some("Bearer sk-test-0123456789"));
        assert_eq!(request.body["model"], "some-model");
        let mut names = tool_names(request);
        names.sort_unstable();
        assert_eq!(names, ["ls", "think"]);
    }
    let system = format!(
        "You are plain.\n\nAnd brief.\n\n{SUFFIX}\n\nYou have at most 2 turns (each reply is one); in the last one you can only answer."
    );
    let opening = json!([{"role": "system", "content": system}, {"role": "user", "content": "Count the files."}]);
    assert_eq!(first.body["messages"], opening);
    assert_eq!(first.body["tool_choice"], Value::Null);

    let messages = last.body["messages"].as_array().unwrap();
    assert_eq!(messages[..2], opening.as_array().unwrap()[..], "what was sent before is sent again");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(last.body["tool_choice"], "none");
    let notice = messages[4]["content"].as_str().unwrap();
    assert!(notice.contains("last turn"), "{notice}");
}

#[test]
fn an_empty_tool_set_is_no_tools() {
    let server = ModelServer::start([Answer::text("one"), Answer::text("two")]);
    let home = home_at(&server);
    home.agent("bare", "tools: []", "You are bare.");
    let answers = home.calls("x", &[
        json!({"action": "define", "name": "plain", "description": "For a test", "system_prompt": "You are plain."}),
        json!({"action": "run", "agent": "plain", "task": "x"}),
        json!({"action": "run", "agent": "bare", "task": "x"}),
    ]);
    assert_eq!((&answers[1]["result"], &answers[2]["result"]), (&json!("one"), &json!("two")), "{answers:?}");
    for request in server.received() {
        let body = request.body.as_object().unwrap();
        assert!(!body.contains_key("tools") && !body.contains_key("tool_choice"), "{body:?}");
    }
}

#[test]
fn a_tool_that_was_not_granted_is_neither_offered_nor_run() {
    let server = ModelServer::start([Answer::Call("ls", json!({})), Answer::text("done")]);
    let home = home_at(&server);
    home.agent("plain", "tools: think", "You are plain.");
    std::fs::write(home.project().join("canary.txt"), "").unwrap();
    let answer = home.json(&["run", "plain", "x"]);
    assert_eq!(answer["usage"]["denials"], 1);
    let received = server.received();
    assert_eq!(tool_names(&received[0]), ["think"]);
    let told = received[1].body["messages"][3]["content"].as_str().unwrap();
    assert!(told.contains("no tool named `ls`") && !told.contains("canary"), "{told}");
}

#[test]
fn an_empty_set_of_tools_gives_no_tools_whatever_emptied_it() {
    let cases = [
        ("none-named", "tools: []"),
        ("all-denied", "tools: read, ls\ndisallowedTools: read, ls"),
        ("not-reading", "tools: write, bash\nreadonly: true"),
        ("not-there", "tools: Teleport"),
    ];
    let server = ModelServer::start(cases.map(|_| Answer::text("done")));
    let home = home_at(&server);
    for (name, fields) in cases {
        home.agent(name, fields, "You have nothing.");
        let answer = home.json(&["run", name, "Go.", "--model", "openai:some-model"]);
        assert_eq!(answer["receipt"]["tools"]["effective"], json!([]), "{name}: {answer}");
        let sent = server.received().pop().unwrap();
        assert_eq!((sent.body.get("tools"), sent.body.get("tool_choice")), (None, None), "{name}: {}", sent.body);
        let dropped = answer["receipt"]["tools"]["dropped"].as_array().unwrap();
        assert_eq!(dropped.iter().any(|tool| tool["name"] == "Teleport"), name == "not-there", "{answer}");
    }
}
