//! Which argument names what. Every argument that takes a value has its place here, in what it is declared with (a list
//! of values, a path), or among those that take words of one's own; a test sees to it.

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// An agent that can be asked.
    Agent,
    /// An agent, with a task for it after `=`.
    AgentAndTask,
    /// A task.
    Task(Which),
    /// A task on the board.
    BoardTask,
    /// A session of the project.
    Session,
    /// A model.
    Model,
    /// A tool that a model is offered.
    Tool,
    /// An MCP server of the settings.
    McpServer,
    /// One of a few words.
    Word(&'static [&'static str]),
}

/// Which tasks are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    Unfinished,
    Ended,
    Uncollected,
}

/// What an argument of a verb names, if it is anything that is known.
pub(super) fn subject(verb: &str, argument: &str) -> Option<Subject> {
    let found = match (verb, argument) {
        (_, "session") => Subject::Session,
        (_, "model") => Subject::Model,
        (_, "sandbox") => Subject::Word(&["full", "landlock", "none"]),
        (_, "cost_preference") => Subject::Word(&["eco", "balanced", "premium"]),
        (_, "task_type") => Subject::Word(&["code", "vision", "text"]),
        (_, "complexity") => Subject::Word(&["1", "2", "3", "4", "5"]),
        ("models route", "hint") => Subject::Word(&["cost_preference=", "task_type=", "complexity=", "model_scope="]),
        (_, "agent") | ("agents show", "name") | ("agents new", "from") => Subject::Agent,
        (_, "entries") => Subject::AgentAndTask,
        ("cancel", "task_id") | ("wait", "task_ids") | ("board claim", "owner") => Subject::Task(Which::Unfinished),
        ("collect", "task_id") => Subject::Task(Which::Uncollected),
        ("result", "task_id") => Subject::Task(Which::Ended),
        ("status" | "logs", "task_id") | ("spawn", "depends_on") => Subject::Task(Which::All),
        ("worktree diff" | "worktree apply" | "worktree drop", "name" | "against") => Subject::Task(Which::Ended),
        ("board show" | "board update" | "board claim" | "board complete", "id") | (_, "blocked_by") => {
            Subject::BoardTask
        }
        ("context session archive" | "context session delete", "id") => Subject::Session,
        ("models show", "name") => Subject::Model,
        ("call", "tool") => Subject::Tool,
        ("mcp accept", "name") => Subject::McpServer,
        _ => return None,
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use clap::ValueHint;

    use super::*;
    use crate::args::Cli;

    /// Arguments that take words of one's own: nothing that is known could be offered for them.
    const OWN_WORDS: [&str; 38] = [
        "server",
        "label",
        "timeout",
        "max_input_tokens",
        "max_output_tokens",
        "max_cost_usd",
        "model_scope",
        "task",
        "goal",
        "idempotency_key",
        "concurrency",
        "inputs",
        "offset",
        "limit",
        "key",
        "keys",
        "value",
        "versions",
        "expected_version",
        "ttl",
        "readable_by",
        "writable_by",
        "description",
        "active_form",
        "metadata",
        "subject",
        "comment",
        "input",
        "listen",
        "host",
        "tools",
        "words",
        "verbs",
        "agents new/name",
        "mcp install/name",
        "context session create/id",
        "context snapshot/label",
        "context restore/label",
    ];

    /// Every argument with a value, as its verb and its id.
    fn arguments(command: &clap::Command, verb: &str, found: &mut Vec<(String, clap::Arg)>) {
        let takes_value = |argument: &&clap::Arg| argument.get_num_args().is_none_or(|count| count.takes_values());
        let here = command.get_arguments().filter(takes_value);
        found.extend(here.map(|argument| (verb.to_owned(), argument.clone())));
        for below in command.get_subcommands() {
            arguments(below, format!("{verb} {}", below.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn every_argument_names_something_or_takes_words_of_ones_own() {
        let mut command = Cli::whole_command();
        command.build();
        let mut found = Vec::new();
        arguments(&command, "", &mut found);
        let (mut unused, mut unknown): (Vec<&str>, Vec<String>) = (OWN_WORDS.to_vec(), Vec::new());
        for (verb, argument) in found {
            let id = argument.get_id().as_str();
            let is_path = argument.get_value_hint() != ValueHint::Unknown;
            let has_values = !argument.get_possible_values().is_empty();
            let own = [id.to_owned(), format!("{verb}/{id}")];
            unused.retain(|word| !own.contains(&(*word).to_owned()));
            let is_own = own.iter().any(|own| OWN_WORDS.contains(&own.as_str()));
            let is_known = is_path || has_values || is_own || subject(&verb, id).is_some();
            if !is_known {
                unknown.push(format!("`{id}` of `locum {verb}`"));
            }
        }
        assert!(unknown.is_empty(), "say in this file what they name: {unknown:#?}");
        assert!(unused.is_empty(), "no argument is called so: {unused:?}");
    }
}
