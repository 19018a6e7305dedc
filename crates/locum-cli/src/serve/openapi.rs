//! The OpenAPI document: every route with what it takes and answers. It is made from the same schemas that models are
//! offered, and from one table; a test holds it against the routes and against the copy in the repository.

mod schemas;

use axum::http::StatusCode;
use axum::response::Response;
use locum::protocol::schema::native_tools;
use serde_json::{Map, Value, json};

use super::answer::{Refused, json};
use super::parameters::Parameters;

/// `GET /openapi.json`
pub(super) async fn show(parameters: Parameters) -> Result<Response, Refused> {
    parameters.finish()?;
    Ok(json(StatusCode::OK, &document()))
}

/// A route that is read.
struct Resource {
    path: &'static str,
    summary: &'static str,
    /// Parameters of the address by their names; those of the path are found in it.
    parameters: &'static [&'static str],
    /// The schema of the answer, or the type of one that is not JSON.
    answer: Answer,
    /// Statuses beyond those that every route may answer.
    further: &'static [u16],
}

enum Answer {
    Schema(&'static str),
    Content(&'static str),
}

/// Everything that is read.
const RESOURCES: &[Resource] = &[
    Resource {
        path: "/v1/tasks",
        summary: "Tasks of the project or of a session, newest first",
        parameters: &["session", "before", "limit"],
        answer: Answer::Schema("Tasks"),
        further: &[404],
    },
    Resource {
        path: "/v1/tasks/{task}",
        summary: "How a task stands",
        parameters: &["session"],
        answer: Answer::Schema("Task"),
        further: &[404],
    },
    Resource {
        path: "/v1/tasks/{task}/log",
        summary: "Everything that has happened to a task, in order",
        parameters: &["session", "after_number", "limit"],
        answer: Answer::Schema("Log"),
        further: &[404],
    },
    Resource {
        path: "/v1/tasks/{task}/result",
        summary: "The whole text of a task that has ended, by pages; also after it was collected",
        parameters: &["session", "offset", "limit"],
        answer: Answer::Schema("ResultPage"),
        further: &[404, 409],
    },
    Resource {
        path: "/v1/tasks/{task}/diff",
        summary: "What a task's worktree changes",
        parameters: &["session", "against"],
        answer: Answer::Schema("Comparison"),
        further: &[404],
    },
    Resource {
        path: "/v1/tasks/{task}/events",
        summary: "A task's log as it grows, until the task has ended; nothing (204) if it has and all was read",
        parameters: &["session", "after", "last-event-id", "text"],
        answer: Answer::Content("text/event-stream"),
        further: &[204, 404],
    },
    Resource {
        path: "/v1/events",
        summary: "What the tasks of a session write to their logs, as they write it",
        parameters: &["session", "after", "last-event-id"],
        answer: Answer::Content("text/event-stream"),
        further: &[],
    },
    Resource {
        path: "/v1/agents",
        summary: "The agents, also those that cannot be asked",
        parameters: &["session"],
        answer: Answer::Schema("Agents"),
        further: &[],
    },
    Resource {
        path: "/v1/agents/{name}",
        summary: "One agent with its instructions",
        parameters: &["session"],
        answer: Answer::Schema("AgentPage"),
        further: &[404],
    },
    Resource {
        path: "/v1/context",
        summary: "The keys of a session's shared context",
        parameters: &["session"],
        answer: Answer::Schema("Keys"),
        further: &[],
    },
    Resource {
        path: "/v1/context/{key}",
        summary: "A value of the shared context",
        parameters: &["session"],
        answer: Answer::Schema("Entry"),
        further: &[404],
    },
    Resource {
        path: "/v1/context/{key}/history",
        summary: "What a key held, newest first",
        parameters: &["session", "versions"],
        answer: Answer::Schema("History"),
        further: &[404],
    },
    Resource {
        path: "/v1/board",
        summary: "The task board of a session",
        parameters: &["session", "archived"],
        answer: Answer::Schema("Board"),
        further: &[],
    },
    Resource {
        path: "/v1/board/{id}",
        summary: "One task of the board",
        parameters: &["session"],
        answer: Answer::Schema("BoardTask"),
        further: &[404],
    },
    Resource {
        path: "/v1/sessions",
        summary: "The sessions of the project",
        parameters: &[],
        answer: Answer::Schema("Sessions"),
        further: &[],
    },
    Resource {
        path: "/metrics",
        summary: "Counts, as Prometheus reads them",
        parameters: &[],
        answer: Answer::Content("text/plain"),
        further: &[],
    },
    Resource {
        path: "/openapi.json",
        summary: "This document",
        parameters: &[],
        answer: Answer::Schema("Document"),
        further: &[],
    },
    Resource {
        path: "/healthz",
        summary: "Whether the server is there; needs no token",
        parameters: &[],
        answer: Answer::Content("text/plain"),
        further: &[],
    },
];

/// Names that people use first.
const EXAMPLES: &[(&str, &str)] = &[("task", "t_01"), ("name", "explore"), ("key", "goal"), ("id", "b_01")];

/// The whole document.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> =
        RESOURCES.iter().map(|it| (it.path.to_owned(), json!({"get": it.operation()}))).collect();
    paths.insert("/v1/requests".to_owned(), json!({"post": requests()}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "locum",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Ask a specialist, get an answer",
            "description": "What `locum serve` answers. Everything that changes something is a request; the rest is read.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas::all(),
        },
    })
}

