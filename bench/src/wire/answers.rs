//! What the server streams: a call of the tool, or a text in many pieces, with the fields that real servers send.

use std::fmt::Write as _;

use locum::models::providers::Protocol;
use serde_json::{Value, json};

use crate::shape::TOOL;

/// A piece of the final answer.
const PIECE: &str = "word ";

/// A turn that calls the tool.
pub(crate) fn tool_call(protocol: Protocol, turn: u32) -> String {
    let (id, page) = (format!("call_{turn}"), format!("{{\"page\":{turn}}}"));
    match protocol {
        Protocol::OpenaiChat => {
            let function = json!({"name": TOOL, "arguments": page});
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            let said = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]});
            chat([said], "tool_calls")
        }
        Protocol::OpenaiResponses => {
            let item = json!({"type": "function_call", "id": "fc", "call_id": id, "name": TOOL, "arguments": page});
            let begun = json!({"type": "function_call", "id": "fc", "call_id": id, "name": TOOL, "arguments": ""});
            let events = [
                json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": page}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            ];
            responses(events, &item)
        }
        Protocol::AnthropicMessages => {
            let block = json!({"type": "tool_use", "id": id, "name": TOOL, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": page});
            messages(&block, [json!({"type": "content_block_delta", "index": 0, "delta": delta})], "tool_use")
        }
        Protocol::GoogleGemini => gemini([json!({"functionCall": {"name": TOOL, "args": {"page": turn}}})]),
    }
}

/// The last turn: a text in so many pieces.
pub(crate) fn final_answer(protocol: Protocol, pieces: u32) -> String {
    let count = pieces as usize;
    match protocol {
        Protocol::OpenaiChat => {
            let piece = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                               "choices": [{"index": 0, "delta": {"content": PIECE}, "finish_reason": null}]});
            chat(std::iter::repeat_n(piece, count), "stop")
        }
        Protocol::OpenaiResponses => {
            let piece = json!({"type": "response.output_text.delta", "sequence_number": 7, "item_id": "msg",
                               "output_index": 0, "content_index": 0, "delta": PIECE, "logprobs": []});
            let text = json!({"type": "output_text", "text": PIECE.repeat(count), "annotations": []});
            let item = json!({"type": "message", "id": "msg", "role": "assistant", "content": [text]});
            let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
            responses(std::iter::repeat_n(piece, count).chain([done]), &item)
        }
        Protocol::AnthropicMessages => {
            let piece = json!({"type": "content_block_delta", "index": 0,
                               "delta": {"type": "text_delta", "text": PIECE}});
            messages(&json!({"type": "text", "text": ""}), std::iter::repeat_n(piece, count), "end_turn")
        }
        Protocol::GoogleGemini => gemini(std::iter::repeat_n(json!({"text": PIECE}), count)),
    }
}

fn chat(said: impl IntoIterator<Item = Value>, reason: &str) -> String {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage});
    let mut stream = String::new();
    said.into_iter().chain([end]).for_each(|event| data(&mut stream, &event));
    stream + "data: [DONE]\n\n"
}

fn responses(said: impl IntoIterator<Item = Value>, item: &Value) -> String {
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let response = json!({"id": "resp", "status": "completed", "output": [item], "usage": usage});
    let begun = json!({"type": "response.created", "response": {"id": "resp", "status": "in_progress"}});
    let end = json!({"type": "response.completed", "response": response});
    let mut stream = String::new();
    [begun].into_iter().chain(said).chain([end]).for_each(|event| named(&mut stream, &event));
    stream
}

fn messages(block: &Value, said: impl IntoIterator<Item = Value>, reason: &str) -> String {
    let message = json!({"id": "msg", "role": "assistant", "content": [], "usage": {"input_tokens": 100}});
    let begun = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    ];
    let end = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ];
    let mut stream = String::new();
    begun.into_iter().chain(said).chain(end).for_each(|event| named(&mut stream, &event));
    stream
}

fn gemini(parts: impl IntoIterator<Item = Value>) -> String {
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let mut stream = String::new();
    for part in parts {
        let content = json!({"role": "model", "parts": [part]});
        let candidate = json!({"index": 0, "content": content});
        data(&mut stream, &json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}));
    }
    let end = json!({"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"});
    data(&mut stream, &json!({"candidates": [end], "usageMetadata": usage, "modelVersion": "m"}));
    stream
}

/// An event with nothing but its data.
fn data(stream: &mut String, event: &Value) {
    // Writing to a text cannot fail.
    write!(stream, "data: {event}\n\n").ok();
}

/// An event whose name is its type.
fn named(stream: &mut String, event: &Value) {
    let name = event["type"].as_str().unwrap_or_default();
    write!(stream, "event: {name}\ndata: {event}\n\n").ok();
}
