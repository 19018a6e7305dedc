//! `edit`: exact text for exact text. It works on bytes, so that what is not touched stays as it is, whatever it is.

mod nearest;

use locum_core::limits;
use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::beneath::quoted;
use super::writing::{Revision, Writing};

/// What some editors put at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines that are named where a text occurs more than once.
const LINES_NAMED_MAX: usize = 8;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    #[serde(alias = "file_path")]
    path: String,
    /// The exact text that is there
    #[serde(alias = "old_string")]
    old: Option<String>,
    /// What takes its place
    #[serde(alias = "new_string")]
    new: Option<String>,
    replace_all: Option<bool>,
    /// Several changes, instead of `old` and `new`
    edits: Option<Vec<Change>>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(alias = "old_string")]
    old: String,
    #[serde(alias = "new_string")]
    new: String,
    replace_all: Option<bool>,
}

impl Writing for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = include_str!("edit.md");

    fn path(&self) -> &str {
        &self.path
    }

    fn revise(&self, before: Option<&[u8]>) -> Result<Revision, ToolOutput> {
        let Some(before) = before else {
            return Err(ToolOutput::failed(format!("no such file: {}; `write` makes new files", self.path)));
        };
        if before.contains(&0) {
            return Err(ToolOutput::failed(format!("{} is a binary file and cannot be edited", quoted(&self.path))));
        }
        let changes = self.changes()?;
        let body = before.strip_prefix(BYTE_ORDER_MARK).unwrap_or(before);
        let mut text = body.to_vec();
        let mut places = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let (changed, lines) = change.apply(&text).map_err(|why| {
                let which = if changes.len() > 1 {
                    format!("change {} of {}: ", index + 1, changes.len())
                } else {
                    String::new()
                };
                let none = if index > 0 { "; nothing was changed" } else { "" };
                ToolOutput::failed(format!("{}: {which}{why}{none}", quoted(&self.path)))
            })?;
            text = changed;
            places.extend(lines);
        }
        keep_final_newline(body, &mut text);
        let content = [&before[..before.len() - body.len()], &text].concat();
        if content.len() > limits::WRITTEN_BYTES_MAX {
            return Err(ToolOutput::failed(format!("{} would become too large", quoted(&self.path))));
        }
        Ok(Revision { content, said: said(&places) })
    }
}

impl Edit {
    fn changes(&self) -> Result<Vec<Change>, ToolOutput> {
        let refused = |why: &str| Err(ToolOutput::failed(format!("invalid input: {why}")));
        match (&self.old, &self.new, &self.edits) {
            (Some(old), Some(new), None) => {
                Ok(vec![Change { old: old.clone(), new: new.clone(), replace_all: self.replace_all }])
            }
            (None, None, Some(edits)) if edits.is_empty() => refused("`edits` is empty"),
            (None, None, Some(edits)) if edits.len() > limits::EDITS_PER_CALL_MAX => {
                refused(&format!("`edits` holds more than {} changes", limits::EDITS_PER_CALL_MAX))
            }
            (None, None, Some(edits)) => Ok(edits.clone()),
            (_, _, Some(_)) => refused("give `old` and `new`, or `edits`, not both"),
            (_, _, None) => refused("`old` and `new` are needed, or `edits`"),
        }
    }
}

impl Change {
    /// The text with the change, and the lines where it was made.
    fn apply(&self, text: &[u8]) -> Result<(Vec<u8>, Vec<usize>), String> {
        if self.old.is_empty() {
            return Err("`old` is empty: name the text to replace, or use `write`".to_owned());
        }
        if self.old == self.new {
            return Err("`old` and `new` are the same".to_owned());
        }
        let (old, new, found) = self.find(text);
        let Some(first) = found.first() else {
            return Err(nearest::explain(text, &self.old));
        };
        if found.len() > 1 && self.replace_all != Some(true) {
            let lines: Vec<String> =
                found.iter().take(LINES_NAMED_MAX).map(|at| line_of(text, *at).to_string()).collect();
            let more = if found.len() > LINES_NAMED_MAX { ", …" } else { "" };
            return Err(format!(
                "`old` occurs {} times (lines {}{more}); add lines around it, or say replace_all",
                found.len(),
                lines.join(", ")
            ));
        }
        let mut changed = Vec::with_capacity(text.len() + new.len());
        changed.extend_from_slice(&text[..*first]);
        let mut lines = Vec::with_capacity(found.len());
        for (index, at) in found.iter().enumerate() {
            lines.push(line_of(&changed, changed.len()));
            changed.extend_from_slice(&new);
            let next = found.get(index + 1).copied().unwrap_or(text.len());
            changed.extend_from_slice(&text[at + old.len()..next]);
            if changed.len() > 2 * limits::WRITTEN_BYTES_MAX {
                return Err("the file would become too large".to_owned());
            }
        }
        Ok((changed, lines))
    }

    /// What is looked for, what takes its place, and where it is. A model sees no carriage returns, so in a file that
    /// has them line ends are meant as the file writes them.
    fn find(&self, text: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<usize>) {
        let (plain_old, plain_new) = (self.old.as_bytes().to_vec(), self.new.as_bytes().to_vec());
        let (old, new) = (with_carriage_returns(&self.old), with_carriage_returns(&self.new));
        if uses_carriage_returns(text) {
            let found = occurrences(text, &old);
            return (old, new, found);
        }
        let found = occurrences(text, &plain_old);
        if found.is_empty() && text.contains(&b'\r') && old != plain_old {
            let found = occurrences(text, &old);
            return (old, new, found);
        }
        (plain_old, plain_new, found)
    }
}

/// Whether every line of a text ends with a carriage return and a newline.
fn uses_carriage_returns(text: &[u8]) -> bool {
    let mut newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').peekable();
    newlines.peek().is_some() && newlines.all(|(at, _)| at > 0 && text[at - 1] == b'\r')
}

fn with_carriage_returns(text: &str) -> Vec<u8> {
    text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes()
}

/// Where a text occurs, from the beginning, without overlaps.
fn occurrences(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(text, wanted).collect()
}

/// The number of the line at a place, from 1.
fn line_of(text: &[u8], at: usize) -> usize {
    text[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A file that ended with a newline still does.
fn keep_final_newline(before: &[u8], text: &mut Vec<u8>) {
    if before.ends_with(b"\n") && !text.is_empty() && !text.ends_with(b"\n") {
        let end: &[u8] = if before.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        text.extend_from_slice(end);
    }
}

fn said(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(LINES_NAMED_MAX).map(ToString::to_string).collect();
    let more = if lines.len() > LINES_NAMED_MAX { ", …" } else { "" };
    match lines {
        [line] => format!("changed, at line {line}"),
        lines => format!("{} changes, at lines {}{more}", lines.len(), shown.join(", ")),
    }
}

#[cfg(test)]
mod tests;
