//! HTML as Markdown.
//!
//! Pages are hostile now and then: a few hundred kilobytes of unclosed tags make a tree of gigabytes, or one that is too
//! deep to walk. So a page is first written anew with nothing in it but the tags that mean something in Markdown, none
//! of them too deep and no emphasis across blocks; what is left makes a tree that is no larger than its text.

use locum_core::limits::{WEB_NESTING_MAX, WEB_TAGS_MAX};
use memchr::{memchr, memmem};

/// Elements whose whole content is nothing to read. What is in the first ones is text up to their end.
const RAW: [&str; 8] = ["script", "style", "textarea", "iframe", "noembed", "noframes", "xmp", "title"];
const DROPPED: [&str; 11] =
    ["svg", "math", "template", "canvas", "object", "noscript", "select", "audio", "video", "map", "dialog"];

/// What a tag becomes. Blocks end all emphasis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    /// A block that is closed by its own end.
    Block(&'static str),
    /// A block that the next one of its kind closes.
    Item(&'static str),
    /// Within a line, closed by its own end.
    Inline(&'static str),
    /// Nothing is in it.
    Void(&'static str),
}

const TAGS: [(&str, Becomes); 45] = [
    ("p", Becomes::Item("p")),
    ("div", Becomes::Block("div")),
    ("section", Becomes::Block("div")),
    ("article", Becomes::Block("div")),
    ("main", Becomes::Block("div")),
    ("header", Becomes::Block("div")),
    ("footer", Becomes::Block("div")),
    ("nav", Becomes::Block("div")),
    ("aside", Becomes::Block("div")),
    ("figure", Becomes::Block("div")),
    ("figcaption", Becomes::Block("div")),
    ("details", Becomes::Block("div")),
    ("summary", Becomes::Block("div")),
    ("address", Becomes::Block("div")),
    ("form", Becomes::Block("div")),
    ("fieldset", Becomes::Block("div")),
    ("h1", Becomes::Block("h1")),
    ("h2", Becomes::Block("h2")),
    ("h3", Becomes::Block("h3")),
    ("h4", Becomes::Block("h4")),
    ("h5", Becomes::Block("h5")),
    ("h6", Becomes::Block("h6")),
    ("blockquote", Becomes::Block("blockquote")),
    ("pre", Becomes::Block("pre")),
    ("ul", Becomes::Block("ul")),
    ("ol", Becomes::Block("ol")),
    ("li", Becomes::Item("li")),
    ("dl", Becomes::Block("ul")),
    ("dt", Becomes::Item("li")),
    ("dd", Becomes::Item("li")),
    ("table", Becomes::Block("table")),
    ("thead", Becomes::Item("thead")),
    ("tbody", Becomes::Item("tbody")),
    ("tr", Becomes::Item("tr")),
    ("th", Becomes::Item("th")),
    ("td", Becomes::Item("td")),
    ("a", Becomes::Inline("a")),
    ("strong", Becomes::Inline("strong")),
    ("b", Becomes::Inline("strong")),
    ("em", Becomes::Inline("em")),
    ("i", Becomes::Inline("em")),
    ("code", Becomes::Inline("code")),
    ("br", Becomes::Void("br")),
    ("hr", Becomes::Void("hr")),
    ("img", Becomes::Void("img")),
];

/// A page as Markdown, and whether some of it was left out because it has too many tags.
pub(super) fn to_markdown(page: &str) -> (String, bool) {
    let mut cleaner = Cleaner { rest: page, out: String::with_capacity(page.len() / 2), ..Cleaner::default() };
    cleaner.run();
    let Cleaner { title, out, tags, .. } = cleaner;
    // Reading what was just written cannot fail; were it to, the tags are better than nothing.
    let text = htmd::convert(&out).unwrap_or(out);
    let title = title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
    let text = match title.filter(|title| !title.is_empty()) {
        Some(title) => format!("Title: {title}\n\n{text}").trim_end().to_owned(),
        None => text,
    };
    (text, tags > WEB_TAGS_MAX)
}

/// Writes a page anew.
#[derive(Default)]
struct Cleaner<'a> {
    /// What is still to be read.
    rest: &'a str,
    out: String,
    /// What is open in what was written: tags that only their own end closes.
    open: Vec<Open>,
    title: Option<String>,
    tags: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    tag: &'static str,
    is_inline: bool,
}

/// A tag as it is written.
struct Tag<'a> {
    name: String,
    is_end: bool,
    attributes: &'a str,
}

impl<'a> Cleaner<'a> {
    fn run(&mut self) {
        while let Some(at) = memchr(b'<', self.rest.as_bytes()) {
            self.out.push_str(&self.rest[..at]);
            self.rest = &self.rest[at..];
            if self.skip_remark() {
                continue;
            }
            match self.take_tag() {
                None => {
                    self.out.push_str("&lt;");
                    self.rest = &self.rest[1..];
                }
                Some(tag) => {
                    self.tags += 1;
                    if self.tags > WEB_TAGS_MAX {
                        return self.close_all();
                    }
                    self.place(&tag);
                }
            }
        }
        self.out.push_str(self.rest);
        self.close_all();
    }

    /// Leaves out comments, declarations and instructions.
    fn skip_remark(&mut self) -> bool {
        let end = if self.rest.starts_with("<!--") {
            memmem::find(&self.rest.as_bytes()[4..], b"-->").map(|at| at + 7)
        } else if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
            memchr(b'>', self.rest.as_bytes()).map(|at| at + 1)
        } else {
            return false;
        };
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        true
    }

    /// Takes a tag from what is to be read; none if what is there is none.
    fn take_tag(&mut self) -> Option<Tag<'a>> {
        let is_end = self.rest.starts_with("</");
        let inside = &self.rest[if is_end { 2 } else { 1 }..];
        if !inside.starts_with(|char: char| char.is_ascii_alphabetic()) {
            return None;
        }
        let name_end = inside.find(|char: char| char.is_ascii_whitespace() || matches!(char, '/' | '>'));
        let (name, rest) = inside.split_at(name_end.unwrap_or(inside.len()));
        let end = end_of_attributes(rest);
        self.rest = &rest[(end + 1).min(rest.len())..];
        Some(Tag { name: name.to_ascii_lowercase(), is_end, attributes: &rest[..end] })
    }

    fn place(&mut self, tag: &Tag<'_>) {
        let name = tag.name.as_str();
        if !tag.is_end && RAW.contains(&name) {
            let content = self.take_content(name);
            if name == "title" && self.title.is_none() {
                self.title = Some(htmd::convert(content).unwrap_or_default());
            }
            return;
        }
        if !tag.is_end && DROPPED.contains(&name) && !tag.attributes.ends_with('/') {
            self.take_content(name);
            return;
        }
        let Some((_, becomes)) = TAGS.iter().find(|(known, _)| *known == name) else { return };
        match (*becomes, tag.is_end) {
            (Becomes::Void(tag_name), false) => self.void(tag_name, tag.attributes),
            (Becomes::Void(_), true) => {}
            (Becomes::Item(name), is_end) => {
                self.close_inline();
                self.write(name, is_end, "");
            }
            (Becomes::Block(name), false) => {
                self.close_inline();
                self.open(Open { tag: name, is_inline: false }, "");
            }
            (Becomes::Inline(name), false) => {
                let link = if name == "a" { attribute(tag.attributes, "href") } else { None };
                let link = link.filter(|link| !link.trim_start().starts_with("javascript:"));
                if !self.open.iter().any(|open| open.tag == name) && (name != "a" || link.is_some()) {
                    let link = link.map_or_else(String::new, |link| format!(" href=\"{link}\""));
                    self.open(Open { tag: name, is_inline: true }, &link);
                }
            }
            (Becomes::Block(name) | Becomes::Inline(name), true) => self.close(name),
        }
    }

    /// The content of an element that is not read as HTML, up to its end, which is left out too.
    fn take_content(&mut self, name: &str) -> &'a str {
        let bytes = self.rest.as_bytes();
        let mut from = 0;
        while let Some(at) = memmem::find(&bytes[from..], b"</").map(|at| at + from) {
            let after = &bytes[at + 2..];
            let named = after.len() >= name.len() && after[..name.len()].eq_ignore_ascii_case(name.as_bytes());
            if named && after.get(name.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-') {
                let content = &self.rest[..at];
                let end = memchr(b'>', after).map_or(bytes.len(), |end| at + 2 + end + 1);
                self.rest = &self.rest[end..];
                return content;
            }
            from = at + 2;
        }
        let content = self.rest;
        self.rest = "";
        content
    }

    fn void(&mut self, name: &'static str, attributes: &str) {
        if name != "img" {
            return self.write(name, false, "");
        }
        let text = attribute(attributes, "alt").unwrap_or_default();
        let source = attribute(attributes, "src").filter(|source| !source.trim_start().starts_with("data:"));
        match source {
            Some(source) if !text.trim().is_empty() => {
                self.write(name, false, &format!(" src=\"{source}\" alt=\"{text}\""));
            }
            _ => self.out.push_str(&text),
        }
    }

    fn open(&mut self, open: Open, attributes: &str) {
        if self.open.len() < WEB_NESTING_MAX {
            self.open.push(open);
            self.write(open.tag, false, attributes);
        } else if !open.is_inline {
            // Where a block would be too deep, its text is at least a line of its own.
            self.out.push_str("<br>");
        }
    }

    /// Closes the innermost of these and everything in it.
    fn close(&mut self, tag: &str) {
        let Some(at) = self.open.iter().rposition(|open| open.tag == tag) else { return };
        while self.open.len() > at {
            self.close_last();
        }
    }

    fn close_inline(&mut self) {
        while self.open.last().is_some_and(|open| open.is_inline) {
            self.close_last();
        }
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if let Some(open) = self.open.pop() {
            self.write(open.tag, true, "");
        }
    }

    fn write(&mut self, tag: &str, is_end: bool, attributes: &str) {
        let slash = if is_end { "/" } else { "" };
        self.out.push_str(&format!("<{slash}{tag}{attributes}>"));
    }
}

