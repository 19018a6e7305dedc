//! What is shown below the help of a verb: how it is said, by examples. A test says each of them to the parser.

/// Examples by verb, as they are typed.
const EXAMPLES: [(&str, &[&str]); 54] = [
    ("run", &["locum run explore \"Where is the retry loop?\"", "git diff | locum run reviewer -"]),
    (
        "parallel",
        &[
            "locum parallel explore=\"Where are limits?\" scout=\"How is it built?\"",
            "locum parallel --tasks tasks.jsonl",
        ],
    ),
    ("chain", &["locum chain explore=\"Find the retry code\" writer=\"Explain it to a newcomer: {previous}\""]),
    ("ask", &["locum ask \"Where is a task resumed? What is tested about it?\""]),
    ("race", &["locum race explore=\"Where is the retry loop?\" scout=\"Where is the retry loop?\""]),
    (
        "map",
        &[
            "locum map explore \"What does {input} do?\" src/a.rs src/b.rs",
            "git ls-files | locum map explore \"What does {input} do?\" --inputs -",
        ],
    ),
    ("spawn", &["locum spawn explore \"Map the store\"", "locum spawn writer \"Write it down\" --after t_01"]),
    ("status", &["locum status", "locum status t_01 --json"]),
    ("watch", &["locum watch"]),
    ("wait", &["locum wait t_01 t_02", "locum wait --any --timeout 60"]),
    ("collect", &["locum collect t_01"]),
    ("result", &["locum result t_01 | less", "locum result t_01 --offset 4000 --limit 2000"]),
    ("cancel", &["locum cancel t_01"]),
    ("logs", &["locum logs t_01"]),
    ("agents list", &["locum agents list"]),
    ("agents show", &["locum agents show explore"]),
    ("agents lint", &["locum agents lint", "locum agents lint .claude/agents --for claude"]),
    ("agents new", &["locum agents new sql-reviewer --from explore"]),
    ("agents trust", &["locum agents trust", "locum agents trust --revoke"]),
    ("models list", &["locum models list"]),
    ("models show", &["locum models show sonnet"]),
    ("models probe", &["locum models probe"]),
    ("models route", &["locum models route \"Find the race in src/worker.rs\" --hint cost_preference=eco"]),
    ("worktree list", &["locum worktree list"]),
    ("worktree diff", &["locum worktree diff t_01", "locum worktree diff t_01 --against t_02"]),
    ("worktree apply", &["locum worktree apply t_01"]),
    ("worktree drop", &["locum worktree drop t_01"]),
    ("worktree fsck", &["locum worktree fsck"]),
    ("context list", &["locum context list"]),
    ("context read", &["locum context read goal"]),
    ("context read-batch", &["locum context read-batch goal plan"]),
    ("context write", &["locum context write goal \"Ship part A\"", "cat notes.md | locum context write notes -"]),
    ("context delete", &["locum context delete goal"]),
    ("context history", &["locum context history goal --versions 5"]),
    ("context snapshot", &["locum context snapshot before-fix"]),
    ("context snapshots", &["locum context snapshots"]),
    ("context restore", &["locum context restore before-fix"]),
    ("context session", &["locum context session list", "locum context session create release"]),
    ("board add", &["locum board add \"Write the tests\" --active-form \"Writing tests\""]),
    ("board list", &["locum board list"]),
    ("board show", &["locum board show b_01"]),
    (
        "board update",
        &["locum board update b_01 --comment \"Half of it is done\"", "locum board update b_01 --status pending"],
    ),
    ("board claim", &["locum board claim b_01"]),
    ("board complete", &["locum board complete b_01"]),
    ("call", &["locum call subagent '{\"action\": \"list_agents\"}'"]),
    ("tools", &["locum tools --face tallow"]),
    ("serve", &["locum serve", "locum serve --listen 127.0.0.1:8000"]),
    ("mcp install", &["locum mcp install claude", "locum mcp install claude --write"]),
    ("mcp servers", &["locum mcp servers --connect"]),
    ("config show", &["locum config show"]),
    ("gc", &["locum gc --dry-run"]),
    ("help", &["locum help run", "locum help agents new"]),
    ("completions", &["locum completions bash > ~/.local/share/bash-completion/completions/locum"]),
    ("man", &["locum man ~/.local/share/man/man1"]),
];

/// What is shown below all verbs.
const FIRST: &str = "Begin with:
  locum run explore \"Where is the retry loop?\"
  locum help run

Exit status: 0 as asked, 1 failed or refused, 2 not understood, 3 the project is not trusted, 124 the \
time was over, 130 interrupted.";

/// A command line that shows examples with its help.
pub(super) fn add(command: clap::Command) -> clap::Command {
    below(command.after_help(FIRST), "")
}

fn below(command: clap::Command, path: &str) -> clap::Command {
    command.mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        let lines = EXAMPLES.iter().find(|(verb, _)| *verb == path.trim_start()).map(|(_, lines)| lines);
        let verb = match lines {
            Some(lines) => verb.after_help(format!("Examples:\n  {}", lines.join("\n  "))),
            None => verb,
        };
        below(verb, &path)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    /// The words of a line, as a shell makes them; of a pipe the last part, and nothing of where it is written to.
    fn words(line: &str) -> Vec<String> {
        let line = line.rsplit_once("locum ").map_or(line, |(_, rest)| rest);
        let (mut words, mut quote, mut word) = (vec!["locum".to_owned()], None, None::<String>);
        for c in line.chars() {
            match (quote, c) {
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (Some(open), _) if open == c => quote = None,
                (None, ' ') => words.extend(word.take()),
                (None, '>' | '|') => return words,
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_example_is_understood_as_its_verb() {
        for (verb, lines) in EXAMPLES {
            for line in lines {
                let words = words(line);
                let said = words[1..].join(" ");
                assert!(said.starts_with(verb), "{line}: no example of {verb}");
                let understood = Cli::whole_command().try_get_matches_from(&words);
                assert!(understood.is_ok(), "{line}: {}", understood.unwrap_err());
            }
        }
    }

    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, bool)>) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let path = format!("{path} {}", verb.get_name());
            let takes = verb.get_positionals().next().is_some();
            if !verb.has_subcommands() && takes {
                found.push((path.trim_start().to_owned(), verb.get_after_help().is_some()));
            }
            leaves(verb, &path, found);
        }
    }

    #[test]
    fn a_verb_that_takes_words_has_an_example() {
        let mut found = Vec::new();
        leaves(&Cli::whole_command(), "", &mut found);
        let without: Vec<&String> = found.iter().filter(|(_, has)| !has).map(|(verb, _)| verb).collect();
        let own = ["context session create", "context session archive", "context session delete", "mcp accept"];
        assert_eq!(without, own, "say in this file how they are said");
        assert!(found.len() > 30, "nothing was looked at");
    }
}
