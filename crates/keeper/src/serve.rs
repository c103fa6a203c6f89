//! The keeper's main loop: one request after another, each answered from what is held under its token.

use crate::identity::CallerIdentity;
use crate::look::{Host, HostFile};
use crate::message::{Change, FileKind, Found, KeeperEvent, KeeperRequest, What};
use crate::needs::{self, Needed};
use crate::own_files::OwnFiles;
use crate::sandbox_mounts::{DetachedTree, GraftSource, SandboxMounts};
use crate::survey;
use palisade_plan::model::Owner;
use palisade_sys::mounts::{self, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, Errno, OFlags, Result, SysError, identity_of};
use rustix::fs::Access;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// So many things are held at a time; each holds a descriptor. Whoever asks must not have more in use: the oldest is dropped.
pub const MAX_HELD: usize = 512;

/// All other requests wait while a private copy is made.
const MAX_COPY_BYTES: i64 = 64 << 20;
/// The only flag of the caller that has a meaning here and is harmless.
const HARMLESS: OFlags = OFlags::NOATIME;
/// Files are opened here for reading only.
const WRITING: OFlags =
    OFlags::WRONLY.union(OFlags::RDWR).union(OFlags::CREATE).union(OFlags::TRUNC);

#[derive(Debug)]
pub(crate) struct KeeperServer {
    pub(crate) host: Host,
    pub(crate) own_files: OwnFiles,
    pub(crate) identity: CallerIdentity,
    pub(crate) inside: SandboxMounts,
    /// The newest last.
    pub(crate) held: VecDeque<(u64, HostFile)>,
}

/// The answer, and the descriptor that goes with it.
pub(crate) type Answer = (KeeperEvent, Option<OwnedFd>);

impl KeeperServer {
    /// None where nothing is to be said.
    pub(crate) fn answer(&mut self, request: KeeperRequest) -> Option<Answer> {
        let only = |event| (event, None);
        let failed = |token: u64, error: &SysError| KeeperEvent::Failed {
            token,
            step: error.call.to_owned(),
            errno: number(error.errno),
        };
        let answer = match request {
            KeeperRequest::Look { token, path, follow, execute, change } => {
                let path = PathBuf::from(OsString::from_vec(path));
                only(match self.look(token, &path, follow, execute) {
                    Ok(Some(found)) => {
                        let unwritable = match change {
                            Change::Nothing => None,
                            Change::Content => self.unwritable(token),
                            Change::Name => self.unremovable(token),
                            Change::Attributes => self.unchangeable(token),
                        };
                        KeeperEvent::Found(Found { unwritable, ..found })
                    }
                    Ok(None) => KeeperEvent::Absent { token },
                    Err(error) => failed(token, &error),
                })
            }
            KeeperRequest::Graft { token, what, exec, write } => {
                let rights = Rights { exec, write };
                only(match self.graft(token, &what, rights) {
                    Ok(Some(graft)) => KeeperEvent::Grafted { token, graft },
                    Ok(None) => KeeperEvent::NotWhole { token },
                    Err(error) => failed(token, &error),
                })
            }
            KeeperRequest::Lend { token, parent } => match self.lend(token, parent) {
                Ok(file) => (KeeperEvent::Opened { token }, Some(file)),
                Err(error) => only(failed(token, &error)),
            },
            KeeperRequest::Open { token, flags } => match self.open(token, flags) {
                Ok(file) => (KeeperEvent::Opened { token }, Some(file)),
                Err(error) => only(failed(token, &error)),
            },
            KeeperRequest::Ungraft { graft } => {
                only(match self.inside.ungraft(&self.identity, &self.own_files, graft) {
                    Ok(()) => KeeperEvent::Ungrafted { graft },
                    Err(SysError { call, errno, .. }) => KeeperEvent::NotUngrafted {
                        graft,
                        step: call.to_owned(),
                        errno: number(errno),
                    },
                })
            }
            KeeperRequest::Revoke { token, path } => {
                only(match self.inside.revoke(&self.identity, &self.own_files, &path) {
                    Ok(()) => KeeperEvent::Revoked { token },
                    Err(SysError { call, errno, .. }) => KeeperEvent::NotUngrafted {
                        graft: token,
                        step: call.to_owned(),
                        errno: number(errno),
                    },
                })
            }
            KeeperRequest::Survey { token, directory } => {
                only(match self.survey(token, &directory) {
                    Ok(is_whole) => KeeperEvent::Surveyed { token, is_whole },
                    Err(error) => failed(token, &error),
                })
            }
            KeeperRequest::Forget { token } => {
                self.held.retain(|(held, _)| *held != token);
                return None;
            }
        };
        Some(answer)
    }

