//! What the tools have found so far, read back from the conversation. A tool's output is text by others: whatever
//! does not look as expected is no evidence, and nothing in it is followed.

use std::collections::{BTreeMap, HashMap};

use locum_core::transcript::{Message, Prompt, ToolCall};

use super::{search, shape, speech};

/// Lines that are kept in all: many times what tools return, and little enough to be ranked at once.
const LINES_MAX: usize = 8000;
/// Characters of one line that are kept.
const LINE_CHARS_MAX: usize = 400;
/// Characters of a path; what is longer is none.
const PATH_CHARS_MAX: usize = 300;

/// Everything that was found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// What is known of each file, or of each text that was handed on with the task.
    pub(super) files: BTreeMap<String, Found>,
    /// Names of files and folders at the top, from `ls` or `tree`.
    pub(super) listed: Vec<String>,
    /// Replies with tool calls so far.
    pub(super) rounds: usize,
    /// Tools that were called.
    pub(super) called: Vec<String>,
    /// Whether some tool said that it left something out.
    pub(super) is_partial: bool,
    lines: usize,
    /// The task's first line, in lower case.
    question: Option<String>,
}

/// What is known of one file.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    /// Its lines, as far as they were seen.
    pub(super) lines: BTreeMap<u32, String>,
    /// Whether it was found by its name.
    pub(super) is_named: bool,
    /// The line from which on it has tests, if it is known.
    pub(super) tests_from: u32,
}

impl Default for Found {
    fn default() -> Self {
        Self { lines: BTreeMap::new(), is_named: false, tests_from: u32::MAX }
    }
}

impl Evidence {
    /// Reads the conversation.
    pub(super) fn gather(prompt: &Prompt<'_>) -> Self {
        let mut evidence = Self { question: question_of(prompt.task), ..Self::default() };
        if let Some(Message::User(said)) = prompt.messages.first() {
            evidence.add_handed_on(prompt.task, said);
        }
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        for message in prompt.messages {
            match message {
                Message::User(_) => {}
                Message::Assistant(reply) => {
                    evidence.rounds += usize::from(!reply.tool_calls.is_empty());
                    calls.extend(reply.tool_calls.iter().map(|call| (call.id.as_str(), call)));
                }
                Message::Tool { call_id, name, output } => {
                    evidence.called.push(name.clone());
                    if output.end.is_ok() {
                        let call = calls.get(call_id.as_str()).copied();
                        evidence.add_output(name, call, &output.text);
                    }
                }
            }
        }
        evidence
    }

    /// Whether a tool was called, with whatever success.
    pub(super) fn has_called(&self, tool: &str) -> bool {
        self.called.iter().any(|called| called == tool)
    }

    /// Whether a path stands for a text that was handed on, not for a file.
    pub(super) fn is_handed_on(path: &str) -> bool {
        path.starts_with('[') && path.ends_with(']')
    }

    fn add_output(&mut self, tool: &str, call: Option<&ToolCall>, output: &str) {
        match tool {
            "grep" => {
                // That the tests are not all known takes nothing from what was asked.
                let was_partial = self.is_partial;
                self.add_grep(output);
                let pattern = call.and_then(|call| call.input.get("pattern")).and_then(|pattern| pattern.as_str());
                if pattern == Some(search::TESTS_PATTERN) {
                    self.is_partial = was_partial;
                }
            }
            "find" => self.add_find(output),
            "read" => {
                let path = call.and_then(|call| call.input.get("path")).and_then(|path| path.as_str());
                if let Some(path) = path.and_then(clean_path) {
                    self.add_read(&path, output);
                }
            }
            "ls" | "tree" => self.add_listing(output),
            _ => {}
        }
    }

    fn add_grep(&mut self, output: &str) {
        for line in output.lines() {
            match split_match(line) {
                Some((path, number, text)) => self.add_line(&path, number, text),
                None => self.is_partial |= line.starts_with('['),
            }
        }
    }

    fn add_find(&mut self, output: &str) {
        for line in output.lines() {
            let is_remark = line.starts_with('[') && line.ends_with(']');
            let is_sentence = line.contains(' ') && !line.contains('/') && !line.contains('.');
            if is_remark || is_sentence || line.ends_with('/') {
                continue;
            }
            if let Some(path) = clean_path(line)
                && self.files.len() < LINES_MAX
            {
                self.files.entry(path).or_default().is_named = true;
            }
        }
    }

    fn add_read(&mut self, path: &str, output: &str) {
        for line in output.lines() {
            let Some((number, text)) = line.split_once('\t') else { continue };
            if let Ok(number) = number.trim().parse() {
                self.add_line(path, number, text);
            }
        }
    }

    fn add_listing(&mut self, output: &str) {
        for line in output.lines().take(LINES_MAX) {
            let name = line.trim_start_matches(|c: char| c.is_whitespace() || "│├└─|`+-".contains(c)).trim_end();
            if !name.is_empty() && !name.starts_with('[') && name.chars().count() <= PATH_CHARS_MAX {
                self.listed.push(name.to_owned());
            }
        }
    }

    /// The texts after the task, each under a line such as `[t_01 researcher]`, and the task's own material.
    fn add_handed_on(&mut self, task: &str, said: &str) {
        if let Some((_, material)) = task.split_once("\n\n") {
            self.add_text("[task]", material);
        }
        let rest = said.strip_prefix(task).unwrap_or(said);
        let mut block: Option<(&str, u32)> = None;
        for line in rest.lines() {
            if is_block_name(line) {
                block = Some((line, 0));
            } else if let Some((name, number)) = &mut block {
                *number += 1;
                self.add_line(name, *number, line);
            }
        }
    }

