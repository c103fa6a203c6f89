//! Bytes and paths as they are, for `#[serde(with = "Raw")]`: serde itself refuses a path that is not UTF-8.
//! Must never change one: a path that was cut would be another path.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Encodes every [`RawField`].
#[derive(Debug)]
pub struct Raw;

impl Raw {
    pub fn serialize<T: RawField, S: Serializer>(field: &T, to: S) -> Result<S::Ok, S::Error> {
        field.write(to)
    }

    pub fn deserialize<'de, T: RawField, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(from)
    }
}

/// Bytes or paths, alone or in a list.
pub trait RawField: Sized {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

impl RawField for Vec<u8> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ByteBuf::deserialize(from).map(ByteBuf::into_vec)
    }
}

impl RawField for PathBuf {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        bytes_of(self).serialize(to)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ByteBuf::deserialize(from).map(path_of)
    }
}

/// A list of none or one.
impl RawField for Option<PathBuf> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|path| bytes_of(path)))
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut paths = Vec::<ByteBuf>::deserialize(from)?;
        match (paths.pop(), paths.is_empty()) {
            (path, true) => Ok(path.map(path_of)),
            (_, false) => Err(D::Error::custom("more than one path")),
        }
    }
}

impl RawField for Vec<PathBuf> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|path| bytes_of(path)))
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let paths = Vec::<ByteBuf>::deserialize(from)?;
        Ok(paths.into_iter().map(path_of).collect())
    }
}

impl RawField for Vec<(PathBuf, PathBuf)> {
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|(first, second)| (bytes_of(first), bytes_of(second))))
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(ByteBuf, ByteBuf)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(first, second)| (path_of(first), path_of(second))).collect())
    }
}

fn bytes_of(path: &Path) -> &Bytes {
    Bytes::new(path.as_os_str().as_bytes())
}

fn path_of(bytes: ByteBuf) -> PathBuf {
    OsString::from_vec(bytes.into_vec()).into()
}
