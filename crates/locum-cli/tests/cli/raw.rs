//! A client of `locum mcp` that writes bytes and reads lines: what no well-behaved client would do can be tried.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::home::{Home, PATIENCE};

/// Notifications that come between any others.
const ASIDES: [&str; 2] = ["notifications/resources/list_changed", "notifications/tasks/status"];

/// A connection to `locum mcp`, not yet opened.
pub(crate) struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
}

/// How a connection ended.
pub(crate) struct End {
    /// What was said after the client had left.
    pub(crate) messages: Vec<Value>,
    pub(crate) code: Option<i32>,
    pub(crate) took: Duration,
}

impl Raw {
    /// Starts a server. Everything on its standard output must be JSON-RPC.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&["mcp"]);
        let mut child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
                assert_eq!(message["jsonrpc"], "2.0", "{message}");
                // Told of what calls make, at any time; who waits for it listens over HTTP.
                if ASIDES.iter().any(|method| message["method"] == *method) {
                    continue;
                }
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, input, messages }
    }

    /// Starts a server in the session `test` and opens the connection.
    pub(crate) fn open(home: &Home, model: &str) -> Self {
        let mut raw = Self::start(home, &["--model", model, "--session", "test"]);
        raw.hello();
        raw
    }

    pub(crate) fn hello(&mut self) {
        let client = json!({"name": "raw", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.ask(&json!("hello"), "initialize", &params);
        assert_eq!(self.next()["result"]["serverInfo"]["name"], "locum");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn ask(&mut self, id: &Value, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Calls a tool and does not wait for the answer.
    pub(crate) fn call(&mut self, id: u32, tool: &str, input: &Value) {
        self.ask(&json!(id), "tools/call", &json!({"name": tool, "arguments": input}));
    }

    /// Calls a tool, asks for progress under `token`, and does not wait for the answer.
    pub(crate) fn call_watched(&mut self, id: u32, token: &str, input: &Value) {
        let meta = json!({"progressToken": token});
        self.ask(&json!(id), "tools/call", &json!({"name": "subagent", "arguments": input, "_meta": meta}));
    }

    /// The next message of any kind.
    pub(crate) fn next(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).unwrap()
    }

    /// The structured answer to a call; nothing else may come before it.
    pub(crate) fn answer(&self, id: u32) -> Value {
        let message = self.next();
        assert_eq!(message["id"], id, "{message}");
        message["result"]["structuredContent"].clone()
    }

    /// Calls `subagent` and waits for the answer.
    pub(crate) fn subagent(&mut self, id: u32, input: &Value) -> Value {
        self.call(id, "subagent", input);
        self.answer(id)
    }

    /// Nothing was said that was not read: the next message is the answer to this.
    pub(crate) fn assert_silent(&mut self) {
        self.ask(&json!("silent"), "ping", &json!({}));
        assert_eq!(self.next(), json!({"jsonrpc": "2.0", "id": "silent", "result": {}}));
    }

    /// Leaves, and waits until the server has ended.
    pub(crate) fn leave(mut self) -> End {
        let left = Instant::now();
        drop(self.input.take());
        let mut messages = Vec::new();
        loop {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(message) => messages.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGKILL).unwrap();
                    panic!("the server does not end");
                }
            }
        }
        let code = self.child.wait().unwrap().code();
        End { messages, code, took: left.elapsed() }
    }
}
