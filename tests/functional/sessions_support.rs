//! A session for one test: made, asked and ended by the real commands, and gone when the test is over.

use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use palisade_testkit::{Output, World, is_alive, patiently};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, WaitOptions, waitpid};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the session with this directory, as any client may have one.
pub(crate) fn connected_to(directory: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let opened = File::open(directory).unwrap();
    let path = format!("/proc/self/fd/{}/control", opened.as_raw_fd());
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// Everything that a test has made in its world is ended with it.
pub(crate) struct Sessions<'a> {
    world: &'a World,
}

impl<'a> Sessions<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self { world }
    }

    /// Makes a session, and says its id.
    #[track_caller]
    pub(crate) fn create(&self, arguments: &[&str]) -> String {
        let output = self.sandbox(&[&["create", "--quiet"][..], arguments].concat());
        output.assert_code(0);
        let id = output.out().trim().to_owned();
        assert_eq!(id.len(), 36, "{id}");
        id
    }

    pub(crate) fn sandbox(&self, arguments: &[&str]) -> Output {
        self.world.sandbox(arguments).run()
    }

    /// What a command in a session writes; it has to end well.
    #[track_caller]
    pub(crate) fn output_of(&self, session: &str, command: &[&str]) -> String {
        let output = self.sandbox(&[&["exec", session, "--"][..], command].concat());
        output.assert_code(0);
        output.out().into_owned()
    }

    #[track_caller]
    pub(crate) fn inspect(&self, session: &str) -> serde_json::Value {
        let output = self.sandbox(&["inspect", "--json", session]);
        output.assert_code(0);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The pid of its supervisor.
    #[track_caller]
    pub(crate) fn supervisor(&self, session: &str) -> u32 {
        let pid = &self.inspect(session)["supervisor"];
        pid.as_u64().and_then(|pid| pid.try_into().ok()).unwrap_or_else(|| panic!("{pid}"))
    }

    pub(crate) fn directory(&self, session: &str) -> PathBuf {
        self.world.home().join(".local/state/palisade/sessions").join(session)
    }
}

impl Drop for Sessions<'_> {
    fn drop(&mut self) {
        let all = self.world.home().join(".local/state/palisade/sessions");
        let names = fs::read_dir(all).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut supervisors = Vec::new();
        for name in names.filter(|name| name.len() == 36) {
            let record = fs::read(self.directory(&name).join("session.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
            let pid = record["supervisor"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            supervisors.extend(pid);
            let _ = self.world.sandbox(["rm", "--force", &name]).run();
        }
        // The last thing that one does is to count what it did, in a file of this world.
        let end = Instant::now() + patiently(TIMEOUT);
        while supervisors.iter().any(|pid| is_alive(*pid)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + patiently(TIMEOUT);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All processes below this one.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    // Of every thread: a test itself has several.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|child| child.parse().ok())
        .collect();
    let below = children.iter().flat_map(|child| descendants(*child)).collect::<Vec<_>>();
    children.into_iter().chain(below).collect()
}

/// Orphans of this test become its children, and it collects them: pid 1 of a sandbox ends when everybody in it was collected.
pub(crate) fn adopt_orphans() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

#[track_caller]
pub(crate) fn wait_for_end(pids: &[u32]) {
    let collect = |pid: u32| {
        let pid = pid.try_into().ok().and_then(Pid::from_raw);
        // Most of them are no children of ours.
        let _ = pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
    };
    wait_until("the processes are gone", || {
        pids.iter().copied().for_each(collect);
        pids.iter().all(|pid| !is_alive(*pid))
    });
}
