//! Finds the public items of a crate in its sources, by reading declarations and counting brackets. It leans on two
//! things that other checks hold: the files are formatted and compile, and what is `pub` can be reached
//! (`unreachable_pub`). So every plain `pub` counts, and a private module is simply not part of an item's path.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::tidy::imports::{branches, expand};
use crate::tidy::items::item_end;
use crate::tidy::lexer;

/// Attributes of items that are not compiled for users.
const LEFT_OUT: &[&str] = &["#[cfg(test)]", "#[cfg(all(test", "#[cfg(doctest)]", "#[cfg(not(target_os"];

/// Words that may stand between `pub` and what kind of item it is.
const QUALIFIERS: &[&str] = &["async ", "unsafe ", "const "];

/// Reads the file of this path below the crate's sources.
type ReadSource<'a> = &'a dyn Fn(&str) -> Result<String>;

/// What was found so far.
pub(super) struct Scan<'a> {
    read: ReadSource<'a>,
    /// Lines by the path of their item, so that an item's parts follow it.
    lines: Vec<(String, String)>,
    /// The paths of the public types of each name.
    types: BTreeMap<String, Vec<String>>,
    /// The names of the types and traits that are not public.
    private: BTreeSet<String>,
    methods: Vec<Method>,
    /// Traits that types have, each as the head of its block and the module that it is in.
    traits: Vec<(String, String)>,
}

/// A public function of a type's own block.
struct Method {
    /// The module of the block.
    module: String,
    /// The name of the type.
    owner: String,
    /// The function's own name.
    name: String,
    signature: String,
}

