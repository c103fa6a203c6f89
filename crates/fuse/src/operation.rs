//! What the kernel asks for: the body of a request, by its operation.

use crate::attributes::Timestamp;
use crate::error::Malformation;
use crate::fields::Reader;
use crate::handshake::Offer;
use crate::ids::{FileHandle, NodeId, Unique};
use crate::opcode;

/// An operation and its arguments. Names are single components of a path: not empty, without NUL or slash, neither `.`
/// nor `..`. Flags that are plain numbers are those of the system call of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The first request. See [`Offer::agree`].
    Init(Offer),
    Lookup {
        name: &'a [u8],
    },
    /// The kernel gives up `count` look-ups of the node. No reply.
    Forget {
        count: u64,
    },
    /// The same for several nodes. No reply.
    BatchForget(ForgottenList<'a>),
    GetAttr {
        handle: Option<FileHandle>,
    },
    SetAttr(Changes),
    ReadLink,
    Symlink {
        name: &'a [u8],
        target: &'a [u8],
    },
    /// `mode` has the umask applied already, unless `DONT_MASK` was agreed.
    MkNod {
        name: &'a [u8],
        mode: u32,
        device: u32,
        umask: u32,
    },
    MkDir {
        name: &'a [u8],
        mode: u32,
        umask: u32,
    },
    Unlink {
        name: &'a [u8],
    },
    RmDir {
        name: &'a [u8],
    },
    /// `flags` as of renameat2(2).
    Rename {
        name: &'a [u8],
        new_parent: NodeId,
        new_name: &'a [u8],
        flags: u32,
    },
    /// A new name, in the directory of the request, for `old`.
    Link {
        old: NodeId,
        new_name: &'a [u8],
    },
    Open {
        flags: u32,
    },
    Create {
        name: &'a [u8],
        flags: u32,
        mode: u32,
        umask: u32,
    },
    Read {
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: u32,
    },
    Write {
        handle: FileHandle,
        offset: u64,
        data: &'a [u8],
        flags: u32,
        write_flags: u32,
    },
    StatFs,
    Release {
        handle: FileHandle,
        flags: u32,
    },
    /// A descriptor was closed; others of the same open file may be left.
    Flush {
        handle: FileHandle,
        lock_owner: u64,
    },
    FSync {
        handle: FileHandle,
        data_only: bool,
    },
    SetXattr {
        name: &'a [u8],
        value: &'a [u8],
        flags: u32,
    },
    /// With a `size` of 0 the answer is [`crate::Reply::xattr_size`]; otherwise the value, or `ERANGE`.
    GetXattr {
        name: &'a [u8],
        size: u32,
    },
    /// Answered as [`Self::GetXattr`] is.
    ListXattr {
        size: u32,
    },
    RemoveXattr {
        name: &'a [u8],
    },
    OpenDir {
        flags: u32,
    },
    /// Answered by a [`crate::Listing`] of at most `size` bytes, from the entry after the one with that offset.
    ReadDir {
        handle: FileHandle,
        offset: u64,
        size: u32,
    },
    /// Answered by a [`crate::ListingPlus`]; each entry in it counts as a look-up, `.` and `..` excepted.
    ReadDirPlus {
        handle: FileHandle,
        offset: u64,
        size: u32,
    },
    ReleaseDir {
        handle: FileHandle,
        flags: u32,
    },
    FSyncDir {
        handle: FileHandle,
        data_only: bool,
    },
    Access {
        mask: u32,
    },
    /// Whoever waits for `request` got a signal, perhaps a fatal one: answer that request soon, with `EINTR` or as
    /// usual. Even a killed caller stays until then, as long as the request was read. This one has no reply. It never
    /// comes before the request it is about, but may come after its reply.
    Interrupt {
        request: Unique,
    },
    Statx {
        handle: Option<FileHandle>,
        flags: u32,
        mask: u32,
    },
    Lseek {
        handle: FileHandle,
        offset: u64,
        whence: u32,
    },
    Ioctl {
        handle: FileHandle,
        flags: u32,
        command: u32,
        argument: u64,
        input: &'a [u8],
        output_size: u32,
    },
    Poll {
        handle: FileHandle,
        kernel_handle: u64,
        flags: u32,
        events: u32,
    },
    /// The file system was unmounted.
    Destroy,
    /// Another operation, by its number. Answer `ENOSYS`: most of them the kernel then does not ask for again.
    Other(u32),
}

/// What SETATTR changes; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<NewTime>,
    pub modified: Option<NewTime>,
    /// Sent only if the kernel caches what is written.
    pub changed: Option<Timestamp>,
    /// The open file that the change was made through.
    pub handle: Option<FileHandle>,
    /// Whether set-user-ID and set-group-ID bits are to be cleared.
    pub clears_set_id: bool,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    Now,
    At(Timestamp),
}

/// A node and the number of its look-ups that the kernel gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    pub node: NodeId,
    pub count: u64,
}

/// The nodes of BATCH_FORGET, read as they are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenList<'a>(&'a [u8]);

