//! Setting one table in a text of TOML, without touching anything else of it.

use serde_json::{Value, json};
use toml::Table;

use super::merging::{Fields, Spot, like};

/// A text that says nothing but what a spot holds.
pub(super) fn only(Spot { folder, name }: Spot<'_>, fields: &Fields) -> String {
    let lines: String = fields.iter().map(|(field, value)| line(field, value)).collect();
    format!("[{folder}.{name}]\n{lines}")
}

/// What a text says.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text[..start.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {}", error.message())
    })?;
    serde_json::to_value(table).map_err(|error| error.to_string())
}

/// The text with these fields at a spot: in the lines of its table, or in a table of its own at the end.
pub(super) fn write(text: &str, spot: Spot<'_>, fields: &Fields) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let Some(header) = lines.iter().position(|line| header_of(line) == Some(vec![spot.folder, spot.name])) else {
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{}", like(text, format!("{end}{gap}{}", only(spot, fields))));
    };
    let mut next = header + 1;
    for (field, value) in fields {
        let new = like(text, line(field, value));
        match known(&lines, header, field) {
            Some(range) => {
                next = range.start + 1;
                lines.splice(range, [new]);
            }
            None => {
                lines.insert(next, new);
                next += 1;
            }
        }
    }
    lines.concat()
}

fn line(field: &str, value: &Value) -> String {
    format!("{field} = {}\n", json!(value))
}

/// The names in the header of a table, if a line is one.
fn header_of(line: &str) -> Option<Vec<&str>> {
    let (header, _) = line.trim().strip_prefix('[')?.split_once(']')?;
    Some(header.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect())
}

/// The lines that a field of a table is written in.
fn known(lines: &[String], header: usize, field: &str) -> Option<std::ops::Range<usize>> {
    let table = &lines[header + 1..];
    let table = &table[..table.iter().position(|line| header_of(line).is_some()).unwrap_or(table.len())];
    let is_meant = |line: &String| line.split_once('=').is_some_and(|(name, _)| name.trim() == field);
    let first = table.iter().position(is_meant)?;
    // A list may go over several lines.
    let count =
        (1..=table.len() - first).find(|count| table[first..first + count].concat().parse::<Table>().is_ok())?;
    let start = header + 1 + first;
    Some(start..start + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::merging::{Language, testing};

    const SNIPPET: &str = "[mcp_servers.locum]\ncommand = \"locum\"\nargs = [\"mcp\"]\n";

    fn merged(text: &str) -> String {
        let fields = vec![("command", json!("locum")), ("args", json!(["mcp"]))];
        testing::merged(Language::Toml, text, "mcp_servers", &fields)
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
                "[mcp_servers.locum]\ncommand = \"old\"\n[mcp_servers.locum.env]\nA = \"b\"\n\n# z\n[z]\nb = 2\n",
                format!("{SNIPPET}[mcp_servers.locum.env]\nA = \"b\"\n\n# z\n[z]\nb = 2\n"),
            ),
            (
                "[mcp_servers.locum] # mine\nenabled = true\nargs = [\n  'x', # y\n]\n\n# Another.\n[z]\n",
                "[mcp_servers.locum] # mine\ncommand = \"locum\"\nenabled = true\nargs = [\"mcp\"]\n\n# Another.\n[z]\n"
                    .to_owned(),
            ),
            ("a = 1\r\n", format!("a = 1\r\n\r\n{}", SNIPPET.replace('\n', "\r\n"))),
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
