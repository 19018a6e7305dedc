//! What is sent in every protocol: the whole conversation, byte for byte the same at its beginning, with the blocks
//! that only the model which made them understands.

use locum_core::transcript::{Message, Reply, Stop, ToolCall, ToolOutput, ToolUse};
use locum_core::usage::TokenCount;
use locum_models::Prefix;
use locum_models::providers::{self, Dialect, Protocol};
use serde_json::{Value, json};

use super::speaker::{ALL, Ending, Say, Speaker, event};
use crate::asking::{Question, ask_all, model_in, tools};
use crate::server::{Server, stream};

fn said(text: &str, calls: &[(&str, &str, Value)]) -> Message {
    let call = |(id, name, input): &(&str, &str, Value)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        input: input.clone(),
    };
    let tool_calls: Vec<ToolCall> = calls.iter().map(call).collect();
    let stop = if tool_calls.is_empty() { Stop::End } else { Stop::ToolUse };
    Message::Assistant(Reply { text: text.to_owned(), tool_calls, stop, tokens: TokenCount::default(), opaque: None })
}

fn output(id: &str, output: ToolOutput) -> Message {
    Message::Tool { call_id: id.to_owned(), name: "read".to_owned(), output }
}

/// A conversation with everything that can happen in one.
fn conversation() -> Vec<Message> {
    vec![
        Message::User("Do it. ä\n\"🦀\"".to_owned()),
        said("I look.", &[("x", "read", json!({"path": "a"})), ("y", "functions.read", json!("{oops"))]),
        output("x", ToolOutput::ok("line\n")),
        output("y", ToolOutput::failed("That is not JSON.")),
        said("", &[("x", "read", json!({"path": "b"}))]),
        output("x", ToolOutput::ok("")),
        said("", &[]),
        Message::User("Go on.".to_owned()),
    ]
}

/// The body of a request for a conversation.
async fn sent(speaker: &Speaker, question: &Question, messages: &[Message], prefix: &mut Prefix) -> Vec<u8> {
    sent_in(Dialect::default(), speaker, question, messages, prefix).await
}

async fn sent_in(
    dialect: Dialect,
    speaker: &Speaker,
    question: &Question,
    messages: &[Message],
    prefix: &mut Prefix,
) -> Vec<u8> {
    let answer = speaker.reply(&[Say::Text("Yes")], Ending::Stop);
    let mut server = Server::start(vec![stream(&[answer.as_bytes()])]).await;
    let model = model_in(dialect, speaker.protocol, format!("http://{}{}", server.address, speaker.base));
    ask_all(&model, question, messages, prefix).await.0.unwrap();
    server.received.recv().await.unwrap().body
}

#[tokio::test]
async fn a_turn_only_adds_to_what_was_sent_before() {
    let question = Question { tools: tools(), ..Question::default() };
    for speaker in &ALL {
        let messages = conversation();
        let mut prefix = Prefix::default();
        let mut previous = Vec::new();
        for end in [1, 4, 6, 8] {
            let body = sent(speaker, &question, &messages[..end], &mut prefix).await;
            let fresh = sent(speaker, &question, &messages[..end], &mut Prefix::default()).await;
            assert_eq!(body, fresh, "{} {end}: the same as if it were encoded in one go", speaker.protocol);
            serde_json::from_slice::<Value>(&body).unwrap();
            assert!(body.starts_with(&previous), "{} {end}", speaker.protocol);
            previous = prefix.segments().concat();
        }
        // Small segments are joined; none is ever added beside the turns.
        assert!((1..=4).contains(&prefix.segments().len()), "{}", speaker.protocol);
    }
}

#[tokio::test]
async fn the_whole_conversation_is_sent() {
    let question = Question {
        tools: tools(),
        tool_use: ToolUse::Forbidden,
        notice: Some("Answer now."),
        temperature: Some(0.5),
        ..Question::default()
    };
    for speaker in &ALL {
        let body = sent(speaker, &question, &conversation(), &mut Prefix::default()).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        let text = serde_json::to_string_pretty(&body).unwrap();
        insta::assert_snapshot!(format!("request_{}", speaker.protocol), text);
    }
}

/// Events in which a model thinks before it calls a tool, what of it must be sent back, and where that stands.
fn thinking(protocol: Protocol) -> Option<(Vec<Value>, Value, &'static str)> {
    match protocol {
        Protocol::OpenaiChat => None,
        Protocol::AnthropicMessages => {
            let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
            let delta =
                |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
            let events = vec![
                start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
                delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
                delta(0, json!({"type": "thinking_delta", "thinking": "see."})),
                delta(0, json!({"type": "signature_delta", "signature": "c2lnbmVk"})),
                start(1, json!({"type": "redacted_thinking", "data": "aGlkZGVu"})),
                start(2, json!({"type": "text", "text": ""})),
                delta(2, json!({"type": "text_delta", "text": "I look."})),
                start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}})),
                delta(3, json!({"type": "input_json_delta", "partial_json": "{\"path\":\"a\"}"})),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
                json!({"type": "message_stop"}),
            ];
            let blocks = json!([
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
                {"type": "redacted_thinking", "data": "aGlkZGVu"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
            ]);
            Some((events, blocks, "/messages/1/content"))
        }
        Protocol::OpenaiResponses => {
            let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2lnbmVk"});
            let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                                 "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
            let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "read",
                              "arguments": "{\"path\":\"a\"}"});
            let items = [reasoning, message, call];
            let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
            let mut events: Vec<Value> = items.iter().enumerate().map(done).collect();
            events.push(json!({"type": "response.completed", "response": {"status": "completed", "output": items}}));
            Some((events, json!(items), "/input"))
        }
        Protocol::GoogleGemini => {
            let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
            let call = json!({"functionCall": {"id": "f1", "name": "read", "args": {"path": "a"}},
                              "thoughtSignature": "c2lnbmVk"});
            let events = vec![
                part(json!({"text": "A thought.", "thought": true})),
                part(json!({"text": "I "})),
                part(json!({"text": "look."})),
                part(call.clone()),
                json!({"candidates": [{"finishReason": "STOP"}]}),
            ];
            Some((events, json!([{"text": "I look."}, call]), "/contents/1/parts"))
        }
    }
}

