//! The first exchange: the kernel offers a version and abilities, the server says which of them it uses.
//!
//! [`InitFlags`] has only what this crate can serve. What changes the layout of messages, needs privileges or another
//! transport is not in it, and so is never agreed: `SETXATTR_EXT`, `SECURITY_CTX`, `CREATE_SUPP_GROUP`, `MAP_ALIGNMENT`,
//! `PASSTHROUGH`, `ALLOW_IDMAP`, `OVER_IO_URING`, `EXPORT_SUPPORT`.

use crate::error::Malformation;
use crate::fields::{Reader, Writer};
use bitflags::bitflags;

/// The version of the protocol that this crate is written from.
const MAJOR: u32 = 7;
/// Linux 6.18. A later kernel talks to us as this one does.
const NEWEST_MINOR: u32 = 45;
/// Linux 5.4.
const OLDEST_MINOR: u32 = 31;

bitflags! {
    /// Abilities that both sides have to agree on (`FUSE_*` in the INIT message).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InitFlags: u64 {
        /// Several reads of a file at once, as read-ahead makes them.
        const ASYNC_READ = 1 << 0;
        /// OPEN truncates if its flags say so; without, SETATTR follows.
        const ATOMIC_O_TRUNC = 1 << 3;
        /// Writes of more than a page at once.
        const BIG_WRITES = 1 << 5;
        /// The server applies the umask, not the kernel.
        const DONT_MASK = 1 << 6;
        /// Cached data goes when size or time of modification change.
        const AUTO_INVAL_DATA = 1 << 12;
        const DO_READDIRPLUS = 1 << 13;
        /// READDIRPLUS only where attributes will probably be asked for.
        const READDIRPLUS_AUTO = 1 << 14;
        const ASYNC_DIO = 1 << 15;
        /// `ENOSYS` to OPEN means that no open is ever told again.
        const NO_OPEN_SUPPORT = 1 << 17;
        /// Several look-ups and listings in one directory at once. A server that leaves requests unanswered needs it:
        /// without, one of them keeps everyone else out of its directory.
        const PARALLEL_DIROPS = 1 << 18;
        /// Reading from the device after an abort fails with `ECONNABORTED`, not `ENODEV`.
        const ABORT_ERROR = 1 << 21;
        /// The reply says how many pages a request may have, in place of 32.
        const MAX_PAGES = 1 << 22;
        /// The kernel caches what links point to.
        const CACHE_SYMLINKS = 1 << 23;
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// Cached data stays until it is invalidated explicitly.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// Flags beyond the 32nd (7.36). Agreed whenever it is offered.
        const INIT_EXT = 1 << 30;
        /// Files opened with [`crate::OpenFlags::DIRECT_IO`] can be mapped shared (7.39).
        const DIRECT_IO_ALLOW_MMAP = 1 << 36;
    }
}

impl InitFlags {
    /// Agreed wherever the kernel offers them: they only lift limits.
    const ALWAYS: Self = Self::BIG_WRITES.union(Self::MAX_PAGES).union(Self::INIT_EXT);
    /// What a server that answers from files of the host wants.
    pub const USUAL: Self = Self::ASYNC_READ
        .union(Self::PARALLEL_DIROPS)
        .union(Self::AUTO_INVAL_DATA)
        .union(Self::CACHE_SYMLINKS);
}

/// What the kernel says of itself in INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub major: u32,
    pub minor: u32,
    pub max_readahead: u32,
    /// Including those that [`InitFlags`] has no name for.
    pub flags: InitFlags,
}

/// What the server wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Used as far as the kernel offers them.
    pub flags: InitFlags,
    /// The largest write, in bytes; at least a page.
    pub max_write: u32,
    /// At most this, and at most what the kernel offers.
    pub max_readahead: u32,
    /// How many requests that nobody waits for may be open, such as read-ahead.
    pub max_background: u16,
}

