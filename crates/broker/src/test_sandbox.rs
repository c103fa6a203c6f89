//! For tests: a command under a real filter, a real broker, and a supervisor whose part the test plays, in a
//! mount namespace of their own.

use crate::{BrokerMessage, BrokerStartup, CommandIdentity, Duties, TreeLocks, run_broker};
use palisade_bpf::{Arch, BaselineOptions, FilterSpec, Insn, Listening, Profile, broker_spec};
use palisade_gate::{AccessReply, PathAccess};
use palisade_plan::model::{Answers, Gate};
use palisade_policy::model::OnAsk;
use palisade_sys::clone::{CloneFlags, Forked, fork};
use palisade_sys::fdpass::{reveal_senders, send_with_fds, socketpair};
use palisade_sys::mounts::{self, MountAttrs};
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use palisade_sys::test_child::become_namespace_root;
use palisade_sys::{Pid, creds};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a test waits for comes in far less.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `ours` is the scaffolding; `theirs` stands for a part of the host that is shown; `behind` is the host's own
/// tree, where grants come from.
#[derive(Debug)]
pub(crate) struct TestSandbox {
    _root: tempfile::TempDir,
    pub(crate) ours: PathBuf,
    pub(crate) theirs: PathBuf,
    pub(crate) behind: PathBuf,
}

impl Drop for TestSandbox {
    /// A mount point cannot be removed.
    fn drop(&mut self) {
        for dir in [&self.ours, &self.theirs, &self.behind] {
            let _ = mounts::detach(dir);
        }
    }
}

impl TestSandbox {
    /// Only in a child of the test's own.
    pub(crate) fn set() -> Self {
        become_namespace_root(CloneFlags::NEWNS);
        mounts::make_private_recursive(Path::new("/")).unwrap();
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        let sandbox = Self {
            ours: place("ours"),
            theirs: place("theirs"),
            behind: place("behind"),
            _root: root,
        };
        for dir in [&sandbox.ours, &sandbox.theirs, &sandbox.behind] {
            std::fs::create_dir(dir).unwrap();
            mount_tmpfs(dir, MountAttrs::NONE);
        }
        sandbox
    }

    pub(crate) fn gate(&self) -> Gate {
        Gate {
            grounds: vec![self.ours.clone()],
            never: vec![self.ours.join("never")],
            secrets: Vec::new(),
            homes: Vec::new(),
            mounted: vec![self.theirs.clone(), "/".into()],
            executes: true,
            answers: Answers::OnAsk(OnAsk::Wait),
            ask_timeout_ms: 1000,
            most_questions: 1,
            above_project: Vec::new(),
            left_by_tools: Vec::new(),
            private_home: None,
            directories: Vec::new(),
            executes_written: true,
            known_callers: true,
            own: Vec::new(),
            trigger: palisade_plan::model::Trigger::Notify,
            trigger_reason: "",
        }
    }

    /// Starts a command under the gate.
    pub(crate) fn play(&self, command: impl FnOnce()) -> Run {
        self.play_under(BaselineOptions::new(Arch::native()), command)
    }

    /// The same, where the broker sees more than that.
    pub(crate) fn play_under(&self, options: BaselineOptions, command: impl FnOnce()) -> Run {
        let gate = self.gate();
        let options = BaselineOptions { gate_paths: true, gate_programs: true, ..options };
        let spec = Profile::baseline(options).spec();
        let (handshake, handshake_of_broker) = socketpair().unwrap();
        reveal_senders(&handshake_of_broker).unwrap();
        let (news, news_of_broker) = socketpair().unwrap();
        let supervisor_pid = rustix::process::getpid();
        let Forked::Parent { pid: broker, .. } = fork().unwrap() else {
            drop((handshake, news));
            let duties = Duties {
                transactions: Vec::new(),
                own_mounts: Vec::new(),
                guard: None,
                executables: None,
                gate: Some(&gate),
                filter: &spec,
                identity: CommandIdentity::Caller,
                landlock_truncates: false,
                records_operations: false,
                trees_of_others: Vec::new(),
            };
            run_broker(BrokerStartup {
                supervisor_pid,
                handshake: handshake_of_broker,
                supervisor: news_of_broker,
                locks: TreeLocks::default(),
                duties,
                confine,
            })
        };
        drop((handshake_of_broker, news_of_broker));
        let Forked::Parent { pid, pidfd } = fork().unwrap() else {
            creds::set_pdeathsig(sig::SIGKILL).unwrap();
            drop(news);
            enter(&spec, &handshake);
            drop(handshake);
            command();
            proc::exit_now(0)
        };
        drop(handshake);
        Run { broker, pid, pidfd, news }
    }
}

