//! The text of a new agent file: one to fill in, or a copy of another agent under a new name.

use crate::ids::AgentName;

/// An agent to fill in, with the usual keys.
pub fn blank(name: &AgentName) -> String {
    format!(
        "---\n\
         name: {name}\n\
         description: One line that says when to delegate to it.\n\
         # Take away the # from what you need.\n\
         # model: inherit                  # a model, or auto-cheap, auto-balanced, auto-premium\n\
         # tools: read, grep, find, ls     # left out: the reading tools; []: none\n\
         # disallowedTools: bash           # taken away, whatever else is said\n\
         # maxTurns: 10\n\
         # timeout: 300                    # seconds\n\
         # extends: explore                # what is left out here is taken from there\n\
         ---\n\
         You are a specialist for one kind of task.\n\
         \n\
         How to work:\n\
         1. Find out what the task needs.\n\
         2. Do it, and check it.\n\
         \n\
         Answer with the result first, then what it rests on, as `path:line`, then what you did not check.\n"
    )
}

/// The text of an agent file, under another name.
pub fn renamed(text: &str, name: &AgentName) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let mut copy = String::with_capacity(text.len() + name.as_str().len());
    copy.push_str(lines.next().unwrap_or("---\n"));
    copy.push_str(&format!("name: {name}\n"));
    let mut in_frontmatter = true;
    for line in lines {
        in_frontmatter &= line.trim_end() != "---";
        // A key begins its line, so that what is indented or in the body is not taken for one.
        if !(in_frontmatter && line.starts_with("name:")) {
            copy.push_str(line);
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Dialect, Source, markdown};

    #[test]
    fn new_agents_can_be_read_without_a_remark() {
        let name = AgentName::parse("new-one").unwrap();
        let other =
            "\u{feff}---\r\ndescription: d\r\nname: old\r\nlocum:\r\n  max_depth: 1\r\n---\r\nname: in the body\r\n";
        for text in [blank(&name), renamed(&blank(&AgentName::parse("a").unwrap()), &name), renamed(other, &name)] {
            let reading = markdown::read(text.as_bytes(), "stem", Source::Bundled, Dialect::Native).unwrap();
            assert_eq!((reading.agent.name, reading.notes), (name.clone(), Vec::new()), "{text}");
        }
        assert!(renamed(other, &name).ends_with("\r\nname: in the body\r\n"));
    }
}
