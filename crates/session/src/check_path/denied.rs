//! Decides whether a file is denied, under any name.
//!
//! Where that cannot be determined, the answer must be yes.

use super::Identity;
use super::glob::Glob;
use super::refusal::Refusal;
use super::steps;
use super::walk::{self, Root};
use palisade_launch::probe::mounts;
use palisade_plan::facts::HostMount;
use palisade_sys::beneath::open_entry;
use palisade_sys::{At as _, Errno, SysError};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How many directory entries are read in search of other names of a file.
const MAX_ENTRIES: usize = 100_000;

#[derive(Debug)]
pub(super) struct Denied {
    /// `/`, from where denied paths are resolved: they may lie outside the checked root.
    top: OwnedFd,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// As the caller wrote it.
    given: PathBuf,
    means: Means,
}

#[derive(Debug)]
enum Means {
    Path {
        absolute: PathBuf,
        /// Kept open, so that the inode number is not reused.
        held: Option<OwnedFd>,
    },
    Glob(Glob),
}

/// The file to judge.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    /// As requested, absolute, under each name of the root.
    pub(super) names: Vec<PathBuf>,
    pub(super) real_path: &'a Path,
    /// The root, the directories below it, and the file itself.
    pub(super) lineage: &'a [Identity],
    /// Whether it is a file with hard links.
    pub(super) other_names: bool,
    pub(super) root: BorrowedFd<'a>,
}

impl Denied {
    pub(super) fn new<D: AsRef<Path>>(
        root: &Path,
        denied: impl IntoIterator<Item = D>,
    ) -> Result<Self, SysError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open("/", flags, Mode::empty()).at("open", Path::new("/"))?;
        let rules = denied.into_iter().map(|given| {
            let given = given.as_ref().to_owned();
            let means = if Glob::is_one(&given) {
                Means::Glob(Glob::new(root, &given))
            } else {
                let steps = steps::steps_of(&root.join(&given));
                let absolute = Path::new("/").join(steps::by_letters(&steps));
                let held = look_up(&top, &absolute)
                    .and_then(|(descriptor, _, whole)| whole.then_some(descriptor));
                Means::Path { absolute, held }
            };
            Rule { given, means }
        });
        Ok(Self { rules: rules.collect(), top })
    }

    pub(super) fn judge(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let mounts = mounts().map_err(|error| Refusal::Mounts(error.to_string()))?;
        for rule in &self.rules {
            let denied = match &rule.means {
                Means::Path { absolute, held } => {
                    self.path_denies(absolute, held.as_ref(), subject, &mounts)
                }
                Means::Glob(glob) => glob_denies(glob, subject),
            };
            match denied {
                Ok(false) => {}
                Ok(true) => {
                    return Err(Refusal::Denied {
                        rule: rule.given.clone(),
                        real_path: subject.real_path.to_owned(),
                    });
                }
                Err(why) => {
                    return Err(Refusal::OtherNames {
                        rule: rule.given.clone(),
                        real_path: subject.real_path.to_owned(),
                        why,
                    });
                }
            }
        }
        Ok(())
    }

    fn path_denies(
        &self,
        absolute: &Path,
        held: Option<&OwnedFd>,
        subject: &Subject<'_>,
        mounts: &[HostMount],
    ) -> Result<bool, String> {
        let now = look_up(&self.top, absolute);
        let mut names = vec![absolute];
        names.extend(now.as_ref().map(|(_, real, _)| real.as_path()));
        if names.iter().any(|denied| subject.all_names().any(|name| name.starts_with(denied))) {
            return Ok(true);
        }
        let real = now.as_ref().map_or(absolute, |(_, real, _)| real);
        if is_below_by_mounts(subject.real_path, real, mounts) {
            return Ok(true);
        }
        let existing = now.as_ref().filter(|(_, _, whole)| *whole).map(|(found, ..)| found);
        for descriptor in held.into_iter().chain(existing) {
            let stat = walk::stat(descriptor).map_err(|error| error.to_string())?;
            if subject.lineage.contains(&Identity::from(&stat)) {
                return Ok(true);
            }
            if subject.other_names
                && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && search(descriptor.as_fd(), subject.thing(), &mut |_| true)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn glob_denies(glob: &Glob, subject: &Subject<'_>) -> Result<bool, String> {
    if subject.all_names().any(|name| glob.covers(name)) {
        return Ok(true);
    }
    if !subject.other_names {
        return Ok(false);
    }
    let root = walk::real_path(subject.root).map_err(|error| error.to_string())?;
    search(subject.root, subject.thing(), &mut |below| glob.covers(&root.join(below)))
}

impl Subject<'_> {
    fn all_names(&self) -> impl Iterator<Item = &Path> {
        self.names.iter().map(PathBuf::as_path).chain([self.real_path])
    }

    fn thing(&self) -> Option<Identity> {
        self.lineage.last().copied()
    }
}

/// The file of a denied path, its real path, and whether all of it exists. `None` if the caller cannot access it; then
/// only the name is denied.
fn look_up(top: &OwnedFd, path: &Path) -> Option<(OwnedFd, PathBuf, bool)> {
    let names = [PathBuf::from("/")];
    let root = Root { directory: top.as_fd(), names: &names };
    let reached = walk::resolve(root, &steps::steps_of(path)).ok()?;
    let real = walk::real_path(&reached.descriptor).ok()?;
    let whole = reached.missing.as_os_str().is_empty();
    let real = if whole { real } else { real.join(&reached.missing) };
    Some((reached.descriptor, real, whole))
}

/// Whether one path is below the other inside the file system they share. A part of it may be mounted a second time
/// elsewhere, with no directory in common on the way.
fn is_below_by_mounts(path: &Path, denied: &Path, mounts: &[HostMount]) -> bool {
    match (place_on_device(path, mounts), place_on_device(denied, mounts)) {
        (Some((device, place)), Some((denied_device, denied_place))) => {
            device == denied_device && place.starts_with(denied_place)
        }
        _ => false,
    }
}

fn place_on_device<'a>(path: &Path, mounts: &'a [HostMount]) -> Option<(&'a str, PathBuf)> {
    // Of two mounts at one mount point the later one is visible; `max_by_key` returns the last of equals.
    let mount = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())?;
    let below = path.strip_prefix(&mount.mount_point).ok()?;
    Some((&mount.device, mount.root.join(below)))
}