impl Operation<'_> {
    /// Whether the kernel waits for a reply. To answer a request that expects none is an error.
    pub fn expects_reply(&self) -> bool {
        match self {
            Self::Forget { .. } | Self::BatchForget(_) | Self::Interrupt { .. } => false,
            Self::Other(number) => opcode::expects_reply(*number),
            _ => true,
        }
    }
}

impl<'a> Operation<'a> {
    /// The operation with that number, from what follows the header.
    pub(crate) fn parse(number: u32, mut from: Reader<'a>) -> Result<Self, Malformation> {
        let read = &mut from;
        let operation = match number {
            opcode::INIT => Self::Init(Offer::read(read)?),
            opcode::LOOKUP => Self::Lookup { name: read.name()? },
            opcode::FORGET => Self::Forget { count: read.u64()? },
            opcode::BATCH_FORGET => Self::BatchForget(ForgottenList::read(read)?),
            opcode::GETATTR => Self::GetAttr { handle: optional_handle(read)? },
            opcode::SETATTR => Self::SetAttr(Changes::read(read)?),
            opcode::STATX => {
                let handle = optional_handle(read)?;
                Self::Statx { handle, flags: read.u32()?, mask: read.u32()? }
            }
            opcode::READLINK => Self::ReadLink,
            opcode::STATFS => Self::StatFs,
            opcode::ACCESS => Self::Access { mask: padded(read)? },
            opcode::INTERRUPT => Self::Interrupt { request: Unique(read.u64()?) },
            opcode::DESTROY => Self::Destroy,
            opcode::SYMLINK
            | opcode::MKNOD
            | opcode::MKDIR
            | opcode::UNLINK
            | opcode::RMDIR
            | opcode::RENAME
            | opcode::RENAME2
            | opcode::LINK
            | opcode::CREATE => Self::in_directory(number, read)?,
            opcode::SETXATTR | opcode::GETXATTR | opcode::LISTXATTR | opcode::REMOVEXATTR => {
                Self::extended_attribute(number, read)?
            }
            opcode::OPEN => Self::Open { flags: padded(read)? },
            opcode::OPENDIR => Self::OpenDir { flags: padded(read)? },
            opcode::READ
            | opcode::WRITE
            | opcode::RELEASE
            | opcode::FLUSH
            | opcode::FSYNC
            | opcode::READDIR
            | opcode::READDIRPLUS
            | opcode::RELEASEDIR
            | opcode::FSYNCDIR
            | opcode::LSEEK
            | opcode::IOCTL
            | opcode::POLL => Self::on_open_file(number, read)?,
            // Nothing is known of its arguments.
            other => return Ok(Self::Other(other)),
        };
        from.finish()?;
        Ok(operation)
    }

    /// What makes, removes or renames an entry of a directory.
    fn in_directory(number: u32, from: &mut Reader<'a>) -> Result<Self, Malformation> {
        Ok(match number {
            opcode::SYMLINK => Self::Symlink { name: from.name()?, target: from.nonempty_text()? },
            opcode::MKNOD => {
                let (mode, device, umask) = (from.u32()?, from.u32()?, padded(from)?);
                Self::MkNod { name: from.name()?, mode, device, umask }
            }
            opcode::MKDIR => {
                let (mode, umask) = (from.u32()?, from.u32()?);
                Self::MkDir { name: from.name()?, mode, umask }
            }
            opcode::UNLINK => Self::Unlink { name: from.name()? },
            opcode::RMDIR => Self::RmDir { name: from.name()? },
            opcode::LINK => {
                let old = NodeId(from.u64()?);
                Self::Link { old, new_name: from.name()? }
            }
            opcode::CREATE => {
                let (flags, mode, umask) = (from.u32()?, from.u32()?, padded(from)?);
                Self::Create { name: from.name()?, flags, mode, umask }
            }
            _ => {
                let new_parent = NodeId(from.u64()?);
                let flags = if number == opcode::RENAME2 { padded(from)? } else { 0 };
                Self::Rename { name: from.name()?, new_parent, new_name: from.name()?, flags }
            }
        })
    }

    fn extended_attribute(number: u32, from: &mut Reader<'a>) -> Result<Self, Malformation> {
        Ok(match number {
            opcode::SETXATTR => {
                // Without SETXATTR_EXT, which is never agreed, the structure ends after these.
                let (size, flags) = (from.u32()?, from.u32()?);
                let name = from.nonempty_text()?;
                Self::SetXattr { name, value: from.counted(size)?, flags }
            }
            opcode::GETXATTR => {
                let size = padded(from)?;
                Self::GetXattr { name: from.nonempty_text()?, size }
            }
            opcode::LISTXATTR => Self::ListXattr { size: padded(from)? },
            _ => Self::RemoveXattr { name: from.nonempty_text()? },
        })
    }

