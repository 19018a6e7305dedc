//! Conversations with `locum call -`, as text. What was said and answered is compared as a whole with its snapshot.
//!
//! | line | what happens |
//! |---|---|
//! | `{…}` | a call of `subagent` |
//! | `context {…}` | a call of `shared_context` |
//! | `board {…}` | a call of `manage_tasks` |
//! | `until PATH=JSON {…}` | the call is repeated until its answer has this value at this place |
//! | `quiet {…}` | a call of `subagent` that the transcript leaves out |
//! | `# …` | a remark |
//!
//! `<<TEXT*COUNT>>` in a line is that text, so many times.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};

use crate::home::{Home, PATIENCE};
use crate::settle::{settle, shorten};

/// An open `locum call -`.
pub(crate) struct Conversation<'a> {
    home: &'a Home,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    transcript: String,
    /// The codes of the refusals so far.
    pub(crate) codes: Vec<String>,
}

/// Has a conversation from beginning to end; its transcript.
pub(crate) fn converse(home: &Home, model: &str, lines: &str) -> String {
    let mut conversation = Conversation::open(home, model);
    conversation.say(lines);
    conversation.close()
}

impl<'a> Conversation<'a> {
    /// Opens `locum call -` in the session `test`.
    pub(crate) fn open(home: &'a Home, model: &str) -> Self {
        let mut command = home.command(&["call", "-", "--model", model, "--session", "test"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let input = child.stdin.take();
        Self { home, child, input, answers, transcript: String::new(), codes: Vec::new() }
    }

    /// Says every line of a text.
    pub(crate) fn say(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("#", _) => self.transcript.push_str(&format!("{line}\n")),
                ("context", input) => self.record("shared_context", &expand(input)),
                ("board", input) => self.record("manage_tasks", &expand(input)),
                ("quiet", input) => drop(self.ask("subagent", &expand(input))),
                ("until", rest) => {
                    let (sought, input) = rest.split_once(' ').unwrap();
                    self.until(sought, &expand(input));
                }
                _ => self.record("subagent", &expand(line)),
            }
        }
    }

    /// One call and its answer.
    pub(crate) fn ask(&mut self, tool: &str, input: &Value) -> Value {
        let line = json!({"tool": tool, "input": input});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let answer = self.answers.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {line}"));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        self.codes.extend(answer["error"].as_str().filter(|_| answer.get("message").is_some()).map(str::to_owned));
        settle(answer, &self.home.root())
    }

    fn record(&mut self, tool: &str, input: &Value) {
        let answer = self.ask(tool, input);
        self.write_down(tool, input, &answer);
    }

    fn write_down(&mut self, tool: &str, input: &Value, answer: &Value) {
        let tool = if tool == "subagent" { String::new() } else { format!("{tool} ") };
        self.transcript.push_str(&format!("> {tool}{}\n< {}\n", shorten(input), shorten(answer)));
    }

    /// Asks until the answer is as it will be.
    fn until(&mut self, sought: &str, input: &Value) {
        let (path, wanted) = sought.split_once('=').unwrap();
        let wanted: Value = serde_json::from_str(wanted).unwrap();
        let start = Instant::now();
        loop {
            let answer = self.ask("subagent", input);
            if answer.pointer(path) == Some(&wanted) {
                return self.write_down("subagent", input, &answer);
            }
            assert!(start.elapsed() < PATIENCE, "never {sought}: {answer}");
        }
    }

    /// Ends the input, and waits for the command to end well.
    pub(crate) fn close(mut self) -> String {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
        std::mem::take(&mut self.transcript)
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        drop(self.input.take());
        // It has been waited for already unless the test failed before.
        self.child.wait().ok();
    }
}

/// Reads an input, with its repeated texts written out.
pub(crate) fn expand(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    expand_strings(&mut value);
    value
}

fn expand_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = repeated(text),
        Value::Array(items) => items.iter_mut().for_each(expand_strings),
        Value::Object(fields) => fields.values_mut().for_each(expand_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn repeated(text: &str) -> String {
    let Some((head, rest)) = text.split_once("<<") else { return text.to_owned() };
    let (inside, end) = rest.split_once(">>").unwrap();
    let (unit, count) = inside.rsplit_once('*').unwrap();
    format!("{head}{}{}", unit.repeat(count.parse().unwrap()), repeated(end))
}
