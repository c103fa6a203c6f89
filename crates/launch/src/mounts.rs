//! Builds the view: the sandbox's own root on a tmpfs, step by step as the plan says.
//!
//! Every name is created or opened below the new root's descriptor without following links, so
//! nothing a bound tree contains can send a step elsewhere (CVE-2026-41579, CVE-2025-52881).

use crate::error::{During, LaunchError};
use crate::idmap::OwnerMaps;
use crate::sources::{self, Prepared};
use palisade_plan::model::{Hardening, MountOp, NodeKind};
use palisade_sys::beneath::{create_file_beneath, mkdir_p_beneath, open_beneath, symlink_beneath};
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::{CWD, Errno, Mode, OFlags, SysError};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

pub(crate) const STEP: &str = "building the mount view";
/// A directory on the new root for what must be mounted somewhere before it is mounted where it
/// belongs; gone before the root changes.
pub(crate) const STAGE: &str = "/.palisade-stage";
/// `PROC_SUPER_MAGIC`: a false procfs must not catch our writes (CVE-2025-52881).
const PROC_MAGIC: i64 = 0x9fa0;

/// The new root, attached over the old one and not yet entered.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) root: OwnedFd,
    host_root: OwnedFd,
    /// Present where the parent took the sources.
    prepared: Option<Prepared>,
    hardening: Hardening,
}

impl Builder {
    /// Cuts the namespace off from the host's mounts and puts an empty root over the old one. Paths
    /// of this process still start at the old root until [`Self::enter`].
    pub(crate) fn new(
        prepared: Option<Prepared>,
        hardening: Hardening,
    ) -> Result<Self, LaunchError> {
        if hardening.private_mounts {
            mounts::make_private_recursive(Path::new("/"))
                .during("cutting mounts off from the host")?;
        }
        let host_root = sources::host_root()?;
        let options = [FsOption::Text("mode", "0755"), FsOption::Text("size", "16m")];
        let root = mounts::new_fs("tmpfs", &options, MountAttrs::NOSUID | MountAttrs::NODEV)
            .during(STEP)?;
        mounts::move_mount(&root, CWD, Path::new("/")).during(STEP)?;
        Ok(Self { root, host_root, prepared, hardening })
    }

    /// Carries out the steps in order.
    pub(crate) fn build(&mut self, ops: &[MountOp]) -> Result<(), LaunchError> {
        ops.iter().enumerate().try_for_each(|(index, op)| self.step(index, op))
    }

    /// Seals the root, makes it `/` and lets go of the old one.
    pub(crate) fn enter(self) -> Result<(), LaunchError> {
        const STEP: &str = "changing the root";
        let sealed = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
        mounts::mount_setattr(&self.root, Recursion::Single, &sealed).during(STEP)?;
        rustix::process::fchdir(&self.root).during(STEP)?;
        // Both names the same: the old root ends up over the new one and is detached from there,
        // so no directory has to exist for it. See pivot_root(2), NOTES.
        mounts::pivot_root(Path::new("."), Path::new(".")).during(STEP)?;
        mounts::detach(Path::new(".")).during(STEP)?;
        rustix::process::chdir("/").during(STEP)
    }

    fn step(&mut self, index: usize, op: &MountOp) -> Result<(), LaunchError> {
        match op {
            MountOp::Dir { target, mode } => {
                mkdir_p_beneath(&self.root, target, Mode::from_raw_mode(*mode)).during(STEP)?;
                Ok(())
            }
            MountOp::Symlink { target, points_to } => {
                self.make_parent(target)?;
                symlink_beneath(&self.root, points_to, target).during(STEP)
            }
            MountOp::File { target, content } => self.file(target, content),
            MountOp::Bind { target, kind, .. } => {
                let mount = self.source(index, op)?;
                self.attach(&mount, target, *kind)
            }
            MountOp::Device { target, .. } => {
                let mount = self.source(index, op)?;
                self.attach(&mount, target, NodeKind::File)
            }
            MountOp::Seal { target, optional } => self.seal(target, *optional),
            MountOp::Blank { target, optional } => self.blank(target, *optional),
            MountOp::Overlay { target, hidden, .. } => {
                let lower = self.source(index, op)?;
                self.overlay(&lower, target, hidden)
            }
            MountOp::Tmpfs { target, mode, size, exec } => {
                let mode = format!("{mode:o}");
                let size = size.map(|bytes| bytes.to_string());
                let mut options = vec![FsOption::Text("mode", &mode)];
                options.extend(size.as_deref().map(|size| FsOption::Text("size", size)));
                self.new_fs("tmpfs", &options, target, *exec)
            }
            MountOp::Proc { target } => {
                self.new_fs("proc", &[], target, false)?;
                let found = open_beneath(&self.root, target, OFlags::PATH).during(STEP)?;
                match mounts::fstatfs_magic(&found).during(STEP)? {
                    PROC_MAGIC => Ok(()),
                    other => {
                        Err(LaunchError::new(STEP, format!("/proc is not procfs ({other:#x})")))
                    }
                }
            }
            // No gid=5: the tty group is not mapped in the user namespace.
            MountOp::DevPts { target } => self.new_fs(
                "devpts",
                &[FsOption::Text("ptmxmode", "0666"), FsOption::Text("mode", "0620")],
                target,
                false,
            ),
            MountOp::Mqueue { target } => self.new_fs("mqueue", &[], target, false),
        }
    }

