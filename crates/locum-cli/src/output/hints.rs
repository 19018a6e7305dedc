//! What to do next, as somebody at a command line does it. Hints speak of tools and their fields, because most who read
//! them are models; a person has verbs and flags instead.

/// What a hint says, and what it says to a person.
const AT_THE_SHELL: [(&str, &str); 13] = [
    ("list_agents shows all", "`locum agents list` shows all"),
    ("list shows them; an id looks like b_01", "`locum board list` shows them; an id looks like b_01"),
    ("list_keys shows them", "`locum context list` shows them"),
    ("list_snapshots shows them", "`locum context snapshots` shows them"),
    ("status without task_id lists the tasks", "`locum status` lists the tasks"),
    ("use the action result", "`locum result` still has it"),
    ("update it with status pending to", "say `locum board update` with --status pending to"),
    ("update it with status pending, then", "say `locum board update` with --status pending, then"),
    ("or change blocked_by with update", "or say `locum board update` with --unblock"),
    ("or say queue: true", "or say --queue"),
    ("raise max_input_tokens", "raise --max-input-tokens"),
    ("raise max_cost_usd", "raise --max-cost"),
    (
        "bound it with max_input_tokens and max_output_tokens",
        "bound it with --max-input-tokens and --max-output-tokens",
    ),
];

/// A hint for a person.
pub(super) fn at_the_shell(hint: &str) -> String {
    AT_THE_SHELL.iter().fold(hint.to_owned(), |hint, (tool, verb)| hint.replace(tool, verb))
}