    /// What is done to an open file or directory. All begin with its handle.
    fn on_open_file(number: u32, from: &mut Reader<'a>) -> Result<Self, Malformation> {
        let handle = FileHandle(from.u64()?);
        Ok(match number {
            opcode::READ | opcode::READDIR | opcode::READDIRPLUS => {
                let (offset, size) = (from.u64()?, from.u32()?);
                // Read flags and the owner of locks.
                from.skip(4 + 8)?;
                let flags = padded(from)?;
                match number {
                    opcode::READ => Self::Read { handle, offset, size, flags },
                    opcode::READDIR => Self::ReadDir { handle, offset, size },
                    _ => Self::ReadDirPlus { handle, offset, size },
                }
            }
            opcode::WRITE => {
                let (offset, size, write_flags) = (from.u64()?, from.u32()?, from.u32()?);
                // The owner of locks.
                from.skip(8)?;
                let flags = padded(from)?;
                Self::Write { handle, offset, data: from.counted(size)?, flags, write_flags }
            }
            opcode::RELEASE | opcode::RELEASEDIR => {
                let flags = from.u32()?;
                // Release flags and the owner of locks: locks are the kernel's own here.
                from.skip(4 + 8)?;
                match number {
                    opcode::RELEASE => Self::Release { handle, flags },
                    _ => Self::ReleaseDir { handle, flags },
                }
            }
            opcode::FLUSH => {
                from.skip(8)?;
                Self::Flush { handle, lock_owner: from.u64()? }
            }
            opcode::FSYNC | opcode::FSYNCDIR => {
                let data_only = padded(from)? & FSYNC_DATA_ONLY != 0;
                match number {
                    opcode::FSYNC => Self::FSync { handle, data_only },
                    _ => Self::FSyncDir { handle, data_only },
                }
            }
            opcode::LSEEK => {
                let offset = from.u64()?;
                Self::Lseek { handle, offset, whence: padded(from)? }
            }
            opcode::IOCTL => {
                let (flags, command, argument) = (from.u32()?, from.u32()?, from.u64()?);
                let (size, output_size) = (from.u32()?, from.u32()?);
                let input = from.counted(size)?;
                Self::Ioctl { handle, flags, command, argument, input, output_size }
            }
            _ => {
                let (kernel_handle, flags, events) = (from.u64()?, from.u32()?, from.u32()?);
                Self::Poll { handle, kernel_handle, flags, events }
            }
        })
    }
}

/// `FUSE_FSYNC_FDATASYNC`.
const FSYNC_DATA_ONLY: u32 = 1;
/// `FUSE_GETATTR_FH`: the handle is one.
const HAS_HANDLE: u32 = 1;

/// A number, and four bytes without meaning here.
fn padded(from: &mut Reader<'_>) -> Result<u32, Malformation> {
    let value = from.u32()?;
    from.skip(4)?;
    Ok(value)
}

/// `struct fuse_getattr_in`.
fn optional_handle(from: &mut Reader<'_>) -> Result<Option<FileHandle>, Malformation> {
    let flags = padded(from)?;
    let handle = FileHandle(from.u64()?);
    Ok((flags & HAS_HANDLE != 0).then_some(handle))
}

impl Changes {
    /// `struct fuse_setattr_in`. Which fields have a meaning is said by the bits of its first (`FATTR_*`).
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformation> {
        let valid = padded(from)?;
        let (handle, size) = (from.u64()?, from.u64()?);
        // The owner of locks.
        from.skip(8)?;
        let seconds = [from.i64()?, from.i64()?, from.i64()?];
        let nanoseconds = [from.u32()?, from.u32()?, from.u32()?];
        let mode = from.u32()?;
        from.skip(4)?;
        let (uid, gid) = (from.u32()?, padded(from)?);
        let has = |bit: u32| valid & (1 << bit) != 0;
        let time =
            |index: usize| Timestamp { seconds: seconds[index], nanoseconds: nanoseconds[index] };
        let new_time = |index, bit, now_bit| match (has(now_bit), has(bit)) {
            (true, _) => Some(NewTime::Now),
            (false, true) => Some(NewTime::At(time(index))),
            (false, false) => None,
        };
        Ok(Self {
            mode: has(0).then_some(mode),
            uid: has(1).then_some(uid),
            gid: has(2).then_some(gid),
            size: has(3).then_some(size),
            accessed: new_time(0, 4, 7),
            modified: new_time(1, 5, 8),
            changed: has(10).then(|| time(2)),
            handle: has(6).then_some(FileHandle(handle)),
            clears_set_id: has(11),
        })
    }
}

impl<'a> ForgottenList<'a> {
    const ITEM_SIZE: usize = 16;

    /// `struct fuse_batch_forget_in` and as many of `struct fuse_forget_one`.
    fn read(from: &mut Reader<'a>) -> Result<Self, Malformation> {
        let stated = padded(from)?;
        let items = from.rest();
        let expected = usize::try_from(stated).ok().and_then(|n| n.checked_mul(Self::ITEM_SIZE));
        if expected != Some(items.len()) {
            return Err(Malformation::Count { stated, received: items.len() });
        }
        Ok(Self(items))
    }

    pub fn iter(&self) -> impl Iterator<Item = Forgotten> + use<'a> {
        self.0.chunks_exact(Self::ITEM_SIZE).filter_map(|item| {
            let mut from = Reader::new(item);
            Some(Forgotten { node: NodeId(from.u64().ok()?), count: from.u64().ok()? })
        })
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
