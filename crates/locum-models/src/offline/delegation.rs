//! What the offline model does where it may ask others: it has two or three explorers search, and joins what they
//! found. It adds no words of its own to their findings.

use locum_core::transcript::{Message, Prompt, ToolOutput};
use serde_json::{Value, json};

use super::evidence::Evidence;
use super::search::{Request, Toolbox};
use super::speech;

/// The tool through which others are asked.
const SUBAGENT: &str = "subagent";
/// Who is asked.
const EXPLORER: &str = "explore";
/// Explorers that are asked at once.
const EXPLORERS_MAX: usize = 3;
/// Characters of a task: below what a task may have.
const TASK_CHARS_MAX: usize = 900;
/// Characters that are shown of one explorer's findings.
const FINDING_CHARS_MAX: usize = 1600;

/// Asks explorers, if the model may and has not yet.
pub(super) fn requests(toolbox: &Toolbox<'_>, evidence: &Evidence, task: &str) -> Vec<Request> {
    if evidence.rounds > 0 {
        return Vec::new();
    }
    let entry = |task: String| json!({"agent": EXPLORER, "task": task});
    let tasks: Vec<Value> = questions(task).into_iter().map(entry).collect();
    toolbox.request(SUBAGENT, json!({"action": "parallel", "tasks": tasks})).into_iter().collect()
}

/// The goal as questions for explorers: each of its sentences, or one sentence from two sides.
fn questions(goal: &str) -> Vec<String> {
    let mut questions = sentences(goal);
    if questions.len() < 2 {
        let goal = goal.trim();
        questions = vec![goal.to_owned(), format!("Which tests are about this: {goal}")];
    }
    let rest = questions.split_off(questions.len().min(EXPLORERS_MAX));
    if let Some(last) = questions.last_mut() {
        rest.iter().for_each(|sentence| last.push_str(&format!(" {sentence}")));
    }
    questions.iter().map(|question| shortened(question, TASK_CHARS_MAX)).collect()
}

/// The sentences of a text. A mark inside a word, as in the name of a file, ends none.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        if sentences.last().is_some_and(|sentence| sentence.ends_with(['.', '?', '!', ';'])) {
            sentences.push(String::new());
        }
        if let Some(sentence) = sentences.last_mut() {
            sentence.push_str(if sentence.is_empty() { "" } else { " " });
            sentence.push_str(word);
        }
    }
    sentences
}

fn shortened(text: &str, chars_max: usize) -> String {
    let end = speech::chars_end(text, chars_max);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

/// What the explorers found, joined; none if nobody was asked, or nobody answered.
pub(super) fn joined(prompt: &Prompt<'_>) -> Option<String> {
    let asked = prompt.messages.iter().find_map(|message| match message {
        Message::Assistant(reply) => reply.tool_calls.iter().find(|call| call.name == SUBAGENT),
        Message::User(_) | Message::Tool { .. } => None,
    })?;
    let output = prompt.messages.iter().find_map(|message| match message {
        Message::Tool { call_id, output, .. } if *call_id == asked.id => Some(output),
        _ => None,
    })?;
    let results = results(output)?;
    let tasks = asked.input.get("tasks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let findings: Vec<String> = tasks.iter().zip(&results).map(|(task, result)| finding(task, result)).collect();
    let head = format!("Asked {} explorers (offline search, no language model).", findings.len());
    Some(std::iter::once(head).chain(findings).collect::<Vec<_>>().join("\n\n"))
}

fn results(output: &ToolOutput) -> Option<Vec<Value>> {
    if !output.end.is_ok() {
        return None;
    }
    let mut answer: Value = serde_json::from_str(&output.text).ok()?;
    match answer.get_mut("results").map(Value::take) {
        Some(Value::Array(results)) if !results.is_empty() => Some(results),
        _ => None,
    }
}

fn finding(task: &Value, result: &Value) -> String {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let task = text(task, "task").unwrap_or_default();
    let who = text(result, "task_id").map_or_else(|| EXPLORER.to_owned(), |id| format!("{EXPLORER} {id}"));
    let found = text(result, "result").or_else(|| text(result, "message")).or_else(|| text(result, "error"));
    let found = found.unwrap_or_else(|| "no answer".to_owned());
    format!("## {}\n\n@{who}: {}", shortened(&task, 200), shortened(&found, FINDING_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_becomes_two_or_three_questions() {
        let check = |goal: &str, expected: &[&str]| assert_eq!(questions(goal), expected, "{goal}");
        check("Where is the clock?", &["Where is the clock?", "Which tests are about this: Where is the clock?"]);
        check("Find the clock. Then find the tide.", &["Find the clock.", "Then find the tide."]);
        check(
            "One is this. Two is that. Three is more. Four is the rest.",
            &["One is this.", "Two is that.", "Three is more. Four is the rest."],
        );
        check("Look at src/a.rs. Why is it slow?", &["Look at src/a.rs.", "Why is it slow?"]);
    }
}
