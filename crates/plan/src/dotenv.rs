//! `.env` files outside the project (FS-2), known by name, as no list can tell where they are. Nobody searches
//! for them: the view leaves out the directories they lie in, and the gate knows them when they are touched.

use std::ffi::OsStr;

/// `.env` and `.env.local`, not the sample that is meant to be shared.
pub fn is_dotenv(name: &OsStr) -> bool {
    const SHARED: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];
    let bytes = name.as_encoded_bytes();
    bytes == b".env" || (bytes.starts_with(b".env.") && SHARED.iter().all(|shared| name != *shared))
}
