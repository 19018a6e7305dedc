//! The public items of the library, one line each, in a file that is checked in: what changes for those who build
//! on the library is seen in review, as a line that came, went or changed.

mod scan;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use self::scan::Scan;

/// The crate whose items are listed, and its folder.
const CRATE: &str = "locum";
const FOLDER: &str = "crates/locum";

/// Fails if the list is not what the sources say.
pub(crate) fn check(root: &Path) -> Result<()> {
    let path = root.join(FOLDER).join("api.txt");
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let found = list(root)?;
    let changes = changes(&listed, &found);
    if changes.is_empty() {
        println!("api: {} public items, as listed in {FOLDER}/api.txt", found.lines().count());
        return Ok(());
    }
    println!("{}", changes.join("\n"));
    bail!("{FOLDER}/api.txt is out of date; if these changes are meant, run `cargo xtask api --write`");
}

/// Writes the list anew.
pub(crate) fn write(root: &Path) -> Result<()> {
    let path = root.join(FOLDER).join("api.txt");
    let found = list(root)?;
    std::fs::write(&path, &found).with_context(|| format!("{} could not be written", path.display()))?;
    println!("api: {} public items written to {FOLDER}/api.txt", found.lines().count());
    Ok(())
}

fn list(root: &Path) -> Result<String> {
    let folder = root.join(FOLDER).join("src");
    let read = |file: &str| {
        let path = folder.join(file);
        std::fs::read_to_string(&path).with_context(|| format!("{} could not be read", path.display()))
    };
    let mut scan = Scan::new(&read);
    scan.module_file(CRATE, "lib.rs", "")?;
    Ok(scan.into_lines().iter().map(|line| format!("{line}\n")).collect())
}

/// The lines that are in one list only, marked as a diff marks them.
fn changes(listed: &str, found: &str) -> Vec<String> {
    let listed: Vec<&str> = listed.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let gone = listed.iter().filter(|line| !found.contains(line)).map(|line| format!("-{line}"));
    let new = found.iter().filter(|line| !listed.contains(line)).map(|line| format!("+{line}"));
    let mut changes: Vec<String> = gone.chain(new).collect();
    if changes.is_empty() && listed != found {
        changes.push("the lines are the same, in another order".to_owned());
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_as_a_diff_shows_them() {
        assert_eq!(changes("a\nb\n", "a\nb\n"), Vec::<String>::new());
        assert_eq!(changes("a\nb\n", "b\nc\n"), ["-a", "+c"]);
        assert_eq!(changes("a\nb\n", "b\na\n"), ["the lines are the same, in another order"]);
    }
}
