//! A client of MCP over HTTP that writes its own requests: with a session in the older era, alone in the newer one.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::served::Served;

/// The newest version that opens a session, and the one whose requests stand alone.
pub(crate) const WITH_SESSION: &str = "2025-11-25";
pub(crate) const ALONE: &str = "2026-07-28";

/// A client and where it is.
pub(crate) struct Visit<'a> {
    server: &'a Served,
    path: String,
    version: &'static str,
    /// Lines that every head has.
    lines: String,
    /// What the client says that it can do.
    capabilities: Value,
    /// Requests so far; each is named after its number.
    count: Cell<u64>,
}

/// A stream of messages.
pub(crate) struct Messages {
    lines: BufReader<TcpStream>,
    pub(crate) status: u16,
    pub(crate) head: String,
}

impl Messages {
    fn open(stream: TcpStream) -> Self {
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        Self { lines, status: head.split(' ').nth(1).unwrap().parse().unwrap(), head }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The next message; none at the end. Sizes of chunks and signs of life are passed over.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let data = line.trim_end().strip_prefix("data:").map(str::trim_start).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// What is left, as it came.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        text
    }

    /// All messages to the end, of which the last is the answer.
    pub(crate) fn all(mut self) -> Vec<Value> {
        if self.header("content-type") == Some("application/json") {
            return vec![serde_json::from_str(&self.text()).unwrap()];
        }
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl<'a> Visit<'a> {
    /// A client whose requests stand alone.
    pub(crate) fn alone(server: &'a Served, path: &str, further: &str) -> Self {
        let (path, lines, capabilities) = (path.to_owned(), further.to_owned(), json!({}));
        Self { server, path, version: ALONE, lines, capabilities, count: Cell::new(0) }
    }

    /// A client that has opened a session, and what it was told.
    pub(crate) fn open(server: &'a Served, path: &str, further: &str, capabilities: &Value) -> (Self, Value) {
        let (path, lines) = (path.to_owned(), further.to_owned());
        let mut visit =
            Self { server, path, version: WITH_SESSION, lines, capabilities: json!({}), count: Cell::new(0) };
        let about = json!({"name": "test", "version": "0"});
        let params = json!({"protocolVersion": WITH_SESSION, "capabilities": capabilities, "clientInfo": about});
        let messages = visit.start("initialize", params);
        assert_eq!(messages.status, 200, "{}", messages.head);
        let session = messages.header("locum-session").unwrap().to_owned();
        let id = messages.header("mcp-session-id").unwrap().to_owned();
        visit.lines.push_str(&format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {WITH_SESSION}\r\n"));
        let mut result = messages.all().pop().unwrap()["result"].take();
        assert_eq!(visit.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
        result["session"] = json!(session);
        (visit, result)
    }

    /// The same client, able to do more.
    pub(crate) fn with(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sends one message.
    pub(crate) fn say(&self, message: &Value) -> Messages {
        Messages::open(self.write(message))
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = self.server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn write(&self, message: &Value) -> TcpStream {
        let body = message.to_string();
        let mut lines = self.lines.clone();
        if self.version == ALONE {
            let method = message["method"].as_str().unwrap_or_default();
            lines.push_str(&format!("MCP-Protocol-Version: {ALONE}\r\nMcp-Method: {method}\r\n"));
            let params = &message["params"];
            for name in ["name", "uri", "taskId"].iter().filter_map(|field| params[*field].as_str()) {
                lines.push_str(&format!("Mcp-Name: {name}\r\n"));
            }
        }
        let head = self.server.head("POST", &self.path);
        let request = format!(
            "{head}{lines}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.send(&request)
    }

    /// Sends a request and begins to read its answer.
    pub(crate) fn start(&self, method: &str, params: Value) -> Messages {
        Messages::open(self.begin(method, params))
    }

    /// Gives up a request, by how many there were before it.
    pub(crate) fn give_up(&self, number: u64) {
        let params = json!({"requestId": number, "reason": "enough"});
        let given_up = self.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        assert_eq!(given_up.status, 202);
    }

    /// How many requests there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    /// Sends a request.
    pub(crate) fn begin(&self, method: &str, mut params: Value) -> TcpStream {
        if self.version == ALONE {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(ALONE);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "0"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.count.set(self.count.get() + 1);
        self.write(&json!({"jsonrpc": "2.0", "id": self.count.get(), "method": method, "params": params}))
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        self.start(method, params).all().pop().unwrap()
    }

    /// The result of a request that must have one.
    pub(crate) fn get(&self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Calls a tool.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> Value {
        self.get("tools/call", json!({"name": tool, "arguments": input}))
    }

    /// Listens to what is said without being asked.
    pub(crate) fn listen(&self) -> Messages {
        let head = self.server.head("GET", &self.path);
        Messages::open(self.send(&format!("{head}{}Accept: text/event-stream\r\n\r\n", self.lines)))
    }

    /// Ends the session.
    pub(crate) fn leave(&self) -> u16 {
        let head = self.server.head("DELETE", &self.path);
        Messages::open(self.send(&format!("{head}{}\r\n", self.lines))).status
    }
}
