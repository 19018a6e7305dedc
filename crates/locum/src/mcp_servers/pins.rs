//! What servers offered when it was first seen. A tool is pinned by its name, its description and the schema of its
//! input, because a model obeys all three; one that has changed is suspended until the user accepts it.
//!
//! What is kept is the whole offer: a task can be given a tool, and the user be shown a change, without the server.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use locum_core::admission::servers::PREFIX;
use locum_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::private_file;
use crate::tools::content_hash;

/// The version of the files that this binary writes.
const VERSION: u32 = 1;

/// What is known of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    /// What was reached.
    fingerprint: String,
    pub(super) tools: Vec<PinnedTool>,
}

/// A tool as it was first seen, or accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PinnedTool {
    #[serde(flatten)]
    pub(super) pinned: Offer,
    /// What the server says of it now, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<Offer>,
}

/// What a server says of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// Its name, as the server knows it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
}

impl Offer {
    fn hash(&self) -> String {
        // A schema's keys are sorted, so that their order says nothing.
        content_hash(format!("{}\n{}\n{}", self.name, self.description, sorted(&self.input_schema)).as_bytes())
    }

    /// The name that models call.
    pub(super) fn shown_name(&self, server: &str) -> String {
        let accepted = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') { char } else { '_' };
        let name: String = format!("{PREFIX}{server}__{}", self.name).chars().map(accepted).collect();
        if name.len() <= limits::TOOL_NAME_CHARS_MAX {
            return name;
        }
        let hash = content_hash(self.name.as_bytes());
        let mark = &hash[hash.len() - 8..];
        format!("{}_{mark}", &name[..limits::TOOL_NAME_CHARS_MAX - 9])
    }
}

/// A value whose text does not depend on the order of keys.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What is to be kept of a server that was reached, when this was kept before. What was not seen before is pinned as it
/// is, what was is compared, and what is not offered any more stays pinned: it may come back.
pub(super) fn judge(kept: Option<&Manifest>, fingerprint: &str, offers: Vec<Offer>) -> Manifest {
    let kept = kept.filter(|kept| kept.fingerprint == fingerprint);
    let mut tools = kept.map_or_else(Vec::new, |kept| kept.tools.clone());
    for offer in offers {
        match tools.iter_mut().find(|tool| tool.pinned.name == offer.name) {
            None => tools.push(PinnedTool { pinned: offer, changed: None }),
            Some(tool) => tool.changed = (tool.pinned.hash() != offer.hash()).then_some(offer),
        }
    }
    tools.truncate(limits::MCP_TOOLS_MAX);
    Manifest { version: VERSION, fingerprint: fingerprint.to_owned(), tools }
}

/// Takes changed tools as they are now, all of them where none is named. Returns their names.
pub(super) fn accept(manifest: &mut Manifest, names: &[String]) -> Vec<String> {
    let mut accepted = Vec::new();
    for tool in &mut manifest.tools {
        if (names.is_empty() || names.contains(&tool.pinned.name))
            && let Some(changed) = tool.changed.take()
        {
            accepted.push(changed.name.clone());
            tool.pinned = changed;
        }
    }
    accepted
}

/// Where manifests are kept, one file for each server; nowhere for programs that name no place.
#[derive(Debug, Clone, Default)]
pub(super) struct PinBoard {
    directory: Option<PathBuf>,
}

/// When a file was written, and its size: enough to notice a change.
pub(super) type Stamp = Option<(SystemTime, u64)>;