    fn source(&mut self, index: usize, op: &MountOp) -> Result<OwnedFd, LaunchError> {
        let taken = match &mut self.prepared {
            Some(prepared) => prepared.get_mut(index).and_then(Option::take),
            None => sources::take(&self.host_root, op, self.hardening, &OwnerMaps::default())?,
        };
        taken.ok_or_else(|| {
            LaunchError::new(STEP, format!("no source for {}", op.target().display()))
        })
    }

    fn make_parent(&self, target: &Path) -> Result<(), LaunchError> {
        let Some(parent) = target.parent() else { return Ok(()) };
        // Mostly it is there already: one call instead of one for each component.
        if open_beneath(&self.root, parent, OFlags::PATH | OFlags::DIRECTORY).is_ok() {
            return Ok(());
        }
        mkdir_p_beneath(&self.root, parent, Mode::from_raw_mode(0o755)).during(STEP)?;
        Ok(())
    }

    /// The place for a mount: what is there already, else made on our own tmpfs.
    fn mount_point(&self, target: &Path, kind: NodeKind) -> Result<OwnedFd, LaunchError> {
        match open_beneath(&self.root, target, OFlags::PATH) {
            Err(error) if error.errno == Errno::NOENT => {}
            found => return found.during(STEP),
        }
        match kind {
            NodeKind::Dir => {
                mkdir_p_beneath(&self.root, target, Mode::from_raw_mode(0o755)).during(STEP)
            }
            NodeKind::File => {
                self.make_parent(target)?;
                create_file_beneath(&self.root, target, Mode::from_raw_mode(0o444)).during(STEP)?;
                open_beneath(&self.root, target, OFlags::PATH).during(STEP)
            }
        }
    }

    pub(crate) fn attach(
        &self,
        mount: &OwnedFd,
        target: &Path,
        kind: NodeKind,
    ) -> Result<(), LaunchError> {
        let place = self.mount_point(target, kind)?;
        mounts::move_mount(mount, &place, Path::new(""))
            .map_err(|error| SysError { subject: target.display().to_string(), ..error })
            .during(STEP)
    }

    pub(crate) fn new_fs(
        &self,
        fstype: &str,
        options: &[FsOption<'_>],
        target: &Path,
        exec: bool,
    ) -> Result<(), LaunchError> {
        let mut attrs = MountAttrs::NOSUID;
        // Terminals are device nodes: with `nodev` none of them could be opened.
        if fstype != "devpts" {
            attrs |= MountAttrs::NODEV;
        }
        if !exec {
            attrs |= MountAttrs::NOEXEC;
        }
        let mount = mounts::new_fs(fstype, options, attrs).during(STEP)?;
        self.attach(&mount, target, NodeKind::Dir)
    }

    /// Mounts what stands at `target` over itself, read-only.
    fn seal(&self, target: &Path, optional: bool) -> Result<(), LaunchError> {
        let Some(place) = self.existing(target, optional)? else { return Ok(()) };
        let copy = mounts::open_tree(&place, Path::new(""), Recursion::Recursive).during(STEP)?;
        let attr = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
        mounts::mount_setattr(&copy, Recursion::Recursive, &attr).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)
    }

    /// Puts the sandbox's own `/dev/null` over a file that tells too much.
    fn blank(&self, target: &Path, optional: bool) -> Result<(), LaunchError> {
        let Some(place) = self.existing(target, optional)? else { return Ok(()) };
        let null = open_beneath(&self.root, Path::new("/dev/null"), OFlags::PATH).during(STEP)?;
        let copy = mounts::open_tree(&null, Path::new(""), Recursion::Single).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)
    }

    fn existing(&self, target: &Path, optional: bool) -> Result<Option<OwnedFd>, LaunchError> {
        match open_beneath(&self.root, target, OFlags::PATH) {
            Err(error) if optional && error.errno == Errno::NOENT => Ok(None),
            found => found.map(Some).during(STEP),
        }
    }

    /// A file of ours with this content; where the target lies in a bound tree, mounted over it.
    fn file(&self, target: &Path, content: &str) -> Result<(), LaunchError> {
        let written = |path: &Path| -> Result<(), LaunchError> {
            let file =
                create_file_beneath(&self.root, path, Mode::from_raw_mode(0o444)).during(STEP)?;
            std::fs::File::from(file).write_all(content.as_bytes()).map_err(|error| {
                LaunchError::new(STEP, format!("write {}: {error}", target.display()))
            })
        };
        let Some(place) = self.existing(target, true)? else {
            self.make_parent(target)?;
            return written(target);
        };
        self.make_parent(&Path::new(STAGE).join("file"))?;
        let staged = Path::new(STAGE).join("file");
        written(&staged)?;
        let source = open_beneath(&self.root, &staged, OFlags::PATH).during(STEP)?;
        let copy = mounts::open_tree(&source, Path::new(""), Recursion::Single).during(STEP)?;
        let attrs =
            MountAttrs::RDONLY | MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
        let attr = MountAttr { set: attrs, ..MountAttr::default() };
        mounts::mount_setattr(&copy, Recursion::Single, &attr).during(STEP)?;
        mounts::move_mount(&copy, &place, Path::new("")).during(STEP)?;
        // The mount keeps the file; its name is no longer needed.
        self.unlink(&staged, rustix::fs::AtFlags::empty())?;
        self.unlink(Path::new(STAGE), rustix::fs::AtFlags::REMOVEDIR)
    }

    pub(crate) fn unlink(
        &self,
        path: &Path,
        flags: rustix::fs::AtFlags,
    ) -> Result<(), LaunchError> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        rustix::fs::unlinkat(&self.root, relative, flags).during(STEP)
    }
}