pub(crate) fn mount_tmpfs(at: &Path, attrs: MountAttrs) {
    let tmpfs = mounts::new_fs("tmpfs", &[], attrs).unwrap();
    mounts::move_mount(tmpfs, rustix::fs::CWD, at).unwrap();
}

fn enter(spec: &FilterSpec, handshake: &OwnedFd) {
    rustix::io::write(handshake, b"?").unwrap();
    creds::set_no_new_privs().unwrap();
    let program = spec.compile(Listening::Yes).unwrap();
    let flags = SeccompFlags::NEW_LISTENER | SeccompFlags::WAIT_KILLABLE_RECV;
    let listener = seccomp::install(&raw(program.instructions()), flags).unwrap().unwrap();
    send_with_fds(handshake, b"!", &[listener.as_fd()]).unwrap();
}

fn confine() -> Result<(), String> {
    let program = broker_spec(Arch::native()).compile(Listening::No).map_err(|e| e.to_string())?;
    let installed = seccomp::install(&raw(program.instructions()), SeccompFlags::NONE);
    installed.map(drop).map_err(|error| error.to_string())
}

fn raw(program: &[Insn]) -> Vec<SockFilter> {
    let raw = |insn: &Insn| SockFilter { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k };
    program.iter().map(raw).collect()
}

/// A command at work, seen from its supervisor.
#[derive(Debug)]
pub(crate) struct Run {
    broker: Pid,
    pub(crate) pid: Pid,
    pidfd: OwnedFd,
    news: OwnedFd,
}

impl Run {
    /// The next thing the broker says; none if the command ended without another word.
    pub(crate) fn next(&self) -> Option<BrokerMessage> {
        let mut set =
            [PollFd::new(&self.news, PollFlags::IN), PollFd::new(&self.pidfd, PollFlags::IN)];
        assert_ne!(proc::poll(&mut set, Some(TIMEOUT)).unwrap(), 0, "nobody says anything");
        if set[0].revents().is_empty() {
            return None;
        }
        match palisade_wire::receive(&self.news, &mut [0; BrokerMessage::MAX_BYTES]) {
            Ok(Received { message, .. }) => Some(message),
            Err(WireError::Closed) => {
                // It goes when the last of its callers has gone.
                let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
                let ready = proc::poll(&mut ended, Some(TIMEOUT)).unwrap();
                assert_eq!(ready, 1, "the broker is gone");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn request(&self) -> PathAccess {
        match self.next() {
            Some(BrokerMessage::PathAccess(request)) => request,
            other => panic!("no touch but {other:?}"),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "each is made where it is sent")]
    pub(crate) fn reply(&self, reply: AccessReply) {
        palisade_wire::send(&self.news, &reply, &[]).unwrap();
    }

    pub(crate) fn give(&self, request: u64, file: BorrowedFd<'_>) {
        palisade_wire::send(&self.news, &AccessReply::File { request }, &[file]).unwrap();
    }

    /// Lends a descriptor by which this call may write.
    pub(crate) fn lend(&self, request: &PathAccess, file: BorrowedFd<'_>) {
        let reply = AccessReply::WriteOnce { request: request.id, path: request.path.clone() };
        palisade_wire::send(&self.news, &reply, &[file]).unwrap();
    }

    /// Ends the play: the command must have ended well, without another word of the broker's.
    pub(crate) fn end(self) {
        assert_eq!(self.next(), None);
        assert_eq!(self.wait(), Status::Exited(0));
    }

    pub(crate) fn wait(&self) -> Status {
        proc::wait_pid_rusage(self.pid).unwrap().status
    }

    pub(crate) fn broker(&self) -> Pid {
        self.broker
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = proc::kill(self.broker, sig::SIGKILL);
        let _ = proc::pidfd_send_signal(self.pidfd.as_fd(), sig::SIGKILL);
    }
}
