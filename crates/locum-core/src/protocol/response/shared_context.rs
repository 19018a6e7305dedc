//! Answers of the tool `shared_context`. A store keeps an [`Entry`] as it is written here, in its snapshots.

use serde::{Deserialize, Serialize};

use crate::ids::Timestamp;

/// The keys of the shared context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    /// Those that the caller may read, by name.
    pub keys: Vec<KeyLine>,
    /// Tokens of all values, as the limit counts them.
    pub total_size_tokens: usize,
}

/// One key of the shared context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyLine {
    /// The key.
    pub key: String,
    /// Who wrote it last.
    pub written_by: String,
    /// When.
    pub written_at: Timestamp,
    /// Which write it is.
    pub version: u64,
    /// Tokens of its value.
    pub value_size_tokens: usize,
    /// When the value expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Who may read it; everyone if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable_by: Vec<String>,
    /// Who may write it; everyone if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable_by: Vec<String>,
}

/// One value of the shared context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Who wrote it.
    pub written_by: String,
    /// When.
    pub written_at: Timestamp,
    /// Which write it is.
    pub version: u64,
    /// When the value expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Who may read it; everyone if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable_by: Vec<String>,
    /// Who may write it; everyone if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable_by: Vec<String>,
}

/// The answer to `write`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The key.
    pub key: String,
    /// Which write it is.
    pub version: u64,
    /// Who wrote it.
    pub written_by: String,
    /// When.
    pub written_at: Timestamp,
    /// When the value expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// That the value is near its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The answer to `delete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The key.
    pub deleted: String,
    /// The version that is gone.
    pub previous_version: u64,
}

/// The answer to `read_batch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The values, in the order in which they were asked for.
    pub entries: Vec<Entry>,
    /// The keys that are not there.
    pub missing: Vec<String>,
}

/// The answer to `read_history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The key.
    pub key: String,
    /// What it held, newest first.
    pub versions: Vec<Version>,
}

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Which write it is.
    pub version: u64,
    /// The value.
    pub value: String,
    /// Who wrote it.
    pub written_by: String,
    /// When.
    pub written_at: Timestamp,
}

/// A snapshot of the shared context, without values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotLine {
    /// Its label.
    pub label: String,
    /// Who took it.
    pub taken_by: String,
    /// When.
    pub taken_at: Timestamp,
    /// How many keys it holds.
    pub keys: usize,
    /// Tokens of all its values.
    pub total_size_tokens: usize,
}

/// The answer to `list_snapshots`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshots {
    /// By label.
    pub snapshots: Vec<SnapshotLine>,
}

/// The answer to `restore`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Restored {
    /// The label.
    pub restored: String,
    /// The keys that were written, with their new versions.
    pub written: Vec<RestoredKey>,
    /// The keys that were removed.
    pub deleted: Vec<String>,
}

/// A key that was written by `restore`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestoredKey {
    /// The key.
    pub key: String,
    /// Its new version.
    pub version: u64,
}
