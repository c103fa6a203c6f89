//! The main loop: receive a call, find out why the filter notified it, answer.

mod attending;
mod config_calls;
mod covered;
pub(crate) mod directory_moves;
pub(crate) mod gate;
mod openat2;
mod outbox;
mod pending;
mod reading;
mod stubs;
mod unseen;
mod workers;
mod write_test;

use crate::call::{Asked, Call, Calls, PathArg};
use crate::caller::Caller;
use crate::hand_out::hand_out;
use crate::message::{BlockedCall, BrokerMessage, NotExecuted, Protected};
use crate::native_dirs::{Extent, NativeDirs};
use crate::perform::{CallExecutor, Done};
use crate::program::{self, Meant};
use crate::serve::directory_moves::DirectoryMoves;
use crate::serve::gate::Gate;
use crate::serve::workers::Backlog;
pub(crate) use crate::serve::workers::ParallelCalls;
use crate::slow::Helpers;
use crate::verdict::Denied;
use palisade_bpf::{Arch, CallAnswer, FilterSpec, Notice, SeccompData, table};
use palisade_plan::model::Executables;
use palisade_sys::notify::{Listener, Notification, Response};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::{Errno, identity_of};
use palisade_wire::WireError;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a message may wait for room.
const SEND_TIMEOUT: Duration = Duration::from_millis(50);

/// Where events are sent.
#[derive(Debug)]
pub(crate) struct EventSender {
    pub(crate) supervisor: Arc<OwnedFd>,
    pub(crate) lost: u64,
    pub(crate) lost_suspicious: u64,
}

/// Everything that answers are made from. Once there are workers, each holds it while it needs it.
#[derive(Debug)]
pub(crate) struct BrokerServer<'p> {
    pub(crate) listener: &'static Listener,
    pub(crate) filter: &'p FilterSpec,
    pub(crate) executables: Option<&'p Executables>,
    pub(crate) gate: Option<Gate>,
    pub(crate) native_dirs: Arc<NativeDirs>,
    pub(crate) executor: CallExecutor,
    pub(crate) helpers: Helpers,
    pub(crate) moves: DirectoryMoves,
    pub(crate) events: EventSender,
    /// Directories that were reported as read-only.
    pub(crate) read_only: HashSet<PathBuf>,
    pub(crate) host_proc: &'static OwnedFd,
    /// Closed by the command's own exec.
    pub(crate) handshake: OwnedFd,
    pub(crate) parallel: Arc<ParallelCalls>,
}

pub(crate) fn serve(mut server: BrokerServer<'_>) -> ! {
    let calls = Calls::of(Arch::native());
    let mut backlog = Backlog::default();
    loop {
        if server.is_idle() {
            server.wait_for_call();
        } else {
            let can_receive = server.attend();
            while let Some(held) = server.take_held() {
                server.answer(&calls, &held);
            }
            if !can_receive {
                continue;
            }
        }
        let received = server.listener.receive();
        server.prepare();
        match received {
            Ok(notification) => server.answer(&calls, &notification),
            Err(errno) => server.recover(errno),
        }
        if let Some(count) = backlog.wanted_workers(server.listener) {
            workers::serve_in_parallel(server, &calls, count);
        }
    }
}

/// Why the filter notified it.
fn answer_of(filter: &FilterSpec, notification: &Notification) -> CallAnswer {
    filter.answer(&SeccompData {
        nr: notification.number,
        arch: Arch::native().audit_value(),
        instruction_pointer: 0,
        args: notification.args,
    })
}

fn is_brokered(filter: &FilterSpec, notification: &Notification) -> bool {
    matches!(answer_of(filter, notification), CallAnswer::Broker)
}

/// Whether no process is left whose calls could arrive.
fn has_hung_up(listener: &Listener) -> bool {
    let mut set = [PollFd::new(listener, PollFlags::empty())];
    let polled = proc::poll(&mut set, Some(Duration::ZERO));
    polled.is_ok() && set[0].revents().contains(PollFlags::HUP)
}

