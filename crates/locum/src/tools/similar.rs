//! What a model may have meant by a path that does not exist.

use std::path::Path;

use super::beneath::{Beneath, Entry, Kind};
use super::bounded::shown;
use super::walk::{Hidden, Walk};

/// Paths that are suggested.
const SUGGESTIONS_MAX: usize = 3;

/// Names longer than this are not compared letter by letter: that costs the product of both lengths.
const COMPARED_CHARS_MAX: usize = 64;

/// Entries that are compared or walked over for a suggestion: it must cost less than the mistake.
const ENTRIES_MAX: usize = 2_000;

/// Existing paths that resemble `wanted`, which is given from the root: first those beside it, then the same name
/// elsewhere.
pub(crate) fn similar(files: &Beneath, wanted: &Path) -> Vec<String> {
    let Some(name) = wanted.file_name().map(|name| name.to_string_lossy().to_lowercase()) else { return Vec::new() };
    let mut paths = beside(files, wanted, &name);
    if paths.len() < SUGGESTIONS_MAX {
        paths.extend(elsewhere(files, &name));
    }
    let mut suggestions: Vec<String> = Vec::new();
    for path in paths {
        if suggestions.len() < SUGGESTIONS_MAX && !suggestions.contains(&path) {
            suggestions.push(path);
        }
    }
    suggestions
}

fn beside(files: &Beneath, wanted: &Path, name: &str) -> Vec<String> {
    let parent = wanted.parent().unwrap_or(Path::new(""));
    let Some(parent) = files.directory_at(parent) else { return Vec::new() };
    let Ok(listing) = files.list(&parent) else { return Vec::new() };
    let distance = |entry: &Entry| difference(name, &entry.name.to_string_lossy().to_lowercase());
    let mut ranked: Vec<(usize, String)> = listing
        .entries
        .iter()
        .take(ENTRIES_MAX)
        .filter_map(|entry| Some((distance(entry)?, path_text(&parent.join(&entry.name), entry.kind))))
        .collect();
    ranked.sort();
    ranked.into_iter().map(|(_, path)| path).take(SUGGESTIONS_MAX).collect()
}

fn elsewhere(files: &Beneath, name: &str) -> Vec<String> {
    Walk::new(files, Path::new(""), Hidden::Skip)
        .take(ENTRIES_MAX)
        .filter(|found| found.path.file_name().is_some_and(|other| other.to_string_lossy().to_lowercase() == name))
        .map(|found| path_text(&found.path, found.kind))
        .take(SUGGESTIONS_MAX)
        .collect()
}

fn path_text(path: &Path, kind: Kind) -> String {
    let slash = if kind == Kind::Directory { "/" } else { "" };
    format!("{}{slash}", shown(path))
}

/// How far two lower-case names are apart, or nothing if too far to be meant.
fn difference(wanted: &str, name: &str) -> Option<usize> {
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    if stem(wanted) == stem(name) && !stem(wanted).is_empty() {
        return Some(0);
    }
    let (wanted, name): (Vec<char>, Vec<char>) = (wanted.chars().collect(), name.chars().collect());
    if wanted.len().max(name.len()) > COMPARED_CHARS_MAX {
        return None;
    }
    let distance = edits(&wanted, &name);
    (distance <= 1.max(wanted.len() / 3)).then_some(distance)
}

/// The number of letters to insert, delete or replace to get from one name to the other.
fn edits(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..right.len() {
            let replaced = diagonal + usize::from(*letter != right[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_far_apart_as_their_letters() {
        for (wanted, name, expected) in [
            ("main.rs", "main.rs", Some(0)),
            ("main.py", "main.rs", Some(0)),
            ("mian.rs", "main.rs", Some(2)),
            ("walker.rs", "walked.rs", Some(1)),
            ("x.rs", "y.rs", Some(1)),
            ("limits.rs", "lib.rs", None),
            ("", "a", Some(1)),
            (".a", ".b", Some(1)),
        ] {
            assert_eq!(difference(wanted, name), expected, "{wanted} {name}");
        }
        assert_eq!(difference(&"x".repeat(1000), &"y".repeat(1000)), None);
    }
}
