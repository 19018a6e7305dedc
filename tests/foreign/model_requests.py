"""What locum sends to model APIs, checked against the types of the vendors' own Python SDKs.

A small server answers in each protocol: first with a tool call, then with a text. Every request that arrives is
validated, so the second one has a call and its result in it.
"""

import http.server
import importlib
import json
import pkgutil
import sys
import threading

import anthropic.types
import openai.types.chat
import openai.types.responses
import pydantic
import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from locum_home import Home

TOOL, INPUT, ANSWER = "read", {"path": "notes.txt"}, "The answer is 42."


def chat(has_result):
    if has_result:
        yield {"choices": [{"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"}]}
        return
    function = {"name": TOOL, "arguments": json.dumps(INPUT)}
    call = {"index": 0, "id": "call_a", "type": "function", "function": function}
    yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


def responses(has_result):
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2lnbmVk"}
    part = {"type": "output_text", "text": ANSWER, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": TOOL, "arguments": json.dumps(INPUT)}
    output = [reasoning, message if has_result else call]
    for index, item in enumerate(output):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {"status": "completed", "output": output}}


def messages(has_result):
    def block(index, start, *deltas):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}

    yield {"type": "message_start", "message": {"role": "assistant", "content": []}}
    yield from block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let me see."},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
    )
    if has_result:
        yield from block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER})
    else:
        start = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}
        yield from block(1, start, {"type": "input_json_delta", "partial_json": json.dumps(INPUT)})
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn" if has_result else "tool_use"}}
    yield {"type": "message_stop"}


def generate(has_result):
    call = {"functionCall": {"id": "f1", "name": TOOL, "args": INPUT}, "thoughtSignature": "c2lnbmVk"}
    part = {"text": ANSWER} if has_result else call
    yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


def check_gemini(body):
    for content in body.pop("contents"):
        gemini.Content.model_validate(content)
    gemini.Content.model_validate(body.pop("systemInstruction"))
    for tool in body.pop("tools"):
        gemini.Tool.model_validate(tool)
    gemini.GenerationConfig.model_validate(body.pop("generationConfig", {}))
    gemini.ToolConfig.model_validate(body.pop("toolConfig", {}))
    assert not body, f"fields that Gemini does not know: {sorted(body)}"


def be_strict(package):
    """Makes every type of an SDK refuse fields that it does not know."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if typing_extensions.is_typeddict(value):
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def exhaust(value):
    """Looks at everything: what a type calls an iterable is only checked when it is walked."""
    if isinstance(value, dict):
        value = value.values()
    if not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for item in value:
            exhaust(item)


def typed(params):
    adapter = pydantic.TypeAdapter(params)
    return lambda body: exhaust(adapter.validate_python(body))


def check_the_checks():
    """A type that refuses nothing proves nothing."""
    task = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    messages = {"model": "m", "max_tokens": 1, "stream": True, "messages": [task]}
    respond = {"model": "m", "stream": True, "input": [{"type": "message", "role": "user", "content": "x"}]}
    cases = [
        ("/messages", messages, {"max_tokens": "many"}),
        ("/messages", messages, {"unknown": 1}),
        ("/messages", messages, {"messages": [{"role": "user", "content": [{"type": "words", "text": "x"}]}]}),
        ("/messages", messages, {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}),
        ("/responses", respond, {"input": [{"type": "function_call_output", "result": "x"}]}),
        ("/chat/completions", {"model": "m", "stream": True, "messages": [task]}, {"messages": [{"role": "tool"}]}),
    ]
    for path, body, change in cases:
        check = PROTOCOLS[path][1]
        check(body)
        try:
            check({**body, **change})
        except pydantic.ValidationError:
            continue
        raise AssertionError(f"{path} takes {change}")


for package in (anthropic.types, openai.types.chat, openai.types.responses):
    be_strict(package)

# By what a path contains: how it is answered, how it is checked, and how a second request is recognised.
PROTOCOLS = {
    "/chat/completions": (chat, typed(CompletionCreateParamsStreaming), '"role":"tool"'),
    "/responses": (responses, typed(ResponseCreateParamsStreaming), '"function_call_output"'),
    "/messages": (messages, typed(MessageCreateParamsStreaming), '"tool_result"'),
    ":streamGenerateContent": (generate, check_gemini, '"functionResponse"'),
}


class Handler(http.server.BaseHTTPRequestHandler):
    problems = []
    checked = []

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        answer, check, mark = next(rows for part, rows in PROTOCOLS.items() if part in self.path)
        try:
            check(json.loads(text))
            Handler.checked.append(self.path)
        except Exception as problem:  # Everything that a type refuses is a finding.
            Handler.problems.append(f"{self.path}: {problem}\n{text}")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in answer(mark in text):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


# The model, and the settings and variables with which it is reached.
CASES = [
    ("openai:some-model", "openai_chat", "OPENAI"),
    ("openai:gpt-5.4", "openai_responses", "OPENAI"),
    ("anthropic:claude-some", "anthropic_messages", "ANTHROPIC"),
    ("gemini:gemini-some", "google_gemini", "GEMINI"),
]


def main(locum):
    check_the_checks()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    for model, protocol, name in CASES:
        provider = model.split(":")[0]
        url = f"{base}/v1" if provider == "openai" else base
        settings = f'[providers.{provider}]\nbase_url = "{url}"\nprotocol = "{protocol}"\n'
        before = len(Handler.checked)
        with Home(locum, settings) as home:
            answer = home.run("What is the answer?", model, {f"{name}_API_KEY": "a-key-for-nobody"})
        assert not Handler.problems, "\n\n".join(Handler.problems)
        assert answer["status"] == "completed" and answer["result"] == ANSWER, answer
        assert len(Handler.checked) - before == 2, f"{protocol}: not a call and an answer, {Handler.checked}"
        print(f"requests {protocol}: passed")
    server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
