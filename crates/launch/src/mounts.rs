//! Builds the mount view: the sandbox's own root on a tmpfs or on the gate's file system, in the order of the plan.
//!
//! First every part is taken from the host or created, detached ([`collect`]). Then the root changes, and the parts are
//! attached while the command's process leaves the old root. Every name is created or opened below the new
//! root's descriptor without following links, so nothing in a bound tree can redirect a step (CVE-2026-41579,
//! CVE-2025-52881).

mod caches;
mod overlay;
mod own_names;
mod scratch;
mod stage;

use crate::error::{During, LaunchError, Result};
use crate::fuse_root::{FuseRoot, GroundStore};
use crate::idmap::OwnerMaps;
use crate::sources::{self, Source, Sources};
use caches::{CachePart, Caches};
use overlay::OverlayParts;
use own_names::Left;
use palisade_plan::model::{Hardening, MountAccess, MountOp, Namespaced, NodeKind, SandboxPlan};
use palisade_sys::beneath::{create_file_beneath, mkdir_p_beneath, open_beneath, symlink_beneath};
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, CWD, Errno, Mode, OFlags, SysError};
use scratch::Shared;
use std::cell::{OnceCell, RefCell};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(crate) const STEP: &str = "building the mount view";
/// On a file system of ours, for as long as it takes to mount it elsewhere.
const STAGED_FILE: &str = ".palisade-file";
/// Of a copy of one of the caller's files.
const COPY_MODE: u32 = 0o644;
/// `PROC_SUPER_MAGIC`: a false procfs must not catch our writes (CVE-2025-52881).
const PROC_MAGIC: i64 = 0x9fa0;

/// The name that something is mounted at.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Made by us before; nothing else can have changed it since.
    Made,
    /// To be made for a mount of this kind, unless something is there.
    For(NodeKind),
}

/// Mounts by the index of their step in the plan, ready to be attached; a step that makes a name has none.
pub(crate) type Pieces = Vec<Option<OwnedFd>>;

/// The new root, empty at first.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) root: OwnedFd,
    last_parent: RefCell<Option<(PathBuf, Rc<OwnedFd>)>>,
    fuse: Option<FuseRoot>,
    /// What the gate's file system shows, and where.
    stores: Vec<GroundStore>,
    workbench: OnceCell<OwnedFd>,
}

impl Builder {
    /// Cuts the namespace off from the host's mounts and puts an empty root over the old one. Paths
    /// of this process still start at the old root until [`Self::change_root`].
    pub(crate) fn new(hardening: Hardening, fuse: Option<FuseRoot>) -> Result<Self> {
        if hardening.private_mounts {
            mounts::make_private_recursive(Path::new("/"))
                .during("cutting mounts off from the host")?;
        }
        let options = [FsOption::Text("mode", "0755"), FsOption::Text("size", "16m")];
        let own = mounts::new_fs("tmpfs", &options, MountAttrs::NOSUID | MountAttrs::NODEV)
            .during(STEP)?;
        let (root, stores) = match &fuse {
            Some(fuse) => {
                fuse.show(Path::new("/"), &own)?;
                let root = fuse.root()?;
                // Until then it belongs to uid 0, which an ordinary user's namespace does not map, and nobody may write
                // to such a directory (`HAS_UNMAPPED_ID` in the kernel's namei.c).
                rustix::fs::fstat(&root).call("fstat").during(STEP)?;
                (root, vec![GroundStore { path: "/".into(), root: own }])
            }
            None => (own, Vec::new()),
        };
        mounts::move_mount(&root, CWD, Path::new("/")).during(STEP)?;
        Ok(Self { root, last_parent: RefCell::new(None), fuse, stores, workbench: OnceCell::new() })
    }

    /// The file systems behind the gate's.
    pub(crate) fn stores(&self) -> &[GroundStore] {
        &self.stores
    }

    /// Makes those parts that need a root to be made on, and shows what the gate's file system has to show.
    pub(crate) fn complete(
        &mut self,
        inside: &Namespaced,
        sources: Sources,
        sandbox: &SandboxPlan,
    ) -> Result<Pieces> {
        let ops = &inside.mounts;
        let scratch = sandbox.scratch.as_ref();
        let shared = scratch.map(Shared::new).transpose()?;
        let mut caches = Caches::new(&inside.caches);
        let completed = ops.iter().zip(sources);
        let completed: Pieces = completed
            .map(|(op, source)| match op {
                MountOp::Overlay { lower, stack: Some(stack), exec, .. } => {
                    let part = CachePart { cache: lower, stack, exec: *exec };
                    caches.part(&part, source).map(Some)
                }
                _ => piece(op, source, shared.as_ref()),
            })
            .collect::<Result<_, _>>()?;
        let grounds = sandbox.gate.as_ref().map_or(&[][..], |gate| &gate.grounds);
        self.show_grounds(ops, completed, grounds)
    }

