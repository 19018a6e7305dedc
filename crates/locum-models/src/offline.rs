//! The built-in model, for when there is no key and no local server. It is no language model, and says so: it takes
//! keywords from the task, searches for them with the tools that the agent has, and answers with the most telling
//! passages and where they are.
//!
//! It keeps no state. What it knows, and how far it is, follows from the conversation, so a task goes on after a
//! crash as with any other model. It works in at most four calls: a survey, a closer look if the survey was cut or
//! found nothing, reading the best places, and the answer. It answers early if it may call no more tools. An agent that
//! may delegate has explorers search in its place.

mod answer;
mod delegation;
mod evidence;
mod keywords;
mod matching;
mod ranking;
mod search;
mod shape;
pub(crate) mod speech;
mod vocabulary;

use locum_core::transcript::{Prompt, Reply, Stop, ToolCall, ToolUse};
use locum_core::usage::TokenCount;

use self::answer::Means;
use self::evidence::Evidence;
use self::keywords::Keyword;
use self::ranking::Place;
use self::search::{Request, Toolbox};
use crate::model::{BoxFuture, Deltas, Model, ModelError, Prefix};

/// Replies with tool calls before it answers.
const ROUNDS_MAX: usize = 3;

/// The built-in model. See the [module](self).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offline;

impl Model for Offline {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let reply = reply(prompt);
            speech::show(&reply.text, &reply.tool_calls, deltas);
            Ok(Reply { tokens: speech::estimate(prompt, &reply), ..reply })
        })
    }
}

fn reply(prompt: &Prompt<'_>) -> Reply {
    let evidence = Evidence::gather(prompt);
    let keywords = keywords::extract(prompt.task);
    let toolbox = Toolbox::new(prompt);
    let (keywords, places) = understand(&evidence, keywords);
    let joined = delegation::joined(prompt);
    let requests = match prompt.tool_use {
        ToolUse::Allowed if joined.is_none() => {
            let asked = delegation::requests(&toolbox, &evidence, prompt.task);
            if asked.is_empty() { next_requests(&toolbox, &evidence, &keywords, &places) } else { asked }
        }
        ToolUse::Allowed | ToolUse::Forbidden => Vec::new(),
    };
    let numbered = requests.into_iter().enumerate().map(|(index, request)| ToolCall {
        id: format!("call_{}_{index}", evidence.rounds),
        name: request.tool.to_owned(),
        input: request.input,
    });
    let tool_calls: Vec<ToolCall> = numbered.collect();
    let (text, stop) = if !tool_calls.is_empty() {
        (String::new(), Stop::ToolUse)
    } else if let Some(joined) = joined {
        (joined, Stop::End)
    } else if places.is_empty() {
        let means = if toolbox.is_empty() { Means::None } else { Means::Tools };
        (answer::nothing(&evidence, &keywords, means, prompt.max_output_tokens), Stop::End)
    } else {
        (answer::found(&evidence, &keywords, &places, prompt.max_output_tokens), Stop::End)
    };
    Reply { text, tool_calls, stop, tokens: TokenCount::default(), opaque: None }
}

/// The places that the evidence holds, and the keywords that find them: their beginnings, if nothing else does.
fn understand(evidence: &Evidence, keywords: Vec<Keyword>) -> (Vec<Keyword>, Vec<Place>) {
    let places = ranking::rank(evidence, &keywords);
    if !places.is_empty() || evidence.rounds < 2 {
        return (keywords, places);
    }
    let broad = search::broadened(&keywords);
    let places = ranking::rank(evidence, &broad);
    if places.is_empty() { (keywords, places) } else { (broad, places) }
}

fn next_requests(toolbox: &Toolbox<'_>, evidence: &Evidence, keywords: &[Keyword], places: &[Place]) -> Vec<Request> {
    if evidence.rounds >= ROUNDS_MAX || evidence.has_called("read") {
        return Vec::new();
    }
    match (evidence.rounds, places.is_empty()) {
        (0, _) if keywords.is_empty() => search::overview(toolbox),
        (0, _) => search::survey(toolbox, keywords),
        (1, true) if !keywords.is_empty() => search::broaden(toolbox, keywords),
        (_, true) => search::introductions(toolbox, evidence),
        (1, false) if evidence.is_partial => search::focus(toolbox, keywords, places),
        (_, false) => search::reads(toolbox, places),
    }
}

#[cfg(test)]
mod tests;
