//! The sandbox's side: enters its mount namespace, attaches what was taken from the host, and removes it again
//! through the descriptor it was attached with, never by a path the command could have changed.

use crate::identity::CallerIdentity;
use crate::look::HostFile;
use crate::message::FileKind;
use crate::own_files::OwnFiles;
use crate::scaffold::{Name, Scaffold};
use palisade_sys::beneath::open_beneath;
use palisade_sys::mounts::{MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, Errno, Mode, OFlags, Result, SysError, mounts, other, proc};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// Far below what a mount namespace may hold (`fs.mount-max`, 100,000 by default). Each holds a descriptor, and the command
/// decides how many there are.
const MAX_BELOW_COVERS: usize = 1024;

/// Paths inside that the plan defines.
#[derive(Debug)]
pub struct Layout {
    /// The sandbox's own file systems, on which names may be created.
    pub grounds: Vec<PathBuf>,
    /// Mounts that no graft may cover.
    pub mounted: Vec<PathBuf>,
    /// The file systems themselves, where the gate's file system only shows them.
    pub stores: Vec<(PathBuf, OwnedFd)>,
}

/// Both mount namespaces, and how to switch between them.
#[derive(Debug)]
pub(crate) struct SandboxMounts {
    namespace: OwnedFd,
    own_namespace: OwnedFd,
    mounted: Vec<PathBuf>,
    /// The sandbox's.
    root: OwnedFd,
    scaffold: Scaffold,
    grafts: BTreeMap<u64, Graft>,
    /// Where the sandbox has a private version: it stays on top of whatever is granted around it.
    copies: BTreeSet<PathBuf>,
    last: u64,
}

/// Something that is shown in the view.
#[derive(Debug)]
struct Graft {
    shows: Shows,
    /// None where only names were created.
    mount: Option<Mounted>,
    names: Vec<Name>,
    /// Removed while another graft was on top of it; goes with that one.
    is_over: bool,
}

/// What a graft gives the command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shows {
    /// What the host has at this path, or that it is there.
    Host(PathBuf),
    /// Something of the sandbox's own: a private version, or links to what is shown elsewhere.
    Own,
    /// What is visible at its path, for processes that are below a cover. No person was asked about it.
    BelowCover,
}

impl Graft {
    /// Whether it shows what is at this path, or below it. A copy of something above shows it, too.
    fn is_revoked_with(&self, path: &Path) -> bool {
        match (&self.shows, &self.mount) {
            (Shows::Host(shown), _) => shown.starts_with(path),
            (Shows::BelowCover, Some(mount)) => {
                mount.path.starts_with(path) || path.starts_with(&mount.path)
            }
            (Shows::BelowCover, None) | (Shows::Own, _) => false,
        }
    }
}

#[derive(Debug)]
struct Mounted {
    path: PathBuf,
    file: OwnedFd,
    id: u64,
    /// The graft at the same path that it covers.
    on: Option<u64>,
    /// The directory of the sandbox's own that it covers: processes may be in it.
    covered: Option<OwnedFd>,
}

/// A part of the host's tree, ready to be attached.
#[derive(Debug)]
pub(crate) struct DetachedTree<'s> {
    pub(crate) mount: OwnedFd,
    /// What it shows.
    pub(crate) seen: &'s HostFile,
}

/// What is shown inside, besides the links that lead to it.
#[derive(Debug)]
pub(crate) enum GraftSource<'s> {
    Piece(DetachedTree<'s>),
    /// A directory of our own.
    Name(&'s Path),
    Links,
    /// A private version that can be changed; for a file, with this content.
    Copy(&'s HostFile, Option<OwnedFd>),
}

impl GraftSource<'_> {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Piece(piece) => Some(&piece.seen.path),
            Self::Name(path) => Some(path),
            Self::Copy(seen, _) => Some(&seen.path),
            Self::Links => None,
        }
    }
}

