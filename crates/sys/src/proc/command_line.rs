//! The command line that `/proc/PID/cmdline` shows for this process. Must never be changed while other code in
//! the process may read its arguments.

#![expect(unsafe_code, reason = "the words are in memory that the kernel laid out, not we")]

use std::ops::Range;

use rustix::io::Errno;

use crate::error::{At, Result, SysError};

const STAT: &str = "/proc/self/stat";
/// Its index among the fields after the name; `arg_start` is field 48 of proc_pid_stat(5).
const ARG_START: usize = 48 - 3;

/// Replaces all arguments with `name`, so that no other process can read them. `std::env::args` loses them too. For a
/// forked child that has no other thread.
pub fn replace_command_line(name: &str) -> Result<()> {
    let stat = std::fs::read_to_string(STAT).call("read /proc/self/stat")?;
    let words =
        words_in(&stat).ok_or(SysError::new("find the command line in", STAT, Errno::INVAL))?;
    let place = std::ptr::with_exposed_provenance_mut::<u8>(words.start);
    // SAFETY: the kernel put the arguments there at exec, in writable pages of ours that stay mapped; nothing holds a
    // reference into them, since std returns copies.
    let place = unsafe { std::slice::from_raw_parts_mut(place, words.len()) };
    place.fill(0);
    // If the last byte were not zero, the kernel would read on into the environment.
    let room = place.len().saturating_sub(1);
    for (shown, byte) in place.iter_mut().take(room).zip(name.bytes()) {
        *shown = byte;
    }
    Ok(())
}

fn words_in(stat: &str) -> Option<Range<usize>> {
    // The name is in parentheses and may contain some itself.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(ARG_START);
    let mut address = || fields.next()?.parse::<usize>().ok();
    let (start, end) = (address()?, address()?);
    // The kernel shows zeroes to a process without permission.
    (0 < start && start <= end).then_some(start..end)
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;
