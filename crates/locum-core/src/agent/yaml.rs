//! YAML as a tree that remembers where everything was written. Only what a person writes by hand is allowed: one
//! document, no anchors, aliases or tags, every key once. The tree decides nothing about types: what a word means
//! depends on the field it is given to.

use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::hidden;
use super::note::{Note, Place, Topic};
use crate::limits;

/// One line `key: value` of a map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The key as it is written.
    pub(super) key: String,
    /// Where the key is.
    pub(super) at: Place,
    /// What it is given.
    pub(super) value: Node,
}

/// A value and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A word or text; in quotes it is text, whatever it looks like.
    Scalar {
        text: String,
        style: Style,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
    Block,
}

impl Node {
    /// Whether nothing is written here.
    pub(super) fn is_null(&self) -> bool {
        let null = |text: &str| matches!(text, "" | "~" | "null" | "Null" | "NULL");
        matches!(&self.value, Value::Scalar { text, style: Style::Plain } if null(text))
    }
}

/// What the parser refused: where, the note for it, and whether it was the syntax.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) note: Note,
    /// Whether other quotes could make sense of it; a key that is given twice stays wrong.
    pub(super) is_syntax: bool,
}

/// Reads a map. Its first line is line `first_line` of the file. Hidden characters that escapes make are noted.
pub(super) fn parse(yaml: &str, first_line: usize, notes: &mut Vec<Note>) -> Result<Vec<Entry>, Refused> {
    let depth_max = limits::FRONTMATTER_DEPTH_MAX;
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: depth_max,
        block_nesting_limit: depth_max,
    };
    let parser = Parser::new_from_str_with_options(yaml, options);
    let mut tree = Tree { yaml, parser, lines_before: first_line - 1, nodes: 0, notes };
    tree.document()
}

struct Tree<'a, 'b> {
    yaml: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    lines_before: usize,
    nodes: usize,
    notes: &'b mut Vec<Note>,
}

impl<'a> Tree<'a, '_> {
    fn document(&mut self) -> Result<Vec<Entry>, Refused> {
        let mut entries = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                _ if entries.is_some() => {
                    let message = "the frontmatter must be one YAML document: remove the `...` line before this one";
                    return Err(self.refuse(&span, message));
                }
                event => {
                    let node = self.node(event, &span, 0)?;
                    let is_null = node.is_null();
                    entries = Some(match node.value {
                        Value::Map(entries) => entries,
                        Value::Scalar { .. } if is_null => Vec::new(),
                        Value::Scalar { .. } | Value::List(_) => {
                            let message = "the frontmatter must consist of lines like `description: what it is for`";
                            return Err(Refused { note: Note::error(node.at, Topic::File, message), is_syntax: false });
                        }
                    });
                }
            }
        }
        Ok(entries.unwrap_or_default())
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Refused> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((Event::Anchor(_, name), span))) => {
                let message = format!(
                    "`&{}` is a YAML anchor, which agent files must not have: write the value where it is needed, \
                     or put the text in quotes",
                    short(&name)
                );
                Err(self.refuse(&span, message))
            }
            Some(Ok((event, span))) => {
                if let Some(tag) = span.tag_span() {
                    let written = tag.slice(self.yaml).unwrap_or("!");
                    let message = format!(
                        "`{}` is a YAML tag, which agent files must not have: remove it, or put the text in quotes",
                        short(written)
                    );
                    return Err(self.refuse(&tag, message));
                }
                Ok(Some((event, span)))
            }
            Some(Err(error)) => Err(self.explain(&error)),
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Refused> {
        self.nodes += 1;
        if self.nodes > limits::FRONTMATTER_NODES_MAX || depth > limits::FRONTMATTER_DEPTH_MAX {
            return Err(self.refuse(span, "the frontmatter has too many or too deeply nested values"));
        }
        let at = self.place(span);
        let value = match event {
            Event::Scalar(text, style, ..) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                if style == Style::Quoted && !span.slice(self.yaml).is_some_and(|raw| raw.contains(&*text)) {
                    self.notes.extend(hidden::in_value(&text, at));
                }
                Value::Scalar { text: text.into_owned(), style }
            }
            Event::SequenceStart(..) => Value::List(self.list(depth)?),
            Event::MappingStart(..) => Value::Map(self.map(depth)?),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let written = span.slice(self.yaml).unwrap_or("*");
                let message = format!(
                    "`{}` is a YAML alias, which agent files must not have: if it is text, put it in quotes",
                    short(written)
                );
                return Err(self.refuse(span, message));
            }
            _ => return Err(self.refuse(span, "a value is missing here")),
        };
        Ok(Node { at, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Refused> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if event == Event::SequenceEnd {
                break;
            }
            items.push(self.node(event, &span, depth + 1)?);
        }
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, Refused> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((event, span)) = self.next()? {
            if event == Event::MappingEnd {
                break;
            }
            let node = self.node(event, &span, depth + 1)?;
            let Value::Scalar { text: key, .. } = node.value else {
                let note = Note::error(node.at, Topic::File, "a key must be a single word, not a list or a map");
                return Err(Refused { note, is_syntax: true });
            };
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let message =
                    format!("`{}` is given twice, first in line {}: keep one of them", short(&key), first.at.line);
                return Err(Refused { note: Note::error(node.at, Topic::File, message), is_syntax: false });
            }
            let Some((event, span)) = self.next()? else { break };
            let value = self.node(event, &span, depth + 1)?;
            entries.push(Entry { key, at: node.at, value });
        }
        Ok(entries)
    }

    fn place(&self, span: &Span) -> Place {
        Place { line: span.start.line() + self.lines_before, column: span.start.col() + 1 }
    }

    fn refuse(&self, span: &Span, message: impl Into<String>) -> Refused {
        Refused { note: Note::error(self.place(span), Topic::File, message), is_syntax: false }
    }

    /// Whether a line of the frontmatter, from 1, begins with a space.
    fn is_indented(&self, line: usize) -> bool {
        self.yaml.lines().nth(line.saturating_sub(1)).is_some_and(|line| line.starts_with(' '))
    }

    /// A parser's error in the words of someone who writes an agent, not a parser.
    fn explain(&self, error: &ScanError) -> Refused {
        let at = Place { line: error.marker().line() + self.lines_before, column: error.marker().col() + 1 };
        let (message, is_syntax) = match error.kind() {
            ErrorKind::RecursionLimitExceeded => {
                (format!("values are nested deeper than {} levels", limits::FRONTMATTER_DEPTH_MAX), false)
            }
            ErrorKind::MappingValueNotAllowed if self.is_indented(error.marker().line()) => (INDENTED.to_owned(), true),
            kind => (words(kind), true),
        };
        Refused { note: Note::error(at, Topic::File, message), is_syntax }
    }
}

