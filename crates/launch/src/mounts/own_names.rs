//! Names on the sandbox's own file systems that the gate's shows. They are made there directly: made through the
//! gate's file system, each would take several requests to its server. What is mounted on them is looked up once.

use super::{Builder, COPY_MODE, STEP, new_file};
use crate::error::{During, Result};
use crate::fuse_root::GroundStore;
use palisade_plan::model::{MountOp, NodeKind};
use palisade_sys::beneath::{create_file_beneath, mkdir_p_beneath, open_beneath, symlink_beneath};
use palisade_sys::{At as _, Errno, Mode, OFlags};
use rustix::fs::RawDir;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// For the names at the top of a ground; the server's answers take about as much again for each name's attributes.
const LISTING_BYTES: usize = 8 << 10;
const MOUNT_POINT_MODE: Mode = Mode::from_raw_mode(0o444);

/// What is left to do for a step of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// The name is there, made by us.
    ToMount,
    Everything,
}

/// The directory that the last name was made in. Steps come in the order of their targets, so the next is often made there,
/// too.
#[derive(Default)]
struct LastParent<'p>(Option<(&'p Path, Rc<OwnedFd>)>);

impl Builder {
    /// Makes all names that will not be covered by a mount. Says of each step what is left of it.
    pub(super) fn make_own_names(&self, ops: &[MountOp]) -> Result<Vec<Left>> {
        if self.stores.is_empty() {
            return Ok(vec![Left::Everything; ops.len()]);
        }
        let mut covered: Vec<&Path> = Vec::new();
        let mut last = LastParent::default();
        let mut make = |op| {
            let target = MountOp::target(op);
            let is_covered = covered.iter().any(|mount| target.starts_with(mount));
            if covers(op) && !self.is_ground(target) {
                covered.push(target);
            }
            if is_covered { Ok(Left::Everything) } else { self.make_own_name(op, &mut last) }
        };
        ops.iter().map(&mut make).collect()
    }

    /// Lists what the gate's file system shows at the top of each ground. Its answer looks up all names at once, where
    /// mounting on them would look up each by itself. Nothing is mounted there yet, and without it all goes on as well.
    pub(super) fn look_up_own_names(&self) {
        for GroundStore { path, .. } in &self.stores {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(directory) = open_beneath(&self.root, path, flags) else { continue };
            let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
            // One call is one request. The rest of a longer list is not worth another.
            let _ = RawDir::new(&directory, &mut buffer).next();
        }
    }

    fn is_ground(&self, path: &Path) -> bool {
        self.stores.iter().any(|store| store.path == path)
    }

    fn make_own_name<'p>(&self, op: &'p MountOp, last: &mut LastParent<'p>) -> Result<Left> {
        let target = op.target();
        let (Some((store, path)), Some(name)) = (self.store_of(target), target.file_name()) else {
            return Ok(Left::Everything);
        };
        let name = Path::new(name);
        let mut parent = || last.of(target, store, path);
        match op {
            MountOp::Dir { mode, .. } => {
                make_directory(&*parent()?, name, Mode::from_raw_mode(*mode))?;
                Ok(Left::Nothing)
            }
            MountOp::Symlink { points_to, .. } => {
                symlink_beneath(&*parent()?, points_to, name).during(STEP)?;
                Ok(Left::Nothing)
            }
            MountOp::File { content, mode, .. } => {
                match new_file(&*parent()?, name, (content, *mode)) {
                    // It is mounted over what is there.
                    Err(error) if error.errno == Errno::EXIST => Ok(Left::Everything),
                    made => made.during(STEP).map(|()| Left::Nothing),
                }
            }
            MountOp::Copy { content, .. } => {
                new_file(&*parent()?, name, (content, COPY_MODE)).during(STEP)?;
                Ok(Left::Nothing)
            }
            MountOp::Device { .. } | MountOp::Bind { kind: NodeKind::File, .. } => {
                match create_file_beneath(&*parent()?, name, MOUNT_POINT_MODE) {
                    // Two are mounted there, one over the other.
                    Err(error) if error.errno == Errno::EXIST => Ok(Left::Everything),
                    made => made.during(STEP).map(|_| Left::ToMount),
                }
            }
            MountOp::Bind { kind: NodeKind::Dir, .. }
            | MountOp::Overlay { .. }
            | MountOp::Frame { .. }
            | MountOp::Tmpfs { .. }
            | MountOp::Proc { .. }
            | MountOp::DevPts { .. }
            | MountOp::Mqueue { .. } => {
                make_directory(&*parent()?, name, DIRECTORY_MODE)?;
                Ok(Left::ToMount)
            }
            // Of what is there already.
            MountOp::Seal { .. } | MountOp::Blank { .. } => Ok(Left::Everything),
        }
    }

    /// The file system of the sandbox's own that has this path, and the path there.
    pub(super) fn store_of<'p>(&self, path: &'p Path) -> Option<(&OwnedFd, &'p Path)> {
        let stores = self.stores.iter().filter(|store| path != store.path);
        let stores = stores.filter_map(|GroundStore { path: at, root }| {
            Some((at.as_os_str().len(), root, path.strip_prefix(at).ok()?))
        });
        let (_, root, path) = stores.max_by_key(|(length, ..)| *length)?;
        Some((root, path))
    }
}

impl<'p> LastParent<'p> {
    /// The directory for this target, made if need be: that of `path` in `store`.
    fn of(&mut self, target: &'p Path, store: &OwnedFd, path: &Path) -> Result<Rc<OwnedFd>> {
        let parent = target.parent().unwrap_or(Path::new("/"));
        if let Some((known, directory)) = &self.0
            && *known == parent
        {
            return Ok(Rc::clone(directory));
        }
        let within = path.parent().unwrap_or(Path::new(""));
        let directory = Rc::new(mkdir_p_beneath(store, within, DIRECTORY_MODE).during(STEP)?);
        self.0 = Some((parent, Rc::clone(&directory)));
        Ok(directory)
    }
}

/// One that is there already may stay, but a link may not be in its place.
fn make_directory(parent: &OwnedFd, name: &Path, mode: Mode) -> Result<()> {
    match rustix::fs::mkdirat(parent, name, mode) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            open_beneath(parent, name, OFlags::PATH | OFlags::DIRECTORY).during(STEP).map(drop)
        }
        Err(errno) => Err(errno).at("mkdir", name).during(STEP),
    }
}

/// Whether names below its target belong to what is mounted.
fn covers(op: &MountOp) -> bool {
    match op {
        MountOp::Bind { .. }
        | MountOp::Device { .. }
        | MountOp::Overlay { .. }
        | MountOp::Frame { .. }
        | MountOp::Tmpfs { .. }
        | MountOp::Proc { .. }
        | MountOp::DevPts { .. }
        | MountOp::Mqueue { .. } => true,
        MountOp::Dir { .. }
        | MountOp::Symlink { .. }
        | MountOp::File { .. }
        | MountOp::Copy { .. }
        | MountOp::Seal { .. }
        | MountOp::Blank { .. } => false,
    }
}