impl SandboxMounts {
    pub(crate) fn open(
        namespace: OwnedFd,
        own_namespace: OwnedFd,
        layout: Layout,
        identity: &CallerIdentity,
    ) -> Result<Self> {
        let surveyed = within(&namespace, &own_namespace, identity, || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = rustix::fs::open("/", flags, Mode::empty()).at("open", Path::new("/"))?;
            let scaffold = Scaffold::survey(&root, &layout.grounds, &layout.stores)?;
            Ok((root, scaffold))
        });
        let (root, scaffold) = surveyed?;
        let mounted = layout.mounted;
        let (grafts, copies) = (BTreeMap::new(), BTreeSet::new());
        let last = 0;
        let sandbox =
            Self { namespace, own_namespace, mounted, root, scaffold, grafts, copies, last };
        Ok(sandbox)
    }

    /// An error if it would cover a mount of the plan.
    pub(crate) fn check_place(&self, path: &Path) -> Result<()> {
        if self.mounted.iter().any(|mounted| mounted.starts_with(path)) {
            return Err(SysError::new("move_mount", path.display().to_string(), Errno::BUSY));
        }
        Ok(())
    }

    /// Shows something at the path it has on the host, and the links that lead to it.
    pub(crate) fn graft(
        &mut self,
        identity: &CallerIdentity,
        shown: GraftSource<'_>,
        links: &[(PathBuf, PathBuf)],
    ) -> Result<u64> {
        let shows = match &shown {
            GraftSource::Piece(DetachedTree { seen, .. }) => Shows::Host(seen.path.clone()),
            GraftSource::Name(path) => Shows::Host(path.to_path_buf()),
            GraftSource::Links | GraftSource::Copy(..) => Shows::Own,
        };
        let path = shown.path().map(Path::to_owned);
        let path = path.as_deref();
        let Self { namespace, own_namespace, root, scaffold, grafts, copies, .. } = self;
        let (mount, names) = within(namespace, own_namespace, identity, || {
            // Links below the tree are visible with it.
            let is_covered = |place: &Path| path.is_some_and(|path| place.starts_with(path));
            let links: Vec<_> = links.iter().filter(|(place, _)| !is_covered(place)).collect();
            let made = links
                .iter()
                .try_for_each(|(place, text)| scaffold.make_link(root, place, text))
                .and_then(|()| match shown {
                    GraftSource::Piece(piece) => attach(root, scaffold, grafts, piece).map(Some),
                    GraftSource::Name(path) => scaffold.make_directory(root, path).map(|()| None),
                    GraftSource::Copy(seen, content) => {
                        let copied = copy(root, scaffold, seen, content.as_ref())?;
                        copies.insert(seen.path.clone());
                        Ok(copied)
                    }
                    GraftSource::Links => Ok(None),
                });
            let paths = links.iter().map(|(place, _)| place.as_path()).chain(path);
            match made {
                Ok(mount) => Ok((mount, scaffold.hold(paths))),
                Err(error) => {
                    scaffold.clear();
                    Err(error)
                }
            }
        })?;
        Ok(self.keep(shows, mount, names))
    }

    /// Puts the private versions below `top` on top of what graft `number` has just shown there. Without them, the
    /// graft is removed again.
    pub(crate) fn restore_copies(
        &mut self,
        identity: &CallerIdentity,
        own_files: &OwnFiles,
        number: u64,
        top: &Path,
    ) -> Result<()> {
        // Whoever is granted the very thing has no private version of it any more.
        self.copies.remove(top);
        let Self { namespace, own_namespace, root, scaffold, copies, .. } = self;
        let mut below = copies.range(top.to_owned()..).take_while(|copy| copy.starts_with(top));
        let first = below.next();
        if first.is_none() {
            return Ok(());
        }
        let restored = within(namespace, own_namespace, identity, || {
            first.into_iter().chain(below).try_for_each(|copy| attach_copy(root, scaffold, copy))
        });
        if restored.is_err() {
            self.ungraft(identity, own_files, number)?;
        }
        restored
    }

    /// Shows what is visible already in a directory that a graft covers, too, for the processes that are still in that
    /// directory. It gives them nothing that its own path does not give.
    pub(crate) fn graft_below_cover(
        &mut self,
        identity: &CallerIdentity,
        seen: &HostFile,
        directory: &Path,
    ) -> Result<u64> {
        let is_below = |graft: &&Graft| graft.shows == Shows::BelowCover;
        if self.grafts.values().filter(is_below).count() >= MAX_BELOW_COVERS {
            return Err(SysError::new("move_mount", seen.path.display().to_string(), Errno::NOSPC));
        }
        // Everything below the first name comes with it.
        let name = seen.path.strip_prefix(directory).ok().and_then(|rest| rest.iter().next());
        let top = name.map(|name| directory.join(name));
        let Self { namespace, own_namespace, root, scaffold, grafts, .. } = self;
        let (mount, names) = within(namespace, own_namespace, identity, || {
            let is_below = |place: &&(PathBuf, PathBuf)| {
                place.0.starts_with(directory)
                    && !top.as_ref().is_some_and(|top| place.0.starts_with(top))
            };
            let links: Vec<_> = seen.links.iter().filter(is_below).collect();
            let made = links
                .iter()
                .try_for_each(|(place, text)| scaffold.make_covered_link(place, text))
                .and_then(|()| match &top {
                    Some(top) => attach_below_cover(root, scaffold, grafts, top),
                    None => Ok(None),
                });
            let paths = links.iter().map(|(place, _)| place.as_path()).chain(top.as_deref());
            match made {
                Ok(mount) => Ok((mount, scaffold.hold(paths))),
                Err(error) => {
                    scaffold.clear();
                    Err(error)
                }
            }
        })?;
        Ok(self.keep(Shows::BelowCover, mount, names))
    }

    fn keep(&mut self, shows: Shows, mount: Option<Mounted>, names: Vec<Name>) -> u64 {
        self.last += 1;
        self.grafts.insert(self.last, Graft { shows, mount, names, is_over: false });
        self.last
    }

    /// Removes all grafts at this path and below it, the newest first, and what shows them below covers.
    pub(crate) fn revoke(
        &mut self,
        identity: &CallerIdentity,
        own_files: &OwnFiles,
        path: &Path,
    ) -> Result<()> {
        let Self { namespace, own_namespace, scaffold, grafts, .. } = self;
        within(namespace, own_namespace, identity, || {
            let meant = grafts.iter().filter(|(_, graft)| graft.is_revoked_with(path));
            let meant: Vec<u64> = meant.map(|(number, _)| *number).collect();
            meant.iter().rev().try_for_each(|number| remove(grafts, scaffold, own_files, *number))
        })
    }

    /// Removes a graft. One that no longer exists is no error.
    pub(crate) fn ungraft(
        &mut self,
        identity: &CallerIdentity,
        own_files: &OwnFiles,
        number: u64,
    ) -> Result<()> {
        let Some(graft) = self.grafts.get_mut(&number) else { return Ok(()) };
        graft.is_over = true;
        let Self { namespace, own_namespace, scaffold, grafts, .. } = self;
        within(namespace, own_namespace, identity, || {
            let mut next = Some(number);
            while let Some(number) = next.take_if(|number| is_done(grafts, *number)) {
                let mount = grafts.get(&number).and_then(|graft| graft.mount.as_ref());
                next = mount.and_then(|mount| mount.on);
                let cover = mount.filter(|mount| mount.covered.is_some());
                let below = cover.map(|cover| shown_below(grafts, &cover.path)).unwrap_or_default();
                for below in below {
                    remove(grafts, scaffold, own_files, below)?;
                }
                remove(grafts, scaffold, own_files, number)?;
            }
            Ok(())
        })
    }
}

