//! The gate in the broker (GATE-1 to GATE-3): a call on an existing path continues at once; a call on a path
//! that may be missing only because it is not granted waits for the supervisor's answer.
//!
//! Whatever the answer, the kernel resolves the path again in the sandbox's view, so a path that is changed
//! meanwhile finds nothing that was not granted. Nor is anything refused that another thread has just created:
//! these calls write nothing, and where there is a gate, Landlock does not handle reading, so it never answers
//! them.

use crate::absent::Absent;
use crate::brokered_trees::BrokeredTrees;
use crate::call::{CWD, Call};
use crate::caller::Caller;
use crate::executing;
use crate::glance::{Glance, PathText};
use crate::lookout::Lookout;
use crate::message::BrokerMessage;
use crate::missing::{Missing, ScaffoldMounts};
use crate::path_call::{PathCall, PathCalls};
use crate::perform::Done;
use crate::perform::lent::Lent;
use crate::perform::socket;
use crate::place::ResolvedParent;
use crate::remote::Remote;
use crate::replacing::stands_on_a_mount_of_its_own;
use crate::serve::pending::{PendingCalls, Then, Waiting};
use crate::serve::unseen::{Unseen, is_in_one_directory, wants_of};
use crate::serve::{BrokerServer, name_of, number_of};
use crate::stand_ins::StandIns;
use palisade_bpf::{Arch, table};
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_plan::model;
use palisade_sys::Errno;
use palisade_sys::notify::{Listener, Notification, Response};
use rustix::fs::AtFlags;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Gate {
    calls: Arc<PathCalls>,
    openat2: Option<u32>,
    pub(super) text: PathText,
    remote: Arc<Remote>,
    pub(super) grounds: Arc<ScaffoldMounts>,
    absent: Absent,
    /// The same for changes: that a file does not exist says nothing about the directory it is created in.
    unchangeable: Absent,
    pub(super) pending: PendingCalls,
    pub(super) stand_ins: StandIns,
    private_home: Option<PathBuf>,
    /// Whether ungranted paths may be asked about.
    pub(super) asks: bool,
    /// Whether the caller sees names that we do not see: those of the gate's file system that were not granted.
    pub(super) has_stubs: bool,
}

impl Gate {
    /// For a process that sees what the command sees.
    pub(crate) fn new(
        gate: &model::Gate,
        listener: &'static Listener,
        proc: &'static OwnedFd,
    ) -> Self {
        Self {
            calls: Arc::new(PathCalls::of(Arch::native(), gate.executes)),
            openat2: table::number(Arch::native(), "openat2"),
            text: PathText::new(),
            remote: Arc::new(Remote::look_up(proc)),
            grounds: Arc::new(ScaffoldMounts::look_up(gate, proc)),
            absent: Absent::default(),
            unchangeable: Absent::default(),
            pending: PendingCalls::new(listener, proc),
            stand_ins: StandIns::default(),
            private_home: gate.private_home.clone(),
            asks: gate.asks_people(),
            has_stubs: gate.is_fuse(),
        }
    }

    pub(crate) fn parse(&self, notification: &Notification) -> Option<PathCall> {
        self.calls.parse(notification)
    }

    pub(crate) fn is_openat2(&self, notification: &Notification) -> bool {
        self.openat2 == Some(notification.number)
    }

    /// What another thread lets continue by itself.
    pub(crate) fn for_another_thread(&self) -> Lookout {
        Lookout {
            calls: Arc::clone(&self.calls),
            remote: Arc::clone(&self.remote),
            grounds: Arc::clone(&self.grounds),
            text: PathText::new(),
        }
    }

    /// Something came into being.
    pub(crate) fn forget_absent(&mut self) {
        self.absent.forget();
        self.unchangeable.forget();
    }

