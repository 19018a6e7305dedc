//! The two halves of an agent file: the frontmatter between two `---` lines, and the body below it. A second, lenient
//! look repairs the one mistake that other programs let pass: text that YAML wants in quotes.

use super::note::{Note, Place, Topic};
use super::yaml::{self, Entry, Refused};
use crate::limits;

/// The keys whose values are one line of text: the only ones that are put in quotes for a writer who forgot them.
const TEXT_KEYS: [&str; 6] = ["description", "name", "model", "color", "initialPrompt", "initial_prompt"];

/// A file as two halves.
#[derive(Debug)]
pub(super) struct Halves<'a> {
    pub(super) entries: Vec<Entry>,
    pub(super) body: &'a str,
    /// Where the body begins.
    pub(super) body_at: Place,
}

/// Reads bytes as text: UTF-8, of bounded size, without the mark that some editors put at its start.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Note> {
    if bytes.len() > limits::AGENT_FILE_BYTES_MAX {
        let (is, most) = (bytes.len().div_ceil(1024), limits::AGENT_FILE_BYTES_MAX / 1024);
        let message = format!("the file has {is} KiB or more; an agent file has at most {most} KiB");
        return Err(Note::error(Place::START, Topic::File, message));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "the file is written in UTF-16: save it as UTF-8";
        return Err(Note::error(Place::START, Topic::File, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        let message = format!("the byte 0x{byte:02x} is not UTF-8: save the file as UTF-8");
        Note::error(Place::of_byte(good, good.len()), Topic::File, message)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Cuts a text into its halves and reads the upper one.
pub(super) fn read<'a>(text: &'a str, notes: &mut Vec<Note>) -> Result<Halves<'a>, Note> {
    let (yaml, body) = split(text)?;
    let body_at = Place { line: text[..text.len() - body.len()].matches('\n').count() + 1, column: 1 };
    let entries = parse_leniently(yaml, notes)?;
    Ok(Halves { entries, body, body_at })
}

fn split(text: &str) -> Result<(&str, &str), Note> {
    let refuse = |at: Place, message: String| Err(Note::error(at, Topic::File, message));
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        let begins = match first.trim() {
            "" if text.trim().is_empty() => "it is empty".to_owned(),
            "" => "it begins with an empty line".to_owned(),
            line => format!("it begins with `{}`", yaml::short(line)),
        };
        return refuse(
            Place::START,
            format!("the file must begin with a line `---`, then `description: …`, then another line `---`; {begins}"),
        );
    }
    let start = first.len();
    let mut at = start;
    for line in lines {
        if line.trim_end() == "---" {
            if at - start > limits::FRONTMATTER_BYTES_MAX {
                let (is, most) = ((at - start).div_ceil(1024), limits::FRONTMATTER_BYTES_MAX / 1024);
                return refuse(
                    Place { line: 2, column: 1 },
                    format!("the frontmatter has {is} KiB; at most {most} KiB are allowed: move text to the body"),
                );
            }
            return Ok((&text[start..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    refuse(Place::START, "the frontmatter is not closed: add a line `---` below its last key".to_owned())
}

/// Parses; where the syntax of a line of text is refused, parses again with that text in quotes.
fn parse_leniently(yaml: &str, notes: &mut Vec<Note>) -> Result<Vec<Entry>, Note> {
    const FIRST_LINE: usize = 2;
    let mut found = Vec::new();
    let Refused { note, is_syntax } = match yaml::parse(yaml, FIRST_LINE, &mut found) {
        Ok(entries) => {
            notes.append(&mut found);
            return Ok(entries);
        }
        Err(refused) => refused,
    };
    if !is_syntax {
        return Err(note);
    }
    let (repaired, warnings) = quote_texts(yaml, FIRST_LINE);
    if warnings.is_empty() {
        return Err(note);
    }
    found.clear();
    match yaml::parse(&repaired, FIRST_LINE, &mut found) {
        Ok(entries) => {
            notes.extend(found.into_iter().chain(warnings));
            Ok(entries)
        }
        // The first complaint is about the file as it is.
        Err(_) => Err(note),
    }
}

/// Puts the values of text keys into quotes where YAML would stumble over them. Lines keep their numbers.
fn quote_texts(yaml: &str, first_line: usize) -> (String, Vec<Note>) {
    let mut repaired = String::with_capacity(yaml.len() + 16);
    let mut warnings = Vec::new();
    for (number, line) in yaml.split_inclusive('\n').enumerate() {
        match quoted(line) {
            None => repaired.push_str(line),
            Some((key, before, value)) => {
                let at = Place { line: first_line + number, column: before.chars().count() + 1 };
                repaired.push_str(&format!("{before}'{}'\n", value.replace('\'', "''")));
                let message = format!("`{key}` is taken as one text; other programs may refuse it: put it in quotes");
                warnings.push(Note::warning(at, Topic::Value, message));
            }
        }
    }
    (repaired, warnings)
}

/// A line `key: text` that has to be in quotes: its key, everything before the text, the text.
fn quoted(line: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = line.split_once(':')?;
    if !TEXT_KEYS.contains(&key) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let value = rest.trim();
    // Anchors, aliases and tags are never text without quotes, and quotes that are not closed are for the writer to mend.
    let is_text = !value.is_empty() && !value.starts_with(['"', '\'', '|', '>', '&', '*', '!', '#']);
    // A list or map that is closed and followed by text was meant as text; one that is not closed was not.
    let is_followed = |open: char, close: char| {
        value.starts_with(open) && value.rfind(close).is_some_and(|end| end + close.len_utf8() < value.len())
    };
    let stumbles = value.contains(": ")
        || value.ends_with(':')
        || value.starts_with(['@', '`', '%', ',', ']', '}'])
        || is_followed('[', ']')
        || is_followed('{', '}');
    if !is_text || !stumbles {
        return None;
    }
    let start = line.find(value)?.max(key.len() + 1);
    Some((key, &line[..start], value))
}
