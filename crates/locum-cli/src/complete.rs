//! What may come next on a command line that is being typed: verbs and flags, and what there is to be named just now,
//! such as agents and tasks. A shell asks for it through the scripts beside this file. Whatever goes wrong, nothing is
//! offered and nothing is said: somebody in the middle of a line wants no message there.

mod known;
mod subject;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap::ValueHint;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use self::known::{Known, Name};
use self::subject::subject;
use crate::args::{Cli, Shell};

/// The script that makes a shell ask.
pub(crate) fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => include_str!("complete/locum.bash").to_owned(),
        Shell::Zsh => include_str!("complete/locum.zsh").to_owned(),
        Shell::Fish => include_str!("complete/locum.fish").to_owned(),
        Shell::Elvish => fixed(clap_complete::Shell::Elvish),
        Shell::Powershell => fixed(clap_complete::Shell::PowerShell),
    }
}

/// A script that knows verbs and flags, and asks nobody.
fn fixed(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::whole_command(), "locum", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// What may stand for the last of these words, one on each line, with a tab and what it is.
pub(crate) fn offers(words: Vec<OsString>) -> String {
    let Some(typed) = words.last().cloned() else { return String::new() };
    let known = Arc::new(Known::of_line(&words));
    let place = words.len() - 1;
    let directory = known.working_directory();
    let mut command = with_names(Cli::whole_command(), "", &known);
    let offered = clap_complete::engine::complete(&mut command, words, place, directory.as_deref());
    let wants_flags = typed.as_encoded_bytes().starts_with(b"-");
    let lines = offered.unwrap_or_default().into_iter().filter_map(|offer| line(&offer, wants_flags));
    lines.collect()
}

/// An offer as a shell reads it. Flags are many: they are offered to those who have begun one.
fn line(offer: &CompletionCandidate, wants_flags: bool) -> Option<String> {
    let value = offer.get_value().to_str().filter(|value| !value.contains(['\n', '\t']))?;
    if value.starts_with('-') && !wants_flags {
        return None;
    }
    let about = offer.get_help().map(ToString::to_string).unwrap_or_default();
    let about = about.lines().next().unwrap_or_default().replace('\t', " ");
    Some(if about.is_empty() { format!("{value}\n") } else { format!("{value}\t{about}\n") })
}

/// The command line, in which arguments that name something know what there is.
fn with_names(command: clap::Command, verb: &str, known: &Arc<Known>) -> clap::Command {
    let command = command.mut_args(|argument| {
        let Some(subject) = subject(verb, argument.get_id().as_str()) else { return argument };
        let known = Arc::clone(known);
        let names = move |typed: &OsStr| -> Vec<CompletionCandidate> {
            let begins = |name: &Name| name.name.as_bytes().starts_with(typed.as_encoded_bytes());
            let fitting = known.names(subject).into_iter().filter(begins);
            fitting.map(|name| CompletionCandidate::new(name.name).help(Some(name.about.into()))).collect()
        };
        argument.value_hint(ValueHint::Other).add(ArgValueCompleter::new(names))
    });
    command.mut_subcommands(|below| {
        let verb = format!("{verb} {}", below.get_name());
        with_names(below, verb.trim_start(), known)
    })
}