/// Whether the file has a name below this directory for which `counts` is true. Does not follow links.
fn search(
    directory: BorrowedFd<'_>,
    thing: Option<Identity>,
    counts: &mut dyn FnMut(&Path) -> bool,
) -> Result<bool, String> {
    let mut entries = 0;
    // One listing per level, which bounds the open descriptors by the depth of the tree.
    let mut open = vec![Listing::of(directory, PathBuf::new())?];
    while let Some(listing) = open.last_mut() {
        let Some(name) = listing.next()? else {
            open.pop();
            continue;
        };
        entries += 1;
        if entries > MAX_ENTRIES {
            return Err(format!("there are more than {MAX_ENTRIES} entries to look at"));
        }
        let below = listing.path.join(&name);
        let found = match open_entry(&listing.directory, &name) {
            // Removed meanwhile, so it is no name of the file.
            Err(error) if error.errno == Errno::NOENT => continue,
            found => found.map_err(|error| error.to_string())?,
        };
        let stat = walk::stat(&found).map_err(|error| error.to_string())?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            open.push(Listing::of(found.as_fd(), below)?);
        } else if Some(Identity::from(&stat)) == thing && counts(&below) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A directory that is being read.
struct Listing {
    directory: OwnedFd,
    entries: Dir,
    path: PathBuf,
}

impl Listing {
    fn of(directory: BorrowedFd<'_>, path: PathBuf) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, ".", flags, Mode::empty())
            .and_then(|directory| Ok((Dir::read_from(&directory)?, directory)))
            .at("open", &path);
        let (entries, directory) = opened.map_err(|error| error.to_string())?;
        Ok(Self { directory, entries, path })
    }

    fn next(&mut self) -> Result<Option<OsString>, String> {
        for entry in self.entries.by_ref() {
            let entry = entry.at("getdents64", &self.path).map_err(|error| error.to_string())?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: FS-4 denied-paths
    #[test]
    fn a_part_of_a_denied_directory_mounted_elsewhere_is_denied() {
        let mount = |device: &str, root: &str, mount_point: &str| HostMount {
            device: device.into(),
            root: root.into(),
            mount_point: mount_point.into(),
            fs_type: "ext4".into(),
            read_only: false,
        };
        let mounts = [
            mount("8:1", "/", "/"),
            mount("8:2", "/", "/data"),
            mount("8:1", "/home/u/secret/part", "/home/u/project/alias"),
        ];
        let below =
            |path: &str| is_below_by_mounts(Path::new(path), Path::new("/home/u/secret"), &mounts);
        assert!(below("/home/u/project/alias/key"));
        assert!(below("/home/u/secret"));
        assert!(!below("/home/u/project/other"));
        assert!(!below("/data/home/u/secret/key"));
    }
}