impl PinBoard {
    pub(super) fn at(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    fn file(&self, server: &str) -> Option<PathBuf> {
        // A server's name is checked where settings are read; another one must not lead out of the directory.
        super::check_name(server).ok()?;
        Some(self.directory.as_ref()?.join(format!("{server}.json")))
    }

    pub(super) fn stamp(&self, server: &str) -> Stamp {
        let found = self.file(server)?.metadata().ok()?;
        Some((found.modified().ok()?, found.len()))
    }

    /// What is kept of a server. What cannot be read is not taken for nothing: nothing would be pinned then.
    pub(super) fn read(&self, server: &str, fingerprint: &str) -> Result<Option<Manifest>, String> {
        let Some(path) = self.file(server) else { return Ok(None) };
        let failed = |why: String| format!("what is known of it cannot be read ({}): {why}", path.display());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if manifest.version != VERSION {
            return Err(failed(format!("version {} was written by another locum", manifest.version)));
        }
        Ok(Some(manifest).filter(|manifest| manifest.fingerprint == fingerprint))
    }

    pub(super) fn write(&self, server: &str, manifest: &Manifest) -> Result<(), String> {
        let Some(path) = self.file(server) else { return Ok(()) };
        let failed = |why: String| format!("what was seen of it cannot be kept ({}): {why}", path.display());
        let text = serde_json::to_string_pretty(manifest).map_err(|error| failed(error.to_string()))?;
        private_file::replace(&path, &text).map_err(|error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(name: &str, description: &str, input_schema: Value) -> Offer {
        Offer { name: name.to_owned(), description: description.to_owned(), input_schema }
    }

    fn standing(manifest: &Manifest) -> Vec<String> {
        let word = |tool: &PinnedTool| if tool.changed.is_some() { "changed" } else { "same" };
        manifest.tools.iter().map(|tool| format!("{} {}", tool.pinned.name, word(tool))).collect()
    }

    #[test]
    fn a_tool_that_changes_is_suspended_until_it_is_accepted_or_changes_back() {
        let first = judge(None, "f", vec![offer("a", "adds", json!({"x": 1, "y": 2})), offer("b", "brews", json!({}))]);
        assert_eq!(standing(&first), ["a same", "b same"]);
        for (now, expected) in [
            (offer("a", "adds", json!({"y": 2, "x": 1})), "a same"),
            (offer("a", "adds, and tells", json!({"x": 1, "y": 2})), "a changed"),
            (offer("a", "adds", json!({"x": 1, "y": 2, "z": 3})), "a changed"),
        ] {
            let again = judge(Some(&first), "f", vec![now]);
            assert_eq!(standing(&again), [expected, "b same"]);
            let back = judge(Some(&again), "f", vec![offer("a", "adds", json!({"x": 1, "y": 2}))]);
            assert_eq!(standing(&back), ["a same", "b same"]);
            let mut accepted = again.clone();
            let names = accept(&mut accepted, &["b".to_owned()]);
            assert!(names.is_empty() && accepted == again, "only what is named is accepted");
            accept(&mut accepted, &[]);
            assert_eq!(standing(&accepted), ["a same", "b same"]);
        }
        let more = judge(Some(&first), "f", vec![offer("c", "new", json!({}))]);
        assert_eq!(standing(&more), ["a same", "b same", "c same"]);
        let elsewhere = judge(Some(&first), "another program", vec![offer("a", "else", json!({}))]);
        assert_eq!(standing(&elsewhere), ["a same"]);
    }

    #[test]
    fn names_fit_every_provider() {
        let name = |name: &str| offer(name, "", json!({})).shown_name("git-hub");
        assert_eq!(name("search"), "mcp__git-hub__search");
        assert_eq!(name("repo/get.file"), "mcp__git-hub__repo_get_file");
        let (one, other) = (name(&"x".repeat(80)), name(&format!("{}y", "x".repeat(80))));
        assert!(one.len() == 64 && other.len() == 64 && one != other, "{one} {other}");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let board = PinBoard::at(Some(directory.path().join("deep")));
        assert_eq!(board.read("s", "f"), Ok(None));
        let manifest = judge(None, "f", vec![offer("a", "adds", json!({}))]);
        board.write("s", &manifest).unwrap();
        assert_eq!(board.read("s", "f"), Ok(Some(manifest)));
        assert_eq!(board.read("s", "another"), Ok(None));
        for text in ["", "{}", r#"{"version": 9, "fingerprint": "f", "tools": []}"#] {
            std::fs::write(directory.path().join("deep/s.json"), text).unwrap();
            assert!(board.read("s", "f").is_err(), "{text}");
        }
        assert_eq!(board.file("../s"), None);
    }
}
