//! Threads that serve callers in parallel, for commands whose processes wait for each other's calls.
//!
//! All of them receive from one listener. What is frequent and needs nothing but its own locks, a worker judges, performs
//! and answers by itself: opening files for writing, making directories, and looking at paths that are not asked about. For everything
//! else it holds the server, which is then one thread's as it is without workers: questions, messages, git
//! configuration, programs, refused calls. The first thread receives no calls any more. It attends to what the others
//! would have to poll for.
//!
//! Workers are started when calls queue up, so that a start costs nothing, and never end. They have the same rights, the same
//! filter and the same end as the process: whatever ends one of them ends the broker.

use super::attending::Attention;
use crate::call::{Asked, Call, Calls};
use crate::caller::{Caller, set_own_umask};
use crate::hand_out::hand_out;
use crate::lookout::Lookout;
use crate::native_dirs::{Extent, NativeDirs};
use crate::perform::{CallExecutor, Done};
use crate::serve::gate::Gate;
use crate::serve::{BrokerServer, has_hung_up, is_brokered};
use crate::unpoisoned::Unpoisoned as _;
use palisade_bpf::FilterSpec;
use palisade_sys::notify::{Listener, Notification, Response};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::{At as _, Errno, Mode, SysError, clone};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// More of them would mostly wait for the file system.
const MAX_WORKERS: usize = 4;
/// Asking whether a call waits costs as much as a tenth of one, so it is asked rarely.
const CALLS_PER_LOOK: u32 = 16;
/// How many more of the looks must have found a call that waited than found none.
const LOOKS_BEFORE_WORKERS: u32 = 8;

/// Between looks at what is still to be told at the end, and how many of them there are at most.
const PAUSE: Duration = Duration::from_micros(100);
const MAX_PAUSES: u32 = 10_000;

/// What workers know of each other's calls.
#[derive(Debug)]
pub(crate) struct ParallelCalls {
    /// Whether the next call depends on what the server has to do before it, so that none may pass by the server.
    ///
    /// It is set before the call is answered that made it so. Whatever is called because of that answer is received later, and
    /// the worker that receives it reads this after that. A call that a worker is performing meanwhile was made before.
    needs_order: AtomicBool,
    /// Held shared by a worker that performs or answers a call by itself.
    in_flight: RwLock<()>,
    /// Calls that a worker has attempted and not yet told the server of.
    attempted: AtomicUsize,
    /// Written to when the attending thread has to look again.
    wake_up: OwnedFd,
}

impl ParallelCalls {
    pub(crate) fn new() -> Result<Self, Errno> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake_up = rustix::event::eventfd(0, flags)?;
        Ok(Self {
            needs_order: AtomicBool::new(false),
            in_flight: RwLock::new(()),
            attempted: AtomicUsize::new(0),
            wake_up,
        })
    }

    /// Until this is dropped no worker performs a call, or has a file that it hands out. Only for a thread that holds the
    /// server: no worker waits for it then.
    pub(crate) fn wait_for_workers(&self) -> RwLockWriteGuard<'_, ()> {
        self.in_flight.write().held()
    }

    /// Says whether the calls that come now may pass by the server; only for the thread that holds it.
    pub(crate) fn set_order(&self, needs_order: bool) {
        self.needs_order.store(needs_order, Ordering::SeqCst);
    }

    /// Before the end: what was refused to the last process is reported. Only for a thread that does not hold the server.
    fn wait_for_attempted(&self) {
        for _ in 0..MAX_PAUSES {
            if self.attempted.load(Ordering::SeqCst) == 0 {
                return;
            }
            let _ = proc::poll(&mut [], Some(PAUSE));
        }
    }

    /// None if the server has to be asked.
    fn pass_by(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let in_flight = self.in_flight.read().held();
        (!self.needs_order.load(Ordering::SeqCst)).then_some(in_flight)
    }
}

/// Whether callers wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    calls: u32,
    looks: u32,
    has_one_cpu: bool,
}

impl Backlog {
    /// After a call was answered: how many workers are to be started.
    pub(crate) fn wanted_workers(&mut self, listener: &Listener) -> Option<usize> {
        self.calls += 1;
        if self.calls < CALLS_PER_LOOK || self.has_one_cpu {
            return None;
        }
        self.calls = 0;
        let looks = self.looks;
        self.looks = if is_waited_for(listener) { looks + 1 } else { looks.saturating_sub(1) };
        if self.looks < LOOKS_BEFORE_WORKERS {
            return None;
        }
        let workers = proc::usable_cpus().map_or(1, |cpus| cpus.len()).min(MAX_WORKERS);
        self.has_one_cpu = workers < 2;
        (!self.has_one_cpu).then_some(workers)
    }
}

