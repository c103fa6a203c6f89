//! For tests: a small sandbox, made of the kernel's own parts, and a keeper beside it.
//!
//! Its root is a read-only tmpfs that has nothing of the stage's directory on the host but `home`, a
//! private tmpfs, and `bound`, which is the host's and can be written. The command is a function of the
//! test that answers numbered questions; it has no capability, as a real one.
#![allow(clippy::panic, reason = "a stage that cannot be set fails its test")]

use crate::identity::{CallerIdentity, Root};
use crate::message::{Change, Found, KeeperEvent, KeeperRequest, What};
use crate::sandbox_mounts::Layout;
use crate::startup::{KeeperStartup, run_keeper};
use palisade_plan::model::Owner;
use palisade_sys::clone::{CloneFlags, Forked, clone3, fork, unshare};
use palisade_sys::creds::{self, IdKind, MapLine, write_map};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::proc::{exit_now, sig};
use palisade_sys::seccomp::{self, SeccompFlags, SockFilter};
use palisade_sys::test_child::in_child;
use palisade_sys::{At as _, CWD, Errno, Mode, OFlags, Pid, errno_name};
use palisade_wire::WireMessage as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Nobody's, as root gives its commands.
const COMMAND: u32 = 1_900_000_777;

pub(crate) struct TestSandbox {
    command: OwnedFd,
    keeper: OwnedFd,
    /// The stage's directory on the host.
    pub(crate) host: PathBuf,
    last_token: u64,
}

/// Sets the stage and plays on it.
pub(crate) fn play(command: impl Fn(&Path, u64) -> String, test: impl FnOnce(&mut TestSandbox)) {
    // Not below a home directory that only its owner can enter: another user walks it, too.
    let host = tempfile::tempdir_in("/var/tmp").unwrap();
    // The command of a run that root started is a stranger in root's directories.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(host.path(), mode).unwrap();
    let path = fs::canonicalize(host.path()).unwrap();
    for directory in ["home", "bound"] {
        fs::create_dir(path.join(directory)).unwrap();
    }
    in_child(|| {
        if am_root() {
            // A host of its own, so that a test may mount on it.
            unshare(CloneFlags::NEWNS).unwrap();
            mounts::make_private_recursive(Path::new("/")).unwrap();
        }
        let (command, pid) = start_sandbox(&command, &path);
        let keeper = start_keeper(pid, &path);
        test(&mut TestSandbox { command, keeper, host: path, last_token: 0 });
    });
}

pub(crate) fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn start_sandbox(command: &dyn Fn(&Path, u64) -> String, host: &Path) -> (OwnedFd, Pid) {
    let (ours, theirs) = socketpair().unwrap();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let is_root = am_root();
    match clone3(CloneFlags::NEWUSER | CloneFlags::NEWNS | CloneFlags::NEWPID).unwrap() {
        Forked::Child => {
            drop(ours);
            if is_root {
                recv_with_fds(&theirs, &mut [0]).unwrap();
                creds::setgroups_empty().unwrap();
                creds::setresgid(1000).unwrap();
                creds::setresuid(1000).unwrap();
                creds::set_dumpable(true).unwrap();
            } else {
                creds::deny_setgroups(None).unwrap();
                let line = |id| [MapLine { inside: id, outside: id, count: 1 }];
                write_map(None, IdKind::Gid, &line(gid)).unwrap();
                write_map(None, IdKind::Uid, &line(uid)).unwrap();
            }
            creds::set_pdeathsig(sig::SIGKILL).unwrap();
            build_view(host);
            creds::drop_all_capabilities().unwrap();
            send_with_fds(&theirs, b"ready", &[]).unwrap();
            let mut number = [0; 8];
            while let Ok((8, _)) = recv_with_fds(&theirs, &mut number) {
                let mut said = command(host, u64::from_le_bytes(number));
                said.push('.');
                send_with_fds(&theirs, said.as_bytes(), &[]).unwrap();
            }
            exit_now(0)
        }
        Forked::Parent { pid, .. } => {
            drop(theirs);
            if is_root {
                let line = [MapLine { inside: 1000, outside: COMMAND, count: 1 }];
                write_map(Some(pid), IdKind::Gid, &line).unwrap();
                write_map(Some(pid), IdKind::Uid, &line).unwrap();
                send_with_fds(&ours, b"!", &[]).unwrap();
            }
            let mut packet = [0; 64];
            let (length, _) = recv_with_fds(&ours, &mut packet).unwrap();
            assert_eq!(&packet[..length], b"ready");
            (ours, pid)
        }
    }
}