/// What is shown below this cover: it goes with the cover, and is shown again when it is used.
fn shown_below(grafts: &BTreeMap<u64, Graft>, cover: &Path) -> Vec<u64> {
    let is_below = |graft: &Graft| {
        let mount = graft.mount.as_ref();
        graft.shows == Shows::BelowCover && mount.is_some_and(|mount| mount.path.starts_with(cover))
    };
    grafts.iter().filter(|(_, graft)| is_below(graft)).map(|(number, _)| *number).collect()
}

/// Takes a graft away, and the names that were made for it.
fn remove(
    grafts: &mut BTreeMap<u64, Graft>,
    scaffold: &mut Scaffold,
    own_files: &OwnFiles,
    number: u64,
) -> Result<()> {
    if let Some(mount) = grafts.get(&number).and_then(|graft| graft.mount.as_ref()) {
        match own_files.detach(&mount.file) {
            // It was removed with the directory it was on, here or on the host.
            Err(error) if error.errno == Errno::INVAL => {}
            detached => detached?,
        }
    }
    if let Some(graft) = grafts.remove(&number) {
        drop(graft.mount);
        scaffold.release(graft.names);
    }
    Ok(())
}

/// Whether a graft was taken back and carries no other.
fn is_done(grafts: &BTreeMap<u64, Graft>, number: u64) -> bool {
    let stands_on_it =
        |graft: &Graft| graft.mount.as_ref().is_some_and(|mount| mount.on == Some(number));
    grafts.get(&number).is_some_and(|graft| graft.is_over) && !grafts.values().any(stands_on_it)
}

