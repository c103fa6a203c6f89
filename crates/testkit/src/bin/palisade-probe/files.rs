//! Attempts at files: by links, by handles, by device nodes, through `/proc`.
//! Must never look for another way once one is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use palisade_testkit::raw;
use rustix::fs::{CWD, FileType, Mode};

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("read", "PATH", read),
    ("read-when-told", "PATH", read_when_told),
    ("read-through-proc", "PATH", read_through_proc),
    ("read-byte", "PATH", read_byte),
    ("connect-socket", "PATH", connect_socket),
    ("write", "PATH", write),
    ("link-and-read", "PATH NEW-NAME", link_and_read),
    ("link-and-write", "PATH NEW-NAME", link_and_write),
    ("symlink-and-read", "PATH NEW-NAME", symlink_and_read),
    ("make-device", "PATH MAJOR MINOR", make_device),
    ("handle", "PATH", handle),
    ("open-handle", "PLACE HANDLE", open_handle),
    ("break-out", "JAIL PATH", break_out),
    ("open-loop", "PATH COUNT", open_loop),
];

fn read(arguments: &[String]) -> Result<String, Failure> {
    read_file(Path::new(argument(arguments, 0, "PATH")?))
}

fn read_file(path: &Path) -> Result<String, Failure> {
    let mut content = String::new();
    File::open(path)?.read_to_string(&mut content)?;
    Ok(content)
}

/// Says `ready`, waits for a line, and only then reads.
fn read_when_told(arguments: &[String]) -> Result<String, Failure> {
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    read(arguments)
}

/// Through the root of every process that `/proc` shows; the last refusal counts.
fn read_through_proc(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?.trim_start_matches('/');
    let mut refusal = Failure::Refused(io::Error::other("/proc shows no process"));
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let is_process = name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        if is_process || name == "self" || name == "thread-self" {
            match read_file(&Path::new("/proc").join(name).join("root").join(path)) {
                Ok(content) => return Ok(content),
                Err(failure) => refusal = failure,
            }
        }
    }
    Err(refusal)
}

/// One byte, for files that do not end.
fn read_byte(arguments: &[String]) -> Result<String, Failure> {
    let mut byte = [0];
    File::open(argument(arguments, 0, "PATH")?)?.read_exact(&mut byte)?;
    Ok(byte[0].to_string())
}

fn connect_socket(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    UnixStream::connect(path)?;
    Ok(path.to_owned())
}

fn write(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    write_file(path)?;
    Ok(path.to_owned())
}

pub(crate) fn write_file(path: &str) -> Result<(), Failure> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    Ok(file.write_all(b"written by the probe\n")?)
}

fn link_and_read(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 1, "NEW-NAME")?;
    fs::hard_link(argument(arguments, 0, "PATH")?, name)?;
    read_file(Path::new(name))
}

fn link_and_write(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 1, "NEW-NAME")?;
    fs::hard_link(argument(arguments, 0, "PATH")?, name)?;
    write_file(name)?;
    Ok(name.to_owned())
}

fn symlink_and_read(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 1, "NEW-NAME")?;
    symlink(argument(arguments, 0, "PATH")?, name)?;
    read_file(Path::new(name))
}

/// Makes a character device and reads a byte from it.
fn make_device(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let device =
        rustix::fs::makedev(number(arguments, 1, "MAJOR")?, number(arguments, 2, "MINOR")?);
    rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o666), device)?;
    read_byte(arguments)
}

/// The handle of a file, as `open-handle` takes it.
fn handle(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let handle = raw::handle_of(Path::new(path))?;
    Ok(handle.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens a directory by its handle alone, on the file system that PLACE is on, and says where it is.
fn open_handle(arguments: &[String]) -> Result<String, Failure> {
    let place = argument(arguments, 0, "PLACE")?;
    let digits = argument(arguments, 1, "HANDLE")?;
    let handle: Option<Vec<u8>> = (0..digits.len() / 2)
        .map(|byte| u8::from_str_radix(digits.get(byte * 2..byte * 2 + 2)?, 16).ok())
        .collect();
    let handle = handle.ok_or_else(|| Failure::Usage("HANDLE is not hexadecimal".to_owned()))?;
    let opened = raw::open_handle(&File::open(place)?, &handle)?;
    Ok(rustix::fs::fstat(&opened)?.st_ino.to_string())
}

/// The classic way out of chroot(2): a second one moves the fence, and `..` then passes the first.
fn break_out(arguments: &[String]) -> Result<String, Failure> {
    let jail = argument(arguments, 0, "JAIL")?;
    let path = PathBuf::from(argument(arguments, 1, "PATH")?);
    fs::create_dir_all(jail)?;
    rustix::process::chroot(jail)?;
    for _ in 0..64 {
        rustix::process::chdir("..")?;
    }
    rustix::process::chroot(".")?;
    read_file(&path)
}

/// Opens one file over and over and prints the nanoseconds one opening took.
fn open_loop(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let count: u32 = number(arguments, 1, "COUNT")?;
    fs::metadata(path)?;
    let start = Instant::now();
    for _ in 0..count {
        File::open(path)?;
    }
    Ok((start.elapsed().as_nanos() / u128::from(count.max(1))).to_string())
}