pub(crate) fn tmpfs(mode: &str) -> OwnedFd {
    let options = [FsOption::Text("mode", mode), FsOption::Text("size", "1m")];
    mounts::new_fs("tmpfs", &options, MountAttrs::NOSUID | MountAttrs::NODEV).unwrap()
}

fn build_view(host: &Path) {
    mounts::make_private_recursive(Path::new("/")).unwrap();
    let [home, bound] = places(host);
    let project = mounts::open_tree(CWD, &bound, Recursion::Recursive).unwrap();
    let proc = mounts::new_fs("proc", &[], MountAttrs::NOSUID | MountAttrs::NODEV).unwrap();
    let root = tmpfs("0755");
    mounts::move_mount(&root, CWD, Path::new("/")).unwrap();
    rustix::process::fchdir(&root).unwrap();
    mounts::pivot_root(Path::new("."), Path::new(".")).unwrap();
    mounts::detach(Path::new(".")).unwrap();
    std::env::set_current_dir("/").unwrap();
    for (mount, place) in [(proc, Path::new("/proc")), (tmpfs("0700"), &home), (project, &bound)] {
        fs::create_dir_all(place).unwrap();
        mounts::move_mount(&mount, CWD, place).unwrap();
    }
    let sealed = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
    mounts::mount_setattr(&root, Recursion::Single, &sealed).unwrap();
}

fn places(host: &Path) -> [PathBuf; 2] {
    ["home", "bound"].map(|name| host.join(name))
}

fn start_keeper(sandbox: Pid, host: &Path) -> OwnedFd {
    let [home, bound] = places(host);
    let namespace = |kind: &str| -> OwnedFd {
        fs::File::open(format!("/proc/{}/ns/{kind}", sandbox.as_raw_pid())).unwrap().into()
    };
    let (user_namespace, mount_namespace) = (namespace("user"), namespace("mnt"));
    let (ours, supervisor) = socketpair().unwrap();
    let supervisor_pid = rustix::process::getpid();
    match fork().unwrap() {
        Forked::Child => {
            drop(ours);
            run_keeper(KeeperStartup {
                supervisor_pid,
                supervisor,
                user_namespace,
                mount_namespace,
                layout: Layout {
                    // The last two are none, and must not be taken for one.
                    grounds: vec!["/".into(), home.clone(), bound.clone(), "/missing".into()],
                    mounted: vec![home, bound, "/proc".into()],
                    stores: Vec::new(),
                },
                identity: identity(),
                confine,
            })
        }
        Forked::Parent { .. } => ours,
    }
}

pub(crate) fn identity() -> CallerIdentity {
    if !am_root() {
        return CallerIdentity::OrdinaryUser;
    }
    CallerIdentity::Root(Root {
        command: Owner { uid: COMMAND, gid: COMMAND },
        unmapped: BTreeSet::new(),
        map: Box::new(map),
        maps: BTreeMap::new(),
    })
}

fn map(owner: Owner) -> palisade_sys::Result<OwnedFd> {
    let (ours, theirs) = socketpair()?;
    let Forked::Parent { pid, .. } = clone3(CloneFlags::NEWUSER)? else {
        drop(ours);
        let _ = recv_with_fds(&theirs, &mut [0]);
        exit_now(0)
    };
    drop(theirs);
    let line = |inside| [MapLine { inside, outside: COMMAND, count: 1 }];
    write_map(Some(pid), IdKind::Gid, &line(owner.gid))?;
    write_map(Some(pid), IdKind::Uid, &line(owner.uid))?;
    let path = format!("/proc/{}/ns/user", pid.as_raw_pid());
    let map = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    drop(ours);
    palisade_sys::proc::wait_pid_rusage(pid)?;
    map.at("open", Path::new(&path))
}

/// The filter that a real one has.
fn confine() -> Result<(), String> {
    let filter = palisade_bpf::keeper_spec(palisade_bpf::Arch::native());
    let program = filter.compile(palisade_bpf::Listening::No).map_err(|error| error.to_string())?;
    let instruction = |insn: &palisade_bpf::Insn| SockFilter {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    };
    let program: Vec<SockFilter> = program.instructions().iter().map(instruction).collect();
    seccomp::install(&program, SeccompFlags::NONE).map(drop).map_err(|error| error.to_string())
}