    /// What the gate's file system has to show, as mounts of it: at this point nothing is mounted on it that would be in
    /// the way.
    fn show_grounds(
        &mut self,
        ops: &[MountOp],
        pieces: Pieces,
        grounds: &[PathBuf],
    ) -> Result<Pieces, LaunchError> {
        let Some(fuse) = &self.fuse else { return Ok(pieces) };
        let is_ground = |op: &MountOp| {
            let is_own = matches!(op, MountOp::Frame { .. } | MountOp::Tmpfs { .. });
            is_own && grounds.iter().any(|ground| ground == op.target())
        };
        let show = |op: &MountOp, root: OwnedFd| {
            let path = op.target().to_owned();
            if let Some((store, rest)) = self.store_of(&path) {
                mkdir_p_beneath(store, rest, Mode::from_raw_mode(0o755)).during(STEP)?;
            }
            fuse.show(&path, &root)?;
            let place = open_beneath(&self.root, &path, OFlags::PATH).during(STEP)?;
            let shown = mounts::open_tree(&place, Path::new(""), Recursion::Single).during(STEP)?;
            if matches!(op, MountOp::Tmpfs { exec: true, .. }) {
                let attr = MountAttr { clear: MountAttrs::NOEXEC, ..MountAttr::default() };
                mounts::mount_setattr(&shown, Recursion::Single, &attr).during(STEP)?;
            }
            Ok((shown, GroundStore { path, root }))
        };
        let mut stores = Vec::new();
        let mut take = |(op, piece): (&MountOp, Option<OwnedFd>)| match piece {
            Some(root) if is_ground(op) => {
                let (mount, store) = show(op, root)?;
                stores.push(store);
                Ok(Some(mount))
            }
            piece => Ok(piece),
        };
        let shown = ops.iter().zip(pieces).map(&mut take);
        let shown: Pieces = shown.collect::<Result<_, LaunchError>>()?;
        self.stores.extend(stores);
        Ok(shown)
    }

    /// Makes the new root `/`. The old one then lies over it, out of reach for paths that start at `/`, until
    /// [`detach_old_root`].
    pub(crate) fn change_root(&self) -> Result<()> {
        const STEP: &str = "changing the root";
        rustix::process::fchdir(&self.root).call("fchdir").during(STEP)?;
        // The same path twice, so no directory has to exist for the old root. See pivot_root(2), NOTES.
        mounts::pivot_root(Path::new("."), Path::new(".")).during(STEP)
    }

    /// Attaches everything in order, and makes the root read-only.
    pub(crate) fn furnish(&self, ops: &[MountOp], pieces: &[Option<OwnedFd>]) -> Result<()> {
        let left = self.make_own_names(ops)?;
        self.look_up_own_names();
        let mut frame = None;
        for ((op, piece), left) in ops.iter().zip(pieces).zip(left) {
            if left != Left::Nothing {
                self.place((op, left), piece.as_ref(), frame)?;
            }
            if matches!(op, MountOp::Frame { .. }) {
                frame = piece.as_ref();
            }
        }
        self.clear_workbench()?;
        let is_sealed = |op: &MountOp| {
            matches!(
                op,
                MountOp::Frame { .. } | MountOp::Overlay { access: MountAccess::ReadOnly, .. }
            )
        };
        let frames = ops.iter().zip(pieces).filter(|(op, _)| is_sealed(op));
        let sealed = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
        for mount in frames.filter_map(|(_, piece)| piece.as_ref()).chain([&self.root]) {
            mounts::mount_setattr(mount, Recursion::Single, &sealed).during(STEP)?;
        }
        rustix::process::chdir("/").at("chdir", Path::new("/")).during(STEP)
    }