/// Whether a call has arrived that nobody has received.
fn is_waited_for(listener: &Listener) -> bool {
    let mut set = [PollFd::new(listener, PollFlags::IN)];
    let polled = proc::poll(&mut set, Some(Duration::ZERO));
    polled.is_ok() && set[0].revents().contains(PollFlags::IN)
}

/// Serves until no caller is left.
pub(crate) fn serve_in_parallel(server: BrokerServer<'_>, calls: &Calls, count: usize) -> ! {
    // The answers so far need not have said it.
    server.order_calls();
    let workers: Vec<Worker<'_>> = (0..count).map(|_| Worker::new(&server, calls)).collect();
    let server = SharedServer {
        listener: server.listener,
        supervisor: Arc::clone(&server.events.supervisor),
        parallel: Arc::clone(&server.parallel),
        state: Mutex::new(ServerState { server, attended: Attention::default() }),
    };
    std::thread::scope(|scope| {
        let mut receivers = Receivers::FirstThread;
        for worker in workers {
            let server = &server;
            // Where no more threads are allowed, fewer will do.
            if std::thread::Builder::new().spawn_scoped(scope, || worker.work(server)).is_ok() {
                receivers = Receivers::Workers;
            }
        }
        server.attend(calls, receivers)
    })
}

/// Who receives calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receivers {
    Workers,
    FirstThread,
}

#[derive(Debug)]
struct ServerState<'p> {
    server: BrokerServer<'p>,
    /// What the first thread waits for.
    attended: Attention,
}

#[derive(Debug)]
struct SharedServer<'p> {
    listener: &'static Listener,
    supervisor: Arc<OwnedFd>,
    parallel: Arc<ParallelCalls>,
    state: Mutex<ServerState<'p>>,
}

impl<'p> SharedServer<'p> {
    fn lock(&self) -> MutexGuard<'_, ServerState<'p>> {
        self.state.lock().held()
    }

    /// Does what needs the server.
    fn with(&self, act: impl FnOnce(&mut BrokerServer<'p>)) {
        let mut state = self.lock();
        state.server.prepare();
        act(&mut state.server);
        state.server.order_calls();
        let attention = state.server.attention();
        if !state.attended.covers(&attention) {
            state.attended = attention;
            // If it fails, the counter is full, and the first thread is about to look.
            let _ = rustix::io::write(&self.parallel.wake_up, &1_u64.to_ne_bytes());
        }
    }

    /// Attends to everything but the receiving of calls.
    fn attend(&self, calls: &Calls, receivers: Receivers) -> ! {
        let arriving = match receivers {
            // A worker may receive it first, and then receiving would block. That the last caller is gone is always told.
            Receivers::Workers => PollFlags::empty(),
            Receivers::FirstThread => PollFlags::IN,
        };
        let _end = EndsBroker;
        loop {
            let (attention, closing) = {
                let mut state = self.lock();
                state.attended = state.server.attention();
                (state.attended, state.server.executor.staged.shared_events())
            };
            let mut set = vec![
                PollFd::new(self.listener, arriving),
                PollFd::new(&self.parallel.wake_up, PollFlags::IN),
            ];
            if attention.hears {
                set.push(PollFd::new(&self.supervisor, attention.of_supervisor()));
            }
            set.extend(closing.as_ref().map(|events| PollFd::new(events, PollFlags::IN)));
            if proc::poll_for_work(&mut set, attention.patience()).is_err() {
                continue;
            }
            let (arrived, woken) = (set[0].revents(), set[1].revents());
            let mail = if attention.hears { set[2].revents() } else { PollFlags::empty() };
            if !woken.is_empty() {
                let _ = rustix::io::read(&self.parallel.wake_up, &mut [0; 8]);
            }
            if arrived.contains(PollFlags::HUP) {
                self.parallel.wait_for_attempted();
            }
            let server = &mut self.lock().server;
            server.attend_to(arrived, mail);
            while let Some(held) = server.take_held() {
                server.answer(calls, &held);
            }
            if arrived.contains(PollFlags::IN) {
                let received = server.listener.receive();
                server.prepare();
                match received {
                    Ok(notification) => server.answer(calls, &notification),
                    Err(errno) => server.recover(errno),
                }
            }
            server.order_calls();
        }
    }
}

/// What a worker has for itself.
#[derive(Debug)]
struct Worker<'p> {
    calls: &'p Calls,
    filter: &'p FilterSpec,
    lookout: Option<Lookout>,
    native_dirs: Arc<NativeDirs>,
    executor: CallExecutor,
    host_proc: &'static OwnedFd,
    listener: &'static Listener,
}