    fn look(
        &mut self,
        token: u64,
        path: &Path,
        follow: bool,
        execute: bool,
    ) -> Result<Option<Found>> {
        let Some(mut seen) = self.host.look(path, follow)? else { return Ok(None) };
        let mut needs = Vec::new();
        if execute {
            let Needed { paths, links } = needs::of_program(&self.host, &self.own_files, &seen)?;
            for (place, text) in links {
                if !seen.links.iter().any(|(known, _)| *known == place) {
                    seen.links.push((place, text));
                }
            }
            needs = paths;
        }
        let (path, kind, links) = (seen.path.clone(), seen.kind, seen.links.clone());
        self.held.retain(|(held, _)| *held != token);
        if self.held.len() == MAX_HELD {
            self.held.pop_front();
        }
        let identity = identity_of(&seen.file);
        self.held.push_back((token, seen));
        Ok(Some(Found { token, path, kind, links, needs, unwritable: None, identity }))
    }

    /// None for a directory that cannot be shown as a whole.
    fn graft(&mut self, token: u64, what: &What, rights: Rights) -> Result<Option<u64>> {
        let found = held(&self.held, token)?;
        let directory;
        let seen = match what {
            What::Links => {
                return self
                    .inside
                    .graft(&self.identity, GraftSource::Links, &found.links)
                    .map(Some);
            }
            What::Found if found.kind == FileKind::Link => {
                return self
                    .inside
                    .graft(&self.identity, GraftSource::Links, &found.links)
                    .map(Some);
            }
            What::Name if found.kind == FileKind::Directory => {
                let shown = GraftSource::Name(&found.path);
                return self.inside.graft(&self.identity, shown, &found.links).map(Some);
            }
            What::Name => return Err(refused(&found.path, Errno::NOTDIR)),
            What::BelowCover(directory) => {
                return self.inside.graft_below_cover(&self.identity, found, directory).map(Some);
            }
            What::Copy => return self.copy(token).map(Some),
            What::Found => found,
            What::Directory(path) if found.path.starts_with(path) => {
                directory = self.host.directory(path)?;
                &directory
            }
            What::Directory(path) => return Err(refused(path, Errno::INVAL)),
        };
        if !matches!(seen.kind, FileKind::File | FileKind::Directory) {
            return Err(refused(&seen.path, Errno::ACCESS));
        }
        self.inside.check_place(&seen.path)?;
        if rights.write {
            self.host.still_has(seen)?;
        }
        if seen.kind == FileKind::Directory && !survey::is_harmless(&seen.file) {
            return Ok(None);
        }
        let piece = DetachedTree { mount: take(&mut self.identity, seen, rights)?, seen };
        let top = seen.path.clone();
        let graft = self.inside.graft(&self.identity, GraftSource::Piece(piece), &found.links)?;
        self.inside.restore_copies(&self.identity, &self.own_files, graft, &top)?;
        Ok(Some(graft))
    }

    fn survey(&self, token: u64, directory: &Path) -> Result<bool> {
        let found = held(&self.held, token)?;
        if !found.path.starts_with(directory) {
            return Err(refused(directory, Errno::INVAL));
        }
        Ok(survey::is_harmless(&self.host.directory(directory)?.file))
    }

    /// Through its own read-only, detached mount: reopened inside through `/proc/self/fd`, it cannot be written
    /// either.
    fn open(&mut self, token: u64, flags: u32) -> Result<OwnedFd> {
        let found = held(&self.held, token)?;
        let flags = OFlags::from_bits_retain(flags);
        if found.kind != FileKind::File {
            return Err(refused(&found.path, Errno::ACCESS));
        }
        if flags.contains(OFlags::DIRECTORY) {
            return Err(refused(&found.path, Errno::NOTDIR));
        }
        if flags.intersects(WRITING) {
            return Err(refused(&found.path, Errno::ROFS));
        }
        let mount = take(&mut self.identity, found, Rights::default())?;
        let quick = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | (flags & HARMLESS);
        let file = self.identity.as_command(|| self.own_files.reopen(&mount, quick))?;
        // Only set so that opening could not block.
        rustix::fs::fcntl_setfl(&file, flags & HARMLESS).call("fcntl")?;
        Ok(file)
    }
}

impl KeeperServer {
    /// A detached mount through which it can be written. The mount's own flags apply: no program can be started
    /// from it.
    fn lend(&mut self, token: u64, parent: bool) -> Result<OwnedFd> {
        let found = held(&self.held, token)?;
        if parent {
            let directory = self.host.directory_of(found)?;
            return take(&mut self.identity, &directory, Rights { exec: false, write: true });
        }
        if !matches!(found.kind, FileKind::File | FileKind::Directory) {
            return Err(refused(&found.path, Errno::ACCESS));
        }
        self.host.still_has(found)?;
        take(&mut self.identity, found, Rights { exec: false, write: true })
    }

