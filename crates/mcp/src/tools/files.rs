//! `read`, `write`, `edit` and `list`: files as a command of the sandbox would see them. A process inside does it (TOOL-3).

use super::answer::{ToolAnswer, ToolError};
use crate::context::CallContext;
use crate::text::{lossy, whole};
use palisade_service::Problem;
use palisade_session::files::{Client, FileType, FileVersion, IfExists, MAX_CONTENT, WriteOptions};
use palisade_session::tools::replaced_text;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const DEFAULT_LINES: usize = 2000;
/// Of the text that one call returns.
const MAX_TEXT: usize = 128 << 10;
/// How far into a file a call looks for a line.
const MAX_SCANNED: u64 = 256 << 20;
/// Of a file that is edited.
const MAX_EDITED: u64 = 16 << 20;
const MAX_LISTED: usize = 50_000;
const MAX_SHOWN: usize = 1000;
const MAX_DEPTH: u32 = 16;
/// Permissions of a new file, less the umask of the sandbox.
const NEW_FILE: u32 = 0o666;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    path: PathBuf,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadReport {
    content: String,
    size: u64,
    first_line: usize,
    lines: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
    etag: String,
}

/// As the HTTP interface writes a version, without its quotes.
fn etag(version: &FileVersion) -> String {
    format!("{:x}-{:x}-{:x}", version.inode, version.modified, version.changed)
}

fn version_of(etag: &str) -> Option<FileVersion> {
    let mut parts = etag.trim().trim_matches('"').split('-');
    let inode = u64::from_str_radix(parts.next()?, 16).ok()?;
    let modified = i128::from_str_radix(parts.next()?, 16).ok()?;
    let changed = i128::from_str_radix(parts.next()?, 16).ok()?;
    parts.next().is_none().then_some(FileVersion { inode, modified, changed })
}

pub(crate) async fn read(call: &CallContext, wanted: Read) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let done =
        call.server.operations.with_files(&sandbox.id, move |files| read_lines(files, &wanted));
    let report = done.await?;
    let mut text = report.content.clone();
    if let Some(next) = report.next_line {
        text.push_str(&format!("\n[more follows; read on with offset {next}]"));
    } else if report.truncated {
        text.push_str("\n[the rest was left out]");
    }
    ToolAnswer::new(text, &report)
}

fn read_lines(files: &mut Client, wanted: &Read) -> Result<ReadReport, Problem> {
    let first_line = wanted.offset.unwrap_or(1).max(1);
    let limit = wanted.limit.unwrap_or(DEFAULT_LINES).max(1);
    let (handle, info) = files.open_for_reading(&wanted.path)?;
    let mut kept = Vec::new();
    let (mut line, mut position) = (1, 0);
    let mut is_whole = true;
    'file: loop {
        let part = files.read_part(handle, position, MAX_CONTENT)?;
        if part.is_empty() {
            break;
        }
        position += part.len() as u64;
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            if line >= first_line + limit || kept.len() > MAX_TEXT {
                is_whole = false;
                break 'file;
            }
            if line >= first_line {
                kept.extend_from_slice(piece);
            }
            line += usize::from(piece.ends_with(b"\n"));
        }
        if position > MAX_SCANNED {
            is_whole = false;
            break;
        }
    }
    files.close(handle)?;
    if kept.contains(&0) {
        return Err(Problem::invalid(format!(
            "{} is not a text file ({} bytes); use bash to look at it, for example with `xxd` or `file`",
            wanted.path.display(),
            info.size
        )));
    }
    let is_cut = kept.len() > MAX_TEXT;
    kept.truncate(whole(&kept, MAX_TEXT));
    let content = lossy(&kept);
    let lines = content.split_inclusive('\n').count();
    // A line that was cut is read on by no line number.
    let next_line = (!(is_whole || is_cut && lines <= 1))
        .then(|| first_line + if is_cut { lines - 1 } else { lines });
    Ok(ReadReport {
        content,
        size: info.size,
        first_line,
        lines,
        truncated: !is_whole || is_cut,
        next_line,
        etag: etag(&info.version),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    path: PathBuf,
    content: String,
    #[serde(default)]
    append: bool,
    #[serde(default)]
    etag: Option<String>,
}

#[derive(Debug, Serialize)]
struct WriteReport {
    path: PathBuf,
    size: u64,
    mode: String,
    etag: String,
}

pub(crate) async fn write(call: &CallContext, wanted: Write) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let if_exists = match (&wanted.etag, wanted.append) {
        (Some(_), true) => return Err(ToolError::wrong("etag and append do not go together")),
        (Some(etag), false) => IfExists::ReplaceVersion(
            version_of(etag).ok_or_else(|| ToolError::wrong("etag: not one that `read` gave"))?,
        ),
        (None, true) => IfExists::Append,
        (None, false) => IfExists::Replace,
    };
    let done = call.server.operations.with_files(&sandbox.id, move |files| {
        put(files, &wanted.path, wanted.content.as_bytes(), if_exists)
    });
    let report = done.await?;
    let text = format!("{} has {} bytes now", report.path.display(), report.size);
    ToolAnswer::new(text, &report)
}

