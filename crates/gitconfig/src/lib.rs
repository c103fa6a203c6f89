//! Git's settings files, read as git reads them: what stands in one, and how a key is taken apart.
//!
//! No I/O: contents are handed in. Included files are not followed, and no setting is judged; those who ask
//! know what they are looking for.
#![forbid(unsafe_code)]

mod key;
mod parse;

pub use key::Parts;
pub use parse::{Bad, Entry, beginning_of, parse};
