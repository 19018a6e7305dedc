//! Patterns of rules and write scopes. In a path `*` and `?` stay within one name and `**` does not; in a command or an
//! address `*` stands for anything.

/// Whether a path, or a directory above it, fits a glob. Both are relative to the root.
pub(super) fn fits_path(glob: &str, path: &str) -> bool {
    let glob = glob.strip_prefix("./").unwrap_or(glob).trim_end_matches('/');
    if glob.is_empty() {
        return false;
    }
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    // What is said of a directory is said of everything in it.
    ends.into_iter().any(|end| fits(glob.as_bytes(), &path.as_bytes()[..end], Some(b'/')))
}

/// Whether a text fits a pattern as a whole. `rm *` is also the bare `rm`.
pub(super) fn fits_text(pattern: &str, text: &str) -> bool {
    let bare = pattern.strip_suffix(" *").is_some_and(|bare| fits(bare.as_bytes(), text.as_bytes(), None));
    bare || fits(pattern.as_bytes(), text.as_bytes(), None)
}

/// One star of a pattern that may have to stand for more than it did.
#[derive(Clone, Copy)]
struct Star {
    /// Where the pattern goes on after it.
    pattern: usize,
    /// Where the text went on after what it stood for.
    text: usize,
    /// Whether it stands for separators too.
    crosses: bool,
}

/// Matches with two stars remembered, the last single and the last double one: enough for every pattern, and the time
/// is bounded by the lengths multiplied.
fn fits(pattern: &[u8], text: &[u8], separator: Option<u8>) -> bool {
    let (mut at, mut read) = (0, 0);
    let (mut single, mut double): (Option<Star>, Option<Star>) = (None, None);
    loop {
        if let Some((star, next)) = star_at(pattern, at, read, separator) {
            if star.crosses {
                (double, single) = (Some(star), None);
            } else {
                single = Some(star);
            }
            at = next;
            continue;
        }
        let is_same = match (pattern.get(at), text.get(read)) {
            (None, None) => return true,
            (Some(b'?'), Some(byte)) => Some(*byte) != separator,
            (Some(wanted), Some(byte)) => wanted == byte,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            (at, read) = (at + 1, read + 1);
            continue;
        }
        // The nearest star takes one byte more.
        let can_grow = |star: &Star| text.get(star.text).is_some_and(|byte| star.crosses || Some(*byte) != separator);
        let Some(star) = single.filter(can_grow).or(double.filter(can_grow)) else { return false };
        let grown = Star { text: star.text + 1, ..star };
        if grown.crosses {
            (double, single) = (Some(grown), None);
        } else {
            single = Some(grown);
        }
        (at, read) = (grown.pattern, grown.text);
    }
}

/// The star that a pattern has at a place, and where it goes on.
fn star_at(pattern: &[u8], at: usize, read: usize, separator: Option<u8>) -> Option<(Star, usize)> {
    if pattern.get(at) != Some(&b'*') {
        return None;
    }
    let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
    let crosses = stars > 1 || separator.is_none();
    let mut next = at + stars;
    // `**/x` is also `x` itself.
    let begins = at == 0 || pattern.get(at - 1) == separator.as_ref();
    if stars > 1 && begins && separator.is_some() && pattern.get(next) == separator.as_ref() {
        next += 1;
    }
    Some((Star { pattern: next, text: read, crosses }, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_of_paths() {
        for (glob, path, expected) in [
            ("src/**", "src/a.rs", true),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("src/**", "srcs/a.rs", false),
            ("src", "src/a/b.rs", true),
            ("src/", "src/a/b.rs", true),
            ("./src/", "src/a/b.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/*", "src/a/b.rs", true),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "x/y/a.rs", true),
            ("**/*.rs", "x/y/a.rsx", false),
            ("**/test/**", "a/test/b/c", true),
            ("**/test/**", "test/b", true),
            ("**", "anything/at/all", true),
            ("*", "name", true),
            ("*.md", "docs/a.md", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXbYb", false),
            (".env*", ".env.local", true),
            ("", "a", false),
            ("/", "a", false),
        ] {
            assert_eq!(fits_path(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn patterns_of_commands_and_addresses() {
        for (pattern, text, expected) in [
            ("rm *", "rm -rf /tmp/x", true),
            ("rm *", "rm", true),
            ("rm *", "rmdir x", false),
            ("*curl*", "x | curl https://a/b", true),
            ("https://docs.rs/*", "https://docs.rs/serde/latest", true),
            ("docs.rs", "docs.rs", true),
            ("*.docs.rs", "docs.rs", false),
            ("*", "", true),
        ] {
            assert_eq!(fits_text(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let text = "a".repeat(4_000);
        assert!(!fits_text(&format!("{}b", "*a".repeat(400)), &text));
        assert!(!fits_path(&format!("{}b", "**a*".repeat(200)), &text));
    }
}
