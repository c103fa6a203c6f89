//! Deleted files without a descriptor: a mapping or a running program is enough to keep one and its space on disk.
//! Lists of mappings are long, so they are read only to count space. Must never open what it finds.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;

use palisade_sys::SysError;
use rustix::io::Errno;

use crate::disk_use::{FileId, HeldFiles};
use crate::error::Result;
use crate::procfs::{is_closed, is_gone};
use crate::tree::Tree;

/// The maximum text per look: about 300,000 mappings.
const MAX_TEXT: u64 = 32 << 20;

impl Tree {
    /// Every file without a name that processes of the last sample hold, by descriptor or otherwise. Not visible are
    /// files in messages between sockets, and descriptors that only one thread has.
    pub(crate) fn nameless_files(&mut self) -> Result<HeldFiles> {
        self.with_room_to_open(|tree| {
            let mut held = tree.held_files_once()?;
            if !held.was_cut {
                tree.add_mapped_files(&mut held)?;
            }
            Ok(held)
        })
    }

    fn add_mapped_files(&self, held: &mut HeldFiles) -> Result<()> {
        let mut left = MAX_TEXT;
        let mut without_size = HashSet::new();
        for (&pid, process) in &self.known {
            if process.has_ended {
                continue;
            }
            if let Ok(program) = self.proc.target(pid, &process.file_name("exe")) {
                held.note(&program);
            }
            let Some(maps) = self.proc.file(pid, &process.file_name("maps"))? else { continue };
            for mapped in deleted_in(maps, &mut left)? {
                if Some(mapped.file.device) == held.memory_device
                    || held.deleted.contains_key(&mapped.file)
                {
                    continue;
                }
                match self.proc.target(pid, &format!("map_files/{}", mapped.range)) {
                    Ok(stat) => held.note(&stat),
                    Err(errno) if is_gone(errno) && process.speaks_itself() => {}
                    // The kernel follows these links only with CAP_CHECKPOINT_RESTORE.
                    Err(_) => {
                        without_size.insert(mapped.file);
                    }
                }
            }
            if left == 0 {
                held.was_cut = true;
                break;
            }
        }
        held.files_without_size =
            without_size.iter().filter(|file| !held.deleted.contains_key(file)).count() as u64;
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Mapped {
    /// Its name in `map_files`.
    range: String,
    file: FileId,
}

fn deleted_in(maps: OwnedFd, left: &mut u64) -> Result<Vec<Mapped>> {
    let mut reader = BufReader::with_capacity(1 << 16, std::fs::File::from(maps)).take(*left);
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => found.extend(parse(&line)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(errno) if is_gone(errno) || is_closed(errno) => break,
                errno => {
                    let errno = errno.unwrap_or(Errno::IO);
                    return Err(SysError::new("read", "/proc/PID/maps", errno).into());
                }
            },
        }
    }
    *left = reader.limit();
    Ok(found)
}

/// A file name may end in these words, too: the link count decides.
fn parse(line: &[u8]) -> Option<Mapped> {
    let line = line.strip_suffix(b" (deleted)\n")?;
    let mut fields = line.split(|&byte| byte == b' ').map(|field| std::str::from_utf8(field).ok());
    let (start, end) = fields.next()??.split_once('-')?;
    let (major, minor) = fields.nth(2)??.split_once(':')?;
    let number = |hexadecimal| u32::from_str_radix(hexadecimal, 16).ok();
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    let inode = fields.next()??.parse().ok()?;
    let address = |hexadecimal| u64::from_str_radix(hexadecimal, 16).ok();
    // `maps` has leading zeros, `map_files` has none.
    let range = format!("{:x}-{:x}", address(start)?, address(end)?);
    Some(Mapped { range, file: FileId { device, inode } })
}

#[cfg(test)]
#[path = "mapped_tests.rs"]
mod tests;