    /// `frame` is a file system of ours that is attached already, and can still be written.
    fn place(
        &self,
        (op, left): (&MountOp, Left),
        piece: Option<&OwnedFd>,
        frame: Option<&OwnedFd>,
    ) -> Result<()> {
        let place_for = |kind| if left == Left::ToMount { Place::Made } else { Place::For(kind) };
        let attach = |target: &Path, kind| {
            let piece = piece.ok_or_else(|| no_piece(op))?;
            self.try_attach(piece, target, place_for(kind))?.during(STEP)
        };
        match op {
            MountOp::Dir { target, mode } => {
                mkdir_p_beneath(&self.root, target, Mode::from_raw_mode(*mode)).during(STEP)?;
                Ok(())
            }
            MountOp::Symlink { target, points_to } => {
                let (parent, name) = self.parent_of(target)?;
                symlink_beneath(&*parent, points_to, Path::new(name)).during(STEP)
            }
            MountOp::File { target, content, mode } => self.file(target, (content, *mode), frame),
            MountOp::Copy { target, content, .. } => {
                self.parent_of(target)?;
                new_file(&self.root, target, (content, COPY_MODE)).during(STEP)
            }
            MountOp::Seal { target, optional } => self.seal(target, *optional),
            MountOp::Blank { target, optional } => self.blank(target, *optional),
            MountOp::Bind { target, kind, may_vanish: true, .. } => {
                let Some(piece) = piece else { return Ok(()) };
                match self.try_attach(piece, target, place_for(*kind))? {
                    // Removed since it was taken: what was removed cannot be mounted.
                    Err(error) if error.errno == Errno::NOENT => Ok(()),
                    attached => attached.during(STEP),
                }
            }
            MountOp::Bind { target, kind, .. } => attach(target, *kind),
            MountOp::Device { target, .. } => attach(target, NodeKind::File),
            MountOp::Overlay { target, .. }
            | MountOp::Frame { target, .. }
            | MountOp::Tmpfs { target, .. }
            | MountOp::Proc { target }
            | MountOp::DevPts { target }
            | MountOp::Mqueue { target } => attach(target, NodeKind::Dir),
        }
    }