impl BrokerServer<'_> {
    /// Before every answer.
    fn prepare(&mut self) {
        // What a caller closed before this call is in place when it is answered.
        self.settle();
        self.helpers.tidy(self.listener);
        self.events.tell_of_lost();
    }

    /// After no call was received.
    fn recover(&mut self, errno: Errno) {
        match errno {
            // After the last caller is gone the kernel always answers this: stop polling.
            Errno::NOENT if has_hung_up(self.listener) => self.leave(),
            // The caller died before its call was received, or the wake-up was spurious.
            Errno::NOENT | Errno::INTR => {}
            errno => self.fail(format!("receiving a notification: {errno}")),
        }
    }

    fn fail(&mut self, why: String) -> ! {
        self.events.tell(&BrokerMessage::Failed(why));
        proc::exit_now(1)
    }

    /// Before every answer that lets a caller go on: says whether the calls that come because of it are to be answered
    /// one after the other, with what is done before each.
    fn order_calls(&self) {
        let shows = self.gate.as_ref().is_some_and(|gate| gate.pending.needs_order());
        let needs_order = shows
            || !self.executor.staged.is_empty()
            || !self.helpers.is_empty()
            || self.events.lost > 0;
        self.parallel.set_order(needs_order);
    }

    fn answer(&mut self, calls: &Calls, notification: &Notification) {
        let id = notification.id;
        let Some(caller) = self.caller(notification) else {
            return self.respond(id, Response::Fail(Errno::ACCESS));
        };
        if self.gate.as_ref().is_some_and(|gate| gate.is_openat2(notification)) {
            return self.read_only(&caller);
        }
        if let Some(call) = self.gate.as_ref().and_then(|gate| gate.parse(notification)) {
            return self.pass(&caller, call);
        }
        match answer_of(self.filter, notification) {
            CallAnswer::Refuse(refusal) => {
                let errno = Errno::from_raw_os_error(refusal.errno.into());
                self.tell_of_blocked(&caller, errno, refusal.notice);
                self.respond(id, Response::Fail(errno));
            }
            CallAnswer::Broker => match calls.parse(notification) {
                Some(Asked::Exec(path)) => self.exec(&caller, path),
                Some(Asked::Perform(call)) if self.is_left_to_kernel(&caller, call) => {
                    self.respond(id, Response::Continue);
                }
                Some(Asked::Perform(call)) => {
                    if !self.waits_for_source(&caller, call) {
                        self.perform(&caller, call);
                    }
                }
                None => self.respond(id, Response::Fail(Errno::NOSYS)),
            },
            // Neither is notified; if it were, nothing may be gained by it.
            CallAnswer::Allow | CallAnswer::KillProcess => {
                self.respond(id, Response::Fail(Errno::PERM));
            }
        }
    }

    fn is_left_to_kernel(&self, caller: &Caller, call: Call) -> bool {
        let shows = self.gate.as_ref().is_some_and(|gate| gate.pending.needs_order());
        let extent = if shows { Extent::Own } else { Extent::Trees };
        self.native_dirs.is_left_to_kernel(caller, call, extent)
    }

    fn caller(&self, notification: &Notification) -> Option<Caller> {
        Caller::of(notification, self.host_proc, self.listener)
    }

    pub(crate) fn perform(&mut self, caller: &Caller, call: Call) {
        self.executor.asks_first = self.gate.is_some();
        let done = self.attempt(caller, call);
        self.follow_up(caller, call, done);
    }

    /// The same for what a worker attempted. It does not hear the supervisor, so what it did not find may have been
    /// shown before the call.
    fn follow_up_attempt(&mut self, caller: &Caller, call: Call, done: Done) {
        let found_nothing = matches!(done, Done::Answer(_) | Done::Unseen(_));
        if found_nothing && self.gate.is_some() && self.hear_waiting() {
            self.perform(caller, call);
        } else {
            self.follow_up(caller, call, done);
        }
    }

    /// Answers a call that was attempted, or asks about it.
    fn follow_up(&mut self, caller: &Caller, call: Call, done: Done) {
        if self.waits_for_target(caller, call, &done) {
            return;
        }
        self.tell_of_read_only(caller, call, &done);
        match done {
            Done::Unseen(_) => self.perform_now(caller, call),
            done => self.finish(caller, call, done),
        }
    }

    fn attempt(&mut self, caller: &Caller, call: Call) -> Done {
        let was_staging = !self.executor.staged.is_empty();
        let done = self.executor.perform(caller, call);
        self.tell_of_staging(was_staging);
        done
    }

    /// Stops asking questions.
    pub(crate) fn perform_now(&mut self, caller: &Caller, call: Call) {
        self.executor.asks_first = false;
        let done = self.attempt(caller, call);
        self.finish(caller, call, done);
    }

    pub(crate) fn finish(&mut self, caller: &Caller, call: Call, done: Done) {
        let id = caller.notification.id;
        match done {
            // No longer requested; and the server's own executor leaves nothing to it.
            Done::Unseen(_) | Done::LeftToServer => self.respond(id, Response::Fail(Errno::NOENT)),
            Done::Answer(Response::Continue) => {
                let response = self.in_view(caller, call);
                self.respond(id, response);
            }
            Done::Answer(response) => self.respond(id, response),
            Done::Made(file) => {
                if let Some(file) = identity_of(&file) {
                    // Before its maker goes on, and asks for it again.
                    self.events.tell(&BrokerMessage::Made { request: id, file });
                }
                if let Some(gate) = &mut self.gate {
                    gate.forget_absent();
                }
                self.finish(caller, call, Done::File(file));
            }
            Done::File(file) => {
                let close_on_exec = call.wants_close_on_exec();
                if let Err(errno) = self.hand_out(id, file, close_on_exec) {
                    self.respond(id, Response::Fail(errno));
                }
            }
            Done::Later(opening) => {
                // The child answers by itself.
                self.parallel.set_order(true);
                let opened = {
                    // The child would keep open whatever a worker is handing out.
                    let _none = self.parallel.wait_for_workers();
                    self.helpers.open(self.listener, id, &opening, self.host_proc)
                };
                if let Err(errno) = opened {
                    self.respond(id, Response::Fail(errno));
                }
            }
            Done::Moving(movement) => {
                if !self.moves.have_begun() {
                    // From now on the supervisor waits for us at the end.
                    self.events.tell(&BrokerMessage::Staging { is_open: true });
                }
                self.moves.start(self.listener, id, movement);
            }
            Done::Denied { path, denied: Denied { rule, why } } => {
                self.events.tell(&BrokerMessage::Protected(Protected {
                    call: name_of(&caller.notification),
                    path: path.into_os_string().into_vec(),
                    rule,
                    why,
                    pid: number_of(caller.thread),
                    executable: caller.program(),
                }));
                self.respond(id, Response::Fail(Errno::ACCESS));
            }
            Done::Refused(errno) => {
                self.tell_of_blocked(caller, errno, Notice::Logged);
                self.respond(id, Response::Fail(errno));
            }
            Done::Busy { tree, is_first } => {
                if is_first {
                    let tree = tree.into_os_string().into_vec();
                    self.events.tell(&BrokerMessage::Busy { tree });
                }
                self.respond(id, Response::Fail(Errno::BUSY));
            }
            Done::Socket(path) => {
                let path = path.into_os_string().into_vec();
                self.events.tell(&BrokerMessage::Socket { path, pid: number_of(caller.thread) });
                self.respond(id, Response::Value(0));
            }
        }
    }

    /// Landlock decides about programs by location alone, so what it refuses here is what the policy refuses.
    ///
    /// The command's own exec is always allowed; until it succeeds (it may try several directories) only our
    /// own code runs inside, which no process can have changed.
    fn exec(&mut self, caller: &Caller, at: PathArg) {
        let id = caller.notification.id;
        let mut handshake = [PollFd::new(&self.handshake, PollFlags::IN)];
        if matches!(proc::poll(&mut handshake, Some(Duration::ZERO)), Ok(0)) {
            return self.respond(id, Response::Continue);
        }
        let typed = match caller.path(at.address) {
            Ok(path) => path,
            Err(errno) => return self.respond(id, Response::Fail(errno)),
        };
        let meant = program::meant(&self.executor.map, caller, at, &typed);
        match (self.executables, meant) {
            (Some(list), Meant::Program { path, inode }) => {
                if !program::is_listed(list, &path, inode) {
                    let path = path.into_os_string().into_vec();
                    self.tell_of_program(caller, path, "process.allowedExecutables");
                }
                self.respond(id, Response::Continue);
            }
            (Some(_), Meant::NoProgram(_) | Meant::Unknown) => self.respond(id, Response::Continue),
            // Not left to the kernel, which would read the path again.
            (None, Meant::NoProgram(errno)) => self.respond(id, Response::Fail(errno)),
            (None, Meant::Program { .. } | Meant::Unknown) => {
                self.tell_of_program(caller, typed, "process.allowExec");
                self.respond(id, Response::Fail(Errno::ACCESS));
            }
        }
    }

    fn tell_of_blocked(&mut self, caller: &Caller, errno: Errno, notice: Notice) {
        self.events.tell(&BrokerMessage::Blocked(BlockedCall {
            number: caller.notification.number,
            arguments: caller.notification.args,
            pid: number_of(caller.thread),
            executable: caller.program(),
            errno: u16::try_from(errno.raw_os_error()).unwrap_or_default(),
            suspicious: notice == Notice::Suspicious,
        }));
    }

    fn tell_of_program(&mut self, caller: &Caller, path: Vec<u8>, rule: &str) {
        self.events.tell(&BrokerMessage::NotExecuted(NotExecuted {
            call: name_of(&caller.notification),
            path,
            rule: rule.to_owned(),
            pid: number_of(caller.thread),
            executable: caller.program(),
        }));
    }

    /// Answers a call with a descriptor.
    pub(crate) fn hand_out(
        &self,
        id: u64,
        file: OwnedFd,
        close_on_exec: bool,
    ) -> Result<(), Errno> {
        self.order_calls();
        hand_out(self.listener, id, file, close_on_exec)
    }

    /// A caller that is gone needs no answer.
    pub(crate) fn respond(&self, id: u64, response: Response) {
        self.order_calls();
        let _ = self.listener.respond(id, response);
    }
}

