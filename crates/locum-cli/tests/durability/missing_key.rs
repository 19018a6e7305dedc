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