/// Where the attributes of a tag end: at the `>` that is in no quotes.
fn end_of_attributes(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') if text[..at].ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // A quote that is never closed is no quote.
    memchr(b'>', text.as_bytes()).unwrap_or(text.len())
}

/// The value of an attribute, fit to stand in double quotes again.
fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|char: char| char.is_ascii_whitespace() || char == '/');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|char: char| char.is_ascii_whitespace() || matches!(char, '=' | '/')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end.max(1).min(rest.len()));
        let Some(value) = after.trim_start().strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|char| matches!(char, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(|char: char| char.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.replace('"', "&quot;").replace('<', "&lt;"));
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_become_markdown() {
        for (page, expected) in [
            (
                "<html><head><title> A &amp;\n B </title><style>x{}</style></head><body><p>x</p></body>",
                "Title: A & B\n\nx",
            ),
            ("<H1>Head</H1><p>One<p>Two <b>bold</b> <i>em</i>", "# Head\n\nOne\n\nTwo **bold** *em*"),
            ("a < b && c > d", "a < b && c > d"),
            ("<a href='/x?a=1&amp;b=2' class=y>link</a>", "[link](/x?a=1&b=2)"),
            ("<a href=javascript:alert(1)>no</a><a>none</a>", "nonone"),
            ("<ul><li>one<li>two</ul>", "*   one\n*   two"),
            ("<ol><li>one</li><li>two</li></ol>", "1.  one\n2.  two"),
            ("<pre><code>fn main() {\n    1 &lt; 2\n}</code></pre>", "```\nfn main() {\n    1 < 2\n}\n```"),
            ("<blockquote>said</blockquote>", "> said"),
            ("x<script>if (a</b>c) document.write('<p>')</script>y<!-- <p>no</p> -->z", "xyz"),
            ("<svg><path d='<p>'/></svg>after", "after"),
            ("<img src=data:image/png;base64,AAAA alt=face><img src=a.png alt='b'>", "face![b](a.png)"),
            (
                "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
                "| a | b |\n| - | - |\n| 1 | 2 |",
            ),
            ("<b>one<p>two</b>three", "**one**\n\ntwothree"),
            ("<p title='a > b'>x</p>", "x"),
            ("", ""),
        ] {
            assert_eq!(to_markdown(page), (expected.to_owned(), false), "{page}");
        }
    }

    #[test]
    fn hostile_pages_neither_hang_nor_fill_the_memory() {
        let many = 10_000;
        for (name, page) in [
            ("deep", "<div>".repeat(many)),
            ("deep lists", "<ul><li>".repeat(many)),
            ("deep tables", "<table><tr><td>".repeat(many)),
            ("deep quotes", "<blockquote>x".repeat(many)),
            ("emphasis", format!("{}{}", "<b><i><a href=x>".repeat(1_000), "<p>x".repeat(many))),
            ("many fonts", format!("{}{}", "<font a=1><u>".repeat(1_000), "<p>x".repeat(many))),
            ("open comments", "<!--".repeat(many)),
            ("open scripts", "<script>".repeat(many)),
            ("open quotes", "<a href=\"".repeat(many)),
            ("brackets", "<".repeat(many)),
            ("ends", "</p></b></div>".repeat(many)),
            ("misnested", "<a href=x><div></a></div>".repeat(many)),
            ("attributes", format!("<a {}>x", "a=1 ".repeat(many))),
        ] {
            let (text, _) = to_markdown(&page);
            // Every line may be indented by all that is around it.
            assert!(text.len() <= 4 * WEB_NESTING_MAX * page.len(), "{name}: {}", text.len());
        }
    }

    #[test]
    fn of_a_page_with_too_many_tags_the_beginning_is_kept() {
        let (text, is_cut) = to_markdown(&format!("<p>begin{}end", "<br>".repeat(WEB_TAGS_MAX)));
        assert!(is_cut && text.starts_with("begin") && !text.contains("end"));
    }

    proptest! {
        #[test]
        fn any_text_becomes_text(page in "(<|>|/|!|--|a|p|table|td|b|script|title|href|=|\"|'| |x|é|&|;){0,60}") {
            to_markdown(&page);
        }
    }
}
