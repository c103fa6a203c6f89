//! Error numbers, for `#[serde(with = "AsErrno")]`. One that no system call returns is refused: `Errno` would panic.

use palisade_sys::Errno;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kernel's `MAX_ERRNO`.
const MAX_ERRNO: u16 = 4095;

/// Encodes every [`ErrnoField`] as its number.
#[derive(Debug)]
pub struct AsErrno;

impl AsErrno {
    pub fn serialize<T: ErrnoField, S: Serializer>(field: &T, to: S) -> Result<S::Ok, S::Error> {
        field.number().serialize(to)
    }

    pub fn deserialize<'de, T: ErrnoField, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let number = Deserialize::deserialize(from)?;
        T::from_number(number).ok_or_else(|| D::Error::custom("not an errno"))
    }
}

/// An errno, or none.
pub trait ErrnoField: Sized {
    type Number: Serialize + for<'de> Deserialize<'de>;
    fn number(&self) -> Self::Number;
    fn from_number(number: Self::Number) -> Option<Self>;
}

impl ErrnoField for Errno {
    type Number = u16;

    fn number(&self) -> u16 {
        u16::try_from(self.raw_os_error()).unwrap_or_default()
    }

    fn from_number(number: u16) -> Option<Self> {
        (1..=MAX_ERRNO).contains(&number).then(|| Self::from_raw_os_error(number.into()))
    }
}

impl ErrnoField for Option<Errno> {
    type Number = Option<u16>;

    fn number(&self) -> Option<u16> {
        self.as_ref().map(ErrnoField::number)
    }

    fn from_number(number: Option<u16>) -> Option<Self> {
        match number {
            None => Some(None),
            Some(number) => Errno::from_number(number).map(Some),
        }
    }
}