impl EventSender {
    /// Waits briefly if there is no room: the source of a flood waits with us, but so do all other callers.
    pub(crate) fn tell(&mut self, message: &BrokerMessage) {
        let is_suspicious =
            matches!(message, BrokerMessage::Blocked(BlockedCall { suspicious: true, .. }));
        if !self.tell_of_lost() || !self.send(message) {
            self.lost += 1;
            self.lost_suspicious += u64::from(is_suspicious);
        }
    }

    /// Whether every loss has been reported.
    pub(crate) fn tell_of_lost(&mut self) -> bool {
        if self.lost > 0 {
            let (count, suspicious) = (self.lost, self.lost_suspicious);
            if !self.send(&BrokerMessage::Lost { count, suspicious }) {
                return false;
            }
            (self.lost, self.lost_suspicious) = (0, 0);
        }
        true
    }

    fn send(&self, message: &BrokerMessage) -> bool {
        let Ok(packet) = palisade_wire::encode(message) else { return false };
        let try_once = || palisade_wire::try_send(&self.supervisor, &packet);
        match try_once() {
            Err(WireError::NoRoom) => {
                let mut room = [PollFd::new(&self.supervisor, PollFlags::OUT)];
                let _ = proc::poll(&mut room, Some(SEND_TIMEOUT));
                try_once().is_ok()
            }
            sent => sent.is_ok(),
        }
    }
}

pub(crate) fn name_of(notification: &Notification) -> String {
    table::name(Arch::native(), notification.number).unwrap_or("?").to_owned()
}

pub(crate) fn number_of(thread: palisade_sys::Pid) -> u32 {
    thread.as_raw_pid().unsigned_abs()
}
