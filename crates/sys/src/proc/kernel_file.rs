//! Files of the kernel, such as those in `/proc`. They have no length, so the standard library reads them in steps that
//! grow from 32 bytes, and some of them are made anew for every step.

use std::io::{self, Read};

/// Enough for nearly all of them.
const ROOM: usize = 16 * 1024;

/// All that is left of a file.
pub fn read_kernel_file(file: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(ROOM);
    // Behind `take`, a file is not asked for its length and its position first.
    file.take(u64::MAX).read_to_end(&mut content)?;
    Ok(content)
}