const INDENTED: &str = "the line is indented and so belongs to the text above: remove the spaces in front of it, or put \
                        the whole text in quotes";

fn words(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement | ErrorKind::InvalidSimpleKey => {
            "a second `: ` in the line: put the text after the first one in quotes".to_owned()
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent => {
            "a text in quotes is not closed in the lines before: add the closing quote".to_owned()
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "text follows a closing quote: put the whole text in quotes, and double or escape those inside".to_owned()
        }
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => {
            "`\\` begins an escape in double quotes: write `\\\\` for a backslash, or use single quotes".to_owned()
        }
        ErrorKind::UnclosedFlowCollection { open } => format!("`{open}` is not closed"),
        ErrorKind::UnexpectedEofFlowSequence | ErrorKind::ExpectedFlowSequenceSeparator => {
            "a list in `[` and `]` is not closed, or a comma is missing in it".to_owned()
        }
        ErrorKind::UnexpectedEofFlowMapping | ErrorKind::ExpectedFlowMappingSeparator => {
            "a map in `{` and `}` is not closed, or a comma is missing in it".to_owned()
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => format!("`{open}` is closed with `{close}`"),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "a tab: YAML is indented with spaces".to_owned(),
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            format!("the character {} must not be here: delete it", character.escape_unicode())
        }
        ErrorKind::UnexpectedCharacter { character } => {
            format!("a value cannot begin with `{}`: put it in quotes", hidden::escape(&character.to_string()))
        }
        ErrorKind::MissingAnchorOrAliasName => {
            "a value that begins with `*` or `&` must be in quotes, for example \"*\"".to_owned()
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::ExpectedBlockMappingKey => {
            "expected `key: value`: is a `:` missing, or is the line indented differently from those before?".to_owned()
        }
        ErrorKind::InvalidIndentation | ErrorKind::ExpectedBlockSequenceEntry => {
            "the indentation does not fit the lines before".to_owned()
        }
        ErrorKind::BlockSequenceEntryNotAllowed => {
            "a list with `- ` begins in a line of its own, below its key".to_owned()
        }
        ErrorKind::DirectiveDisallowed => "a line must not begin with `%`: put the text in quotes".to_owned(),
        other => format!("this is not YAML: {other}"),
    }
}

/// Something that was written, short enough for a message and without anything hidden.
pub(super) fn short(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.trim_end().len() {
        shown.push('…');
    }
    hidden::escape(&shown.replace('\t', " "))
}