/// A thread that ends, by a panic, takes the broker with it: the run has failed then, instead of going on with calls that
/// nobody answers. What ships aborts at a panic; this is for builds that unwind.
struct EndsBroker;

impl Drop for EndsBroker {
    fn drop(&mut self) {
        proc::exit_now(1);
    }
}

/// What became of a call without the server.
enum Tried {
    Answered,
    /// Nothing was done.
    LeftToServer,
    /// It is done, or cannot be; the server has to tell or to ask.
    Attempted(Box<(Caller, Call, Done)>),
}

impl<'p> Worker<'p> {
    fn new(server: &BrokerServer<'p>, calls: &'p Calls) -> Self {
        let mut executor = server.executor.for_another_thread();
        executor.asks_first = server.gate.is_some();
        Self {
            calls,
            filter: server.filter,
            lookout: server.gate.as_ref().map(Gate::for_another_thread),
            native_dirs: Arc::clone(&server.native_dirs),
            executor,
            host_proc: server.host_proc,
            listener: server.listener,
        }
    }

    fn work(mut self, server: &SharedServer<'p>) {
        let _end = EndsBroker;
        if let Err(error) = settle_in() {
            server.with(|server| server.fail(format!("starting a thread: {error}")));
        }
        loop {
            match self.listener.receive() {
                Ok(notification) => self.answer(server, &notification),
                Err(errno) => {
                    if errno == Errno::NOENT && has_hung_up(self.listener) {
                        server.parallel.wait_for_attempted();
                    }
                    server.with(|server| server.recover(errno));
                }
            }
        }
    }

    fn answer(&mut self, server: &SharedServer<'p>, notification: &Notification) {
        match self.try_answer(server, notification) {
            Tried::Answered => {}
            Tried::LeftToServer => server.with(|it| it.answer(self.calls, notification)),
            Tried::Attempted(attempted) => {
                let (caller, call, done) = *attempted;
                server.with(|it| it.follow_up_attempt(&caller, call, done));
                server.parallel.attempted.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// As far as that goes without the server.
    fn try_answer(&mut self, server: &SharedServer<'p>, notification: &Notification) -> Tried {
        let Some(caller) = Caller::of(notification, self.host_proc, self.listener) else {
            return Tried::LeftToServer;
        };
        let looked_for = self.lookout.as_ref().and_then(|it| it.calls.parse(notification));
        let call = match self.calls.parse(notification) {
            _ if looked_for.is_some() => None,
            Some(Asked::Perform(call)) => Some(call),
            _ => return Tried::LeftToServer,
        };
        let Some(_in_flight) = server.parallel.pass_by() else { return Tried::LeftToServer };
        match (looked_for, call) {
            (Some(call), _)
                if self.lookout.as_mut().is_some_and(|it| it.is_clear(&caller, call)) =>
            {
                let _ = self.listener.respond(notification.id, Response::Continue);
                Tried::Answered
            }
            (None, Some(call)) if is_brokered(self.filter, notification) => {
                match self.perform(&caller, call) {
                    None => Tried::Answered,
                    Some(Done::LeftToServer) => Tried::LeftToServer,
                    Some(done) => {
                        server.parallel.attempted.fetch_add(1, Ordering::SeqCst);
                        Tried::Attempted(Box::new((caller, call, done)))
                    }
                }
            }
            _ => Tried::LeftToServer,
        }
    }

    /// Performs a call and answers it; or returns what became of it, where the server has more to do.
    fn perform(&mut self, caller: &Caller, call: Call) -> Option<Done> {
        let id = caller.notification.id;
        if self.native_dirs.is_left_to_kernel(caller, call, Extent::Trees) {
            let _ = self.listener.respond(id, Response::Continue);
            return None;
        }
        if !call.may_go_beside_others() {
            return Some(Done::LeftToServer);
        }
        match self.executor.perform(caller, call) {
            Done::File(file) => {
                let close_on_exec = call.wants_close_on_exec();
                if let Err(errno) = hand_out(self.listener, id, file, close_on_exec) {
                    let _ = self.listener.respond(id, Response::Fail(errno));
                }
                None
            }
            // Of these the server may have to ask or tell.
            done @ Done::Answer(
                Response::Continue | Response::Fail(Errno::NOENT | Errno::ROFS | Errno::BUSY),
            ) => Some(done),
            Done::Answer(response) => {
                // A caller that is gone needs no answer.
                let _ = self.listener.respond(id, response);
                None
            }
            done => Some(done),
        }
    }
}

/// What belongs to a process, and is each thread's own here.
pub(super) fn settle_in() -> Result<(), SysError> {
    clone::unshare_umask_and_directory()?;
    set_own_umask(Mode::empty());
    // The first thread may have been in another one.
    rustix::process::chdir("/").call("chdir")
}
