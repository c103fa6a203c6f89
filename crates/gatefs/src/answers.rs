//! Requests that read: what the sandbox has itself is answered at once, what it was not granted waits.

use crate::by_number::by_number;
use crate::callers::CallerClass;
use crate::handles::{Open, ToldDirectory};
use crate::host::HostFile;
use crate::nodes::{NameGrant, Node, Origin};
use crate::server::{ALWAYS, Answer, GateFsServer, reads_link};
use crate::stubs::{blank, kind_of, mirrored, named};
use crate::waiting::{Call, PendingCall};
use palisade_fuse::{
    Attributes, Entry, FileHandle, FileSystemStats, NodeId, OpenFlags, Opened, Reply, Request,
};
use palisade_gate::{AccessReply, Wants};
use palisade_plan::model::Nature;
use palisade_sys::{Errno, OFlags, Pid};
use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, fstat, fstatvfs, readlinkat};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What open(2) takes from the caller: the rest is ours or the kernel's.
const PASSED_ON: OFlags = OFlags::RDWR
    .union(OFlags::WRONLY)
    .union(OFlags::APPEND)
    .union(OFlags::NOATIME)
    .union(OFlags::TRUNC);
const WRITES: OFlags = OFlags::RDWR.union(OFlags::WRONLY).union(OFlags::TRUNC);
/// Names of extended attributes that the kernel asks for by itself; a tmpfs of ours has none of them.
const OF_KERNEL: [&[u8]; 2] = [b"security.", b"system."];

