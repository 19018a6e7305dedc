//! The words of one agent, shown line by line while it says them.

use locum::progress::{News, Progress};

use super::Output;

/// What an agent says.
pub(crate) struct Voice {
    output: Output,
    agent: &'static str,
    /// The reply under way, or the last one.
    reply: String,
    /// How much of it was shown, in bytes.
    shown: usize,
}

impl Voice {
    pub(crate) fn new(output: Output, agent: &'static str) -> Self {
        Self { output, agent, reply: String::new(), shown: 0 }
    }

    /// Takes up news; the lines that are whole now, if it is this agent's and there are any.
    pub(crate) fn hear(&mut self, progress: &Progress) -> Option<String> {
        let News::Text { offset, text, .. } = &progress.news else { return None };
        if progress.agent.as_str() != self.agent {
            return None;
        }
        let mut lines = String::new();
        if *offset == 0 {
            lines = self.rest();
            (self.reply, self.shown) = (String::new(), 0);
        }
        // News that was missed leaves a gap; the whole is shown at the end then.
        if *offset == self.reply.len() {
            self.reply.push_str(text);
        }
        let end = self.reply.rfind('\n').map_or(self.shown, |end| end + 1);
        lines.push_str(self.reply.get(self.shown..end).unwrap_or_default());
        self.shown = self.shown.max(end);
        (!lines.is_empty()).then_some(lines)
    }

    /// Shows lines.
    pub(crate) fn say(&self, lines: &str) {
        self.output.answer(lines);
    }

    /// Shows what is left; whether the last reply, shown whole, was this text.
    pub(crate) fn finish(&mut self, text: &str) -> bool {
        let rest = self.rest();
        if !rest.is_empty() {
            self.say(&rest);
        }
        self.shown = self.reply.len();
        !self.reply.is_empty() && self.reply.trim() == text.trim()
    }

    fn rest(&self) -> String {
        self.reply.get(self.shown..).unwrap_or_default().to_owned()
    }
}