impl Resource {
    fn operation(&self) -> Value {
        let content = match self.answer {
            Answer::Schema(name) => json!({"application/json": {"schema": reference(name)}}),
            Answer::Content(kind) => json!({kind: {"schema": {"type": "string"}}}),
        };
        let mut answers = refusals(&[&[400, 401, 403, 500], self.further].concat());
        answers.insert("200".to_owned(), json!({"description": self.summary, "content": content}));
        if answers.remove("204").is_some() {
            answers.insert("204".to_owned(), json!({"description": "There will be no more"}));
        }
        let in_path = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters: Vec<Value> = in_path.chain(self.parameters.iter().copied()).map(parameter).collect();
        let mut operation = json!({"summary": self.summary, "parameters": parameters, "responses": answers});
        if self.path == "/healthz" {
            operation["security"] = json!([]);
        }
        operation
    }
}

fn requests() -> Value {
    let tools: Vec<Value> = native_tools()
        .into_iter()
        .map(|tool| {
            json!({
                "type": "object",
                "description": tool.description,
                "properties": {"tool": {"const": tool.name}, "input": tool.input_schema},
                "required": ["tool", "input"],
                "additionalProperties": false,
            })
        })
        .collect();
    let mut answers = refusals(&[400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503]);
    let header = json!({"description": "The session that it was made in", "schema": {"type": "string"}});
    answers.insert(
        "200".to_owned(),
        json!({
            "description": "The tool's answer, as through every door",
            "headers": {"Locum-Session": header},
            "content": {"application/json": {"schema": {"type": "object"}}},
        }),
    );
    let parameters = ["session", "face", "concurrency", "strict", "abandoned"].map(parameter);
    json!({
        "summary": "Call a tool; without a session, in a new one",
        "parameters": parameters,
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"oneOf": tools}}}},
        "responses": answers,
    })
}

fn refusals(statuses: &[u16]) -> Map<String, Value> {
    let refusal = json!({"description": "Refused", "content": {"application/json": {"schema": reference("Refusal")}}});
    statuses.iter().map(|status| (status.to_string(), refusal.clone())).collect()
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn parameter(name: &str) -> Value {
    let number = |least: u64| json!({"type": "integer", "minimum": least, "maximum": 1_000_000_000});
    let session = json!({"type": "string", "pattern": "^[a-z0-9_-]{1,64}$"});
    let text = json!({"type": "string", "minLength": 1});
    let (name, place, description, schema) = match name {
        "task" => ("task", "path", "Its uid; or its id in the session that is named", text),
        "name" => ("name", "path", "The agent", text),
        "key" => ("key", "path", "The key", text),
        "id" => ("id", "path", "Its id on the board", text),
        "archived" => ("archived", "query", "What was archived instead", json!({"type": "boolean"})),
        "session" => ("session", "query", "The session; also by the header Locum-Session", session),
        "before" => (
            "before",
            "query",
            "A uid: what is older than it",
            json!({"type": "string", "pattern": "^[a-z0-9_-]{1,64}$"}),
        ),
        "limit" => ("limit", "query", "How much, at most", number(1)),
        "offset" => ("offset", "query", "The first character", number(0)),
        "versions" => ("versions", "query", "How many", number(0)),
        "after_number" => ("after", "query", "The number of an entry: what follows it", number(0)),
        "after" => ("after", "query", "An event's id: what follows it; now: what comes", text),
        "last-event-id" => ("Last-Event-ID", "header", "The same, as browsers say it", text),
        "text" => (
            "text",
            "query",
            "Also what is said before it is whole: events named text, without an id, with after (the entry that the \
             reply comes after), offset (in bytes) and text; slow readers miss some",
            json!({"type": "boolean"}),
        ),
        "against" => ("against", "query", "Another task to compare it with", text),
        "face" => {
            ("face", "query", "The terms", json!({"enum": ["native", "person", "tallow", "pi", "acai", "picoclaw"]}))
        }
        "concurrency" => ("concurrency", "query", "How many of one parallel run at once", number(1)),
        "abandoned" => (
            "abandoned",
            "query",
            "What becomes of the tasks that it started or waits for if the client leaves first; they go on otherwise",
            json!({"enum": ["cancel"]}),
        ),
        "strict" => {
            ("strict", "query", "Refuse a task that would not get all that was asked for", json!({"type": "boolean"}))
        }
        other => (other, "query", "", text),
    };
    let mut parameter =
        json!({"name": name, "in": place, "description": description, "required": place == "path", "schema": schema});
    if let Some((_, example)) = EXAMPLES.iter().find(|(known, _)| *known == name) {
        parameter["example"] = json!(example);
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_in_the_repository_is_this_document() {
        let copy: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
        assert!(copy == document(), "cargo run -- serve --openapi > crates/locum-cli/openapi.json");
    }
}
