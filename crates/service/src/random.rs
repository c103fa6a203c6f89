//! Numbers that nobody can guess.

use std::fs::File;
use std::io::{self, Read as _};

/// This many bytes.
pub fn bytes(count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// This many bytes, in hexadecimal digits.
pub fn hex(count: usize) -> io::Result<String> {
    Ok(bytes(count)?.iter().map(|byte| format!("{byte:02x}")).collect())
}
