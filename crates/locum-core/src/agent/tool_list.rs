//! Reading `tools` and `disallowedTools`: names as any system writes them, and what cannot be kept of them.

use super::findings::Findings;
use super::note::Topic;
use super::roster::nearest;
use super::tool_names::{ELSEWHERE, OURS, canonical};
use super::values::{Item, found};
use super::yaml::{Entry, short};
use crate::limits;

/// Which of the two lists it is: what is not understood is left out of the one and kept whole in the other, so that an
/// agent never has more than its file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Allowed,
    Denied,
}

pub(super) fn read(entry: &Entry, list: List, findings: &mut Findings) -> Option<Vec<String>> {
    let before = findings.notes.len();
    let key = &entry.key;
    let items = findings.items(entry, |findings, node| {
        findings.error(node.at, format!("`{key}` takes names of tools; found {}", found(node)));
    })?;
    if findings.notes[before..].iter().any(|note| note.severity == super::note::Severity::Error) {
        return None;
    }
    if items.len() > limits::TOOLS_PER_AGENT_MAX {
        let message = format!("`{key}` names {} tools; at most {}", items.len(), limits::TOOLS_PER_AGENT_MAX);
        findings.error(entry.value.at, message);
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for item in &items {
        if let Some(name) = name_of(item, list, findings)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    Some(names)
}

fn name_of(item: &Item, list: List, findings: &mut Findings) -> Option<String> {
    let text = item.text.as_str();
    if let Some((tool, _)) = text.split_once('(') {
        let tool = canonical(tool.trim());
        let message = match list {
            List::Allowed => format!(
                "`{}` is left out: locum cannot allow a part of a tool; write `{tool}` to allow all of it",
                short(text)
            ),
            List::Denied => format!("`{}` denies all of `{tool}`: locum cannot deny a part of a tool", short(text)),
        };
        findings.warn(item.at, Topic::UnknownTool, message);
        return (list == List::Denied).then(|| tool.to_owned());
    }
    let name = canonical(text);
    if OURS.contains(&name) || name.starts_with("mcp__") {
        return Some(name.to_owned());
    }
    if name == "*" && list == List::Allowed {
        let message = "`*` is left out: name the tools, or leave `tools` out for the default ones";
        findings.warn(item.at, Topic::UnknownTool, message);
        return None;
    }
    let is_dropped = "it is dropped when a task starts";
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == name) {
        let what = if list == List::Allowed { is_dropped } else { "nothing is denied by it" };
        findings.info(item.at, format!("the tool `{name}` is not honoured: {instead}; {what}"));
        return Some(name.to_owned());
    }
    let near = nearest(name, OURS.iter(), |ours| ours);
    let hint = match near.first() {
        Some(ours) => format!("did you mean `{ours}`?"),
        None => format!("locum's own are {}", OURS.join(", ")),
    };
    let unless = "unless a server or an application provides it";
    let what = if list == List::Allowed { is_dropped } else { "nothing is denied by it" };
    findings.warn(item.at, Topic::UnknownTool, format!("{} {what}, {unless}; {hint}", nobody_has(text)));
    Some(name.to_owned())
}

/// How a remark about a tool that nobody has begins.
pub(super) fn nobody_has(tool: &str) -> String {
    format!("no tool is called `{}`:", short(tool))
}
