//! Text and bytes of which only the beginning is sent, for `#[serde(with = "Truncated::<MAX>")]`: error messages and
//! other things that people read, whose length the sandboxed command may choose. The one place where anything is cut.

use crate::raw::RawField;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Encodes at most `MAX` bytes of every [`Truncatable`].
#[derive(Debug)]
pub struct Truncated<const MAX: usize>;

impl<const MAX: usize> Truncated<MAX> {
    pub fn serialize<T: Truncatable, S: Serializer>(field: &T, to: S) -> Result<S::Ok, S::Error> {
        field.write_up_to(MAX, to)
    }

    pub fn deserialize<'de, T: Truncatable, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(from)
    }
}

pub trait Truncatable: Sized {
    fn write_up_to<S: Serializer>(&self, max: usize, to: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

impl Truncatable for String {
    fn write_up_to<S: Serializer>(&self, max: usize, to: S) -> Result<S::Ok, S::Error> {
        beginning(self, max).serialize(to)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }
}

impl Truncatable for Option<String> {
    fn write_up_to<S: Serializer>(&self, max: usize, to: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(|text| beginning(text, max)).serialize(to)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }
}

impl Truncatable for Vec<u8> {
    fn write_up_to<S: Serializer>(&self, max: usize, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self[..self.len().min(max)])
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <Self as RawField>::read(from)
    }
}

fn beginning(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
