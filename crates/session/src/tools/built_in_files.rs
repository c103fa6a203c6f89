//! `read`, `write`, `edit` and `list` as declared tools: files as a command of the sandbox would see them. A process inside does it
//! (TOOL-3); here is only what is asked of it.

use crate::error::{Result, SessionError};
use crate::files::{Client, FileType, IfExists, Listing, MAX_CONTENT, WriteOptions};
use palisade_policy::tool::{BuiltIn, InputValues};
use serde_json::{Value, json};
use std::path::Path;

/// Of the text that one call returns.
const MAX_TEXT: usize = 512 << 10;
/// How far into a file a call looks for a line.
const MAX_SCANNED: u64 = 256 << 20;
/// Of a file that is edited.
const MAX_EDITED: u64 = 16 << 20;
const MAX_LISTED: usize = 10_000;
/// Permissions of a new file, less the umask of the sandbox.
const NEW_FILE: u32 = 0o666;

/// What was done, as text and as data.
#[derive(Clone, Debug, PartialEq)]
pub struct FileAnswer {
    pub text: Vec<u8>,
    pub data: Value,
}

/// Does what a call asks for.
pub fn carry_out(tool: BuiltIn, files: &mut Client, values: &InputValues) -> Result<FileAnswer> {
    let values = values.json();
    let path = Path::new(values["path"].as_str().unwrap_or("."));
    match tool {
        BuiltIn::Read => read(files, path, &values),
        BuiltIn::Write => write(files, path, &values),
        BuiltIn::Edit => edit(files, path, &values),
        BuiltIn::List => list(files, path, &values),
        BuiltIn::Bash | BuiltIn::Grep | BuiltIn::WebFetch => {
            Err(SessionError::ToolRefused { why: format!("{} is a command", tool.name()) })
        }
    }
}

fn number(values: &Value, name: &str, default: u64) -> u64 {
    values[name].as_u64().unwrap_or(default)
}

fn read(files: &mut Client, path: &Path, values: &Value) -> Result<FileAnswer> {
    let first = number(values, "offset", 1);
    let end = first.saturating_add(number(values, "limit", 2000));
    let (handle, info) = files.open_for_reading(path)?;
    let mut text = Vec::new();
    let (mut line, mut position) = (1, 0);
    let mut is_whole = true;
    'file: loop {
        let part = files.read_part(handle, position, MAX_CONTENT)?;
        if part.is_empty() {
            break;
        }
        position += part.len() as u64;
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            if line >= end || text.len() + piece.len() > MAX_TEXT {
                is_whole = false;
                break 'file;
            }
            if line >= first {
                text.extend_from_slice(piece);
            }
            line += u64::from(piece.ends_with(b"\n"));
        }
        if position > MAX_SCANNED {
            is_whole = false;
            break;
        }
    }
    files.close(handle)?;
    let data =
        json!({ "size": info.size, "firstLine": first, "nextLine": (!is_whole).then_some(line) });
    Ok(FileAnswer { text, data })
}

fn write(files: &mut Client, path: &Path, values: &Value) -> Result<FileAnswer> {
    let content = values["content"].as_str().unwrap_or_default().as_bytes();
    let if_exists = match values["append"].as_bool() {
        Some(true) => IfExists::Append,
        _ => IfExists::Replace,
    };
    let size = put(files, path, content, if_exists)?;
    let text = format!("{} has {size} bytes now\n", path.display()).into_bytes();
    Ok(FileAnswer { text, data: json!({ "size": size }) })
}

fn put(files: &mut Client, path: &Path, mut content: &[u8], if_exists: IfExists) -> Result<u64> {
    let options = WriteOptions { if_exists, make_parents: true, mode: NEW_FILE };
    Ok(files.write(path, &mut content, options)?.size)
}

fn edit(files: &mut Client, path: &Path, values: &Value) -> Result<FileAnswer> {
    let word = |name: &str| values[name].as_str().unwrap_or_default();
    let (old, new) = (word("oldText"), word("newText"));
    let (content, info) = files.read(path, MAX_EDITED)?;
    let replaced = replaced_text(&content, (old, new), values["replaceAll"] == json!(true));
    let (content, count) = replaced
        .map_err(|why| SessionError::ToolRefused { why: format!("{}: {why}", path.display()) })?;
    // Only what was read is replaced: a change in between is not lost.
    let size = put(files, path, content.as_bytes(), IfExists::ReplaceVersion(info.version))?;
    let text = format!("{}: {count} replaced\n", path.display()).into_bytes();
    Ok(FileAnswer { text, data: json!({ "size": size, "replacements": count }) })
}

/// A text with another one in the place of a part of it, and how often. What is wrong otherwise is said behind the name of the file.
pub fn replaced_text(
    content: &[u8],
    (old, new): (&str, &str),
    all: bool,
) -> Result<(String, usize), String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8 text".to_owned())?;
    match text.matches(old).count() {
        0 => Err("oldText does not occur; it has to match exactly, with all spaces and line ends"
            .to_owned()),
        count if count > 1 && !all => Err(format!(
            "oldText occurs {count} times; give more of the text around it, or set replaceAll"
        )),
        count => {
            // Before there is such a text: a short one can stand for a very long one in millions of places.
            let kept = text.len() - count * old.len();
            let length = new.len().checked_mul(count).and_then(|added| added.checked_add(kept));
            match length.and_then(|length| u64::try_from(length).ok()) {
                Some(length) if length <= MAX_EDITED => Ok((text.replace(old, new), count)),
                _ => Err(format!("it would be longer than {} MiB", MAX_EDITED >> 20)),
            }
        }
    }
}

fn list(files: &mut Client, path: &Path, values: &Value) -> Result<FileAnswer> {
    let depth = u32::try_from(number(values, "depth", 1)).unwrap_or(1);
    let mut found = files.list(path, depth, MAX_LISTED)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    let type_ = |entry: &Listing| match entry.info.file_type {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Link => "link",
        FileType::Other => "other",
    };
    let line = |entry: &Listing| {
        let mark = if entry.info.file_type == FileType::Directory { "/" } else { "" };
        format!("{}{mark}\n", entry.path.to_string_lossy().replace('\n', "\u{fffd}"))
    };
    let text: String = found.iter().map(line).collect();
    let entries: Vec<Value> = found
        .iter()
        .map(|it| json!({ "path": it.path.to_string_lossy(), "type": type_(it), "size": it.info.size }))
        .collect();
    Ok(FileAnswer { text: text.into_bytes(), data: json!({ "entries": entries }) })
}

#[cfg(test)]
mod tests {
    use super::replaced_text;

    #[test]
    fn an_edit_is_exact_and_of_one_place() {
        assert_eq!(
            replaced_text(b"one two one", ("two", "2"), false),
            Ok(("one 2 one".to_owned(), 1))
        );
        assert_eq!(
            replaced_text(b"one two one", ("one", "1"), true),
            Ok(("1 two 1".to_owned(), 2))
        );
        assert!(
            replaced_text(b"one two one", ("one", "1"), false).unwrap_err().contains("2 times")
        );
        assert!(replaced_text(b"one", ("x", "1"), false).unwrap_err().contains("does not occur"));
        assert!(replaced_text(b"\xff", ("x", "1"), false).is_err());
        let (many, long) = (vec![b'a'; 1 << 20], "b".repeat(1 << 20));
        let refused = replaced_text(&many, ("a", &long), true).unwrap_err();
        assert!(refused.contains("16 MiB"), "{refused}");
        assert!(replaced_text(&many, ("a", "bb"), true).is_ok());
    }
}
