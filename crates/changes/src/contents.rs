//! Contents of files and links, read within bounds.

use crate::entry::{EntryKind, Found};
use crate::layers::Layers;
use palisade_sys::{At as _, Errno, Result as SysResult};
use rustix::fs::SeekFrom;
use sha2::{Digest as _, Sha256};
use std::os::fd::OwnedFd;
use std::path::Path;

const BLOCK: usize = 128 * 1024;

/// Where one side of a change is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    pub(crate) layer: usize,
    pub(crate) found: Found,
}

/// Reads a file that another process may be writing: by position, until its end or the bound.
struct Blocks {
    file: OwnedFd,
    at: u64,
}

impl Blocks {
    fn open(layers: &Layers, layer: usize, path: &Path) -> SysResult<Self> {
        Ok(Self { file: layers.open_file(layer, path)?.0, at: 0 })
    }

    /// Fills the buffer unless the file ends.
    fn next(&mut self, buffer: &mut [u8], path: &Path) -> SysResult<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::pread(&self.file, &mut buffer[filled..], self.at).at("pread", path)? {
                0 => break,
                length => {
                    filled += length;
                    self.at += length as u64;
                }
            }
        }
        Ok(filled)
    }

    /// Where the next bytes are that take room on disk. None if nothing but a hole follows.
    fn next_data(&self) -> Option<u64> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(self.at)) {
            Err(Errno::NXIO) => None,
            // A file system that does not say has no holes.
            found => Some(found.unwrap_or(self.at)),
        }
    }
}

/// Whether two files have the same content. False for a file of the host that we may not read.
pub(crate) fn is_same_content(
    layers: &Layers,
    path: &Path,
    old: Located,
    new: Located,
) -> SysResult<bool> {
    if old.found.size != new.found.size {
        return Ok(false);
    }
    let Ok(mut one) = Blocks::open(layers, old.layer, path) else { return Ok(false) };
    let mut other = Blocks::open(layers, new.layer, path)?;
    let block = usize::try_from(old.found.size + 1).unwrap_or(BLOCK).min(BLOCK);
    let (mut left, mut right) = (vec![0; block], vec![0; block]);
    loop {
        // What neither has on disk is the same: a command makes holes of any length for nothing.
        if one.at > 0 {
            let Some(next) = [one.next_data(), other.next_data()].into_iter().flatten().min()
            else {
                return Ok(true);
            };
            (one.at, other.at) = (next, next);
        }
        let (one, other) = (one.next(&mut left, path)?, other.next(&mut right, path)?);
        if left[..one] != right[..other] {
            return Ok(false);
        }
        if one == 0 {
            return Ok(true);
        }
    }
}

/// The whole content, or none if it is longer than `max`. Of a link: its target.
pub(crate) fn read(
    layers: &Layers,
    path: &Path,
    at: Located,
    max: usize,
) -> SysResult<Option<Vec<u8>>> {
    if at.found.kind == EntryKind::Link {
        return layers.read_link(at.layer, path).map(Some);
    }
    if at.found.size > max as u64 {
        return Ok(None);
    }
    let mut blocks = Blocks::open(layers, at.layer, path)?;
    let mut content = Vec::new();
    let expected = usize::try_from(at.found.size).unwrap_or(max);
    let mut block = vec![0; (expected + 1).min(BLOCK)];
    loop {
        let length = blocks.next(&mut block, path)?;
        content.extend_from_slice(&block[..length]);
        if content.len() > max {
            return Ok(None);
        }
        if length < block.len() {
            return Ok(Some(content));
        }
    }
}

pub(crate) type ContentDigest = [u8; 32];

pub(crate) fn digest_of(content: &[u8]) -> ContentDigest {
    Sha256::digest(content).into()
}

pub(crate) fn digest(layers: &Layers, path: &Path, layer: usize) -> SysResult<ContentDigest> {
    let mut blocks = Blocks::open(layers, layer, path)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        match blocks.next(&mut block, path)? {
            0 => return Ok(hash.finalize().into()),
            length => hash.update(&block[..length]),
        }
    }
}

/// As git decides it: a zero byte near the beginning.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(8000)].contains(&0)
}
