//! The documents that our own program prints and that are passed on as they are: what the description of the interface says about
//! them. That it is true is tested with what real sandboxes answer (`tests/functional/sdk_openapi.rs`).

#![allow(dead_code, reason = "these types describe; nothing is made of them")]

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The bytes of a file, as they are.
#[derive(Serialize, ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct FileContent(Vec<u8>);

/// What a sandbox changed, ordered by path: a directory comes before what is in it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeSet {
    changes: Vec<Change>,
    renames: Vec<Rename>,
    /// Directories whose paths exceed the kernel's limit. What is in them is neither shown nor applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    too_deep: Vec<String>,
}

/// One path that a sandbox changed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// From the root of the project.
    path: String,
    /// The exact bytes in hexadecimal digits, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    kind: ChangeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Entry>,
    /// Another name of the same file, made by the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_link_of: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChangeKind {
    Added,
    /// The content of a file or the target of a link; permissions may have changed, too.
    Modified,
    Deleted,
    /// A directory became a file, a file a link, and so on.
    TypeChanged,
    ModeChanged,
    /// Extended attributes; permissions may have changed, too.
    AttributesChanged,
    /// Only the time of modification.
    Touched,
    /// The same content as before, but now another name of another file.
    Linked,
}

/// An entry of a directory, before or after a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    kind: EntryKind,
    /// Permission bits with set-id and sticky bits.
    mode: u32,
    size: u64,
    modified: FileTime,
    /// Of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Device,
}

/// Since 1970.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileTime {
    seconds: i64,
    nanoseconds: u32,
}

/// A file that was deleted in one place and added in another.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rename {
    from: String,
    to: String,
    /// In percent; 100 for the same content.
    similarity: u8,
}

/// What an apply did; for a dry run, what stands in the way.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ApplyResult {
    Applied(Applied),
    Preview(Held),
}

/// Paths of the project.
#[derive(Serialize, ToSchema)]
pub(crate) struct Applied {
    applied: Vec<String>,
    /// Not applied (`skipRefused`). A directory stands for everything in it.
    refused: Vec<String>,
    /// Not applied: the host's version was kept (`onConflict`).
    kept: Vec<String>,
}

/// What stands in the way of an apply, path by path.
#[derive(Serialize, ToSchema)]
pub(crate) struct Held {
    refused: Vec<Refused>,
    conflicts: Vec<Conflict>,
}

/// A change that must not come to the host.
#[derive(Serialize, ToSchema)]
pub(crate) struct Refused {
    path: String,
    reason: RefusedReason,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RefusedReason {
    /// The host would run it later.
    RunLater(Objection),
    /// The sandbox could not see what the host has there.
    Hidden,
    /// It is a device, a FIFO or a socket.
    SpecialFile,
    LinkLeavesProject,
    /// The name is reserved for the sandbox.
    ReservedName,
    PathTooLong,
    /// Something in the directory that it replaces was not applied.
    PartOfItStays,
}

/// A rule that matched, and its reason.
#[derive(Serialize, ToSchema)]
pub(crate) struct Objection {
    rule: String,
    why: String,
}

/// A change of the sandbox that meets one of the host.
#[derive(Serialize, ToSchema)]
pub(crate) struct Conflict {
    path: String,
    reason: ConflictReason,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ConflictReason {
    ChangedOnHost,
    DeletedOnHost,
    /// Both changed it, and there is no common version to merge by.
    NoBase,
    /// Both changed the same lines.
    CannotMerge,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct CheckpointList {
    /// Oldest first.
    checkpoints: Vec<Checkpoint>,
}

/// A kept state of a sandbox's project.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checkpoint {
    number: u32,
    #[schema(format = DateTime)]
    created_at: String,
    reason: CheckpointReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Files, directories and deletions that differ from the project.
    entries: u64,
    /// The length of these files.
    bytes: u64,
    /// What they take on disk.
    disk_bytes: u64,
    /// The start of the machine as long as which it lasts, if it is not on disk yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_restart_of: Option<String>,
    is_on_disk: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CheckpointReason {
    /// Somebody asked for it.
    Asked,
    /// The sandbox keeps a state before each command.
    BeforeCommand,
    BeforeRollback,
    /// A person is asked about it; the next one of this kind takes its place.
    ForReview,
}

/// What a rollback did; for a dry run, what it would change.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RollbackResult {
    Done(RolledBack),
    Preview(ChangeSet),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolledBack {
    /// The state that is there now.
    checkpoint: u32,
    /// The checkpoint that has the state before.
    kept_as: u32,
}

/// Questions that wait for an answer, and who asks.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    sessions: Vec<AskingSandbox>,
    questions: Vec<Question>,
}

/// A sandbox or a run that can ask.
#[derive(Serialize, ToSchema)]
pub(crate) struct AskingSandbox {
    /// Its id.
    session: String,
    command: String,
    project: String,
}

/// A question about a file (`path`) or a host (`host`); docs/protocol.md explains every field. Names in it were chosen by the
/// program that asks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question {
    /// Its number, within its sandbox.
    id: u64,
    /// The id of the sandbox or run.
    session: String,
    /// Its name for `sandbox approve`.
    address: String,
    /// Why it has to be asked.
    reason: String,
    /// The file that would be granted, on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    /// The system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<String>,
    /// `read`, `execute` or `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<String>,
    /// What the call would do: `see`, `read`, `enter`, `execute`, `write`, `create`, `replace`, `rename`, `remove` or `change`.
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_directory: Option<bool>,
    /// It is a key, a password store or the like: never answer it by rote.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_secret: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_name_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_be_copied: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path: Option<String>,
    /// Paths that are granted with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// The directory that may be allowed instead of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    processes: Vec<AskingProcess>,
    /// Ids of the calls that wait.
    requests: Vec<u64>,
    #[schema(format = DateTime)]
    asked_at: String,
    /// When it is denied if nobody has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A process that waits for the answer. What it says of itself is its own word.
#[derive(Serialize, ToSchema)]
pub(crate) struct AskingProcess {
    pid: u32,
    exe: String,
    args: Vec<String>,
    cwd: String,
    /// Starts with its parent.
    ancestors: Vec<AskingAncestor>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct AskingAncestor {
    pid: u32,
    name: String,
}

/// A record of the audit log (docs/audit.md).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRecord {
    /// A UUIDv7.
    event_id: String,
    sandbox_id: String,
    #[schema(format = DateTime)]
    timestamp: String,
    level: AuditLevel,
    /// Of the sandbox.
    state: String,
    /// Such as `SANDBOX_CREATED`.
    event: String,
    /// What happened; which fields there are depends on `event`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Map<String, Value>>,
    /// Counts from 1.
    seq: u64,
    /// The hash of the record before it.
    prev: String,
    hash: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum AuditLevel {
    Info,
    Warn,
    Error,
    Critical,
}
