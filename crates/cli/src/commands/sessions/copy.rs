//! `sandbox cp`: a file into a session, or out of it. Inside, a command of the session does it, so what it may not read or write is
//! not copied.

use super::find;
use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use palisade_session::SessionError;
use palisade_session::files::{
    FileInfo, FileType, Handle, IfExists, MAX_CONTENT, SessionFiles, WriteOptions,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The place of a standard stream.
const STREAM: &[u8] = b"-";
/// Of a file that is copied out. The other bits give rights that nobody has decided about.
const PERMISSIONS: u32 = 0o777;
/// Permissions of a file that came from a stream, less the umask.
const NEW_FILE: u32 = 0o666;

#[derive(Args, Debug)]
#[command(after_help = "\
One of the two is SESSION:PATH, the other a path outside, or - for standard input or output. A path in a session starts in its
project, unless it begins with a slash. A file that is there keeps its permissions.

The session's own policy decides: a file that its commands cannot read is not copied out, and what they cannot write is not
copied in. If somebody has to be asked first, this waits for the answer.

Directories: sandbox exec work -- tar -c target | tar -x

Examples:
  sandbox cp work:target/report.html .
  sandbox cp data.json work:tests/data/
  sandbox cp --no-clobber config.yaml work:
  sandbox cp work:build.log - | less")]
pub(crate) struct Copy {
    /// What is copied
    #[arg(value_name = "FROM", value_parser = OsStringValueParser::new().try_map(CopyEnd::parse))]
    from: CopyEnd,

    /// Where to: a directory, or the file's new name
    #[arg(value_name = "TO", value_parser = OsStringValueParser::new().try_map(CopyEnd::parse))]
    to: CopyEnd,

    /// Leave a file that is there already as it is, and fail
    #[arg(short, long)]
    no_clobber: bool,
}

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CopyEnd {
    Stream,
    Outside(PathBuf),
    Inside { session: String, path: PathBuf },
}

impl CopyEnd {
    fn parse(text: OsString) -> Result<Self, &'static str> {
        let bytes = text.as_bytes();
        if bytes == STREAM {
            return Ok(Self::Stream);
        }
        let colon = bytes.iter().position(|byte| *byte == b':');
        let Some((session, path)) = colon.map(|at| (&bytes[..at], &bytes[at + 1..])) else {
            return Ok(Self::Outside(text.into()));
        };
        match std::str::from_utf8(session) {
            Ok("") => Err("there is no session before the colon"),
            // As scp has it: a colon after a slash belongs to a path.
            Ok(session) if !session.contains('/') => {
                let path = OsStr::from_bytes(path).into();
                Ok(Self::Inside { session: session.to_owned(), path })
            }
            _ => Ok(Self::Outside(text.into())),
        }
    }
}

