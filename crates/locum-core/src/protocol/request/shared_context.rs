//! What may be asked of the tool `shared_context`.

use serde::{Deserialize, Serialize};

/// An action of the tool `shared_context`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextAction {
    /// The keys, without values.
    ListKeys(ListKeys),
    /// One value.
    Read(ContextKey),
    /// Set one value.
    Write(ContextWrite),
    /// Remove one value.
    Delete(ContextDelete),
    /// Several values.
    ReadBatch(ContextBatch),
    /// What a key held.
    ReadHistory(ContextHistory),
    /// Keep everything under a label.
    Snapshot(ContextLabel),
    /// The snapshots, without values.
    ListSnapshots(ListSnapshots),
    /// Bring back what was kept under a label.
    Restore(ContextLabel),
}

/// `list_keys` has no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListKeys {}

/// `list_snapshots` has no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSnapshots {}

/// The field of `read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextKey {
    /// [a-z0-9_], at most 64 characters.
    pub key: String,
}

/// The fields of `write`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextWrite {
    /// [a-z0-9_], at most 64 characters.
    pub key: String,
    /// At most 1000 tokens of distilled state.
    pub value: String,
    /// Refuse unless this version is there; 0 means the key must not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
    /// The value expires after so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Orchestrator only: who may read, e.g. subagent:writer:*
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readable_by: Option<Vec<String>>,
    /// Orchestrator only: who may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable_by: Option<Vec<String>>,
}

/// The fields of `delete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextDelete {
    /// [a-z0-9_], at most 64 characters.
    pub key: String,
    /// Refuse unless this version is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// The field of `read_batch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextBatch {
    /// Keys of read_batch.
    pub keys: Vec<String>,
}

/// The fields of `read_history`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextHistory {
    /// [a-z0-9_], at most 64 characters.
    pub key: String,
    /// How many, newest first; at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<usize>,
}

/// The field of `snapshot` and `restore`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextLabel {
    /// Name of a snapshot.
    pub label: String,
}