    /// The errno of a call that writes, whatever people answer.
    fn unwritable(&mut self, token: u64) -> Option<u16> {
        let found = held(&self.held, token).ok()?;
        if !matches!(found.kind, FileKind::File | FileKind::Directory) {
            return None;
        }
        if self.host.is_in_git_directory(found) {
            return Some(number(Errno::ACCESS));
        }
        let tried = may_write(&mut self.identity, &self.own_files, found);
        tried.err().map(|error| number(error.errno))
    }

    /// The same for a call that removes the name. The sticky bit (`S_ISVTX`) is left to the kernel.
    fn unremovable(&mut self, token: u64) -> Option<u16> {
        let found = held(&self.held, token).ok()?;
        if self.host.is_in_git_directory(found) {
            return Some(number(Errno::ACCESS));
        }
        let directory = self.host.directory_of(found);
        let tried = directory
            .and_then(|directory| may_write(&mut self.identity, &self.own_files, &directory));
        tried.err().map(|error| number(error.errno))
    }

    /// The same for a call that changes mode, owner or times: that needs the owner, or write access.
    fn unchangeable(&mut self, token: u64) -> Option<u16> {
        let refused = self.unwritable(token)?;
        let found = held(&self.held, token).ok()?;
        if self.host.is_in_git_directory(found) {
            return Some(refused);
        }
        let is_owner = take(&mut self.identity, found, Rights { exec: false, write: true })
            .and_then(|mount| rustix::fs::fstat(&mount).call("fstat"))
            .is_ok_and(|stat| stat.st_uid == self.identity.command_uid());
        (!is_owner).then_some(refused)
    }

    /// Gives the sandbox a private version to change.
    fn copy(&mut self, token: u64) -> Result<u64> {
        let kind = held(&self.held, token)?.kind;
        let content = match kind {
            FileKind::File => Some(self.open(token, 0)?),
            FileKind::Directory => None,
            FileKind::Link | FileKind::Special => {
                return Err(SysError::new("copy", token.to_string(), Errno::ACCESS));
            }
        };
        let seen = held(&self.held, token)?;
        if kind == FileKind::File && seen.stat.st_size > MAX_COPY_BYTES {
            return Err(refused(&seen.path, Errno::FBIG));
        }
        self.inside.check_place(&seen.path)?;
        self.inside.graft(&self.identity, GraftSource::Copy(seen, content), &seen.links)
    }
}

/// What a mount allows the command besides reading.
#[derive(Clone, Copy, Debug, Default)]
struct Rights {
    exec: bool,
    write: bool,
}

/// Whether the command could write a file, or create and remove names in a directory, if it were granted.
fn may_write(identity: &mut CallerIdentity, own_files: &OwnFiles, seen: &HostFile) -> Result<()> {
    let wanted = match seen.kind {
        FileKind::Directory => Access::WRITE_OK | Access::EXEC_OK,
        _ => Access::WRITE_OK,
    };
    let mount = take(identity, seen, Rights { exec: false, write: true })?;
    identity.as_command(|| own_files.may_access(&mount, wanted))
}

fn held(held: &VecDeque<(u64, HostFile)>, token: u64) -> Result<&HostFile> {
    let found = held.iter().rev().find(|(known, _)| *known == token);
    found
        .map(|(_, seen)| seen)
        .ok_or_else(|| SysError::new("token", token.to_string(), Errno::STALE))
}

/// A copy of the mount, with everything mounted below, that allows changes only if they were granted.
fn take(identity: &mut CallerIdentity, seen: &HostFile, rights: Rights) -> Result<OwnedFd> {
    let mount = mounts::open_tree(&seen.file, Path::new(""), Recursion::Recursive)?;
    let owner = Owner { uid: seen.stat.st_uid, gid: seen.stat.st_gid };
    identity.take_owner(&mount, &seen.path, owner)?;
    let mut set = MountAttrs::NOSUID | MountAttrs::NODEV;
    if !rights.write {
        set |= MountAttrs::RDONLY;
    }
    if !rights.exec {
        set |= MountAttrs::NOEXEC;
    }
    // A copy of a shared mount is shared, too.
    let attr = MountAttr { set, private: true, ..MountAttr::default() };
    mounts::mount_setattr(&mount, Recursion::Recursive, &attr)?;
    Ok(mount)
}

fn refused(path: &Path, errno: Errno) -> SysError {
    SysError::new("grant", path.display().to_string(), errno)
}

fn number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}
