//! Questions as protocol messages, one type for each kind of subject.

use crate::message::ServerEvent;
use crate::question::{
    Access, Act, FileSubject, HostSubject, Process, Question, QuestionId, Subject,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Request {
    File(Box<FsRequest>),
    Host(Box<HostRequest>),
}

impl From<&Question> for Request {
    fn from(question: &Question) -> Self {
        match &question.subject {
            Subject::File(file) => Self::File(Box::new(FsRequest::of(question, file))),
            Subject::Host(host) => Self::Host(Box::new(HostRequest::of(question, host))),
        }
    }
}

impl From<Request> for ServerEvent {
    fn from(request: Request) -> Self {
        match request {
            Request::File(file) => Self::FsRequest(file),
            Request::Host(host) => Self::HostRequest(host),
        }
    }
}

/// A question about a file. A message with the same id replaces the earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsRequest {
    pub id: QuestionId,
    pub session: String,
    /// Bytes that are not UTF-8 are replaced; `path_bytes` has them.
    pub path: String,
    /// Hexadecimal, if the path is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    pub op: String,
    pub access: Access,
    #[serde(default)]
    pub act: Act,
    pub is_directory: bool,
    pub is_secret: bool,
    pub reason: String,
    /// The entry to be created or renamed in the directory `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The new name in a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_path: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_copied: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_name_only: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_bytes: Option<String>,
    /// Of the first waiting process, like the next two fields.
    pub pid: u32,
    pub exe: String,
    pub cwd: String,
    pub processes: Vec<Process>,
    pub requests: Vec<u64>,
    pub asked_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A question about a host. A message with the same id replaces the earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRequest {
    pub id: QuestionId,
    pub session: String,
    /// A name, or an address as text.
    pub host: String,
    pub port: u16,
    pub reason: String,
    /// The waiting processes, as far as known.
    #[serde(default)]
    pub processes: Vec<Process>,
    pub requests: Vec<u64>,
    pub asked_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl HostRequest {
    fn of(question: &Question, host: &HostSubject) -> Self {
        Self {
            id: question.id,
            session: question.session.clone(),
            host: host.host.clone(),
            port: host.port,
            reason: question.reason.clone(),
            processes: question.processes.clone(),
            requests: question.requests.clone(),
            asked_at: question.asked_at,
            expires_at: question.expires_at,
        }
    }
}

impl From<HostRequest> for Question {
    fn from(wire: HostRequest) -> Self {
        Self {
            id: wire.id,
            session: wire.session,
            subject: Subject::Host(HostSubject { host: wire.host, port: wire.port }),
            reason: wire.reason,
            processes: wire.processes,
            requests: wire.requests,
            is_secret: false,
            asked_at: wire.asked_at,
            expires_at: wire.expires_at,
        }
    }
}

impl FsRequest {
    fn of(question: &Question, file: &FileSubject) -> Self {
        let first = question.processes.first();
        Self {
            id: question.id,
            session: question.session.clone(),
            path: text(&file.path),
            path_bytes: bytes(&file.path),
            op: file.operation.clone(),
            access: file.access,
            is_directory: file.is_directory,
            is_secret: question.is_secret,
            reason: question.reason.clone(),
            act: file.act,
            entry: file.entry.as_deref().map(text),
            new_path: file.new_path.as_deref().map(text),
            may_be_copied: file.may_be_copied,
            is_name_only: file.is_name_only,
            also: file.also.iter().map(|path| text(path)).collect(),
            directory: question.offered().map(|path| text(path)),
            directory_bytes: question.offered().and_then(|path| bytes(path)),
            pid: first.map_or(0, |process| process.pid),
            exe: first.map(|process| process.executable.clone()).unwrap_or_default(),
            cwd: first.map(|process| process.cwd.clone()).unwrap_or_default(),
            processes: question.processes.clone(),
            requests: question.requests.clone(),
            asked_at: question.asked_at,
            expires_at: question.expires_at,
        }
    }
}

impl From<FsRequest> for Question {
    fn from(wire: FsRequest) -> Self {
        let file = FileSubject {
            path: path(wire.path, wire.path_bytes),
            access: wire.access,
            operation: wire.op,
            is_directory: wire.is_directory,
            act: wire.act,
            entry: wire.entry.map(PathBuf::from),
            new_path: wire.new_path.map(PathBuf::from),
            may_be_copied: wire.may_be_copied,
            is_name_only: wire.is_name_only,
            also: wire.also.into_iter().map(PathBuf::from).collect(),
            directory: wire.directory.map(|text| path(text, wire.directory_bytes)),
        };
        Self {
            id: wire.id,
            session: wire.session,
            subject: Subject::File(file),
            reason: wire.reason,
            processes: wire.processes,
            requests: wire.requests,
            is_secret: wire.is_secret,
            asked_at: wire.asked_at,
            expires_at: wire.expires_at,
        }
    }
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(super) fn bytes(path: &Path) -> Option<String> {
    let is_text = path.to_str().is_some();
    let bytes = path.as_os_str().as_bytes();
    (!is_text).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Falls back to the text if the digits are invalid. Clients that ignore the digits show the text as well.
pub(super) fn path(text: String, hexadecimal: Option<String>) -> PathBuf {
    match hexadecimal.and_then(|digits| from_hexadecimal(&digits)) {
        Some(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        None => PathBuf::from(text),
    }
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let values: Vec<u8> = digits
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = values.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
