//! Setting one table in a text of TOML, without touching anything else of it.

use toml::{Table, Value};

use super::Merged;

/// Sets the table `folder.name` to what a snippet says.
pub(super) fn set(text: &str, folder: &str, name: &str, snippet: &str) -> Result<Merged, String> {
    let read = |text: &str| text.parse::<Table>().map_err(|error| error.message().to_owned());
    let before: Table = text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text[..start.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {}", error.message())
    })?;
    let wanted = entry(&read(snippet)?, folder, name).cloned().ok_or("the words for it are missing")?;
    if entry(&before, folder, name) == Some(&wanted) {
        return Ok(Merged::Same);
    }
    let kept = without_table(text, folder, name);
    let gap = if kept.is_empty() || kept.ends_with("\n\n") { "" } else { "\n" };
    let end = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
    let changed = format!("{kept}{end}{gap}{snippet}");
    // Nothing but the one table may differ.
    let mut expected = before;
    let folder_table = expected.entry(folder).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(servers) = folder_table else { return Err(format!("`{folder}` is no table")) };
    servers.insert(name.to_owned(), wanted);
    match read(&changed) {
        Ok(after) if after == expected => Ok(Merged::Changed(changed)),
        Ok(_) | Err(_) => Err(format!("`{folder}` is written in a way that cannot be changed safely")),
    }
}

fn entry<'a>(table: &'a Table, folder: &str, name: &str) -> Option<&'a Value> {
    table.get(folder)?.get(name)
}

/// The text without the lines of a table and of those below it.
fn without_table(text: &str, folder: &str, name: &str) -> String {
    let is_meant = |line: &str| {
        let header = line.trim().strip_prefix('[').and_then(|header| header.split_once(']')).map(|(header, _)| header);
        let header: Option<Vec<&str>> =
            header.map(|header| header.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect());
        header.map(|parts| parts.starts_with(&[folder, name]))
    };
    let mut is_within = false;
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        is_within = is_meant(line).unwrap_or(is_within);
        if !is_within {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNIPPET: &str = "[mcp_servers.locum]\ncommand = \"locum\"\nargs = [\"mcp\"]\n";

    fn merged(text: &str) -> String {
        match set(text, "mcp_servers", "locum", SNIPPET) {
            Ok(Merged::Same) => "same".to_owned(),
            Ok(Merged::Changed(text)) => {
                assert_eq!(set(&text, "mcp_servers", "locum", SNIPPET), Ok(Merged::Same), "{text}");
                text
            }
            Err(problem) => format!("refused: {problem}"),
        }
    }

    #[test]
    fn one_table_is_set_and_the_rest_stays() {
        for (before, after) in [
            ("", SNIPPET.to_owned()),
            ("model = \"x\" # mine", format!("model = \"x\" # mine\n\n{SNIPPET}")),
            ("a = 1\n[mcp_servers.other]\ncommand = \"o\"\n", {
                format!("a = 1\n[mcp_servers.other]\ncommand = \"o\"\n\n{SNIPPET}")
            }),
            (
                "[mcp_servers.locum]\ncommand = \"old\"\n[mcp_servers.locum.env]\nA = \"b\"\n[z]\nb = 2\n",
                format!("[z]\nb = 2\n\n{SNIPPET}"),
            ),
            ("[mcp_servers.locum]\nargs = ['mcp']\ncommand = 'locum'\n", "same".to_owned()),
            ("[mcp_servers]\nlocum = {command = \"locum\", args = [\"mcp\"]}\n", "same".to_owned()),
        ] {
            assert_eq!(merged(before), after, "{before}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for (before, problem) in [
            ("a = ", "line 1: "),
            ("a = 1\n[b\n", "line 2: "),
            ("mcp_servers = 1\n", "`mcp_servers` is no table"),
            ("mcp_servers = {other = {command = \"o\"}}\n", "cannot be changed safely"),
            ("[mcp_servers]\nlocum = {command = \"old\"}\n", "cannot be changed safely"),
            ("x = '''\n[mcp_servers.locum]\n'''\n", "cannot be changed safely"),
        ] {
            let found = merged(before);
            assert!(found.starts_with("refused: ") && found.contains(problem), "{before}: {found}");
        }
    }
}
