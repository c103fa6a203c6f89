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
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// Paths inside that the plan defines.
#[derive(Debug)]
pub struct Layout {
    /// The sandbox's own file systems, on which names may be created.
    pub grounds: Vec<PathBuf>,
    /// Mounts that no graft may cover.
    pub mounted: Vec<PathBuf>,
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
    last: u64,
}

/// Something that is shown in the view.
#[derive(Debug)]
struct Graft {
    /// None where only links were created.
    mount: Option<Mounted>,
    names: Vec<Name>,
    /// Removed while another graft was on top of it; goes with that one.
    is_over: bool,
}

#[derive(Debug)]
struct Mounted {
    path: PathBuf,
    file: OwnedFd,
    id: u64,
    /// The graft at the same path that it covers.
    on: Option<u64>,
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
            let scaffold = Scaffold::survey(&root, &layout.grounds)?;
            Ok((root, scaffold))
        });
        let (root, scaffold) = surveyed?;
        let mounted = layout.mounted;
        let grafts = BTreeMap::new();
        Ok(Self { namespace, own_namespace, mounted, root, scaffold, grafts, last: 0 })
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
        let path = shown.path().map(Path::to_owned);
        let path = path.as_deref();
        let Self { namespace, own_namespace, root, scaffold, grafts, .. } = self;
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
                        copy(root, scaffold, seen, content.as_ref())
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
        self.last += 1;
        self.grafts.insert(self.last, Graft { mount, names, is_over: false });
        Ok(self.last)
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
                if let Some(mount) = grafts.get(&number).and_then(|graft| graft.mount.as_ref()) {
                    match own_files.detach(&mount.file) {
                        // It was removed with the directory it was on, here or on the host.
                        Err(error) if error.errno == Errno::INVAL => {}
                        detached => detached?,
                    }
                }
                let Some(graft) = grafts.remove(&number) else { break };
                next = graft.mount.and_then(|mount| mount.on);
                scaffold.release(graft.names);
            }
            Ok(())
        })
    }
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
    mounts::move_mount(file.as_fd(), &place, Path::new(""))
        .map_err(|error| SysError { subject: path.display().to_string(), ..error })?;
    let id = mounts::mount_id(&file)?;
    Ok(Mounted { path: path.clone(), file, id, on })
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
    let file = mounts::open_tree(&own, Path::new(""), Recursion::Single)?;
    let set = MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
    let attr = MountAttr { set, private: true, ..MountAttr::default() };
    mounts::mount_setattr(&file, Recursion::Single, &attr)?;
    mounts::move_mount(file.as_fd(), &place, Path::new(""))
        .map_err(|error| SysError { subject: path.display().to_string(), ..error })?;
    let id = mounts::mount_id(&file)?;
    Ok(Some(Mounted { path: path.clone(), file, id, on: None }))
}

/// An existing directory of the sandbox's own may be covered, and the same file that was shown before with
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
        return if both { Ok(None) } else { refused(Errno::EXIST) };
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
