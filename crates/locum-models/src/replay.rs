//! A model that says again what was [recorded](crate::recording): a real run becomes a test that needs no key, no
//! network and no luck.
//!
//! A call is answered by what was recorded for the same agent, the same number of the call and the same conversation.
//! Tasks that ask the same are answered in the order in which they were recorded. Whatever else is asked fails, and is
//! not tried again: a test that went another way than its recording must say so.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Prompt, Reply};

use crate::model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use crate::offline::speech;
use crate::recording::{self, Entry, Failure, Said};
use crate::retry;

/// A model that says again what was recorded.
#[derive(Debug)]
pub struct Replay {
    entries: Vec<Entry>,
    /// How many entries of each question were given out. Nothing awaits under this lock.
    given: Mutex<HashMap<Question, usize>>,
}

/// What tells one call from another: the agent, the number of the call, what was asked.
type Question = (String, u32, String);

/// What is wrong with a recording, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct RecordingProblem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

impl Replay {
    /// Reads a recording. A line that was cut off, because its writer was, is left out.
    ///
    /// # Errors
    ///
    /// A line is not an entry, or a newer version of locum wrote it.
    pub fn parse(text: &str) -> Result<Self, RecordingProblem> {
        let mut entries = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let problem = |message: String| RecordingProblem { line: number + 1, message };
            match serde_json::from_str::<Entry>(line) {
                Ok(entry) if entry.recording <= recording::VERSION => entries.push(entry),
                Ok(_) => return Err(problem("it was written by a newer version of locum".to_owned())),
                Err(error) if error.is_eof() => {}
                Err(error) => return Err(problem(format!("this is not what a recording holds: {error}"))),
            }
        }
        Ok(Self { entries, given: Mutex::default() })
    }

    /// What was recorded for this call.
    fn find(&self, prompt: &Prompt<'_>) -> Result<&Said, ModelError> {
        let asked = recording::fingerprint(prompt);
        let question = (prompt.agent.to_string(), prompt.call, asked);
        let fits =
            |entry: &&Entry| entry.agent == *prompt.agent && entry.call == prompt.call && entry.asked == question.2;
        let given = {
            let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            let given = given.entry(question.clone()).or_default();
            *given += 1;
            *given - 1
        };
        let found = self.entries.iter().filter(fits).nth(given);
        found.map(|entry| &entry.said).ok_or_else(|| self.missing(prompt, given))
    }

    /// Why there is no answer.
    fn missing(&self, prompt: &Prompt<'_>, given: usize) -> ModelError {
        let Prompt { agent, call, .. } = prompt;
        let number = call + 1;
        let mut of_agent = self.entries.iter().filter(|entry| entry.agent == **agent).peekable();
        let message = if of_agent.peek().is_none() {
            format!("the recording has no replies for agent {agent}; it has {}", self.names())
        } else if given > 0 {
            format!(
                "recording ended: call {number} of agent {agent} was recorded {given} times, and was asked once more"
            )
        } else if of_agent.any(|entry| entry.call == *call) {
            format!(
                "the run diverges from the recording: call {number} of agent {agent} was recorded for another \
                 conversation; give the same task and files, or record it again"
            )
        } else {
            format!("recording ended: no task of agent {agent} made call {number} when it was recorded")
        };
        ModelError::new(FailureKind::BadRequest, message)
    }

    fn names(&self) -> String {
        let mut names: Vec<&str> = self.entries.iter().map(|entry| entry.agent.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none at all".to_owned() } else { format!("some for: {}", names.join(", ")) }
    }
}

impl Model for Replay {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            match self.find(prompt)? {
                Said::Reply(reply) => {
                    speech::show(&reply.text, &reply.tool_calls, deltas);
                    Ok(reply.clone())
                }
                Said::Error(failure) => {
                    if let Some(partial) = &failure.partial {
                        deltas(Delta::Text(partial));
                    }
                    Err(again(failure))
                }
            }
        })
    }
}