impl GateFsServer<'_> {
    /// Never waits: the kernel holds the directory's lock meanwhile.
    pub(crate) fn look_up(&mut self, request: &Request<'_>, name: &[u8]) -> Answer {
        let parent = request.node;
        self.node(parent)?;
        let path = self.nodes.path_of_name(parent, name).ok_or(Errno::NAMETOOLONG)?;
        // Also below a stub: the keeper may have made a private version there.
        match self.entry_of_own(parent, name) {
            Ok(entry) => return Ok(Some(entry)),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno),
        }
        let class = self.class(request)?;
        if class == CallerClass::Helper {
            // What the supervisor said before it let the broker go on.
            self.receive_replies();
        }
        let known = self.nodes.child(parent, name).and_then(|id| self.nodes.get(id));
        let held = known.filter(|node| node.origin == Origin::Stub && node.is_visible());
        let kind = match held.map(|node| node.kind) {
            // What is mounted there must not disappear, whatever the host has meanwhile.
            Some(kind) if kind != FileType::Symlink => kind,
            // The kernel detaches what is mounted on a name that it is told to be absent. Nothing is, unless the keeper looked the
            // name up and mounted something while the broker's thread has this answer and has not acted on it. Then the mount is
            // lost, and `granted_path` serves what was granted.
            None if class == CallerClass::Helper => return Err(Errno::NOENT),
            // Nobody is asked about it, so nobody is told that it is there.
            None if self.is_never_told(&path) => {
                if class == CallerClass::Inside {
                    self.report_look_at_own(request, &path);
                }
                return Err(Errno::NOENT);
            }
            // Nothing is mounted on a link: it is what the host has by now.
            _ => {
                let found = self.host.look(&self.identity, &path).ok_or(Errno::NOENT)?;
                if class == CallerClass::Helper && kind_of(&found) != FileType::Symlink {
                    return Err(Errno::NOENT);
                }
                if class == CallerClass::Inside && self.looks_absent(request, &path, &found) {
                    return Err(Errno::NOENT);
                }
                kind_of(&found)
            }
        };
        let id = self.nodes.look_up(parent, name, Origin::Stub, kind).ok_or(Errno::NOMEM)?;
        let node = self.nodes.get_mut(id).ok_or(Errno::STALE)?;
        // It is about to mount something there.
        node.is_held |= class == CallerClass::Keeper;
        let entry_valid = match node.kind {
            // One that was read for one call gets another number, and the host may have replaced it.
            FileType::Symlink => Duration::ZERO,
            _ if node.is_visible() => ALWAYS,
            _ => Duration::ZERO,
        };
        let attributes = self.stub_attributes(id);
        Ok(Some(Reply::entry(&Entry {
            node: id,
            generation: 0,
            attributes,
            entry_valid,
            attributes_valid: Duration::ZERO,
        })))
    }

    /// What the kernel is told of a stub without a question.
    fn stub_attributes(&self, id: NodeId) -> Attributes {
        let Some(node) = self.nodes.get(id) else {
            return blank(id, FileType::RegularFile, &self.identity);
        };
        if node.lent > 0
            && let Some(Ok(stat)) = self.handles.lent_of_node(id).map(|file| fstat(file.to_read()))
        {
            // Whoever reads it needs its size.
            return Attributes::from(&stat);
        }
        match node.kind == FileType::Directory && node.is_visible() {
            true => named(id, node.kind, &self.identity),
            false => blank(id, node.kind, &self.identity),
        }
    }

    /// A name of a ground, which exists.
    pub(crate) fn entry_of_own(
        &mut self,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Reply<'static>, Errno> {
        self.own_entry(parent, name).map(|entry| Reply::entry(&entry))
    }

    pub(crate) fn own_entry(&mut self, parent: NodeId, name: &[u8]) -> Result<Entry, Errno> {
        let path = self.nodes.path_of_name(parent, name).ok_or(Errno::NAMETOOLONG)?;
        // Another ground may be shown there.
        let stat = self.grounds.look(&self.identity, &path)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let id = self.nodes.look_up(parent, name, Origin::Own, kind).ok_or(Errno::NOMEM)?;
        let attributes_valid = self.attributes_hold(&path);
        let attributes = Attributes::from(&stat);
        Ok(Entry { node: id, generation: 0, attributes, entry_valid: ALWAYS, attributes_valid })
    }

    pub(crate) fn get_attributes(
        &mut self,
        request: &Request<'_>,
        handle: Option<FileHandle>,
    ) -> Answer {
        let id = request.node;
        if let Some(file) = handle.and_then(|handle| self.handles.readable(handle).ok()) {
            let attributes = Attributes::from(&fstat(file)?);
            return Ok(Some(Reply::attributes(&attributes, Duration::ZERO)));
        }
        if let Some(file) = self.handles.lent_to(id, request.pid) {
            // What it has open, whatever is there by now: fstat(2) comes without the handle.
            let attributes = Attributes::from(&fstat(file.to_read())?);
            return Ok(Some(Reply::attributes(&attributes, Duration::ZERO)));
        }
        let class = self.class(request)?;
        let origin = self.origin(id)?;
        if origin == Origin::Stub && class == CallerClass::Keeper {
            // The kernel may have known the names on the way, and not looked them up.
            self.nodes.hold(id);
        }
        match origin {
            Origin::Own => self.own_attributes(id).map(Some),
            Origin::Stub if class == CallerClass::Helper && !self.is_there(id) => {
                // The kernel still knows a name that was held for a mount.
                Err(Errno::NOENT)
            }
            Origin::Stub if class != CallerClass::Inside => {
                Ok(Some(Reply::attributes(&self.stub_attributes(id), Duration::ZERO)))
            }
            Origin::Stub => match self.granted_path(request) {
                Some(path) => {
                    let stat = self.host.look(&self.identity, &path).ok_or(Errno::NOENT)?;
                    let attributes = mirrored(&stat, &self.identity);
                    Ok(Some(Reply::attributes(&attributes, Duration::ZERO)))
                }
                None if self.is_name_known(id) => self.answer_named(id, &Call::GetAttr),
                None => self.ask(request, Call::GetAttr, Wants::Look),
            },
        }
    }

    /// Where the file of a node is by now: the sandbox may have a private version where the host has something. `ESTALE`
    /// if that needs another node; the kernel then looks the name up again.
    pub(crate) fn origin(&mut self, id: NodeId) -> Result<Origin, Errno> {
        let origin = self.node(id)?.origin;
        let Some(path) = self.nodes.path(id).filter(|_| origin == Origin::Stub) else {
            return Ok(origin);
        };
        let Ok(found) = self.grounds.look(&self.identity, &path) else { return Ok(origin) };
        match self.nodes.becomes_own(id, FileType::from_raw_mode(found.st_mode)) {
            true => Ok(Origin::Own),
            false => Err(Errno::STALE),
        }
    }

    pub(crate) fn own_attributes(&self, id: NodeId) -> Result<Reply<'static>, Errno> {
        let Some(path) = self.nodes.path(id) else {
            // Its name is gone; whoever has it open may still ask.
            let file = self.handles.own_of_node(id).ok_or(Errno::STALE)?;
            return Ok(Reply::attributes(&Attributes::from(&fstat(file)?), Duration::ZERO));
        };
        let stat = self.grounds.look(&self.identity, &path)?;
        Ok(Reply::attributes(&Attributes::from(&stat), self.attributes_hold(&path)))
    }

    /// The path of a stub, if the call may use what the host has there: it comes from below the mount of a grant.
    ///
    /// Only the path at this moment counts, never what was granted for the node: directories above it can be moved. That
    /// very path was granted, or one above it and nothing on the way from there is asked about on its own.
    fn granted_path(&self, request: &Request<'_>) -> Option<PathBuf> {
        let path = self.nodes.path(request.node)?;
        if self.waiting.is_allowed_once(request.pid, &path) {
            return Some(path);
        }
        let granted = path.ancestors().find(|above| self.granted.contains(*above))?;
        let mut below = path.ancestors().take_while(|one| *one != granted);
        let is_plain = below.all(|one| self.gate.nature(one) == Nature::Ordinary);
        is_plain.then_some(path)
    }

    pub(crate) fn open(&mut self, request: &Request<'_>, flags: u32) -> Answer {
        let id = request.node;
        let flags = OFlags::from_bits_retain(flags);
        if self.origin(id)? == Origin::Own {
            let path = self.nodes.path(id).ok_or(Errno::STALE)?;
            let flags = (flags & PASSED_ON) | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
            let file = self.grounds.open(&self.identity, &path, flags)?;
            return self.opened(id, Open::File(file)).map(Some);
        }
        if flags.intersects(WRITES) {
            return Err(Errno::ACCESS);
        }
        let kind = self.node(id)?.kind;
        if self.class(request)? != CallerClass::Inside {
            return Err(Errno::ACCESS);
        }
        match self.granted_path(request) {
            Some(path) => {
                let file = self.host.open(&self.identity, &path, kind)?;
                self.opened(id, Open::HostFile(file)).map(Some)
            }
            None => {
                self.ask(request, Call::Open, Wants::Open { directory: false, path_only: false })
            }
        }
    }

    pub(crate) fn open_directory(&mut self, request: &Request<'_>) -> Answer {
        let id = request.node;
        if self.origin(id)? == Origin::Own {
            let path = self.nodes.path(id).ok_or(Errno::STALE)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let directory = self.grounds.open(&self.identity, &path, flags)?;
            let open = match self.open_told(&path) {
                Some(host) => Open::Told(ToldDirectory::new(path, Some(directory), host)),
                None => Open::Directory(directory),
            };
            return self.opened(id, open).map(Some);
        }
        let may_list = self.node(id)?.name_grant != NameGrant::Enter && self.is_name_known(id);
        let is_inside = self.class(request)? == CallerClass::Inside;
        match self.granted_path(request).filter(|_| is_inside) {
            Some(path) => {
                let directory = self.host.open(&self.identity, &path, FileType::Directory)?;
                self.opened(id, Open::HostDirectory(directory)).map(Some)
            }
            None if is_inside && !may_list => {
                let wants = Wants::Open { directory: true, path_only: false };
                self.ask(request, Call::OpenDir, wants)
            }
            None => {
                let path = self.nodes.path(id).ok_or(Errno::STALE)?;
                let open = self.open_names(id, &path);
                self.opened(id, open).map(Some)
            }
        }
    }

    fn opened(&mut self, id: NodeId, open: Open) -> Result<Reply<'static>, Errno> {
        let handle = self.handles.add(id, open)?;
        Ok(Reply::opened(Opened { handle, flags: OpenFlags::empty() }))
    }

    pub(crate) fn access(&mut self, request: &Request<'_>, mask: u32) -> Answer {
        let id = request.node;
        if self.origin(id)? == Origin::Own {
            let path = self.nodes.path(id).ok_or(Errno::STALE)?;
            let file = self.grounds.pin(&self.identity, &path)?;
            may_access(file.as_fd(), mask)?;
            return Ok(Some(Reply::done()));
        }
        let node = self.node(id)?;
        let is_directory = node.kind == FileType::Directory;
        let is_visible = node.is_visible();
        let is_entered = node.name_grant == NameGrant::Enter;
        if self.class(request)? != CallerClass::Inside {
            // Something is mounted on it, or below it.
            let is_seen = is_directory && is_visible;
            return if is_seen { Ok(Some(Reply::done())) } else { Err(Errno::NOENT) };
        }
        if let Some(path) = self.granted_path(request) {
            let file = self.host.pin(&self.identity, &path)?;
            may_access(file.as_fd(), mask)?;
            return Ok(Some(Reply::done()));
        }
        let call = Call::Access { mask };
        if is_entered || self.nodes.is_way(id) {
            self.answer_named(id, &call)
        } else if is_directory && self.enters(request, mask) {
            self.ask(request, call, Wants::Enter)
        } else if self.is_name_known(id) {
            self.answer_named(id, &call)
        } else {
            self.ask(request, call, Wants::Look)
        }
    }

    /// Whether a call is chdir(2) or fchdir(2), for which the kernel asks the same as for access(2).
    fn enters(&self, request: &Request<'_>, mask: u32) -> bool {
        let call = request.pid.and_then(|thread| self.callers.call_name(&self.identity, thread));
        mask == Access::EXEC_OK.bits() && call.is_none_or(|call| matches!(call, "chdir" | "fchdir"))
    }

    /// Whether our own processes see that a stub is there, by now.
    fn is_there(&mut self, id: NodeId) -> bool {
        self.receive_replies();
        self.nodes.get(id).is_some_and(Node::is_visible)
    }

    /// Whether the sandbox sees that a stub is there, and nothing else of it.
    fn is_name_known(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(Node::is_named) || self.nodes.is_way(id)
    }

    pub(crate) fn read_link(&mut self, request: &Request<'_>) -> Answer {
        let id = request.node;
        let path = self.nodes.path(id).ok_or(Errno::STALE)?;
        if self.origin(id)? == Origin::Own {
            let link = self.grounds.pin(&self.identity, &path)?;
            return Ok(Some(Reply::data(readlinkat(&link, c"", Vec::new())?.into_bytes())));
        }
        let is_inside = self.class(request)? == CallerClass::Inside;
        let node = self.node(id)?;
        let is_told = match is_inside {
            true => node.is_named() || self.granted_path(request).is_some(),
            false => node.is_visible(),
        };
        if is_told {
            return self.link_target(&path).map(Some);
        }
        if !is_inside {
            return Err(Errno::NOENT);
        }
        let call = request.pid.and_then(|thread| self.callers.call_name(&self.identity, thread));
        let is_read = call.is_some_and(reads_link);
        let wants = match self.gate.nature(&path) {
            // To read where it leads is a question, to go there is not.
            Nature::Ordinary if is_read => Wants::Look,
            Nature::Ordinary => Wants::Follow,
            // What a secret name leads to is a secret, wherever it is.
            Nature::Secret => Wants::Look,
            Nature::Never => return Err(Errno::NOENT),
        };
        self.ask(request, Call::ReadLink, wants)
    }

    fn link_target(&mut self, path: &Path) -> Result<Reply<'static>, Errno> {
        self.host.link_target(&self.identity, path).map(Reply::data)
    }

    pub(crate) fn get_xattr(&mut self, request: &Request<'_>, name: &[u8], size: u32) -> Answer {
        let id = request.node;
        if OF_KERNEL.iter().any(|kind| name.starts_with(kind))
            && self.node(id)?.origin == Origin::Own
        {
            return Err(Errno::NODATA);
        }
        let call = Call::GetXattr { name: name.to_vec(), size };
        self.xattr(request, call)
    }

    pub(crate) fn list_xattr(&mut self, request: &Request<'_>, size: u32) -> Answer {
        self.xattr(request, Call::ListXattr { size })
    }

    fn xattr(&mut self, request: &Request<'_>, call: Call) -> Answer {
        let id = request.node;
        if self.origin(id)? == Origin::Own {
            let path = self.nodes.path(id).ok_or(Errno::STALE)?;
            let file = self.grounds.pin(&self.identity, &path)?;
            return answer_xattr(file.as_fd(), &call).map(Some);
        }
        let is_inside = self.class(request)? == CallerClass::Inside;
        match self.granted_path(request).filter(|_| is_inside) {
            Some(path) => {
                let file = self.host.pin(&self.identity, &path)?;
                answer_xattr(file.as_fd(), &call).map(Some)
            }
            None if is_inside && !self.is_name_known(id) => self.ask(request, call, Wants::Look),
            None => self.answer_named(id, &call),
        }
    }

    pub(crate) fn stat_fs(&mut self, request: &Request<'_>) -> Answer {
        let id = request.node;
        let waits = self.node(id)?.origin == Origin::Stub && !self.is_name_known(id);
        if waits
            && self.class(request)? == CallerClass::Inside
            && self.granted_path(request).is_none()
        {
            return self.ask(request, Call::StatFs, Wants::Look);
        }
        self.answer_named(id, &Call::StatFs)
    }

    /// Answers a call about something of which only the name was granted.
    fn answer_named(&mut self, id: NodeId, call: &Call) -> Answer {
        let path = self.nodes.path(id).ok_or(Errno::STALE)?;
        let kind = self.node(id)?.kind;
        if self.gate.is_told_by_rule(&path)
            && let Some(told) = self.answer_told(&path, call)
        {
            return told;
        }
        Ok(Some(match call {
            Call::GetAttr => Reply::attributes(&named(id, kind, &self.identity), Duration::ZERO),
            Call::OpenDir => {
                let open = self.open_names(id, &path);
                self.opened(id, open)?
            }
            Call::Access { mask } if mask & Access::WRITE_OK.bits() != 0 => {
                return Err(Errno::ROFS);
            }
            Call::Access { .. } => Reply::done(),
            Call::ReadLink => self.link_target(&path)?,
            Call::GetXattr { .. } => return Err(Errno::NODATA),
            Call::ListXattr { size: 0 } => Reply::xattr_size(0),
            Call::ListXattr { .. } => Reply::data(Vec::new()),
            Call::StatFs => {
                let ground = self.grounds.root_of(&path)?;
                Reply::statfs(&FileSystemStats::from(&fstatvfs(ground)?))
            }
            Call::Open => return Err(Errno::ACCESS),
        }))
    }

    /// Answers a call about something that static mode shows to everybody, as far as attributes alone are asked for.
    fn answer_told(&mut self, path: &Path, call: &Call) -> Option<Answer> {
        let answer = match call {
            Call::GetAttr => {
                let stat = self.host.look(&self.identity, path).ok_or(Errno::NOENT);
                stat.map(|stat| Reply::attributes(&mirrored(&stat, &self.identity), Duration::ZERO))
            }
            Call::Access { mask } if mask & Access::WRITE_OK.bits() != 0 => Err(Errno::ROFS),
            Call::Access { mask } => {
                let file = self.host.pin(&self.identity, path);
                file.and_then(|file| may_access(file.as_fd(), *mask)).map(|()| Reply::done())
            }
            Call::GetXattr { .. } | Call::ListXattr { .. } => {
                let file = self.host.pin(&self.identity, path);
                file.and_then(|file| answer_xattr(file.as_fd(), call))
            }
            Call::Open | Call::OpenDir | Call::ReadLink | Call::StatFs => return None,
        };
        Some(answer.map(Some))
    }

    /// Answers a call from the file that was granted for it.
    fn answer_lent(&mut self, id: NodeId, (call, thread): (&Call, Pid), file: HostFile) -> Answer {
        self.identity.on_host()?;
        Ok(Some(match call {
            Call::GetAttr => {
                Reply::attributes(&Attributes::from(&fstat(file.to_read())?), Duration::ZERO)
            }
            Call::Open => {
                let reply = self.opened(id, Open::Lent(file, thread))?;
                if let Some(node) = self.nodes.get_mut(id) {
                    node.lent += 1;
                }
                reply
            }
            Call::Access { mask } if mask & Access::WRITE_OK.bits() != 0 => {
                return Err(Errno::ROFS);
            }
            Call::Access { mask } => {
                may_access(file.to_read(), *mask)?;
                Reply::done()
            }
            Call::GetXattr { .. } | Call::ListXattr { .. } => answer_xattr(file.to_read(), call)?,
            Call::StatFs => Reply::statfs(&FileSystemStats::from(&fstatvfs(file.to_read())?)),
            Call::OpenDir | Call::ReadLink => return Err(Errno::ACCESS),
        }))
    }

    /// From now on everybody may know what the call wanted to know.
    fn grant_name(&mut self, id: NodeId, call: &Call) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let is_directory = node.kind == FileType::Directory;
        node.name_grant = match (call, node.name_grant) {
            // It was asked whether it may be listed, and the answer was what is there by now.
            (Call::OpenDir, _) => NameGrant::Exists,
            (Call::Access { .. }, _) if is_directory => NameGrant::Enter,
            (_, NameGrant::Enter) => NameGrant::Enter,
            _ => NameGrant::Exists,
        };
    }

    /// Carries out what the supervisor decided.
    pub(crate) fn carry_out(&mut self, reply: &AccessReply, file: Option<OwnedFd>) {
        let request = reply.request();
        let Some(pending) = self.waiting.take(request) else {
            if matches!(reply, AccessReply::ContinueAndWatch { .. }) {
                let over = crate::message::GateFsMessage::Returned { request };
                self.waiting.post(&self.supervisor, &over);
            }
            return;
        };
        let PendingCall { unique, node: id, call, thread } = pending;
        let answer = match reply {
            // The kernel walks again, and finds what was mounted. It does not do that for a link.
            AccessReply::Continue { .. } if call == Call::ReadLink => {
                self.grant_name(id, &call);
                self.answer_named(id, &call)
            }
            AccessReply::Continue { .. } => Err(Errno::STALE),
            AccessReply::Named { for_one_call: true, .. } => self.answer_named(id, &call),
            AccessReply::Named { for_one_call: false, .. } => {
                self.grant_name(id, &call);
                self.answer_named(id, &call)
            }
            AccessReply::ContinueAndWatch { .. } if call == Call::ReadLink => {
                let over = crate::message::GateFsMessage::Returned { request };
                self.waiting.post(&self.supervisor, &over);
                self.answer_named(id, &call)
            }
            AccessReply::ContinueAndWatch { .. } => {
                // Without a path there is nothing to find, and nothing is served.
                let path = self.nodes.path(id).unwrap_or_default();
                self.waiting.goes_on(request, thread, path);
                match self.callers.call(&self.identity, thread) {
                    Some(call) => self.watcher.watch(request, thread, call),
                    None => self.waiting.has_returned(&self.supervisor, request),
                }
                Err(Errno::STALE)
            }
            AccessReply::File { .. } => match file {
                Some(file) => self.answer_lent(id, (&call, thread), HostFile::lent(file)),
                None => Err(Errno::ACCESS),
            },
            AccessReply::Absent { .. } => Err(Errno::NOENT),
            AccessReply::Fail { errno, .. } => Err(Errno::from_raw_os_error(i32::from(*errno))),
            AccessReply::Ended { .. }
            | AccessReply::ShownOnce { .. }
            | AccessReply::WriteOnce { .. }
            | AccessReply::Pretend { .. } => Err(Errno::ACCESS),
        };
        let is_for_all = self.nodes.get(id).is_some_and(Node::is_named);
        if call == Call::ReadLink && answer.is_ok() && !is_for_all {
            self.nodes.renew(id);
        }
        match answer {
            Ok(Some(reply)) => self.reply(unique, &reply),
            Ok(None) => {}
            Err(errno) => self.reply(unique, &Reply::error(errno)),
        }
    }
}

/// With the rights that we act with (faccessat2(2)).
fn may_access(file: BorrowedFd<'_>, mask: u32) -> Result<(), Errno> {
    let wanted = Access::from_bits_truncate(mask);
    accessat(CWD, by_number(file), wanted, AtFlags::EACCESS)
}

fn answer_xattr(file: BorrowedFd<'_>, call: &Call) -> Result<Reply<'static>, Errno> {
    let path = by_number(file);
    let size = match call {
        Call::GetXattr { size, .. } | Call::ListXattr { size } => *size,
        _ => return Err(Errno::INVAL),
    };
    let mut value = vec![0; usize::try_from(size).unwrap_or(0).min(MAX_XATTR_BYTES)];
    let length = match call {
        Call::GetXattr { name, .. } => rustix::fs::getxattr(&path, &**name, &mut *value)?,
        _ => rustix::fs::listxattr(&path, &mut *value)?,
    };
    if size == 0 {
        return Ok(Reply::xattr_size(u32::try_from(length).unwrap_or(u32::MAX)));
    }
    value.truncate(length);
    Ok(Reply::data(value))
}

/// `XATTR_SIZE_MAX`
const MAX_XATTR_BYTES: usize = 64 << 10;