/// One item of a file or block.
struct Item<'a> {
    /// From its visibility up to its body, or to its end where it has none.
    head: String,
    /// What is between its braces.
    body: Option<&'a str>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(read: ReadSource<'a>) -> Self {
        Self {
            read,
            lines: Vec::new(),
            types: BTreeMap::new(),
            private: BTreeSet::new(),
            methods: Vec::new(),
            traits: Vec::new(),
        }
    }

    /// Reads one file and the modules that it declares. `folder` is where those are.
    pub(super) fn module_file(&mut self, path: &str, file: &str, folder: &str) -> Result<()> {
        let code = lexer::split(&(self.read)(file)?).code;
        self.block(path, folder, &code)
    }

    /// Every line, sorted by path; methods stand with their type wherever their block is.
    pub(super) fn into_lines(mut self) -> Vec<String> {
        for Method { module, owner, name, signature } in std::mem::take(&mut self.methods) {
            if let Some(path) = self.path_of(&owner, &module) {
                let path = format!("{path}::{name}");
                self.push(&path, with_path(&signature, &path));
            }
        }
        for (head, module) in std::mem::take(&mut self.traits) {
            self.trait_of(&head, &module);
        }
        let is_use = |line: &str| line.starts_with("use ");
        let declared: BTreeSet<String> =
            self.lines.iter().filter(|(_, line)| !is_use(line)).map(|(path, _)| path.clone()).collect();
        // What a private module lends to the one above is listed there as what it is.
        self.lines.retain(|(path, line)| !is_use(line) || !declared.contains(path));
        self.lines.sort();
        self.lines.dedup();
        self.lines.into_iter().map(|(_, line)| line).collect()
    }

    /// The public type of this name: of several, the one nearest to the module.
    fn path_of(&self, name: &str, module: &str) -> Option<String> {
        let paths = self.types.get(name).into_iter().flatten();
        paths.max_by_key(|path| shared_start(path, module)).cloned()
    }

    fn block(&mut self, path: &str, folder: &str, code: &str) -> Result<()> {
        for item in items(code) {
            self.item(path, folder, &item)?;
        }
        Ok(())
    }

    fn item(&mut self, path: &str, folder: &str, item: &Item<'_>) -> Result<()> {
        let public = item.head.strip_prefix("pub ");
        // `pub(crate) mod` is as private as `mod`.
        let plain = item.head.strip_prefix("pub(crate) ").or(item.head.strip_prefix("pub(super) "));
        let head = public.or(plain).unwrap_or(&item.head);
        if let Some(name) = head.strip_prefix("mod ") {
            let inner = if public.is_some() { format!("{path}::{name}") } else { path.to_owned() };
            if public.is_some() {
                self.push(&inner, format!("mod {inner}"));
            }
            let folder_of = format!("{folder}{name}/");
            return match item.body {
                Some(body) => self.block(&inner, &folder_of, body),
                None => self.module_file(&inner, &format!("{folder}{name}.rs"), &folder_of),
            };
        }
        if head.starts_with("impl") {
            self.methods_of(path, head, item.body.unwrap_or_default());
        } else if let Some(head) = public {
            self.public_item(path, head, item.body.unwrap_or_default());
        } else {
            let (kind, rest) = kind_of(head);
            if ["struct", "enum", "trait", "type"].contains(&kind.as_str()) {
                self.private.insert(leading_identifier(rest));
            }
        }
        Ok(())
    }

    fn public_item(&mut self, path: &str, head: &str, body: &str) {
        if let Some(tree) = head.strip_prefix("use ") {
            return self.uses(path, &format!("{tree}{{{body}}}"), body.is_empty().then_some(tree));
        }
        let (kind, rest) = kind_of(head);
        let name = leading_identifier(rest);
        let inner = format!("{path}::{name}");
        // What a constant is worth is not part of what it is.
        let shown = if kind.ends_with("const") { head.split(" = ").next().unwrap_or(head) } else { head };
        self.push(&inner, with_path(shown, &inner));
        match kind.as_str() {
            "struct" => self.fields(&inner, body),
            "enum" => self.variants(&inner, body),
            "trait" => self.trait_functions(&inner, body),
            _ => return,
        }
        self.types.entry(name).or_default().push(inner);
    }

    fn uses(&mut self, path: &str, tree: &str, whole: Option<&str>) {
        let mut paths = Vec::new();
        expand("", whole.unwrap_or(tree), &mut paths);
        for used in paths {
            let used = one_line(&used).replace("::self", "");
            let (source, name) = match used.split_once(" as ") {
                Some((source, name)) => (source, name),
                None => (used.as_str(), used.rsplit("::").next().unwrap_or(&used)),
            };
            let inner = format!("{path}::{name}");
            self.push(&inner, format!("use {inner} = {source}"));
        }
    }

    fn fields(&mut self, path: &str, body: &str) {
        for field in parts(body) {
            if let Some(field) = field.strip_prefix("pub ") {
                let name = field.split(':').next().unwrap_or(field);
                self.push(&format!("{path}::{name}"), format!("field {path}::{field}"));
            }
        }
    }

    fn variants(&mut self, path: &str, body: &str) {
        for variant in parts(body) {
            self.push(&format!("{path}::{variant}"), format!("variant {path}::{variant}"));
        }
    }

    fn trait_functions(&mut self, path: &str, body: &str) {
        for item in items(body) {
            let Some(name) = function_name(&item.head) else { continue };
            let inner = format!("{path}::{name}");
            self.push(&inner, with_path(&item.head, &inner));
        }
    }

    /// A trait that a public type has, unless something private is part of it: then nobody outside can use it.
    fn trait_of(&mut self, head: &str, module: &str) {
        let Some((trait_head, owner)) = head.split_once(" for ") else { return };
        let words = || head.split(|character| !lexer::is_identifier(character));
        let is_private = |word: &str| self.private.contains(word) && !self.types.contains_key(word);
        let name = leading_identifier(owner);
        let Some(path) = self.path_of(&name, module).filter(|_| !words().any(is_private)) else { return };
        let line = format!("{trait_head} for {path}{}", &owner[name.len()..]);
        self.push(&format!("{path}::"), line);
    }

    /// The public functions of a type's own block. What a trait makes public is said where the trait is.
    fn methods_of(&mut self, module: &str, head: &str, body: &str) {
        if head.contains(" for ") {
            self.traits.push((head.to_owned(), module.to_owned()));
            return;
        }
        let owner = match head.strip_prefix("impl<") {
            Some(generic) => generic.split_once("> ").map_or(generic, |(_, owner)| owner),
            None => head.trim_start_matches("impl").trim(),
        };
        let owner = leading_identifier(owner);
        for item in items(body) {
            let Some(head) = item.head.strip_prefix("pub ") else { continue };
            if let Some(name) = function_name(head) {
                let (module, owner) = (module.to_owned(), owner.clone());
                self.methods.push(Method { module, owner, name, signature: head.to_owned() });
            }
        }
    }

    fn push(&mut self, path: &str, line: String) {
        self.lines.push((path.to_owned(), line));
    }
}