    /// Where a file system notices accesses, the supervisor also tells of those.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_idle() && !self.has_stubs
    }

    /// Identifies the caller. True if the call is deferred.
    pub(crate) fn makes_wait(&mut self, supervisor: &OwnedFd, caller: &Caller) -> bool {
        self.pending.notice(supervisor, caller.thread);
        self.pending.hold(&caller.notification)
    }

    pub(crate) fn glance(&mut self, caller: &Caller, call: &mut PathCall) -> Glance {
        self.text.glance(&self.remote, caller, call)
    }

    /// The path that was looked up last.
    pub(crate) fn path(&self) -> &[u8] {
        self.text.bytes()
    }

    fn unseen(&mut self, caller: &Caller, mut call: PathCall) -> Option<Unseen> {
        match self.glance(caller, &mut call) {
            Glance::GoOn if call.wants == Wants::Execute => {
                let missing = executing::unseen(caller, &call, self.text.bytes(), &self.grounds)?;
                Some(Unseen::new(Wants::Execute, missing, true))
            }
            Glance::GoOn => self.unlisted(caller, &call),
            Glance::Remote => None,
            Glance::Missing => self.missing(caller, &call),
        }
    }

    pub(crate) fn missing(&self, caller: &Caller, call: &PathCall) -> Option<Unseen> {
        let (text, follow) = (self.text.bytes(), call.follow);
        let typed = text.starts_with(b"/").then_some(text);
        if typed.is_some_and(|typed| self.absent.has(typed, follow)) {
            return None;
        }
        let missing = self.grounds.missing(|| caller.directory(call.path.dir), text, follow)?;
        if self.absent.has(&missing.path, follow) {
            return None;
        }
        let typed = typed.map(<[u8]>::to_vec);
        Some(Unseen { typed, ..Unseen::new(call.wants, missing, follow) })
    }

    /// A directory of ours that stands for one of the host, and would be listed.
    fn unlisted(&self, caller: &Caller, call: &PathCall) -> Option<Unseen> {
        let text = self.text.bytes();
        let missing = self.stand_ins.listed(caller, call, text, &self.grounds)?;
        if self.absent.has(&missing.path, call.follow) {
            return None;
        }
        let typed = text.starts_with(b"/").then(|| text.to_vec());
        Some(Unseen { typed, ..Unseen::new(call.wants, missing, call.follow) })
    }

    /// A call would create this name in our scaffolding: whether the host has something there.
    fn unseen_name(&self, caller: &Caller, place: &ResolvedParent, call: Call) -> Option<Unseen> {
        let missing = self.grounds.told(place.parent.as_fd(), place.name.as_bytes())?;
        self.to_write(missing, wants_of(caller, call), call.follows_target())
    }

    /// A call failed because its target was granted for reading only: whether it may be asked about.
    fn unwritable(
        &self,
        ground: &BrokeredTrees,
        place: &ResolvedParent,
        wants: Wants,
    ) -> Option<Unseen> {
        if !place.was_granted(ground) {
            return None;
        }
        // So that the directory itself is looked up, too.
        let existing = place.directory().parent()?.as_os_str().len();
        let path = place.path.as_os_str().as_bytes().to_vec();
        let is_told = path.len() < palisade_gate::MAX_PATH_BYTES;
        is_told.then_some(())?;
        let missing = Missing { path, existing, is_covered: false };
        let unseen = self.to_write(missing, wants, false)?;
        Some(Unseen { is_read_only: true, ..unseen })
    }

    /// A call found no directory to create something in: whether the host has it.
    pub(crate) fn unseen_parent(&mut self, caller: &Caller, call: Call) -> Option<Unseen> {
        // What is removed or changed may be the link itself.
        let follow = match wants_of(caller, call) {
            Wants::Remove | Wants::Change => call.follows_target(),
            _ => true,
        };
        let missing = match call {
            Call::Bind { address, length, .. } => {
                let path = socket::path_in(caller, address, length).ok()??;
                self.grounds.missing(|| caller.directory(CWD), &path, follow)?
            }
            call => {
                let mut look = PathCall::looking(call.target()?, follow, Wants::Write);
                if self.glance(caller, &mut look) != Glance::Missing {
                    return None;
                }
                let base = || caller.directory(look.path.dir);
                self.grounds.missing(base, self.text.bytes(), follow)?
            }
        };
        self.to_write(missing, wants_of(caller, call), follow)
    }

    /// Whether a hard link would cross mounts, which no answer can help. In the private home its directory may
    /// still be created.
    fn is_link_across_mounts(&self, call: Call, unseen: &Unseen) -> bool {
        let path = Path::new(OsStr::from_bytes(&unseen.missing.path));
        let is_private = self.private_home.as_ref().is_some_and(|home| path.starts_with(home));
        matches!(call, Call::Link { .. }) && unseen.wants == Wants::MoveInto && !is_private
    }

    fn to_write(&self, missing: Missing, wants: Wants, follow: bool) -> Option<Unseen> {
        let is_known = self.unchangeable.has(&missing.path, follow);
        (!is_known).then_some(Unseen::new(wants, missing, follow))
    }
}

