//! `sandbox cp`: a file into a session, or out of it. Inside, a command of the session does it, so what it may not read or write is
//! not copied.

use super::find;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_session::files::{FileInfo, FileType, Handle, IfExists, MAX_CONTENT, SessionFiles};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// The place of a standard stream.
const STREAM: &str = "-";
/// Of a file that is copied out. The other bits give rights that nobody has decided about.
const PERMISSIONS: u32 = 0o777;
/// Permissions of a file that came from a stream, less the umask.
const NEW_FILE: u32 = 0o666;

#[derive(Args, Debug)]
#[command(after_help = "\
One of the two is SESSION:PATH, the other a path outside, or - for standard input or output. A path in a session starts in its
project, unless it begins with a slash. A file that is there is replaced in one step; its permissions stay.

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
    #[arg(value_name = "FROM")]
    from: Place,

    /// Where to: a directory, or the file's new name
    #[arg(value_name = "TO")]
    to: Place,

    /// Leave a file that is there already as it is, and fail
    #[arg(short, long)]
    no_clobber: bool,
}

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Stream,
    Outside(PathBuf),
    Inside { session: String, path: PathBuf },
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == STREAM {
            return Ok(Self::Stream);
        }
        match text.split_once(':') {
            // As scp has it: a colon after a slash belongs to a path.
            Some((session, path)) if !session.contains('/') && !session.is_empty() => {
                Ok(Self::Inside { session: session.to_owned(), path: path.into() })
            }
            Some(("", _)) => Err("there is no session before the colon".to_owned()),
            _ => Ok(Self::Outside(text.into())),
        }
    }
}

impl Copy {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let if_exists = if self.no_clobber { IfExists::Refuse } else { IfExists::Replace };
        match (self.from, self.to) {
            (Place::Inside { session, path }, to @ (Place::Stream | Place::Outside(_))) => {
                copy_out(&session, &path, &to, if_exists)?;
            }
            (from @ (Place::Stream | Place::Outside(_)), Place::Inside { session, path }) => {
                copy_in(&from, &session, &path, if_exists)?;
            }
            (Place::Inside { .. }, Place::Inside { .. }) => {
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

fn copy_out(session: &str, path: &Path, to: &Place, if_exists: IfExists) -> anyhow::Result<()> {
    let (directory, _) = find(session)?;
    let mut files = SessionFiles::open(&directory)?;
    let (handle, info) = files.client.open_for_reading(path)?;
    let mut reader = InsideFile { files: &mut files, handle, offset: 0 };
    let copied = match to {
        Place::Outside(to) => {
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
        // Who reads has enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        copied => copied.context("cannot copy to standard output"),
    }
}

/// Beside the file first: who reads it has the old one or the new one.
fn write_outside(
    reader: &mut dyn Read,
    info: &FileInfo,
    to: &Path,
    if_exists: IfExists,
) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", to.display());
    let name = format!(".palisade-cp-{}", std::process::id());
    let beside = to.parent().map_or_else(|| PathBuf::from(&name), |parent| parent.join(&name));
    let mode = std::fs::metadata(to)
        .map_or(info.mode & PERMISSIONS, |there| there.permissions().mode() & PERMISSIONS);
    if if_exists == IfExists::Refuse && std::fs::symlink_metadata(to).is_ok() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists)).with_context(context);
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .with_context(context)?;
    let written = io::copy(reader, &mut file)
        .and_then(|_| match if_exists {
            // A link fails where a rename would replace.
            IfExists::Refuse => std::fs::hard_link(&beside, to),
            _ => std::fs::rename(&beside, to),
        })
        .with_context(context);
    if written.is_err() || if_exists == IfExists::Refuse {
        // It is ours, whatever became of the copy.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn copy_in(from: &Place, session: &str, path: &Path, if_exists: IfExists) -> anyhow::Result<()> {
    let (directory, _) = find(session)?;
    let (mut reader, mode, name): (Box<dyn Read>, u32, Option<&Path>) = match from {
        Place::Outside(from) => {
            let context = || format!("cannot read {}", from.display());
            let file = File::open(from).with_context(context)?;
            let about = file.metadata().with_context(context)?;
            if about.is_dir() {
                bail!(
                    "{} is a directory; `sandbox cp --help` shows how to copy one",
                    from.display()
                );
            }
            (Box::new(file), about.permissions().mode(), Some(from))
        }
        _ => (Box::new(io::stdin().lock()), NEW_FILE, None),
    };
    let mut files = SessionFiles::open(&directory)?;
    let to = target_inside(&mut files, path, name)?;
    files.client.write(&to, &mut *reader, if_exists, false, mode)?;
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
    use super::Place;

    #[test]
    fn a_colon_after_a_slash_belongs_to_a_path() {
        let inside = |session: &str, path: &str| {
            Ok(Place::Inside { session: session.to_owned(), path: path.into() })
        };
        assert_eq!("work:a/b".parse(), inside("work", "a/b"));
        assert_eq!("work:".parse(), inside("work", ""));
        assert_eq!("work:/a:b".parse(), inside("work", "/a:b"));
        assert_eq!("./a:b".parse(), Ok(Place::Outside("./a:b".into())));
        assert_eq!("file".parse(), Ok(Place::Outside("file".into())));
        assert_eq!("-".parse(), Ok(Place::Stream));
        assert!(":file".parse::<Place>().is_err());
    }
}
