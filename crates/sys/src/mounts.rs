//! The mount API: detached trees, their attributes, new file systems, the change of root. Must never resolve a
//! path through a trailing link: what is attached is exactly the named object.

#![expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use crate::error::{At, Result, SysError, check};
use crate::flags::flag_set;

/// Whether an operation also covers the mounts below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursion {
    /// This mount and every mount under it.
    Recursive,
    /// This mount only.
    Single,
}

flag_set! {
    /// Attributes of a mount, see mount_setattr(2).
    pub struct MountAttrs: u64 {
        RDONLY = 0x1;
        NOSUID = 0x2;
        NODEV = 0x4;
        NOEXEC = 0x8;
        /// No link is followed on it, nor one of `/proc` that leads to a file (5.14).
        NOSYMFOLLOW = 0x0020_0000;
    }
}

const ATTR_IDMAP: u64 = 0x0010_0000;

/// A change of mount attributes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountAttr<'fd> {
    pub set: MountAttrs,
    pub clear: MountAttrs,
    /// Stops mount propagation in both directions.
    pub private: bool,
    /// A user namespace whose id maps the mount uses (`MOUNT_ATTR_IDMAP`, 5.12). Works only once, on a detached mount;
    /// both maps must be written (`EINVAL`).
    pub userns_fd: Option<BorrowedFd<'fd>>,
}

/// An option of a new file system.
#[derive(Clone, Copy, Debug)]
pub enum FsOption<'a> {
    /// A bare word, such as overlay's `userxattr`.
    Flag(&'a str),
    /// `key=value`. The kernel accepts at most 255 bytes of value.
    Text(&'a str, &'a str),
}

/// `struct mount_attr` in its first version (5.12).
#[repr(C)]
struct RawMountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// A detached copy of the mount at `path`, or of `dir` itself if `path` is empty. Does not follow a trailing link. See
/// open_tree(2).
pub fn open_tree(dir: impl AsFd, path: &Path, recursion: Recursion) -> Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if path.as_os_str().is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if recursion == Recursion::Recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(dir, path, flags).at("open_tree", path)
}

/// Changes the attributes of the mount that `mount` is the root of. See mount_setattr(2).
pub fn mount_setattr(mount: impl AsFd, recursion: Recursion, attr: &MountAttr<'_>) -> Result<()> {
    let propagation =
        if attr.private { MountPropagationFlags::PRIVATE } else { MountPropagationFlags::empty() };
    let mut raw = RawMountAttr {
        set: attr.set.bits(),
        clear: attr.clear.bits(),
        propagation: u64::from(propagation.bits()),
        userns_fd: 0,
    };
    if let Some(userns) = attr.userns_fd {
        raw.set |= ATTR_IDMAP;
        raw.userns_fd = u64::from(userns.as_raw_fd().unsigned_abs());
    }
    let flags = match recursion {
        Recursion::Recursive => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
        Recursion::Single => libc::AT_EMPTY_PATH,
    };
    // SAFETY: `raw` has the layout and the size the kernel reads, the path is a C string, and both
    // outlive the call; both descriptors are borrowed for its time.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw mut raw,
            size_of::<RawMountAttr>(),
        )
    };
    check(returned).map(drop).call("mount_setattr")
}

/// Attaches a detached mount at `to_path` under `to_dir` (at `to_dir` itself if the path is empty). Does not follow a
/// trailing link. See move_mount(2).
pub fn move_mount(from: impl AsFd, to_dir: impl AsFd, to_path: &Path) -> Result<()> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if to_path.as_os_str().is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    rustix::mount::move_mount(from, c"", to_dir, to_path, flags).at("move_mount", to_path)
}

/// A new file system as a detached mount. An error includes what the kernel logged. See fsopen(2), fsconfig(2),
/// fsmount(2).
pub fn new_fs(fstype: &str, options: &[FsOption<'_>], attrs: MountAttrs) -> Result<OwnedFd> {
    let context = rustix::mount::fsopen(fstype, FsOpenFlags::FSOPEN_CLOEXEC)
        .at("fsopen", Path::new(fstype))?;
    let explain = |call, subject: String, errno| match kernel_log(&context) {
        None => SysError::new(call, subject, errno),
        Some(log) => SysError::new(call, format!("{subject} (kernel: {log})"), errno),
    };
    for option in options {
        let (set, subject) = match *option {
            FsOption::Flag(key) => {
                (rustix::mount::fsconfig_set_flag(context.as_fd(), key), format!("{fstype} {key}"))
            }
            FsOption::Text(key, value) => (
                rustix::mount::fsconfig_set_string(context.as_fd(), key, value),
                format!("{fstype} {key}={value}"),
            ),
        };
        set.map_err(|errno| explain("fsconfig", subject, errno))?;
    }
    rustix::mount::fsconfig_create(context.as_fd())
        .map_err(|errno| explain("fsconfig", format!("{fstype} create"), errno))?;
    let attrs =
        u32::try_from(attrs.bits()).map_err(|_| SysError::new("fsmount", fstype, Errno::INVAL))?;
    rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::from_bits_retain(attrs),
    )
    .map_err(|errno| explain("fsmount", fstype.to_owned(), errno))
}

/// What the kernel logged on a file system context: one message per read, each prefixed with a one-letter level, until
/// `ENODATA`.
fn kernel_log(context: &OwnedFd) -> Option<String> {
    let mut messages = Vec::new();
    let mut buffer = [0_u8; 1024];
    while let Ok(length) = rustix::io::read(context, &mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..length]);
        let message = text.trim_end();
        messages.push(message.split_once(' ').map_or(message, |(_level, rest)| rest).to_owned());
    }
    if messages.is_empty() { None } else { Some(messages.join("; ")) }
}

/// Cuts the whole tree at `path` off from mount propagation, in and out.
pub fn make_private_recursive(path: &Path) -> Result<()> {
    rustix::mount::mount_change(path, MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .at("mount", path)
}

/// Makes `new_root` the root and puts the old one at `put_old`. See pivot_root(2).
pub fn pivot_root(new_root: &Path, put_old: &Path) -> Result<()> {
    rustix::process::pivot_root(new_root, put_old).at("pivot_root", new_root)
}

/// Detaches the mount at `path` and everything below it, busy or not.
pub fn detach(path: &Path) -> Result<()> {
    rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).at("umount2", path)
}

/// Detaches the mount that `file` is the root of, and everything below it, busy or not. umount2(2) takes no descriptor,
/// so `own_files` must be `/proc/self/fd`, which becomes the working directory.
pub fn detach_held(own_files: impl AsFd, file: impl AsFd) -> Result<()> {
    rustix::process::fchdir(own_files).call("fchdir")?;
    let number = file.as_fd().as_raw_fd().to_string();
    rustix::mount::unmount(number.as_str(), UnmountFlags::DETACH).call("umount2")
}

/// The id of the mount that `file` is on (5.8). The kernel reuses an id once its mount is gone.
pub fn mount_id(file: impl AsFd) -> Result<u64> {
    let found =
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).call("statx")?;
    if StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID) {
        Ok(found.stx_mnt_id)
    } else {
        Err(SysError::new("statx", "mount id", Errno::OPNOTSUPP))
    }
}

/// The magic number of the file system that holds `file`. See statfs(2).
pub fn fstatfs_magic(file: impl AsFd) -> Result<i64> {
    Ok(rustix::fs::fstatfs(file).call("fstatfs")?.f_type)
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
