//! A task whose model needs a key goes on only where there is one.

use serde_json::json;

use crate::home::{Home, kill_now};
use crate::model_server::{Answer, ModelServer};

const KEY: &str = "sk-test-0123456789";

#[test]
fn an_orphan_without_its_key_waits_and_says_so() {
    let server = ModelServer::start([Answer::Hold]);
    let mut home = Home::new();
    home.agent("plain", "tools: []", "You are plain.");
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.json(&["spawn", "plain", "x"]);
    server.wait_for(1);
    let workers = home.workers();
    assert_eq!(workers.len(), 1);
    kill_now(workers[0]);
    home.wait_for_no_worker();

    home.unset("OPENAI_API_KEY");
    home.unset("OPENAI_BASE_URL");
    for _ in 0..3 {
        let status = home.json(&["status", "t_01"]);
        assert_eq!(status["status"], "running");
        assert!(status["activity"].as_str().unwrap().contains("OPENAI_API_KEY"), "{status}");
        assert_eq!(home.workers(), [0_u32; 0], "nobody can go on with it here");
    }
    let (waited, code) = home.answer(&["wait", "t_01", "--timeout", "0"]);
    assert_eq!((&waited["timed_out"], code), (&json!(true), 124));
    assert_eq!(server.received().len(), 1);

    server.answer_next(Answer::text("at last"));
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.json(&["status"]);
    assert_eq!(home.json(&["wait", "t_01"])["tasks"][0]["status"], "completed");
    let collected = home.json(&["collect", "t_01"]);
    assert_eq!((&collected["result"], &collected["turns_used"]), (&json!("at last"), &json!(1)));
    assert_eq!(server.received().len(), 2);
    home.wait_for_no_worker();
}

/// The first model gave up and another one answers: what counts is the key of that one.
#[test]
fn an_orphan_needs_the_key_of_the_model_that_answers_now() {
    let server = ModelServer::start([Answer::error(401, "invalid_api_key", "wrong"), Answer::Hold]);
    let mut home = Home::new();
    home.agent("plain", "tools: []", "You are plain.");
    let url = server.base_url();
    let provider =
        format!("[providers.acme]\nbase_url = {url:?}\nprotocol = \"openai_chat\"\nkey_variable = \"ACME_API_KEY\"\n");
    let config = home.own().join("config");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), format!("[models]\nfallback = [\"acme:big\"]\n{provider}")).unwrap();
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &url);
    home.set("ACME_API_KEY", "acme-test-0123456789");
    home.set("LOCUM_MODEL", "openai:gpt-5.4-mini");
    home.json(&["spawn", "plain", "x"]);
    server.wait_for(2);
    kill_now(home.workers()[0]);
    home.wait_for_no_worker();

    home.unset("ACME_API_KEY");
    let status = home.json(&["status", "t_01"]);
    assert!(status["activity"].as_str().unwrap().contains("ACME_API_KEY"), "{status}");
    assert_eq!(home.workers(), [0_u32; 0], "nobody can go on with it here");

    server.answer_next(Answer::text("at last"));
    home.set("ACME_API_KEY", "acme-test-0123456789");
    home.unset("OPENAI_API_KEY");
    home.json(&["status"]);
    assert_eq!(home.json(&["wait", "t_01"])["tasks"][0]["status"], "completed");
    assert_eq!(home.json(&["collect", "t_01"])["result"], "at last");
    assert_eq!(server.received().len(), 3);
    home.wait_for_no_worker();
}
