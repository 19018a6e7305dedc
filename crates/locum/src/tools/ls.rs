//! `ls`: what is in one directory, whether ignored or not.

use std::ffi::OsStr;
use std::path::Path;

use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::beneath::{Beneath, Entry, Kind, unreadable};
use super::bounded::{self, BoundedText, count, shown};
use super::reading::Reading;

/// Names that are shown: for more, a pattern is the better question.
const ENTRIES_MAX: u64 = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ls {
    path: Option<String>,
}

impl Reading for Ls {
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = include_str!("ls.md");

    fn answer(self, files: &Beneath) -> Result<String, ToolOutput> {
        let directory = files.locate_directory(self.path.as_deref())?;
        let listing = files.list(&directory.path);
        files.check_stop()?;
        let listing = listing.map_err(|error| unreadable(self.path.as_deref().unwrap_or("."), &error))?;
        let (mut text, mut shown_number, mut unshown) = (BoundedText::default(), 0, listing.left_out);
        for entry in listing.entries.iter().filter(|entry| entry.name != OsStr::new(".git")) {
            if shown_number < ENTRIES_MAX && text.push_line(&line(files, &directory.path, entry)) {
                shown_number += 1;
            } else {
                unshown += 1;
            }
        }
        if text.is_empty() {
            text.push_line("the directory is empty");
        }
        let notice = format!("{unshown} more not shown of {}; use find", count(shown_number + unshown, "name"));
        let notices = if unshown > 0 { vec![notice] } else { Vec::new() };
        Ok(text.finish(&notices))
    }
}

fn line(files: &Beneath, directory: &Path, entry: &Entry) -> String {
    let (name, path) = (shown(&entry.name), directory.join(&entry.name));
    match entry.kind {
        Kind::Directory => format!("{name}/"),
        Kind::File => match files.size(&path) {
            Some(bytes) => format!("{name}  {}", bounded::size(bytes)),
            None => name,
        },
        Kind::Link => match files.link_text(&path) {
            Some(target) => format!("{name} -> {}", shown(target)),
            None => name,
        },
        Kind::Fifo | Kind::Socket | Kind::Device => format!("{name}  ({})", entry.kind.noun()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[test]
    fn names_are_listed_with_what_they_are() {
        let fixture = Fixture::new(&[
            ("b.txt", "12345"),
            ("a/c", ""),
            (".hidden", ""),
            (".git/config", ""),
            (".gitignore", "b.txt"),
            ("empty/", ""),
        ]);
        fixture.link("/etc/passwd", "link");
        fixture.fifo("pipe");
        insta::assert_snapshot!(fixture.ask::<Ls>(json!({})), @r"
        .gitignore  5 B
        .hidden  0 B
        a/
        b.txt  5 B
        empty/
        link -> /etc/passwd
        pipe  (FIFO)
        ");
        assert_eq!(fixture.ask::<Ls>(json!({"path": "a"})), "c  0 B");
        assert_eq!(fixture.ask::<Ls>(json!({"path": "empty/"})), "the directory is empty");
        assert_eq!(fixture.ask::<Ls>(json!({"path": "b.txt"})), "failed: `b.txt` is a file, not a directory");
    }

    #[test]
    fn a_large_directory_is_cut() {
        let fixture = Fixture::new(&[]);
        for number in 0..512 {
            fixture.write(format!("{number:03}"), "");
        }
        let text = fixture.ask::<Ls>(json!({}));
        assert!(text.ends_with("499  0 B\n[12 more not shown of 512 names; use find]"), "{text}");
    }
}
