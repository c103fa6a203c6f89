//! Paths in what is written down: any bytes, where serde would only take UTF-8.

use serde::{Deserialize as _, Deserializer, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

pub(crate) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(Bytes::new(path.as_os_str().as_bytes()), out)
}

pub(crate) fn deserialize<'d, D: Deserializer<'d>>(input: D) -> Result<PathBuf, D::Error> {
    let bytes = ByteBuf::deserialize(input)?.into_vec();
    Ok(OsString::from_vec(bytes).into())
}
