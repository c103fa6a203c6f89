//! `.env` files outside the project (FS-2), recognised by name, because no list can say where they are. They
//! are not searched for: the view leaves out the directories they are in, and the gate recognises them when
//! they are used.

use std::ffi::OsStr;

/// `.env` and `.env.local`, not the sample that is meant to be shared.
pub fn is_dotenv(name: &OsStr) -> bool {
    const SHARED: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];
    let bytes = name.as_encoded_bytes();
    bytes == b".env" || (bytes.starts_with(b".env.") && SHARED.iter().all(|shared| name != *shared))
}