/// What was agreed; the reply to INIT is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub minor: u32,
    pub flags: InitFlags,
    /// What [`crate::Buffer`] has to have room for.
    pub max_write: u32,
    pub max_readahead: u32,
    pub max_background: u16,
    /// How many pages a request may have.
    pub max_pages: u16,
}

/// How an offer is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Answer by [`crate::Reply::init`].
    Agreed(Agreement),
    /// The kernel knows a later major version. Answer by [`crate::Reply::our_version`]; it then makes another offer.
    LaterMajor,
}

/// The kernel's protocol is too old for this crate. Answer `EPROTO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kernel speaks version {major}.{minor} of the FUSE protocol; {MAJOR}.{OLDEST_MINOR} or later is needed"
)]
pub struct OldKernel {
    pub major: u32,
    pub minor: u32,
}

impl Offer {
    /// `struct fuse_init_in`, which ends before the second half of the flags before 7.36.
    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformation> {
        let (major, minor) = (from.u32()?, from.u32()?);
        let (max_readahead, low) = (from.u32()?, from.u32()?);
        let mut flags = u64::from(low);
        // What an extended structure has beyond, a later kernel may use.
        let mut extension = Reader::new(from.rest());
        if InitFlags::from_bits_retain(flags).contains(InitFlags::INIT_EXT) {
            flags |= u64::from(extension.u32()?) << 32;
        }
        Ok(Self { major, minor, max_readahead, flags: InitFlags::from_bits_retain(flags) })
    }

    /// The best that both sides can do.
    pub fn agree(&self, terms: &Terms) -> Result<Handshake, OldKernel> {
        if self.major > MAJOR {
            return Ok(Handshake::LaterMajor);
        }
        if self.major < MAJOR || self.minor < OLDEST_MINOR {
            return Err(OldKernel { major: self.major, minor: self.minor });
        }
        let wanted = terms.flags.union(InitFlags::ALWAYS).intersection(InitFlags::all());
        let flags = self.flags.intersection(wanted);
        let page = u32::try_from(rustix::param::page_size()).unwrap_or(u32::MAX);
        let most_pages = match flags.contains(InitFlags::MAX_PAGES) {
            true => u16::MAX,
            false => DEFAULT_PAGES,
        };
        let max_write = terms.max_write.clamp(page, page.saturating_mul(most_pages.into()));
        Ok(Handshake::Agreed(Agreement {
            minor: self.minor.min(NEWEST_MINOR),
            flags,
            max_write,
            max_readahead: self.max_readahead.min(terms.max_readahead),
            max_background: terms.max_background,
            max_pages: max_write.div_ceil(page).try_into().unwrap_or(most_pages),
        }))
    }
}

/// How many pages a request has if that is not agreed.
const DEFAULT_PAGES: u16 = 32;

impl Agreement {
    /// `struct fuse_init_out`.
    pub(crate) fn write(&self) -> Vec<u8> {
        let flags = self.flags.bits();
        let [low, high] = [flags & u64::from(u32::MAX), flags >> 32];
        let half = |flags: u64| u32::try_from(flags).unwrap_or_default();
        Writer::with_capacity(INIT_OUT_SIZE)
            .u32(MAJOR)
            .u32(self.minor)
            .u32(self.max_readahead)
            .u32(half(low))
            .u16(self.max_background)
            // From how many on the kernel holds back more of them: three quarters, as it has it by default.
            .u16(self.max_background - self.max_background / 4)
            .u32(self.max_write)
            // Times are kept to the nanosecond.
            .u32(1)
            .u16(self.max_pages)
            // Alignment of DAX maps, which there are none of.
            .u16(0)
            .u32(half(high))
            // Depth of stacked file systems (with PASSTHROUGH alone), time-out of requests, and spare fields.
            .zeros(28)
            .finish()
    }
}

const INIT_OUT_SIZE: usize = 64;

/// `struct fuse_init_out` with nothing but our version.
pub(crate) fn our_version() -> Vec<u8> {
    Writer::with_capacity(INIT_OUT_SIZE).u32(MAJOR).u32(NEWEST_MINOR).zeros(56).finish()
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
