//! Lists directories.

use palisade_sys::{At as _, Result as SysResult};
use rustix::fs::Dir;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The names in a directory, in no order.
pub(crate) fn names_in(dir: impl AsFd, path: &Path) -> SysResult<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir).at("getdents", path)? {
        let entry = entry.at("getdents", path)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}