impl TestSandbox {
    /// What the command answers.
    pub(crate) fn command(&self, question: u64) -> String {
        send_with_fds(&self.command, &question.to_le_bytes(), &[]).unwrap();
        let mut packet = [0; 4096];
        let (length, _) = recv_with_fds(&self.command, &mut packet).unwrap();
        assert!(length > 0, "the command died at {question}");
        String::from_utf8_lossy(&packet[..length - 1]).into_owned()
    }

    /// What the keeper answers.
    pub(crate) fn request(&self, request: &KeeperRequest) -> (KeeperEvent, Option<OwnedFd>) {
        palisade_wire::send(&self.keeper, request, &[]).unwrap();
        let mut buffer = vec![0; KeeperEvent::MAX_BYTES];
        let received = palisade_wire::receive(&self.keeper, &mut buffer);
        let mut received = received.unwrap_or_else(|error| panic!("{request:?}: {error}"));
        (received.message, received.descriptors.pop())
    }

    pub(crate) fn try_look(&mut self, path: &Path, follow: bool) -> KeeperEvent {
        self.last_token += 1;
        let path = path.as_os_str().as_bytes().to_vec();
        self.request(&KeeperRequest::Look {
            token: self.last_token,
            path,
            follow,
            execute: false,
            change: Change::Nothing,
        })
        .0
    }

    pub(crate) fn look(&mut self, path: impl AsRef<Path>) -> Found {
        match self.try_look(path.as_ref(), true) {
            KeeperEvent::Found(found) => found,
            other => panic!("{}: {other:?}", path.as_ref().display()),
        }
    }

    pub(crate) fn try_graft(&mut self, path: impl AsRef<Path>, exec: bool) -> Result<u64, String> {
        let token = self.look(path).token;
        self.graft_found(token, What::Found, exec)
    }

    pub(crate) fn graft(&mut self, path: impl AsRef<Path>) -> u64 {
        self.try_graft(path, false).unwrap()
    }

    pub(crate) fn graft_found(&self, token: u64, what: What, exec: bool) -> Result<u64, String> {
        match self.request(&KeeperRequest::Graft { token, what, exec, write: false }).0 {
            KeeperEvent::Grafted { graft, .. } => Ok(graft),
            KeeperEvent::Failed { step, errno, .. } => {
                let errno = Errno::from_raw_os_error(errno.into());
                Err(format!("{step} {}", errno_name(errno)))
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn look_to_write(&mut self, path: &Path) -> KeeperEvent {
        self.last_token += 1;
        let (token, path) = (self.last_token, path.as_os_str().as_bytes().to_vec());
        self.request(&KeeperRequest::Look {
            token,
            path,
            follow: true,
            execute: false,
            change: Change::Content,
        })
        .0
    }

    pub(crate) fn graft_to_write(&self, token: u64) {
        let event = self
            .request(&KeeperRequest::Graft { token, what: What::Found, exec: false, write: true })
            .0;
        assert!(matches!(event, KeeperEvent::Grafted { .. }), "{event:?}");
    }

    pub(crate) fn is_not_whole(&self, token: u64) -> bool {
        let event = self
            .request(&KeeperRequest::Graft { token, what: What::Found, exec: false, write: false })
            .0;
        event == KeeperEvent::NotWhole { token }
    }

    pub(crate) fn ungraft(&self, graft: u64) {
        assert_eq!(
            self.request(&KeeperRequest::Ungraft { graft }).0,
            KeeperEvent::Ungrafted { graft }
        );
    }

    pub(crate) fn forget(&self, token: u64) {
        palisade_wire::send(&self.keeper, &KeeperRequest::Forget { token }, &[]).unwrap();
    }
}

/// What came of it, or the errno by name.
pub(crate) fn said<T: ToString>(result: std::io::Result<T>) -> String {
    let name = |error| errno_name(Errno::from_io_error(&error).unwrap()).to_owned();
    result.map_or_else(name, |value| value.to_string())
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    said(fs::read_to_string(path))
}

pub(crate) fn open_for_writing(path: impl AsRef<Path>) -> String {
    said(OpenOptions::new().write(true).open(path).map(|_| "open"))
}

pub(crate) fn list(path: impl AsRef<Path>) -> String {
    said(fs::read_dir(path).map(|entries| {
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(" ")
    }))
}
