//! What a model thinks beside its tool calls: kept for those that want it back, and sent to nobody else.

use locum_core::transcript::{Message, Reply, Stop, ToolOutput};
use locum_models::Prefix;
use locum_models::providers::{self, Dialect, Protocol};
use serde_json::{Value, json};

use crate::asking::{Question, ask_all, model_in, tools};
use crate::openai_chat::{delta, finish, text};
use crate::server::{Server, stream};

fn dialect(provider: &str) -> Dialect {
    providers::find(provider).unwrap().dialect.clone()
}

/// What a provider's model replies that thinks, and calls a tool if it is asked to.
async fn thought(provider: &str, calls: bool) -> Reply {
    let call = json!({"index": 0, "id": "call_1", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}});
    let mut events =
        vec![delta(&json!({"reasoning_content": "Let me "})), delta(&json!({"reasoning_content": "see."}))];
    events.push(if calls { delta(&json!({"tool_calls": [call]})) } else { text("Done.") });
    events.push(finish(if calls { "tool_calls" } else { "stop" }));
    let server = Server::start(vec![stream(&[events.concat().as_bytes()])]).await;
    let model = model_in(dialect(provider), Protocol::OpenaiChat, server.base_url());
    let question = Question { model: "deepseek-reasoner", tools: tools(), ..Question::default() };
    let (reply, shown) =
        ask_all(&model, &question, &[Message::User("Do it.".to_owned())], &mut Prefix::default()).await;
    assert!(!shown.contains("see"), "thoughts are not shown: {shown}");
    reply.unwrap()
}

/// The messages that a provider's model of this name is sent after a reply with a tool call.
async fn sent(provider: &str, model: &'static str, reply: &Reply) -> Vec<Value> {
    let output =
        Message::Tool { call_id: "call_1".to_owned(), name: "read".to_owned(), output: ToolOutput::ok("found") };
    let messages = [Message::User("Do it.".to_owned()), Message::Assistant(reply.clone()), output];
    let mut server = Server::start(vec![stream(&[[text("Done."), finish("stop")].concat().as_bytes()])]).await;
    let asked = model_in(dialect(provider), Protocol::OpenaiChat, server.base_url());
    let question = Question { model, tools: tools(), ..Question::default() };
    ask_all(&asked, &question, &messages, &mut Prefix::default()).await.0.unwrap();
    let body: Value = serde_json::from_slice(&server.received.recv().await.unwrap().body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_a_model_thought_beside_a_call_is_sent_back_where_it_is_wanted() {
    let reply = thought("deepseek", true).await;
    assert_eq!((reply.text.as_str(), reply.tool_calls.len(), &reply.stop), ("", 1, &Stop::ToolUse));
    // It is part of the log, so another process sends it as well.
    let reply: Reply = serde_json::from_value(serde_json::to_value(&reply).unwrap()).unwrap();
    let messages = sent("deepseek", "deepseek-reasoner", &reply).await;
    assert_eq!(messages[2]["reasoning_content"], "Let me see.", "{messages:?}");
    for (provider, model) in [("deepseek", "deepseek-chat"), ("openai", "gpt-4.1"), ("ollama", "qwen3")] {
        let messages = sent(provider, model, &reply).await;
        assert!(!format!("{messages:?}").contains("Let me"), "{provider}: {messages:?}");
    }
}

#[tokio::test]
async fn what_nobody_wants_back_is_not_kept() {
    for (provider, calls) in [("deepseek", false), ("openai", true), ("ollama", true)] {
        let reply = thought(provider, calls).await;
        assert_eq!(reply.opaque, None, "{provider}");
    }
}
