//! Serialises names that need not be UTF-8.

use serde::{Serialize, Serializer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) fn path<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.display())
}

pub(crate) fn maybe_path<S: Serializer>(path: &Option<PathBuf>, out: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => out.collect_str(&path.display()),
        None => out.serialize_none(),
    }
}

pub(crate) fn paths<S: Serializer>(list: &[PathBuf], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(list.iter().map(|path| path.to_string_lossy()))
}

pub(crate) fn os_strings<S: Serializer>(list: &[OsString], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(list.iter().map(|item| item.to_string_lossy()))
}

pub(crate) fn os_pairs<S: Serializer>(
    list: &[(OsString, OsString)],
    out: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pair {
        name: String,
        value: String,
    }
    out.collect_seq(list.iter().map(|(name, value)| Pair {
        name: name.to_string_lossy().into_owned(),
        value: value.to_string_lossy().into_owned(),
    }))
}
