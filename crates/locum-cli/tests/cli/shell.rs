//! Commands as a person types them, and what they print, as one transcript.

use serde_json::Value;

use crate::home::{Home, Ran};
use crate::settle::settle;

/// A shell in the project of a home.
pub(crate) struct Shell<'a> {
    home: &'a Home,
    model: String,
    transcript: String,
}

impl<'a> Shell<'a> {
    /// A shell whose commands have `--agents agents` and this model.
    pub(crate) fn new(home: &'a Home, model: &str) -> Self {
        Self { home, model: model.to_owned(), transcript: String::new() }
    }

    /// Runs a command line: words are separated by spaces, and `'…'` keeps them together.
    pub(crate) fn run(&mut self, line: &str) -> Ran {
        self.run_reading(line, "")
    }

    /// The same with this standard input.
    pub(crate) fn run_reading(&mut self, line: &str, input: &str) -> Ran {
        let ran = self.quiet(line, input);
        self.transcript.push_str(&format!("$ locum {line}\n"));
        for (mark, text) in [("< ", input), ("", &ran.stdout), ("! ", &ran.stderr)] {
            for line in self.shown(text).lines() {
                self.transcript.push_str(format!("{mark}{line}").trim_end());
                self.transcript.push('\n');
            }
        }
        self.transcript.push_str(&format!("[{}]\n\n", ran.code.unwrap()));
        ran
    }

    /// Runs a command that the transcript leaves out. No command ever panics, and no pipe gets escape codes.
    pub(crate) fn quiet(&self, line: &str, input: &str) -> Ran {
        let mut arguments: Vec<&str> = words(line);
        arguments.extend(["--agents", "agents", "--model", &self.model]);
        let ran = self.home.locum_reading(&arguments, input.as_bytes());
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains('\u{1b}'), "{ran:?}");
        ran
    }

    /// Everything so far.
    pub(crate) fn transcript(self) -> String {
        self.transcript
    }

    /// The text without what differs from run to run.
    fn shown(&self, text: &str) -> String {
        let shown = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => settle(value, &self.home.root()).to_string(),
            _ => steady(&line.replace(&self.home.root().display().to_string(), "ROOT")),
        };
        text.lines().map(|line| shown(line) + "\n").collect()
    }
}

fn words(line: &str) -> Vec<&str> {
    let quoted = |(place, part)| if place % 2 == 1 { vec![part] } else { str::split_whitespace(part).collect() };
    line.split('\'').enumerate().flat_map(quoted).collect()
}

/// A line with its times, durations and process ids made the same.
fn steady(line: &str) -> String {
    let is_time = |word: &str| word.len() == 24 && word.ends_with('Z') && word.contains('T');
    let is_seconds = |word: &str| word.trim_end_matches('s').parse::<f64>().is_ok() && word.contains('.');
    let mut after_process = false;
    let mut steady = |word: &str| {
        let number = word.parse::<u32>().is_ok();
        let shown = match word {
            _ if is_time(word) => "TIME".to_owned(),
            _ if is_seconds(word) => "0.0".to_owned() + if word.ends_with('s') { "s" } else { "" },
            _ if number && after_process => "PID".to_owned(),
            _ if number_before_ms(word) => "(0".to_owned(),
            _ => word.to_owned(),
        };
        after_process = word == "process";
        shown
    };
    line.split(' ').map(&mut steady).collect::<Vec<_>>().join(" ")
}

/// The first word of `(12 ms)`.
fn number_before_ms(word: &str) -> bool {
    word.strip_prefix('(').is_some_and(|number| number.parse::<u64>().is_ok())
}
