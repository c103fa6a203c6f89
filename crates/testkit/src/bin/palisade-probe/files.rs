//! Attempts at files: by links, by handles, by device nodes, through `/proc`.
//! Must never look for another way once one is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use palisade_testkit::raw;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags};

use crate::{Failure, Probe, argument, number, wait_for_line};

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
    ("link-unnamed", "PATH", link_unnamed),
    ("exchange", "PATH PATH", exchange),
    ("bind-socket", "PATH", bind_socket),
    ("create-by-openat2", "PATH", create_by_openat2),
    ("watch", "DIRECTORY", watch),
    ("reopen-input", "", reopen_input),
    ("open-device", "PATH", open_device),
    ("grow", "PATH BYTES", grow),
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
    wait_for_line()?;
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

/// A file that has no name until it is linked to one.
fn link_unnamed(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let mode = Mode::from_raw_mode(0o755);
    let unnamed = rustix::fs::open(".", OFlags::TMPFILE | OFlags::WRONLY, mode)?;
    let by_descriptor = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    rustix::fs::linkat(CWD, by_descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(path.to_owned())
}

fn exchange(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 1, "PATH")?;
    let both = RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(CWD, argument(arguments, 0, "PATH")?, CWD, path, both)?;
    Ok(path.to_owned())
}

fn bind_socket(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    UnixListener::bind(path)?;
    Ok(path.to_owned())
}

fn create_by_openat2(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::from_raw_mode(0o644), ResolveFlags::empty())?;
    Ok(path.to_owned())
}

/// Watches a directory while the host works in it.
fn watch(arguments: &[String]) -> Result<String, Failure> {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let directory = argument(arguments, 0, "DIRECTORY")?;
    let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watcher, directory, WatchFlags::ALL_EVENTS)?;
    wait_for_line()?;
    let mut events = [0; 4096];
    let length = rustix::io::read(&watcher, &mut events)?;
    Ok(format!("saw {}", String::from_utf8_lossy(&events[..length]).replace('\0', "")))
}

/// Standard input was opened for reading; by its name in `/proc` it can be opened again.
fn reopen_input(_: &[String]) -> Result<String, Failure> {
    let mut again = OpenOptions::new().write(true).open("/proc/self/fd/0")?;
    again.write_all(b"written by the probe\n")?;
    Ok("wrote its input".to_owned())
}

/// Opens, and neither reads nor writes.
fn open_device(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    File::open(path)?;
    Ok(path.to_owned())
}

/// Makes a file this large, by one byte at its end.
fn grow(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    File::create(path)?.set_len(number(arguments, 1, "BYTES")?)?;
    Ok(path.to_owned())
}
