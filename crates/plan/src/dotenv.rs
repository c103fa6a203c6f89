//! Recognizes `.env` files outside the project (FS-2) by name, because no list can contain their locations.
//! They are not searched for: the view leaves out the directories they are in, and the gate recognizes them
//! when they are used.

use std::ffi::OsStr;

/// `.env` and files such as `.env.local`, but not samples that are meant to be shared.
pub fn is_dotenv(name: &OsStr) -> bool {
    const SHARED: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];
    let bytes = name.as_encoded_bytes();
    bytes == b".env" || (bytes.starts_with(b".env.") && SHARED.iter().all(|shared| name != *shared))
}