/// The items of a block, without those that only tests compile.
fn items(code: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let gap =
            rest.len() - rest.trim_start_matches(|character: char| character.is_whitespace() || character == ';').len();
        at += gap;
        let (attributes, start) = attributes(code, at);
        if start >= code.len() {
            break;
        }
        let end = item_end(code, start);
        let end_offset = end.offset.max(start + 1);
        let is_left_out = LEFT_OUT.iter().any(|attribute| attributes.contains(attribute));
        if !is_left_out {
            let closed = code[..end_offset].ends_with('}') && end.body < end_offset - 1;
            let body = closed.then(|| &code[end.body + 1..end_offset - 1]);
            items.push(Item { head: one_line(&code[start..end.body]), body });
        }
        at = end_offset;
    }
    items
}

/// The attributes from `at` on, without spaces, and where the item behind them begins.
fn attributes(code: &str, mut at: usize) -> (String, usize) {
    let mut found = String::new();
    while let Some(rest) = code.get(at..).filter(|rest| rest.starts_with('#')) {
        let mut depth = 0_usize;
        let closing = rest.char_indices().find(|(_, character)| match character {
            '[' => {
                depth += 1;
                false
            }
            ']' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            _ => false,
        });
        let end = closing.map_or(rest.len(), |(offset, _)| offset + 1);
        found.push_str(&rest[..end]);
        let behind = &rest[end..];
        at += end + (behind.len() - behind.trim_start().len());
    }
    (found, at)
}

/// The parts of a body between commas, on one line each and without attributes.
fn parts(body: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut open = String::new();
    // `branches` knows braces only; a comma inside other brackets does not end a part.
    for piece in branches(body) {
        open = if open.is_empty() { piece.to_owned() } else { format!("{open},{piece}") };
        if is_balanced(&open) {
            parts.push(std::mem::take(&mut open));
        }
    }
    let stripped = parts.iter().map(|part| {
        let part = part.trim_start();
        one_line(&part[attributes(part, 0).1..])
    });
    stripped.filter(|part| !part.is_empty()).collect()
}

fn is_balanced(text: &str) -> bool {
    let arrows = text.matches("->").count();
    let count = |character: char| text.matches(character).count();
    count('(') == count(')') && count('[') == count(']') && count('<') + arrows == count('>')
}

/// What kind of item a head declares, with its qualifiers, and the rest from its name on.
fn kind_of(head: &str) -> (String, &str) {
    let mut rest = head;
    for qualifier in QUALIFIERS {
        match rest.strip_prefix(qualifier) {
            Some(behind) if behind.starts_with("fn ") || behind.starts_with("trait ") => rest = behind,
            Some(_) | None => {}
        }
    }
    let kind = rest.split(' ').next().unwrap_or(rest);
    (kind.to_owned(), rest[kind.len()..].trim_start())
}

fn function_name(head: &str) -> Option<String> {
    let (kind, rest) = kind_of(head);
    (kind == "fn").then(|| leading_identifier(rest))
}

fn leading_identifier(text: &str) -> String {
    text.chars().take_while(|character| lexer::is_identifier(*character)).collect()
}

/// A declaration with its path in the place of its name.
fn with_path(head: &str, path: &str) -> String {
    let (_, rest) = kind_of(head);
    let behind = rest.trim_start_matches(lexer::is_identifier);
    format!("{}{path}{behind}", &head[..head.len() - rest.len()])
}

/// How many modules two paths have in common from their start.
fn shared_start(left: &str, right: &str) -> usize {
    left.split("::").zip(right.split("::")).take_while(|(left, right)| left == right).count()
}

/// The text with single spaces, and as it would be written on one line.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace("( ", "(")
        .replace(", )", ")")
        .replace(",)", ")")
        .replace(" )", ")")
        .replace(", >", ">")
        .replace(", }", " }")
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
