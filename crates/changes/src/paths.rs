//! Paths in a session's tree: relative, of any bytes. Shown as git shows them, so that no name controls a terminal.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// What the kernel takes as one path, with its final zero byte.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// The path as git writes it (`core.quotePath`): in double quotes with C escapes if any byte is unusual.
pub fn quoted(path: &Path) -> String {
    quoted_with_prefix("", path)
}

/// The same with `a/` or `b/` before it, within the quotes.
pub(crate) fn quoted_with_prefix(prefix: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| must_be_escaped(*byte)) {
        return format!("{prefix}{}", String::from_utf8_lossy(bytes));
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        match byte {
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            11 => text.push_str("\\v"),
            12 => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            other if must_be_escaped(*other) => text.push_str(&format!("\\{other:03o}")),
            other => text.push(char::from(*other)),
        }
    }
    text.push('"');
    text
}

fn must_be_escaped(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) || matches!(byte, b'"' | b'\\')
}

/// The path that a person typed, relative to the project; none if it leads out of it.
pub(crate) fn normal(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => found.push(name),
            Component::ParentDir if found.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// Whether a link at `path` stays in the tree. Only leading `..` count as understood: a later one could follow another
/// link first, and so lead anywhere.
pub(crate) fn link_stays_within(path: &Path, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") {
        return false;
    }
    let mut depth = path.components().count().saturating_sub(1);
    let mut has_descended = false;
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if has_descended || depth == 0 => return false,
            b".." => depth -= 1,
            _ => has_descended = true,
        }
    }
    true
}

/// The order of [`Path`] for relative paths without `.` and `..`, several times as fast: a directory comes right before
/// what is in it.
pub(crate) fn order(one: &Path, other: &Path) -> Ordering {
    let (one, other) = (one.as_os_str().as_bytes(), other.as_os_str().as_bytes());
    // No name contains a zero byte.
    let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
    match one.iter().zip(other).position(|(one, other)| one != other) {
        Some(at) => rank(one[at]).cmp(&rank(other[at])),
        None => one.len().cmp(&other.len()),
    }
}

/// Whether a path is a directory or below it.
pub(crate) fn is_within(path: &Path, directory: &Path) -> bool {
    let (path, directory) = (path.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
    match path.strip_prefix(directory) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || directory.is_empty(),
        None => false,
    }
}

/// `.` for the root, so that it can be opened.
pub(crate) fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

pub(crate) fn parent_and_name(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
