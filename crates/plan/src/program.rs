//! What the kernel opens in addition to a program when it starts it: the loader of an ELF file, the interpreter
//! in a script's first line. The bytes are untrusted, and so is every number in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How much of a script's first line the kernel reads (`BINPRM_BUF_SIZE`). An ELF header fits as well.
const HEAD: usize = 256;
const PT_INTERP: u32 = 3;
/// More program headers than any linker writes.
const MAX_HEADERS: u64 = 128;
/// The kernel's `PATH_MAX`.
const MAX_PATH_BYTES: u64 = 4096;

/// What else must be opened to start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A static program, or a file that the kernel would not start.
    Nothing,
    Loader(PathBuf),
    Interpreter {
        path: PathBuf,
        /// The program that `env` looks up, for `#!/usr/bin/env NAME`.
        named: Option<PathBuf>,
    },
}

/// `read` returns at most the given number of bytes from an offset on.
pub fn needs(read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Needs {
    let Some(head) = read(0, HEAD) else { return Needs::Nothing };
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(line).unwrap_or(Needs::Nothing);
    }
    if head.starts_with(b"\x7fELF") {
        return loader(&head, read).map_or(Needs::Nothing, Needs::Loader);
    }
    Needs::Nothing
}

fn script(line: &[u8]) -> Option<Needs> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t' | 0))
        .filter(|word| !word.is_empty())
        .map(|word| PathBuf::from(OsStr::from_bytes(word)));
    let path = words.next()?;
    let is_env = path.file_name() == Some(OsStr::new("env"));
    let is_program = |word: &PathBuf| {
        let word = word.as_os_str().as_bytes();
        !word.starts_with(b"-") && !word.contains(&b'=')
    };
    let named = words.find(is_program).filter(|_| is_env);
    Some(Needs::Interpreter { path, named })
}

fn loader(head: &[u8], read: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Option<PathBuf> {
    let elf = Elf { is_64: *head.get(4)? == 2, is_little: *head.get(5)? == 1 };
    let (table, size, count) = if elf.is_64 {
        (elf.long(head, 32)?, elf.short(head, 54)?, elf.short(head, 56)?)
    } else {
        (elf.word(head, 28)?.into(), elf.short(head, 42)?, elf.short(head, 44)?)
    };
    for index in 0..u64::from(count).min(MAX_HEADERS) {
        let at = table.checked_add(index * u64::from(size))?;
        let header = read(at, 56)?;
        if elf.word(&header, 0)? != PT_INTERP {
            continue;
        }
        let (at, length) = if elf.is_64 {
            (elf.long(&header, 8)?, elf.long(&header, 32)?)
        } else {
            (elf.word(&header, 4)?.into(), elf.word(&header, 16)?.into())
        };
        let name = read(at, usize::try_from(length.min(MAX_PATH_BYTES)).ok()?)?;
        let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
        return Some(Path::new(OsStr::from_bytes(name)).to_owned());
    }
    None
}

/// The number format of an ELF file.
struct Elf {
    is_64: bool,
    is_little: bool,
}

impl Elf {
    fn short(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let number = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_little { u16::from_le_bytes(number) } else { u16::from_be_bytes(number) })
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let number = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_little { u32::from_le_bytes(number) } else { u32::from_be_bytes(number) })
    }

    fn long(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let number = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_little { u64::from_le_bytes(number) } else { u64::from_be_bytes(number) })
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
pub(crate) mod tests;