    /// The directory a name is made in, made itself if need be, and the name.
    fn parent_of<'path>(&self, target: &'path Path) -> Result<(Rc<OwnedFd>, &'path OsStr)> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(LaunchError::new(STEP, format!("{} is no name", target.display())));
        };
        // Steps come in the order of their targets, so the same directory is often needed again.
        if let Some((path, directory)) = self.last_parent.borrow().as_ref()
            && path == parent
        {
            return Ok((Rc::clone(directory), name));
        }
        let made = mkdir_p_beneath(&self.root, parent, Mode::from_raw_mode(0o755)).during(STEP)?;
        let directory = Rc::new(made);
        *self.last_parent.borrow_mut() = Some((parent.to_owned(), Rc::clone(&directory)));
        Ok((directory, name))
    }

    /// Mounts at a name that is made for it on our own tmpfs, or over what is there already.
    pub(crate) fn attach(&self, mount: &OwnedFd, target: &Path, kind: NodeKind) -> Result<()> {
        self.try_attach(mount, target, Place::For(kind))?.during(STEP)
    }

    /// The same, with the kernel's own answer to the mount itself.
    fn try_attach(
        &self,
        mount: &OwnedFd,
        target: &Path,
        place: Place,
    ) -> Result<palisade_sys::Result<()>> {
        let named = |error: SysError| SysError { subject: target.display().to_string(), ..error };
        let (parent, name) = self.parent_of(target)?;
        let name = Path::new(name);
        let made = match place {
            Place::Made => Ok(()),
            Place::For(NodeKind::Dir) => {
                rustix::fs::mkdirat(&*parent, name, Mode::from_raw_mode(0o755))
            }
            Place::For(NodeKind::File) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                rustix::fs::openat(&*parent, name, flags, Mode::from_raw_mode(0o444)).map(drop)
            }
        };
        let moved = match made {
            Ok(()) => mounts::move_mount(mount, &*parent, name),
            Err(Errno::EXIST) => open_beneath(&*parent, name, OFlags::PATH)
                .and_then(|place| mounts::move_mount(mount, &place, Path::new(""))),
            Err(errno) => Err(SysError::new("mkdir", "", errno)),
        };
        // The old directory is covered now.
        self.last_parent.borrow_mut().take_if(|(path, _)| path.starts_with(target));
        Ok(moved.map_err(named))
    }

    /// Mounts `target` over itself, read-only.
    fn seal(&self, target: &Path, optional: bool) -> Result<()> {
        let Some(place) = self.existing(target, optional)? else { return Ok(()) };
        let copy = mounts::open_tree(&place, Path::new(""), Recursion::Recursive).during(STEP)?;
        let attr = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
        mounts::mount_setattr(&copy, Recursion::Recursive, &attr).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)
    }

    /// Mounts the sandbox's own `/dev/null` over a file that reveals too much.
    fn blank(&self, target: &Path, optional: bool) -> Result<()> {
        let Some(place) = self.existing(target, optional)? else { return Ok(()) };
        let null = open_beneath(&self.root, Path::new("/dev/null"), OFlags::PATH).during(STEP)?;
        let copy = mounts::open_tree(&null, Path::new(""), Recursion::Single).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)
    }

    fn existing(&self, target: &Path, optional: bool) -> Result<Option<OwnedFd>> {
        match open_beneath(&self.root, target, OFlags::PATH) {
            Err(error) if optional && error.errno == Errno::NOENT => Ok(None),
            found => found.map(Some).during(STEP),
        }
    }

    /// A file of ours with this content; where the target lies in a bound tree, mounted over it.
    fn file(&self, target: &Path, file: (&str, u32), frame: Option<&OwnedFd>) -> Result<()> {
        let Some(place) = self.existing(target, true)? else {
            self.parent_of(target)?;
            return new_file(&self.root, target, file).during(STEP);
        };
        let root = match (frame, &self.fuse) {
            (Some(frame), _) => frame,
            // The gate's file system shows nothing without a name, and the file loses its own.
            (None, Some(_)) => self.workbench()?,
            (None, None) => &self.root,
        };
        let name = Path::new(STAGED_FILE);
        new_file(root, name, file).during(STEP)?;
        let source = open_beneath(root, name, OFlags::PATH).during(STEP)?;
        let copy = mounts::open_tree(&source, Path::new(""), Recursion::Single).during(STEP)?;
        let attrs =
            MountAttrs::RDONLY | MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
        let attr = MountAttr { set: attrs, ..MountAttr::default() };
        mounts::mount_setattr(&copy, Recursion::Single, &attr).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)?;
        // The mount keeps the file alive; its name is no longer needed.
        let no_flags = rustix::fs::AtFlags::empty();
        rustix::fs::unlinkat(root, name, no_flags).at("unlink", name).during(STEP)
    }

    pub(crate) fn unlink(&self, path: &Path, flags: rustix::fs::AtFlags) -> Result<()> {
        self.last_parent.borrow_mut().take_if(|(directory, _)| directory.starts_with(path));
        let relative = path.strip_prefix("/").unwrap_or(path);
        rustix::fs::unlinkat(&self.root, relative, flags).at("unlink", path).during(STEP)
    }
}

/// What a step attaches, made of its source.
fn piece(op: &MountOp, source: Option<Source>, shared: Option<&Shared>) -> Result<Option<OwnedFd>> {
    match (op, shared) {
        (MountOp::Overlay { is_copied: true, .. }, _) => Ok(source.map(|source| source.mount)),
        (MountOp::Overlay { target, hidden, access, exec, .. }, _) => {
            let Source { mount: lower, layer, .. } = source.ok_or_else(|| no_piece(op))?;
            let parts = OverlayParts { target, hidden, access: *access, exec: *exec };
            match layer {
                Some(layer) => overlay::transaction(&lower, &layer, &parts).map(Some),
                None => overlay::scratch_overlay(&lower, &parts, shared).map(Some),
            }
        }
        (MountOp::Tmpfs { mode, exec, .. }, Some(shared)) if op.is_part_of_scratch() => {
            shared.part(*mode, *exec).map(Some)
        }
        _ => Ok(source.map(|source| source.mount)),
    }
}