fn put(
    files: &mut Client,
    path: &Path,
    mut content: &[u8],
    if_exists: IfExists,
) -> Result<WriteReport, Problem> {
    let options = WriteOptions { if_exists, make_parents: true, mode: NEW_FILE };
    let info = files.write(path, &mut content, options)?;
    Ok(WriteReport {
        path: path.to_owned(),
        size: info.size,
        mode: format!("{:04o}", info.mode),
        etag: etag(&info.version),
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Edit {
    path: PathBuf,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Serialize)]
struct EditReport {
    #[serde(flatten)]
    written: WriteReport,
    replacements: usize,
}

pub(crate) async fn edit(call: &CallContext, wanted: Edit) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    if wanted.old_text.is_empty() {
        return Err(ToolError::wrong("oldText is empty: `write` makes a file"));
    }
    let done = call.server.operations.with_files(&sandbox.id, move |files| {
        let (content, info) = files.read(&wanted.path, MAX_EDITED)?;
        let (content, replacements) = replaced(&content, &wanted)?;
        // Only what was read is replaced: a change in between is not lost.
        let written = put(files, &wanted.path, &content, IfExists::ReplaceVersion(info.version))?;
        Ok(EditReport { written, replacements })
    });
    let report = done.await?;
    let text = format!("{}: {} replaced", report.written.path.display(), report.replacements);
    ToolAnswer::new(text, &report)
}

fn replaced(content: &[u8], wanted: &Edit) -> Result<(Vec<u8>, usize), Problem> {
    let texts = (wanted.old_text.as_str(), wanted.new_text.as_str());
    match replaced_text(content, texts, wanted.replace_all) {
        Ok((text, count)) => Ok((text.into_bytes(), count)),
        Err(why) => Err(Problem::invalid(format!("{}: {why}", wanted.path.display()))),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    depth: Option<u32>,
}

#[derive(Debug, Serialize)]
struct ListReport {
    entries: Vec<Entry>,
    total: usize,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    #[serde(rename = "type")]
    type_: &'static str,
    size: u64,
}

pub(crate) async fn list(call: &CallContext, wanted: List) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let path = wanted.path.unwrap_or_else(|| ".".into());
    let depth = wanted.depth.unwrap_or(1).clamp(1, MAX_DEPTH);
    let done = call
        .server
        .operations
        .with_files(&sandbox.id, move |files| Ok(files.list(&path, depth, MAX_LISTED)?));
    let mut listed = done.await?;
    listed.sort_by(|one, other| one.path.cmp(&other.path));
    let total = listed.len();
    let entries: Vec<Entry> = listed
        .iter()
        .take(MAX_SHOWN)
        .map(|entry| Entry {
            path: entry.path.to_string_lossy().into_owned(),
            type_: match entry.info.file_type {
                FileType::File => "file",
                FileType::Directory => "directory",
                FileType::Link => "link",
                FileType::Other => "other",
            },
            size: entry.info.size,
        })
        .collect();
    let mut text: String = entries
        .iter()
        .map(|entry| {
            let mark = if entry.type_ == "directory" { "/" } else { "" };
            format!("{}{mark}\n", lossy(entry.path.replace('\n', "\u{fffd}").as_bytes()))
        })
        .collect();
    if total > entries.len() {
        text.push_str(&format!("[{} of {total} entries]\n", entries.len()));
    }
    let truncated = total > entries.len();
    ToolAnswer::new(text, &ListReport { entries, total, truncated })
}

#[cfg(test)]
mod tests {
    use super::{Edit, etag, replaced, version_of};
    use palisade_session::files::FileVersion;

    fn edit(old: &str, new: &str, all: bool) -> Edit {
        let (old_text, new_text) = (old.to_owned(), new.to_owned());
        Edit { path: "f".into(), old_text, new_text, replace_all: all }
    }

    #[test]
    fn an_edit_is_exact_and_of_one_place() {
        let done = |edit: &Edit| replaced(b"one two one", edit);
        assert_eq!(done(&edit("two", "2", false)).unwrap(), (b"one 2 one".to_vec(), 1));
        assert!(done(&edit("one", "1", false)).unwrap_err().detail().contains("2 times"));
        assert_eq!(done(&edit("one", "1", true)).unwrap(), (b"1 two 1".to_vec(), 2));
        assert!(done(&edit("three", "", true)).unwrap_err().detail().contains("does not occur"));
        assert!(replaced(b"\xff", &edit("a", "b", true)).is_err());
    }

    #[test]
    fn a_version_comes_back_from_its_etag() {
        let version = FileVersion { inode: 7, modified: 1_800_000_000_123_456_789, changed: 1 };
        assert_eq!(version_of(&etag(&version)), Some(version));
        assert_eq!(version_of("1-2"), None);
    }
}
