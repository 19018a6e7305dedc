//! A running `locum serve` and a client of it that writes bytes: what no well-behaved client would send can be sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::home::{Home, PATIENCE};

/// A server in a process of its own. It is ended with the test.
pub(crate) struct Served {
    child: Child,
    /// Address and port.
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answered {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Served {
    /// Starts a server on a free port.
    pub(crate) fn start(home: &Home, model: &str) -> Self {
        Self::start_with(home, &["--model", model])
    }

    pub(crate) fn start_with(home: &Home, arguments: &[&str]) -> Self {
        let mut command = home.command(&["serve", "--listen", "0", "--json"]);
        let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let token = std::fs::read_to_string(said["token_file"].as_str().unwrap()).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address, token: token.trim().to_owned() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The head of a request as a client should write it, up to and without the empty line.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        let Self { address, token, .. } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n")
    }

    /// Sends bytes and reads the answer, which ends with the connection.
    pub(crate) fn send(&self, bytes: &[u8]) -> Answered {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        answered(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answered {
        self.send(format!("{}\r\n", self.head("GET", path)).as_bytes())
    }

    /// Posts a body to an address, with further lines in the head.
    pub(crate) fn post(&self, path: &str, further: &str, body: &[u8]) -> Answered {
        let (head, length) = (self.head("POST", path), body.len());
        let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n{further}\r\n");
        self.send(&[head.as_bytes(), body].concat())
    }

    /// Calls a tool in the session `test`.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> Answered {
        let body = json!({"tool": tool, "input": input}).to_string();
        self.post("/v1/requests", "Locum-Session: test\r\n", body.as_bytes())
    }

    pub(crate) fn subagent(&self, input: &Value) -> Value {
        self.call("subagent", input).json()
    }

    /// Asks the server to end.
    pub(crate) fn ask_to_end(&self) {
        kill(self.pid(), Signal::SIGTERM).unwrap();
    }

    /// Asks the server to end and waits for it.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.ask_to_end();
        self.child.wait().unwrap().code()
    }

    /// Ends the server without a chance to say anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads an answer that ends with its connection.
pub(crate) fn answered(mut stream: TcpStream) -> Answered {
    let mut text = Vec::new();
    // A server that refuses what it has not read may reset the connection after its answer.
    stream.read_to_end(&mut text).ok();
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answered { status, head: head.to_owned(), body: body.to_owned() }
}