/// Takes sources from the host, or those that root's parent prepared, and creates the new file systems. A new procfs can
/// be mounted only while the host's is still visible; the kernel requires that. None of it needs the new root: where that
/// is the gate's file system, its process starts meanwhile.
pub(crate) fn collect(
    inside: &Namespaced,
    prepared: Option<Sources>,
    mut devpts: Option<OwnedFd>,
    sandbox: &SandboxPlan,
) -> Result<Sources> {
    let sources = match prepared {
        Some(prepared) => prepared,
        None => sources::prepare(inside, sandbox.hardening, &OwnerMaps::default())?,
    };
    let scratch = sandbox.scratch.as_ref();
    let piece = |(op, source): (&MountOp, Option<Source>)| match op {
        // On the one that all of them share.
        MountOp::Tmpfs { .. } if op.is_part_of_scratch() && scratch.is_some() => Ok(None),
        MountOp::Tmpfs { mode, size, exec, .. } => {
            let mode = format!("{mode:o}");
            let size = size.map(|bytes| bytes.to_string());
            let inodes = scratch.and_then(|scratch| scratch.inodes_apart);
            let inodes = inodes.map(|inodes| inodes.to_string());
            let mut options = vec![FsOption::Text("mode", &mode)];
            options.extend(size.as_deref().map(|size| FsOption::Text("size", size)));
            options.extend(inodes.as_deref().map(|most| FsOption::Text("nr_inodes", most)));
            let attrs = if *exec { NO_DEVICES } else { NO_DEVICES | MountAttrs::NOEXEC };
            new_fs("tmpfs", &options, attrs)
        }
        MountOp::Frame { mode, .. } => {
            let mode = format!("{mode:o}");
            let attrs = NO_DEVICES | MountAttrs::NOEXEC;
            new_fs("tmpfs", &[FsOption::Text("mode", &mode)], attrs)
        }
        MountOp::Proc { .. } => {
            let mount = new_fs("proc", &[], NO_DEVICES | MountAttrs::NOEXEC)?;
            mount.as_ref().map_or(Ok(()), |source| check_proc(&source.mount))?;
            Ok(mount)
        }
        MountOp::DevPts { .. } => match devpts.take() {
            Some(made_for_the_terminal) => Ok(Some(made_for_the_terminal.into())),
            None => new_devpts().map(|devpts| Some(devpts.into())),
        },
        MountOp::Mqueue { .. } => new_fs("mqueue", &[], NO_DEVICES | MountAttrs::NOEXEC),
        MountOp::Overlay { .. }
        | MountOp::Bind { .. }
        | MountOp::Device { .. }
        | MountOp::Dir { .. }
        | MountOp::Symlink { .. }
        | MountOp::File { .. }
        | MountOp::Copy { .. }
        | MountOp::Seal { .. }
        | MountOp::Blank { .. } => Ok(source),
    };
    inside.mounts.iter().zip(sources).map(piece).collect()
}

const NO_DEVICES: MountAttrs = MountAttrs::NOSUID.union(MountAttrs::NODEV);

/// A file that must not exist yet.
fn new_file(root: &OwnedFd, path: &Path, (content, mode): (&str, u32)) -> palisade_sys::Result<()> {
    let mut file = File::from(create_file_beneath(root, path, Mode::from_raw_mode(mode))?);
    file.write_all(content.as_bytes()).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        SysError::new("write", path.display().to_string(), errno)
    })
}

fn new_fs(fstype: &str, options: &[FsOption<'_>], attrs: MountAttrs) -> Result<Option<Source>> {
    mounts::new_fs(fstype, options, attrs).map(|made| Some(made.into())).during(STEP)
}

/// The sandbox's own terminals. No gid=5: the tty group is not mapped in the user namespace. Not nodev:
/// terminals are devices.
pub(crate) fn new_devpts() -> Result<OwnedFd> {
    // A limit of its own: terminals are counted for the whole host.
    let options = [
        FsOption::Text("ptmxmode", "0666"),
        FsOption::Text("mode", "0620"),
        FsOption::Text("max", "256"),
    ];
    mounts::new_fs("devpts", &options, MountAttrs::NOSUID | MountAttrs::NOEXEC).during(STEP)
}

fn check_proc(mount: &OwnedFd) -> Result<()> {
    match mounts::fstatfs_magic(mount).during(STEP)? {
        PROC_MAGIC => Ok(()),
        other => Err(LaunchError::new(STEP, format!("/proc is not procfs ({other:#x})"))),
    }
}

fn no_piece(op: &MountOp) -> LaunchError {
    LaunchError::new(STEP, format!("nothing was taken for {}", op.target().display()))
}

/// Detaches the old root, which lies over the new one. The kernel waits until no process can still be using it,
/// so the command's process does this while pid 1 attaches the rest.
pub(crate) fn detach_old_root() -> Result<()> {
    mounts::detach(Path::new("/")).during("letting go of the old root")
}