impl BrokerServer<'_> {
    /// A call that names a path and writes nothing.
    pub(crate) fn pass(&mut self, caller: &Caller, call: PathCall) {
        let id = caller.notification.id;
        let Some(gate) = &mut self.gate else { return self.respond(id, Response::Continue) };
        if gate.makes_wait(&self.events.supervisor, caller) {
            return;
        }
        let then =
            if call.tests_writing.is_some() { Then::TestWriting(call) } else { Then::Kernel };
        match gate.unseen(caller, call) {
            Some(unseen) if unseen.lists_below_cover() => {
                self.list_on_top(id, &unseen.missing.path, call.close_on_exec);
            }
            Some(unseen) => self.wait_for_answer(caller, unseen, then),
            None if then == Then::Kernel => self.respond(id, Response::Continue),
            None => self.respond(id, self.test_writing(caller, call)),
        }
    }

    /// Whether a call that renames something has to wait because it is not visible yet.
    pub(crate) fn waits_for_source(&mut self, caller: &Caller, call: Call) -> bool {
        let Some(gate) = &mut self.gate else { return false };
        if gate.makes_wait(&self.events.supervisor, caller) {
            return true;
        }
        let (from, follow, wants) = match call {
            Call::Rename { from, to, .. } if is_in_one_directory(caller, from, to) => {
                (from, false, Wants::Rename)
            }
            Call::Rename { from, .. } => (from, false, Wants::Source),
            Call::Link { from, flags, .. } => {
                let flags = AtFlags::from_bits_retain(flags);
                (from, flags.contains(AtFlags::SYMLINK_FOLLOW), Wants::Source)
            }
            _ => return false,
        };
        let source = PathCall::looking(from, follow, wants);
        let Some(unseen) = gate.unseen(caller, source) else { return false };
        self.wait_for_answer(caller, unseen, Then::BrokerAsksTarget(call));
        true
    }

    /// Whether a call that writes has to wait because the host has something at its target: all calls on one
    /// path wait for the same question. `done` is the current result of the call; nothing has been created yet.
    pub(crate) fn waits_for_target(&mut self, caller: &Caller, call: Call, done: &Done) -> bool {
        let Some(gate) = &mut self.gate else { return false };
        let ground = &self.executor.map.ground;
        let unseen = match done {
            Done::Unseen(place) => gate.unseen_name(caller, place, call),
            Done::Answer(Response::Continue | Response::Fail(Errno::NOENT)) => {
                let unseen = gate.unseen_parent(caller, call);
                if unseen.as_ref().is_some_and(|unseen| gate.is_link_across_mounts(call, unseen)) {
                    // The caller copies instead, and that is asked about.
                    self.respond(caller.notification.id, Response::Fail(Errno::XDEV));
                    return true;
                }
                unseen
            }
            Done::Answer(Response::Fail(Errno::ROFS)) => {
                // Both names of a rename or a link are on one mount, otherwise it would be EXDEV.
                let (path, wants) = match call {
                    Call::Rename { from, .. } => (Some(from), Wants::Rename),
                    Call::Link { to, .. } => (Some(to), Wants::Make),
                    call => (call.target(), wants_of(caller, call)),
                };
                let follow = call.follows_target();
                let place = match call {
                    Call::Bind { address, length, .. } => {
                        self.executor.socket_place(caller, address, length)
                    }
                    _ if wants == Wants::Change => {
                        path.and_then(|path| self.executor.changed_place(caller, path, follow))
                    }
                    _ => path.and_then(|path| self.executor.place_of(caller, path, follow)),
                };
                place.and_then(|place| match gate.unwritable(ground, &place, wants) {
                    // A directory of ours stands for one of the host.
                    None if wants == Wants::Change => gate.unseen_name(caller, &place, call),
                    unseen => unseen,
                })
            }
            // A file that was granted by itself is on its own mount.
            Done::Answer(Response::Fail(Errno::BUSY)) => {
                let source = match call {
                    Call::Rename { from, .. } => self.executor.place_of(caller, from, false),
                    _ => None,
                };
                let wants = Some(wants_of(caller, call))
                    .filter(|wants| matches!(wants, Wants::Remove | Wants::Replace));
                match source.filter(stands_on_a_mount_of_its_own) {
                    Some(source) => gate.unwritable(ground, &source, Wants::Rename),
                    None => wants.and_then(|wants| {
                        let place = self.executor.place_of(caller, call.target()?, false)?;
                        gate.unwritable(ground, &place, wants)
                    }),
                }
            }
            _ => None,
        };
        let Some(unseen) = unseen else { return false };
        gate.pending.notice(&self.events.supervisor, caller.thread);
        self.wait_for_answer(caller, unseen, Then::Broker(call));
        true
    }

    /// The new name in a rename, as far as it is known beforehand.
    fn new_path(&self, caller: &Caller, call: Call, old: &[u8]) -> Option<Vec<u8>> {
        let Call::Rename { from, to, .. } = call else { return None };
        if !is_in_one_directory(caller, from, to) {
            let place = self.executor.place_of(caller, to, false)?;
            return Some(place.path.into_os_string().into_vec());
        }
        let written = caller.path(to.address).ok()?;
        let name = Path::new(OsStr::from_bytes(&written)).file_name()?;
        let new = Path::new(OsStr::from_bytes(old)).parent()?.join(name);
        Some(new.into_os_string().into_vec())
    }

    pub(crate) fn wait_for_answer(&mut self, caller: &Caller, unseen: Unseen, then: Then) {
        let new_path = match (then, unseen.wants) {
            (Then::Broker(call) | Then::BrokerAsksTarget(call), Wants::Rename) => {
                self.new_path(caller, call, &unseen.missing.path).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let Some(gate) = &mut self.gate else { return };
        if gate.pending.is_full() {
            gate.pending.count_unasked(&self.events.supervisor);
            return self.respond(caller.notification.id, Response::Fail(Errno::ACCESS));
        }
        let Unseen { wants, missing, follow, is_read_only, typed, is_second_look } = unseen;
        let Missing { path, existing, is_covered } = missing;
        let request = PathAccess {
            id: caller.notification.id,
            call: name_of(&caller.notification),
            wants,
            path: path.clone(),
            existing,
            is_covered,
            is_read_only,
            new_path,
            follow,
            may_be_served: false,
            pid: number_of(caller.thread),
            executable: caller.program(),
            cwd: caller.working_directory(),
        };
        // The process that was read may be another thread that got the pid.
        if caller.confirm().is_err() {
            return;
        }
        let waiting = Waiting {
            caller: caller.for_later(),
            paths: (path, typed),
            follow,
            wants,
            then,
            is_second_look,
            was_signalled: false,
        };
        gate.pending.wait_for_answer(&self.events.supervisor, request, waiting);
    }

    pub(super) fn obey(&mut self, reply: AccessReply, files: Vec<OwnedFd>) {
        let Some(gate) = &mut self.gate else { return };
        let request = reply.request();
        match reply {
            AccessReply::ShownOnce { path, directory } => {
                let path = PathBuf::from(OsString::from_vec(path));
                return self.executor.map.remember_directory(directory, path);
            }
            AccessReply::Ended { .. } => return gate.pending.hide(request),
            AccessReply::ContinueAndWatch { .. } => gate.pending.show(request),
            _ => {}
        }
        let Some(waiting) = gate.pending.take(request) else {
            if matches!(reply, AccessReply::ContinueAndWatch { .. }) {
                let over = BrokerMessage::Returned { request };
                gate.pending.post(&self.events.supervisor, &over);
            }
            return;
        };
        match reply {
            AccessReply::Absent { .. } => {
                let (path, typed) = waiting.paths;
                let known = match waiting.wants {
                    wants if wants.may_make() => Some(&mut gate.unchangeable),
                    // That it cannot be removed does not mean that it cannot be created.
                    wants if wants.is_change() => None,
                    _ => Some(&mut gate.absent),
                };
                if let Some(known) = known {
                    for path in typed.into_iter().chain([path]) {
                        known.learn(path, waiting.follow);
                    }
                }
                match waiting.then {
                    // The kernel would find the name, and ask again.
                    Then::Kernel | Then::TestWriting(_) if gate.has_stubs => {
                        self.respond(request, Response::Fail(Errno::NOENT));
                    }
                    then => self.go_on(&waiting.caller, then),
                }
            }
            AccessReply::Continue { .. } | AccessReply::Named { .. } => {
                gate.forget_absent();
                gate.stand_ins.granted();
                if waiting.wants == Wants::Enter {
                    gate.stand_ins.entered(&waiting.paths.0, &gate.grounds);
                }
                self.go_on_granted(&waiting);
            }
            AccessReply::ContinueAndWatch { .. } => {
                gate.forget_absent();
                gate.pending.watch(&self.events.supervisor, request, waiting.caller.thread);
                if matches!(waiting.wants, Wants::Open { .. } | Wants::Enter) {
                    let shown = Path::new(OsStr::from_bytes(&waiting.paths.0));
                    self.executor.map.remember_shown(shown);
                }
                self.go_on_granted(&waiting);
            }
            // No call waits for it.
            AccessReply::Ended { .. } | AccessReply::ShownOnce { .. } => {}
            AccessReply::Fail { errno, .. } => {
                let errno = Errno::from_raw_os_error(i32::from(errno));
                self.respond(request, Response::Fail(errno));
            }
            AccessReply::Pretend { .. } => self.respond(request, Response::Value(0)),
            AccessReply::File { .. } => self.give(&waiting, files),
            AccessReply::WriteOnce { path, .. } => self.write_once(&waiting, path, files),
        }
    }

    /// Performs the call through the descriptor that came for it. The view is not changed.
    fn write_once(&mut self, waiting: &Waiting, path: Vec<u8>, files: Vec<OwnedFd>) {
        let caller = &waiting.caller;
        let (Then::Broker(call), Some(lent)) = (waiting.then, files.into_iter().next()) else {
            return self.respond(caller.notification.id, Response::Fail(Errno::ACCESS));
        };
        let path = PathBuf::from(OsString::from_vec(path));
        let done = self.executor.perform_lent(caller, call, &Lent { file: lent, path });
        self.finish(caller, call, done);
    }

    fn go_on_granted(&mut self, waiting: &Waiting) {
        match waiting.then {
            Then::Kernel => self.go_on_in_kernel(waiting),
            then => self.go_on(&waiting.caller, then),
        }
    }

    fn go_on(&mut self, caller: &Caller, then: Then) {
        let id = caller.notification.id;
        match then {
            Then::Broker(call) => self.perform_now(caller, call),
            Then::BrokerAsksTarget(call) => self.perform(caller, call),
            Then::Read(reading) => self.open_for(caller, reading),
            Then::TestWriting(call) => self.respond(id, self.test_writing(caller, call)),
            Then::Kernel => self.respond(id, Response::Continue),
        }
    }

    fn give(&self, waiting: &Waiting, files: Vec<OwnedFd>) {
        let notification = &waiting.caller.notification;
        let id = notification.id;
        let call = self.gate.as_ref().and_then(|gate| gate.parse(notification));
        let close_on_exec = match (waiting.then, call) {
            (Then::Read(reading), _) => Some(reading.close_on_exec()),
            (_, Some(PathCall { wants: Wants::Open { .. }, close_on_exec, .. })) => {
                Some(close_on_exec)
            }
            _ => None,
        };
        let (Some(file), Some(close_on_exec)) = (files.into_iter().next(), close_on_exec) else {
            return self.respond(id, Response::Fail(Errno::ACCESS));
        };
        if let Err(errno) = self.hand_out(id, file, close_on_exec) {
            self.respond(id, Response::Fail(errno));
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