/// Runs `what` in the sandbox's mount namespace, with the command's rights.
fn within<T>(
    namespace: &OwnedFd,
    own_namespace: &OwnedFd,
    identity: &CallerIdentity,
    does: impl FnOnce() -> Result<T>,
) -> Result<T> {
    other::enter_mounts(namespace)?;
    let done = identity.as_command(does);
    if other::enter_mounts(own_namespace).is_err() {
        // In the wrong namespace every answer would be wrong; the supervisor sees that we are gone.
        proc::exit_now(1);
    }
    done
}

fn attach(
    root: &OwnedFd,
    scaffold: &mut Scaffold,
    grafts: &BTreeMap<u64, Graft>,
    DetachedTree { mount: file, seen }: DetachedTree<'_>,
) -> Result<Mounted> {
    let path = &seen.path;
    let mut on = None;
    let place = match open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW) {
        Ok(there) => {
            on = may_cover(&there, scaffold, grafts, seen)?;
            there
        }
        Err(error) if error.errno == Errno::NOENT => scaffold.make_place(path, seen.kind)?,
        Err(error) => return Err(error),
    };
    let is_stand_in =
        seen.kind == FileKind::Directory && scaffold.is_ground(mounts::mount_id(&place)?);
    move_to(&file, &place, path)?;
    let id = mounts::mount_id(&file)?;
    let covered = is_stand_in.then_some(place);
    Ok(Mounted { path: path.clone(), file, id, on, covered })
}

fn move_to(mount: &OwnedFd, place: &OwnedFd, path: &Path) -> Result<()> {
    mounts::move_mount(mount.as_fd(), place, Path::new(""))
        .map_err(|error| SysError { subject: path.display().to_string(), ..error })
}