/// A recorded failure. Nobody is waited for, so nothing is gained by waiting; except that a wait which nobody would
/// have waited ended the task then, and ends it now.
fn again(failure: &Failure) -> ModelError {
    let asked = failure.retry_after_ms.map(Duration::from_millis).filter(|asked| *asked > retry::WAIT_MAX);
    ModelError {
        retry_after: Some(asked.unwrap_or(Duration::ZERO)),
        partial: failure.partial.clone(),
        ..ModelError::new(failure.kind, failure.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locum_core::ids::AgentName;
    use locum_core::transcript::{Message, ToolUse};
    use serde_json::{Value, json};

    use super::*;

    /// Asks about a conversation; the reply or the failure, in words.
    async fn ask(replay: &Replay, agent: &str, call: u32, messages: &[Message]) -> String {
        let (agent, tools) = (AgentName::parse(agent).unwrap(), Arc::from([]));
        let prompt = prompt(&agent, &tools, call, messages);
        match replay.respond(&prompt, &mut Prefix::default(), &mut |_| ()).await {
            Ok(reply) => reply.text,
            Err(error) => format!("{:?} after {:?}: {}", error.kind, error.retry_after, error.message),
        }
    }

    fn prompt<'a>(
        agent: &'a AgentName,
        tools: &'a Arc<[locum_core::transcript::ToolSpec]>,
        call: u32,
        messages: &'a [Message],
    ) -> Prompt<'a> {
        Prompt {
            agent,
            task: "Do it.",
            model: "",
            system: "anything",
            messages,
            notice: None,
            tools,
            tool_use: ToolUse::Allowed,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            call,
        }
    }

    fn line(agent: &str, call: u32, messages: &[Message], said: &Value) -> String {
        let (name, tools) = (AgentName::parse(agent).unwrap(), Arc::from([]));
        let asked = recording::fingerprint(&prompt(&name, &tools, call, messages));
        let mut line =
            json!({"recording": 1, "task": "01", "agent": agent, "call": call, "asked": asked, "model": "m"});
        line.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        format!("{line}\n")
    }

    #[tokio::test]
    async fn calls_are_answered_by_agent_number_and_conversation_in_recorded_order() {
        let first = [Message::User("Do it.".to_owned())];
        let other = [Message::User("Do that.".to_owned())];
        let text = |text: &str| json!({"reply": {"text": text, "stop": "end"}});
        let busy = json!({"error": {"kind": "overloaded", "message": "busy", "retry_after_ms": 9000}});
        let long = json!({"error": {"kind": "rate_limit", "message": "tomorrow", "retry_after_ms": 999_000}});
        let recording = [
            line("ann", 0, &first, &text("one")),
            line("ann", 0, &first, &text("two")),
            line("ann", 1, &first, &busy),
            line("bob", 0, &other, &long),
            "{\"recording\":1,\"task\":\"0".to_owned(),
        ];
        let replay = Replay::parse(&recording.concat()).unwrap();
        assert_eq!(ask(&replay, "ann", 0, &first).await, "one");
        assert_eq!(ask(&replay, "ann", 1, &first).await, "Overloaded after Some(0ns): busy");
        assert_eq!(ask(&replay, "ann", 0, &first).await, "two");
        assert_eq!(ask(&replay, "bob", 0, &other).await, "RateLimit after Some(999s): tomorrow");
        let cases = [
            ("ann", 0, &first, "recording ended: call 1 of agent ann was recorded 2 times, and was asked once more"),
            ("ann", 2, &first, "recording ended: no task of agent ann made call 3 when it was recorded"),
            ("bob", 0, &first, "the run diverges from the recording: call 1 of agent bob was recorded for another"),
            ("eve", 0, &first, "the recording has no replies for agent eve; it has some for: ann, bob"),
        ];
        for (agent, call, messages, expected) in cases {
            let said = ask(&replay, agent, call, messages).await;
            assert!(said.starts_with(&format!("BadRequest after None: {expected}")), "{said}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let good = line("ann", 0, &[], &json!({"reply": {"stop": "end"}}));
        let cases = [
            (format!("{good}\n[1]\n"), "line 3: this is not what a recording holds"),
            (format!("{good}{{\"agents\": {{}}}}\n"), "line 2: this is not what a recording holds"),
            (good.replace("\"recording\":1", "\"recording\":2"), "line 1: it was written by a newer version of locum"),
        ];
        for (text, expected) in cases {
            let problem = Replay::parse(&text).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
