//! Setting one value in a text of JSON with comments and commas that nobody needs, without touching anything else of it.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::merging::{Fields, Spot, like};

/// Things within each other: what hosts keep is flat.
const DEPTH_MAX: usize = 128;

/// A text that says nothing but what a spot holds.
pub(super) fn only(spot: Spot<'_>, fields: &Fields) -> String {
    format!("{{\n  {}\n}}\n", nested(&[spot.folder, spot.name], &words(fields), "  "))
}

/// What a text says. An empty one says nothing.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if is_empty(text) { Ok(json!({})) } else { Ok(Reader::read(text)?.value()) }
}

/// The text with these fields at a spot.
pub(super) fn write(text: &str, spot: Spot<'_>, fields: &Fields) -> Option<String> {
    if is_empty(text) {
        return Some(only(spot, fields));
    }
    let Spot { folder, name } = spot;
    if !read(text).ok()?[folder][name].is_object() {
        return set(text, &[folder, name], &words(fields));
    }
    fields
        .iter()
        .try_fold(text.to_owned(), |text, (field, value)| set(&text, &[folder, name, field], &value.to_string()))
}

fn is_empty(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

/// What is said of a server, as people write it.
fn words(fields: &Fields) -> String {
    let lines: Vec<String> = fields.iter().map(|(field, value)| format!("  {}: {value}", json!(field))).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// The text with a value at a path, which is given as it is to be written.
fn set(text: &str, path: &[&str], words: &str) -> Option<String> {
    let read = Reader::read(text).ok()?;
    let (mut object, mut start) = (&read, 0);
    for (place, name) in path.iter().enumerate() {
        let Node::Object(members) = &object.node else { return None };
        let Some(found) = member(members, name) else {
            return Some(insert(text, object, members, |indent| nested(&path[place..], words, indent)));
        };
        (object, start) = (&found.value, found.start);
    }
    let new = like(text, indented(words, &indent_at(text, start)));
    Some(format!("{}{new}{}", &text[..object.range.start], &text[object.range.end..]))
}

/// The last member of a name: it is the one that counts.
fn member<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().rev().find(|member| member.name == name)
}

/// The text with one more member at the end of an object.
fn insert(text: &str, object: &Spanned, members: &[Member], new: impl Fn(&str) -> String) -> String {
    let outer = indent_at(text, object.range.start);
    let indent = match members.first() {
        Some(first) if text[object.range.start..first.start].contains('\n') => indent_at(text, first.start),
        _ => format!("{outer}  "),
    };
    let new = like(text, new(&indent));
    let line_end = like(text, "\n".to_owned());
    let Some(last) = members.last() else {
        let inside = object.range.start + 1..object.range.end - 1;
        // A comment in an empty object stays.
        let kept = text[inside.clone()].trim_end();
        let (before, after) = (&text[..inside.start], &text[inside.end..]);
        return format!("{before}{kept}{line_end}{indent}{new}{line_end}{outer}{after}");
    };
    let (end, comma) = match last.comma {
        Some(comma) => (comma + 1, ""),
        None => (last.value.range.end, ","),
    };
    // What was remarked about the last one stays beside it.
    let line = text[end..].lines().next().unwrap_or_default();
    let remark = if line.trim_start().starts_with("//") { line } else { "" };
    format!("{}{comma}{remark}{line_end}{indent}{new}{}", &text[..end], &text[end + remark.len()..])
}

/// The white space that the line of a place begins with.
fn indent_at(text: &str, place: usize) -> String {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    text[line..].chars().take_while(|c| *c == ' ' || *c == '\t').collect()
}

/// A member, with what is within each other below it, at an indentation.
fn nested(path: &[&str], words: &str, indent: &str) -> String {
    match path {
        [] => words.to_owned(),
        [name] => format!("{}: {}", json!(name), indented(words, indent)),
        [name, below @ ..] => {
            let inner = format!("{indent}  ");
            format!("{}: {{\n{inner}{}\n{indent}}}", json!(name), nested(below, words, &inner))
        }
    }
}

fn indented(words: &str, indent: &str) -> String {
    words.replace('\n', &format!("\n{indent}"))
}

/// A value, and where it stands.
struct Spanned {
    node: Node,
    range: Range<usize>,
}

enum Node {
    Object(Vec<Member>),
    Array(Vec<Spanned>),
    Plain(Value),
}

struct Member {
    name: String,
    /// Where its name begins.
    start: usize,
    value: Spanned,
    /// The comma after it.
    comma: Option<usize>,
}

impl Spanned {
    fn value(&self) -> Value {
        match &self.node {
            Node::Object(members) => {
                Value::Object(members.iter().map(|m| (m.name.clone(), m.value.value())).collect::<Map<_, _>>())
            }
            Node::Array(items) => Value::Array(items.iter().map(Self::value).collect()),
            Node::Plain(value) => value.clone(),
        }
    }
}

/// Reads a text to its end.
struct Reader<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Reader<'a> {
    fn read(text: &'a str) -> Result<Spanned, String> {
        let mut reader = Self { text, place: if text.starts_with('\u{feff}') { 3 } else { 0 } };
        let value = reader.value(0)?;
        reader.skip()?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.problem("there is more than one value")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.place..].chars().next()
    }

    fn problem(&self, what: &str) -> String {
        let before = &self.text[..self.place];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column}: {what}")
    }

    /// Passes over white space and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let rest = &self.text[self.place..];
            self.place += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.place..];
            if rest.starts_with("//") {
                self.place += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.place += rest.find("*/").ok_or_else(|| self.problem("a comment does not end"))? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Spanned, String> {
        self.skip()?;
        if depth > DEPTH_MAX {
            return Err(self.problem("too many values within each other"));
        }
        let start = self.place;
        let node = match self.peek() {
            None => return Err(self.problem("a value is missing")),
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Node::Plain(Value::String(self.string()?)),
            Some(_) => self.word()?,
        };
        Ok(Spanned { node, range: start..self.place })
    }

    fn object(&mut self, depth: usize) -> Result<Node, String> {
        self.place += 1;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip()?;
            if self.takes('}') {
                return Ok(Node::Object(members));
            }
            if self.peek().is_none() {
                return Err(self.problem("an object does not end"));
            }
            if members.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.problem("a comma is missing"));
            }
            let start = self.place;
            if self.peek() != Some('"') {
                return Err(self.problem("a name in quotation marks is missing"));
            }
            let name = self.string()?;
            self.skip()?;
            if !self.takes(':') {
                return Err(self.problem("a colon is missing"));
            }
            let value = self.value(depth + 1)?;
            self.skip()?;
            let comma = (self.peek() == Some(',')).then_some(self.place);
            self.takes(',');
            members.push(Member { name, start, value, comma });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node, String> {
        self.place += 1;
        let (mut items, mut may_follow) = (Vec::new(), true);
        loop {
            self.skip()?;
            if self.takes(']') {
                return Ok(Node::Array(items));
            }
            if !may_follow {
                return Err(self.problem("a comma is missing"));
            }
            items.push(self.value(depth + 1)?);
            self.skip()?;
            may_follow = self.takes(',');
        }
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.place += wanted.len_utf8();
        }
        is_there
    }

    fn string(&mut self) -> Result<String, String> {
        let mut is_escaped = false;
        for (offset, character) in self.text[self.place..].char_indices().skip(1) {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => {
                    let written = &self.text[self.place..=self.place + offset];
                    let read = serde_json::from_str(written).map_err(|_| self.problem("a text cannot be read"))?;
                    self.place += offset + 1;
                    return Ok(read);
                }
                _ => {}
            }
        }
        Err(self.problem("a text does not end"))
    }

    fn word(&mut self) -> Result<Node, String> {
        let rest = &self.text[self.place..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let value = serde_json::from_str(&rest[..end]).map_err(|_| self.problem("this is no value"))?;
        self.place += end;
        Ok(Node::Plain(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::install::merging::{Language, testing};

    fn merged(text: &str) -> String {
        testing::merged(Language::Json, text, "servers", &vec![("command", json!("locum"))])
    }

    #[test]
    fn one_value_is_set_and_the_rest_stays() {
        let entry = "\"locum\": {\n      \"command\": \"locum\"\n    }";
        for (before, after) in [
            ("", format!("{{\n  \"servers\": {{\n    {entry}\n  }}\n}}\n")),
            ("  \n", format!("{{\n  \"servers\": {{\n    {entry}\n  }}\n}}\n")),
            ("{}", format!("{{\n  \"servers\": {{\n    {entry}\n  }}\n}}")),
            (
                "{\n  // mine\n  \"a\": [1, 2,], /* b */\n  \"c\": null\n}\n",
                format!(
                    "{{\n  // mine\n  \"a\": [1, 2,], /* b */\n  \"c\": null,\n  \"servers\": {{\n    {entry}\n  }}\n}}\n"
                ),
            ),
            (
                "{\n  \"servers\": {\n    \"x\": {\"command\": \"y\"}, // last\n  },\n  \"z\": 1\n}\n",
                format!(
                    "{{\n  \"servers\": {{\n    \"x\": {{\"command\": \"y\"}}, // last\n    {entry}\n  }},\n  \"z\": 1\n}}\n"
                ),
            ),
            (
                "{\n  \"servers\": {\n    // none yet\n  }\n}",
                format!("{{\n  \"servers\": {{\n    // none yet\n    {entry}\n  }}\n}}"),
            ),
            (
                "{\n  \"servers\": {\n    \"locum\": {\"command\": \"old\", \"env\": {}},\n    \"x\": 1\n  }\n}",
                "{\n  \"servers\": {\n    \"locum\": {\"command\": \"locum\", \"env\": {}},\n    \"x\": 1\n  }\n}".to_owned(),
            ),
            (
                "{\n  \"servers\": {\n    \"locum\": {\n      \"env\": {} // mine\n    }\n  }\n}",
                "{\n  \"servers\": {\n    \"locum\": {\n      \"env\": {}, // mine\n      \"command\": \"locum\"\n    }\n  }\n}"
                    .to_owned(),
            ),
            ("{\n  \"servers\": {\n    \"locum\": null\n  }\n}", {
                format!("{{\n  \"servers\": {{\n    {entry}\n  }}\n}}")
            }),
            ("{\r\n  \"a\": 1\r\n}\r\n", {
                format!("{{\n  \"a\": 1,\n  \"servers\": {{\n    {entry}\n  }}\n}}\n").replace('\n', "\r\n")
            }),
            ("{\"servers\": {\"locum\": {\"command\": \"locum\"}}}", "same".to_owned()),
            ("\u{feff}{\"servers\": {\"locum\": {\"command\": \"locum\"}}}", "same".to_owned()),
        ] {
            assert_eq!(merged(before), after, "{before}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_its_place() {
        for (before, problem) in [
            ("[]", "it is not a JSON object"),
            ("{\"servers\": []}", "`servers` is no object"),
            ("{\"a\": 1 \"b\": 2}", "line 1, column 9: a comma is missing"),
            ("{\n  a: 1}", "line 2, column 3: a name in quotation marks is missing"),
            ("{\"a\" 1}", "line 1, column 6: a colon is missing"),
            ("{\"a\": }", "line 1, column 7: this is no value"),
            ("{\"a\": 1", "line 1, column 8: an object does not end"),
            ("{\"a\": \"x}", "line 1, column 7: a text does not end"),
            ("{} {}", "line 1, column 4: there is more than one value"),
            ("{ /* x", "line 1, column 3: a comment does not end"),
            ("{\"a\": [1 2]}", "line 1, column 10: a comma is missing"),
        ] {
            assert_eq!(merged(before), format!("refused: {problem}"), "{before}");
        }
        assert!(merged(&"[".repeat(100_000)).starts_with("refused: "));
    }
}