/// Shows what is visible at `path` again, in a directory above it that grafts cover.
fn attach_below_cover(
    root: &OwnedFd,
    scaffold: &mut Scaffold,
    grafts: &BTreeMap<u64, Graft>,
    path: &Path,
) -> Result<Option<Mounted>> {
    let visible = open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let found = rustix::fs::fstat(&visible).at("fstat", path)?;
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => FileKind::Directory,
        FileType::RegularFile => FileKind::File,
        _ => return Err(SysError::new("move_mount", path.display().to_string(), Errno::ACCESS)),
    };
    let mounts_above = grafts.values().filter_map(|graft| graft.mount.as_ref());
    let mut covers = mounts_above
        .filter(|mount| path.starts_with(&mount.path) && path != mount.path)
        .filter_map(|mount| Some((mount.covered.as_ref()?, mount.path.as_path())));
    let Some(cover) = covers.next() else {
        return Err(SysError::new("move_mount", path.display().to_string(), Errno::NOENT));
    };
    let Some(place) = scaffold.make_covered_place(cover, path, kind)? else { return Ok(None) };
    // A clone of what the command sees has the same rights.
    let file = mounts::open_tree(&visible, Path::new(""), Recursion::Recursive)?;
    move_to(&file, &place, path)?;
    let id = mounts::mount_id(&file)?;
    Ok(Some(Mounted { path: path.to_owned(), file, id, on: None, covered: None }))
}

/// Puts a private version where the host has something. Nothing is mounted where the command can change it as
/// it is.
fn copy(
    root: &OwnedFd,
    scaffold: &mut Scaffold,
    seen: &HostFile,
    content: Option<&OwnedFd>,
) -> Result<Option<Mounted>> {
    let path = &seen.path;
    let own = scaffold.make_own(path, seen, content)?;
    let place = open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    if scaffold.is_writable_ground(mounts::mount_id(&place)?) {
        return Ok(None);
    }
    let file = mount_copy(&own, &place, path)?;
    let id = mounts::mount_id(&file)?;
    Ok(Some(Mounted { path: path.clone(), file, id, on: None, covered: None }))
}

fn mount_copy(own: &OwnedFd, place: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    let file = mounts::open_tree(own, Path::new(""), Recursion::Single)?;
    let set = MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
    let attr = MountAttr { set, private: true, ..MountAttr::default() };
    mounts::mount_setattr(&file, Recursion::Single, &attr)?;
    move_to(&file, place, path)?;
    Ok(file)
}

/// Shows a private version again on top of a directory that was granted around it; the mount goes with that grant. One
/// that the command has removed stays removed, and what the host has removed has no place.
fn attach_copy(root: &OwnedFd, scaffold: &Scaffold, path: &Path) -> Result<()> {
    let is_gone = |error: &SysError| error.errno == Errno::NOENT;
    let found = scaffold
        .open_own(path)
        .and_then(|own| Ok((own, open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW)?)));
    match found {
        Err(error) if is_gone(&error) => Ok(()),
        found => found.and_then(|(own, place)| mount_copy(&own, &place, path)).map(drop),
    }
}

/// An existing directory of the sandbox's own may be covered, a stub of the gate's file system, and the same file that was shown before with
/// fewer rights. Returns the graft at the same path.
fn may_cover(
    there: &OwnedFd,
    scaffold: &Scaffold,
    grafts: &BTreeMap<u64, Graft>,
    seen: &HostFile,
) -> Result<Option<u64>> {
    let refused = |errno| Err(SysError::new("move_mount", seen.path.display().to_string(), errno));
    let found = rustix::fs::fstat(there).at("fstat", &seen.path)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let id = mounts::mount_id(there)?;
    if scaffold.is_ground(id) {
        let both = kind == FileType::Directory && seen.kind == FileKind::Directory;
        let is_stub =
            scaffold.has_stubs() && kind == FileType::RegularFile && seen.kind == FileKind::File;
        return if both || is_stub { Ok(None) } else { refused(Errno::EXIST) };
    }
    let mut mounts =
        grafts.iter().filter_map(|(number, graft)| Some((number, graft.mount.as_ref()?)));
    let Some((number, below)) = mounts.find(|(_, mount)| mount.id == id) else {
        return refused(Errno::XDEV);
    };
    if (found.st_dev, found.st_ino) != (seen.stat.st_dev, seen.stat.st_ino) {
        return refused(Errno::EXIST);
    }
    Ok((below.path == seen.path).then_some(*number))
}