#[tokio::test]
async fn what_only_the_model_understands_is_kept_and_sent_back_to_it_alone() {
    let question = Question { tools: tools(), ..Question::default() };
    for speaker in &ALL {
        let Some((events, blocks, place)) = thinking(speaker.protocol) else { continue };
        let body: String = events.iter().map(event).collect();
        let server = Server::start(vec![stream(&[body.as_bytes()])]).await;
        let task = Message::User("Do it.".to_owned());
        let messages = std::slice::from_ref(&task);
        let reply = ask_all(&speaker.model(&server), &question, messages, &mut Prefix::default()).await.0.unwrap();
        assert_eq!((reply.text.as_str(), reply.tool_calls.len()), ("I look.", 1), "{}", speaker.protocol);
        assert_eq!(reply.stop, Stop::ToolUse);
        let json = serde_json::to_string(&reply).unwrap();
        let reply: Reply = serde_json::from_str(&json).unwrap();

        let id = reply.tool_calls[0].id.clone();
        let messages = [task, Message::Assistant(reply), output(&id, ToolOutput::ok("found"))];
        let body = sent(speaker, &question, &messages, &mut Prefix::default()).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        let sent_back = body.pointer(place).unwrap().as_array().unwrap();
        let blocks = blocks.as_array().unwrap();
        assert!(sent_back.windows(blocks.len()).any(|part| part == blocks), "{}: {body:#}", speaker.protocol);

        let other = Question { model: "other-model", ..question.clone() };
        let body = sent(speaker, &other, &messages, &mut Prefix::default()).await;
        let body = String::from_utf8(body).unwrap();
        assert!(!body.contains("c2lnbmVk") && body.contains("I look."), "{}: {body}", speaker.protocol);
        for stranger in ALL.iter().filter(|stranger| stranger.protocol != speaker.protocol) {
            let body = sent(stranger, &question, &messages, &mut Prefix::default()).await;
            let body = String::from_utf8(body).unwrap();
            assert!(!body.contains("c2lnbmVk") && body.contains("I look."), "{}: {body}", stranger.protocol);
        }
    }
}

#[tokio::test]
async fn effort_is_said_in_the_words_of_each_model() {
    let dialect = |provider: &str| providers::find(provider).unwrap().dialect.clone();
    let cases = [
        (Protocol::AnthropicMessages, "anthropic", "claude-opus-4-8", "high", "/output_config/effort", json!("high")),
        (Protocol::AnthropicMessages, "anthropic", "claude-haiku-4-5", "low", "/thinking/type", Value::Null),
        (Protocol::AnthropicMessages, "anthropic", "claude-opus-4-8", "wild", "/thinking", Value::Null),
        (Protocol::OpenaiResponses, "openai", "gpt-5.4", "HIGH", "/reasoning/effort", json!("high")),
        (Protocol::OpenaiResponses, "openai", "gpt-5.4", "high", "/include/0", json!("reasoning.encrypted_content")),
        (Protocol::OpenaiResponses, "openai", "gpt-4.1", "high", "/reasoning", Value::Null),
        (Protocol::OpenaiResponses, "openai", "gpt-4.1", "high", "/include", Value::Null),
        (Protocol::OpenaiChat, "openai", "gpt-5.4", "low", "/reasoning_effort", json!("low")),
        (Protocol::OpenaiChat, "ollama", "qwen3", "low", "/reasoning_effort", Value::Null),
        (
            Protocol::GoogleGemini,
            "gemini",
            "gemini-3-pro",
            "low",
            "/generationConfig/thinkingConfig/thinkingLevel",
            json!("low"),
        ),
        (
            Protocol::GoogleGemini,
            "gemini",
            "gemini-2.5-flash",
            "low",
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(1024),
        ),
    ];
    for (protocol, provider, model, effort, place, expected) in cases {
        let speaker = ALL.iter().find(|speaker| speaker.protocol == protocol).unwrap();
        let question = Question { model, effort: Some(effort), ..Question::default() };
        let messages = [Message::User("Do it.".to_owned())];
        let body = sent_in(dialect(provider), speaker, &question, &messages, &mut Prefix::default()).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.pointer(place).cloned().unwrap_or_default(), expected, "{model} {effort}: {body}");
    }
}