impl Copy {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let if_exists = if self.no_clobber { IfExists::Refuse } else { IfExists::Replace };
        match (self.from, self.to) {
            (CopyEnd::Inside { session, path }, to @ (CopyEnd::Stream | CopyEnd::Outside(_))) => {
                copy_out(&session, &path, &to, if_exists)?;
            }
            (from @ (CopyEnd::Stream | CopyEnd::Outside(_)), CopyEnd::Inside { session, path }) => {
                copy_in(&from, &session, &path, if_exists)?;
            }
            (CopyEnd::Inside { .. }, CopyEnd::Inside { .. }) => {
                bail!(
                    "both places are in a session: copy out of one with -, and into the other from a pipe"
                );
            }
            _ => bail!(
                "neither place is in a session: one of them has to be SESSION:PATH, such as work:file"
            ),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn copy_out(session: &str, path: &Path, to: &CopyEnd, if_exists: IfExists) -> anyhow::Result<()> {
    let (directory, _) = find(session)?;
    let mut files = SessionFiles::open(&directory)?;
    let (handle, info) = files.client.open_for_reading(path)?;
    let mut reader = InsideFile { files: &mut files, handle, offset: 0 };
    let copied = match to {
        CopyEnd::Outside(to) => {
            let to = in_directory(to, path)?;
            write_outside(&mut reader, &info, &to, if_exists)
        }
        _ => write_stream(&mut reader),
    };
    files.close();
    copied
}

fn write_stream(reader: &mut dyn Read) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match io::copy(reader, &mut out).and_then(|_| out.flush()) {
        // The reader has read enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        copied => Ok(copied.map_err(failed("copy to", Path::new("standard output")))?),
    }
}

/// As cp(1) writes: through links and into devices, and an old file keeps its permissions. Collected beside it, a process inside
/// could give the new file a second name before it has the right one.
fn write_outside(
    reader: &mut dyn Read,
    info: &FileInfo,
    to: &Path,
    if_exists: IfExists,
) -> anyhow::Result<()> {
    let mut options = File::options();
    options.write(true).mode(info.mode & PERMISSIONS);
    match if_exists {
        IfExists::Refuse => options.create_new(true),
        _ => options.create(true).truncate(true),
    };
    let mut file = options.open(to).map_err(failed("write", to))?;
    io::copy(reader, &mut file).map_err(failed("copy to", to))?;
    Ok(())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SessionError {
    let path = path.to_owned();
    move |source| SessionError::Io { action, path, source }
}

fn copy_in(from: &CopyEnd, session: &str, path: &Path, if_exists: IfExists) -> anyhow::Result<()> {
    let (directory, _) = find(session)?;
    let (mut reader, mode, name): (Box<dyn Read>, u32, Option<&Path>) = match from {
        CopyEnd::Outside(from) => {
            let file = File::open(from).map_err(failed("read", from))?;
            let known = file.metadata().map_err(failed("read", from))?;
            if known.is_dir() {
                bail!(
                    "{} is a directory; `sandbox cp --help` shows how to copy one",
                    from.display()
                );
            }
            (Box::new(file), known.permissions().mode(), Some(from))
        }
        _ => (Box::new(io::stdin().lock()), NEW_FILE, None),
    };
    let mut files = SessionFiles::open(&directory)?;
    let to = target_inside(&mut files, path, name)?;
    let options = WriteOptions { if_exists, make_parents: false, mode };
    files.client.write(&to, &mut *reader, options)?;
    files.close();
    Ok(())
}

/// Where a file goes that is copied to this path, which may be a directory.
fn target_inside(
    files: &mut SessionFiles,
    path: &Path,
    name: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    let is_named = path.as_os_str().as_encoded_bytes().last().is_some_and(|last| *last != b'/');
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let is_directory = !is_named
        || files.client.info(path, true).is_ok_and(|info| info.file_type == FileType::Directory);
    if !is_directory {
        return Ok(path.to_owned());
    }
    match name.and_then(Path::file_name) {
        Some(name) => Ok(path.join(name)),
        None => bail!("{} is a directory; what comes from a stream needs a name", path.display()),
    }
}

/// The same outside.
fn in_directory(to: &Path, from: &Path) -> anyhow::Result<PathBuf> {
    if !to.is_dir() {
        return Ok(to.to_owned());
    }
    let name = from.file_name().with_context(|| format!("{} names no file", from.display()))?;
    Ok(to.join(name))
}

/// A file of a session, read from its beginning.
struct InsideFile<'f> {
    files: &'f mut SessionFiles,
    handle: Handle,
    offset: u64,
}

impl Read for InsideFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(MAX_CONTENT);
        let part = self.files.client.read_part(self.handle, self.offset, length);
        let part = part.map_err(io::Error::other)?;
        // More than was asked for cannot come from our own code.
        let fitting = part.get(..part.len().min(length)).unwrap_or_default();
        buffer[..fitting.len()].copy_from_slice(fitting);
        self.offset += u64::try_from(fitting.len()).map_err(io::Error::other)?;
        Ok(fitting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::CopyEnd;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_colon_after_a_slash_belongs_to_a_path() {
        let parsed = |text: &[u8]| CopyEnd::parse(OsStr::from_bytes(text).to_owned());
        let inside = |session: &str, path: &[u8]| {
            let path = OsStr::from_bytes(path).into();
            Ok(CopyEnd::Inside { session: session.to_owned(), path })
        };
        assert_eq!(parsed(b"work:a/b"), inside("work", b"a/b"));
        assert_eq!(parsed(b"work:"), inside("work", b""));
        assert_eq!(parsed(b"work:/a:b"), inside("work", b"/a:b"));
        assert_eq!(parsed(b"work:\xff"), inside("work", b"\xff"));
        assert_eq!(parsed(b"./a:b"), Ok(CopyEnd::Outside("./a:b".into())));
        assert_eq!(parsed(b"file"), Ok(CopyEnd::Outside("file".into())));
        assert_eq!(parsed(b"-"), Ok(CopyEnd::Stream));
        assert!(parsed(b":file").is_err());
    }
}
