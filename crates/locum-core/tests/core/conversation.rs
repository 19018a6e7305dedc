//! Conversations, word by word: what the model is told, which tools run together, how the task ends.

use crate::script::Script;
use crate::stage::{Ends, play};

/// One test for each conversation, and a table of all for the crash tests.
macro_rules! conversations {
    ($($name:ident: $text:literal)*) => {
        pub(super) const ALL: &[(&str, &str)] = &[$((stringify!($name), $text),)*];

        $(
            #[test]
            fn $name() {
                check($text);
            }
        )*
    };
}

mod endings;
mod fallback;
mod loops;
mod tools;

/// Every conversation, by name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    tools::ALL.iter().chain(endings::ALL).chain(fallback::ALL).chain(loops::ALL).copied()
}

/// Plays a conversation and compares it with its own text.
fn check(text: &str) {
    let script = Script::parse(text);
    let played = play(&script, Ends::InOrder);
    let usage = played.task.usage();
    let mut lines = played.lines.clone();
    lines.push(format!("used {} turns, {} tool calls, {} denials", usage.turns, usage.tool_calls, usage.denials));
    assert_eq!(lines.join("\n"), expected(text, &script), "\n{text}");
}

/// The lines that playing must give: without the inputs, and with replies by number.
fn expected(text: &str, script: &Script) -> String {
    let mut answers = 0..;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let word = line.split(' ').next().unwrap_or_default();
        match word {
            "agent" | "prompt" | "task" | "after" => {}
            ">" => lines.push(format!("> {}", answers.next().unwrap())),
            "!" => lines.push(format!("! {:?}", script.stop.as_ref().unwrap().cause)),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}