    fn add_text(&mut self, name: &str, text: &str) {
        for (number, line) in (1..).zip(text.lines()) {
            self.add_line(name, number, line);
        }
    }

    fn add_line(&mut self, path: &str, number: u32, text: &str) {
        if self.question.as_ref().is_some_and(|question| text.to_lowercase().contains(question)) {
            return;
        }
        if self.lines >= LINES_MAX {
            self.is_partial = true;
            return;
        }
        self.lines += 1;
        let text = text[..speech::chars_end(text, LINE_CHARS_MAX)].to_owned();
        let found = self.files.entry(path.to_owned()).or_default();
        if shape::begins_tests(&text) {
            found.tests_from = found.tests_from.min(number);
        }
        found.lines.insert(number, text);
    }
}

/// The task's first line, if it is long enough to be a question: a line that repeats it, in a README for example, is
/// not an answer to it.
fn question_of(task: &str) -> Option<String> {
    const QUESTION_CHARS_MIN: usize = 20;
    let line = task.lines().next().unwrap_or_default().trim().to_lowercase();
    (line.chars().count() >= QUESTION_CHARS_MIN).then_some(line)
}

fn is_block_name(line: &str) -> bool {
    let inner = line.strip_prefix("[t_").and_then(|rest| rest.strip_suffix(']'));
    let words = inner.and_then(|inner| inner.split_once(' '));
    words.is_some_and(|(number, agent)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !agent.contains(' ')
    })
}

/// Splits `path:line:text`. The first number between colons is the line, so a path may have colons too.
fn split_match(line: &str) -> Option<(String, u32, &str)> {
    let mut colons = line.match_indices(':').map(|(position, _)| position).take(20).peekable();
    while let Some(start) = colons.next() {
        let Some(end) = colons.peek() else { break };
        if let Ok(number) = line[start + 1..*end].parse::<u32>()
            && let Some(path) = clean_path(&line[..start])
        {
            return Some((path, number, &line[end + 1..]));
        }
    }
    None
}

/// A path as it is shown and compared; none if it cannot be one.
fn clean_path(path: &str) -> Option<String> {
    let path = path.trim_end_matches('\r');
    let path = path.strip_prefix("./").unwrap_or(path);
    let fits = !path.trim().is_empty() && path.chars().count() <= PATH_CHARS_MAX && !path.contains(char::is_control);
    fits.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(tool: &str, output: &str) -> Vec<String> {
        let mut evidence = Evidence::default();
        let call = ToolCall { id: "1".into(), name: tool.into(), input: serde_json::json!({"path": "./src/a.rs"}) };
        evidence.add_output(tool, Some(&call), output);
        let lines = evidence.files.iter().flat_map(|(path, file)| {
            let name = file.is_named.then(|| path.clone());
            let lines = file.lines.iter().map(move |(number, text)| format!("{path}|{number}|{text}"));
            name.into_iter().chain(lines)
        });
        lines.chain(evidence.listed.clone()).chain(evidence.is_partial.then(|| "partial".to_owned())).collect()
    }

    #[test]
    fn outputs_are_read_tolerantly() {
        for (tool, output, expected) in [
            ("grep", "src/a.rs:12:  fn a: b\nb.md:1:", &["b.md|1|", "src/a.rs|12|  fn a: b"][..]),
            ("grep", "./a b:c.rs:3:x:4:y", &["a b:c.rs|3|x:4:y"]),
            ("grep", "C:\\a.rs:3:x", &["C:\\a.rs|3|x"]),
            ("grep", "[id].tsx:3:x\n[12 more]", &["[id].tsx|3|x", "partial"]),
            ("grep", "No matches found\n:::\n:1:\na:99999999999:x\n", &[]),
            ("find", "src/a.rs\nsrc/\nno files found\n[3 more]\n./b", &["b", "src/a.rs"]),
            ("read", "  1\tfn a\n2\t\tb\nnonsense\n[cut]", &["src/a.rs|1|fn a", "src/a.rs|2|\tb"]),
            ("tree", ".\n├── src/\n│   └── a.rs\n", &[".", "src/", "a.rs"]),
            ("other", "src/a.rs:12:x", &[]),
        ] {
            assert_eq!(found(tool, output), expected, "{tool} {output}");
        }
    }

    #[test]
    fn blocks_and_the_material_of_a_task_are_evidence() {
        let mut evidence = Evidence::default();
        let said = "sum up\n\nthis\nand that\n\n[t_01 researcher]\nfound\nit\n\n[t_12 b]\nx\n[not a block]";
        evidence.add_handed_on("sum up\n\nthis\nand that", said);
        let names: Vec<&str> = evidence.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["[t_01 researcher]", "[t_12 b]", "[task]"]);
        assert_eq!(evidence.files["[t_12 b]"].lines[&2], "[not a block]");
        assert_eq!(evidence.files["[task]"].lines[&2], "and that");
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(output in "(\\PC|[:\n\t0-9./\\[])*", tool in 0_usize..5) {
            let tool = ["grep", "find", "read", "ls", "tree"][tool];
            found(tool, &output);
        }
    }
}
