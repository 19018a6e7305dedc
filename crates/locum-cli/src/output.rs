//! The one place that prints. Answers go to standard output and nothing else does; people get colour and short
//! sentences on a terminal, plain text in a pipe, machines get JSON.

mod hints;
pub(crate) mod live;
pub(crate) mod question;
pub(crate) mod screen;
mod tables;
pub(crate) mod voice;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use locum::protocol::{Code, Refusal};
use owo_colors::OwoColorize;
use serde::Serialize;

pub(crate) use tables::{Table, counted, cut};

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// As asked.
    Done,
    /// Failed or refused.
    Failed,
    /// Refused because the project is not trusted.
    NotTrusted,
    /// The time was over.
    TimedOut,
    /// Interrupted by a person.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::NotTrusted => 3,
            Exit::TimedOut => 124,
            Exit::Interrupted => 130,
        })
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether machines read the answer.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether a person watches what happens.
    pub(crate) fn is_live(self) -> bool {
        !self.json && !self.quiet && std::io::stderr().is_terminal()
    }

    /// The answer, as text. A reader that went away is not a failure of the answer.
    pub(crate) fn answer(self, text: &str) {
        let mut stdout = AutoStream::new(std::io::stdout().lock(), color(std::io::stdout().is_terminal()));
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()).ok();
    }

    /// Whether a person reads the answer as it is written.
    pub(crate) fn is_spoken(self) -> bool {
        self.is_live() && std::io::stdout().is_terminal()
    }

    /// The answer, as one line of JSON.
    pub(crate) fn json(self, answer: &impl Serialize) {
        match serde_json::to_string(answer) {
            Ok(line) => self.answer(&line),
            Err(error) => self.complain(&format!("the answer cannot be printed: {error}"), None),
        }
    }

    /// A note for a person, beside the answer.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet && !self.json {
            self.aside(&text.dimmed().to_string());
        }
    }

    /// Something that a person should know.
    pub(crate) fn warn(self, text: &str) {
        if !self.quiet {
            self.aside(&format!("{} {text}", "warning:".yellow()));
        }
    }

    /// What went wrong, and what to do.
    pub(crate) fn complain(self, message: &str, hint: Option<&str>) {
        self.aside(&format!("{} {message}", "error:".red()));
        if let Some(hint) = hint {
            self.aside(&format!("{} {hint}", "hint:".cyan()));
        }
    }

    /// Whether a person is there to answer a question.
    pub(crate) fn can_ask(self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Asks a person a question; no without one, or without a clear yes.
    pub(crate) fn asks(self, question: &str) -> bool {
        if !self.can_ask() {
            return false;
        }
        self.aside(&format!("{question} [y/N]"));
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
    }

    /// A refusal, in the form that the reader can use; with JSON on standard output too.
    pub(crate) fn refuse(self, refusal: &Refusal) -> Exit {
        if self.json {
            self.json(refusal);
        } else {
            let hint = refusal.hint.as_deref().map(hints::at_the_shell);
            self.complain(&format!("{} ({})", refusal.message, refusal.code), hint.as_deref());
        }
        if refusal.code == Code::NotTrusted { Exit::NotTrusted } else { Exit::Failed }
    }

    /// A line beside the answer.
    pub(crate) fn aside(self, text: &str) {
        let mut stderr = AutoStream::new(std::io::stderr().lock(), color(std::io::stderr().is_terminal()));
        writeln!(stderr, "{text}").ok();
    }

    /// Columns on standard output: the terminal's, or none in a pipe, where nothing is cut.
    pub(crate) fn width(self) -> Option<usize> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0).max(40))
    }
}

/// Colour where a terminal reads it and nobody said otherwise.
fn color(terminal: bool) -> ColorChoice {
    if terminal { AutoStream::choice(&std::io::stderr()) } else { ColorChoice::Never }
}
