//! `tree`: directories and files as an indented outline. It is filled level by level, so that the first large
//! directory does not take the place of all others.

use std::collections::VecDeque;
use std::path::PathBuf;

use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::beneath::{Beneath, Kind};
use super::bounded::{BoundedText, shown};
use super::ignore_rules::IgnoreRules;
use super::reading::Reading;
use super::walk::{Hidden, Surroundings};

/// Levels that are shown when the model does not say, and at most.
const DEPTH_DEFAULT: u32 = 3;
const DEPTH_MAX: u32 = 10;

/// Entries of the whole tree.
const ENTRIES_MAX: usize = 500;

/// Entries of one directory.
const DIRECTORY_ENTRIES_MAX: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tree {
    path: Option<String>,
    /// Default 3, at most 10
    depth: Option<u32>,
}

impl Reading for Tree {
    const NAME: &'static str = "tree";
    const DESCRIPTION: &'static str = include_str!("tree.md");

    fn answer(self, files: &Beneath) -> Result<String, ToolOutput> {
        let start = files.locate_directory(self.path.as_deref())?;
        let name = if start.path.as_os_str().is_empty() { ".".to_owned() } else { shown(&start.path) };
        let depth = self.depth.unwrap_or(DEPTH_DEFAULT).clamp(1, DEPTH_MAX);
        let mut outline = Outline::new(name);
        outline.fill(files, start.path, depth);
        files.check_stop()?;
        let mut text = BoundedText::default();
        outline.write(0, 0, &mut text);
        let is_cut = if text.is_full() { vec!["the rest does not fit; name a path".to_owned()] } else { Vec::new() };
        Ok(text.finish(&is_cut))
    }
}

/// A tree of names; the first is its root.
#[derive(Debug)]
struct Outline {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    name: String,
    kind: Kind,
    children: Vec<usize>,
    rest: Rest,
}

/// What is not shown of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Entries(u64),
    Unreadable,
}

/// A directory that is still to be read.
struct Pending {
    node: usize,
    path: PathBuf,
    rules: IgnoreRules,
    depth_left: u32,
}

impl Outline {
    fn new(name: String) -> Self {
        Self { nodes: vec![Node { name, kind: Kind::Directory, children: Vec::new(), rest: Rest::Nothing }] }
    }

    fn fill(&mut self, files: &Beneath, start: PathBuf, depth: u32) {
        let surroundings = Surroundings { files, hidden: Hidden::Skip };
        let rules = IgnoreRules::above(files, &start);
        let mut pending = VecDeque::from([Pending { node: 0, path: start, rules, depth_left: depth }]);
        while let Some(directory) = pending.pop_front() {
            if files.is_stopped() {
                return;
            }
            let Some(level) = surroundings.level(&directory.path, &directory.rules) else {
                self.nodes[directory.node].rest = Rest::Unreadable;
                continue;
            };
            let mut entries: Vec<_> = level.entries.collect();
            entries.sort_by_key(|entry| entry.kind != Kind::Directory);
            let room = DIRECTORY_ENTRIES_MAX.min(ENTRIES_MAX.saturating_sub(self.nodes.len() - 1));
            let more = entries.len().saturating_sub(room) as u64 + level.left_out;
            if more > 0 {
                self.nodes[directory.node].rest = Rest::Entries(more);
            }
            for entry in entries.into_iter().take(room) {
                let node = self.add(directory.node, shown(&entry.name), entry.kind);
                if entry.kind == Kind::Directory && directory.depth_left > 1 {
                    let (path, rules) = (directory.path.join(&entry.name), level.rules.clone());
                    pending.push_back(Pending { node, path, rules, depth_left: directory.depth_left - 1 });
                }
            }
        }
    }

    fn add(&mut self, parent: usize, name: String, kind: Kind) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node { name, kind, children: Vec::new(), rest: Rest::Nothing });
        self.nodes[parent].children.push(node);
        node
    }

    /// Writes a node and what is below it; at most [`DEPTH_MAX`] deep.
    fn write(&self, node: usize, depth: usize, text: &mut BoundedText) {
        let node = &self.nodes[node];
        let slash = if node.kind == Kind::Directory { "/" } else { "" };
        text.push_line(&format!("{}{}{slash}", "  ".repeat(depth), node.name));
        for child in &node.children {
            self.write(*child, depth + 1, text);
        }
        let indent = "  ".repeat(depth + 1);
        match node.rest {
            Rest::Nothing => {}
            Rest::Entries(number) => {
                text.push_line(&format!("{indent}… ({number} more)"));
            }
            Rest::Unreadable => {
                text.push_line(&format!("{indent}… (cannot be read)"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[test]
    fn directories_come_first() {
        let fixture = Fixture::new(&[
            ("a.txt", ""),
            ("src/tools/deep/er/file", ""),
            ("src/lib.rs", ""),
            ("target/x", ""),
            (".gitignore", "/target"),
        ]);
        fixture.link("..", "src/up");
        insta::assert_snapshot!(fixture.ask::<Tree>(json!({})), @r"
        ./
          src/
            tools/
              deep/
            lib.rs
            up
          a.txt
        ");
        insta::assert_snapshot!(fixture.ask::<Tree>(json!({"path": "src/tools", "depth": 10})), @r"
        src/tools/
          deep/
            er/
              file
        ");
        assert_eq!(fixture.ask::<Tree>(json!({"depth": 0})), "./\n  src/\n  a.txt");
    }

    #[test]
    fn a_large_tree_shows_something_of_every_directory() {
        let fixture = Fixture::new(&[]);
        for number in 0..112 {
            fixture.write(format!("a/{number:03}"), "");
        }
        for directory in ["b", "c", "d", "e", "f"] {
            for number in 0..90 {
                fixture.write(format!("{directory}/{number:02}"), "");
            }
        }
        let text = fixture.ask::<Tree>(json!({}));
        assert!(text.contains("    099\n    … (12 more)\n  b/\n"), "{text}");
        assert!(text.ends_with("    33\n    … (56 more)"), "{text}");
        let is_entry = |line: &&str| !line.contains('…');
        assert_eq!(text.lines().filter(is_entry).count(), 1 + 500);
    }
}
