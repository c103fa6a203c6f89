//! Network mode nat (NET-9): a helper that forwards for the sandbox on the host's network or, for root, the
//! kernel's own forwarding.
//!
//! Addresses that must stay unreachable are blocked inside before any of this starts. A helper has no
//! privileges on the host: it enters the sandbox's user namespace with the capabilities it needs there to open
//! its link, and sees only the files of the host it needs: pasta drops them itself, slirp4netns is confined by
//! Landlock. It must not outlive the run.

use crate::error::{During, LaunchError, Result};
use crate::helper::{self, HelperKind, Helpers, take_identity};
use crate::init::close_all_but;
use crate::landlock;
use crate::network::InsideNetwork;
use palisade_hosts::INSIDE_V4;
use palisade_hosts::inside::VETH_V4;
use palisade_netlink::Socket;
use palisade_netlink::veth::{self, Pair};
use palisade_plan::model::{Execution, Identity, Landlock, NatHelper};
use palisade_sys::clone::{Forked, fork};
use palisade_sys::landlock::landlock_abi;
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_sys::{At as _, Errno, Pid, SysError, creds, net, other};
use rustix::fs::{Gid, Uid};
use rustix::io::FdFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use std::convert::Infallible;
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const STEP: &str = "starting the NAT helper";
/// It takes some tens of milliseconds.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Length of a helper's output before it is ready.
const MAX_OUTPUT_BYTES: usize = 4096;

/// The connection to the host's network, for as long as this is kept.
#[derive(Debug)]
pub(crate) enum Nat {
    Helper(Helper),
    Veth(#[expect(dead_code, reason = "held, and taken away when dropped")] Forwarding),
}

impl Nat {
    /// Connects the namespace.
    pub(crate) fn start(
        helpers: &Helpers,
        helper: &NatHelper,
        inside: &InsideNetwork,
        identity: Option<&Identity>,
    ) -> Result<Self> {
        match helper {
            NatHelper::Pasta(path) => {
                Helper::start(helpers, path, NatHelperKind::Pasta, inside, identity)
                    .map(Self::Helper)
            }
            NatHelper::Slirp4netns(path) => {
                Helper::start(helpers, path, NatHelperKind::Slirp4netns, inside, identity)
                    .map(Self::Helper)
            }
            NatHelper::Veth => forward(inside).map(Self::Veth),
        }
    }

    /// Ends a helper, without waiting for it.
    pub(crate) fn dismiss(&self) {
        if let Self::Helper(helper) = self {
            helper.process.dismiss();
        }
    }
}

/// Four addresses: network, outside, inside, broadcast.
const NETWORK_SIZE: u32 = 4;
const NETWORKS: u32 = (1 << (32 - VETH_V4.prefix_len())) / NETWORK_SIZE;

fn pair(number: u32) -> Pair {
    let first = u32::from(VETH_V4.addr()) + number * NETWORK_SIZE;
    Pair {
        outside_name: format!("palisade{number}"),
        outside: Ipv4Addr::from(first + 1),
        inside: Ipv4Addr::from(first + 2),
    }
}

/// What root's sandbox creates on the host. If we are killed, the table is removed with its socket, and the
/// links with the sandbox.
#[derive(Debug)]
pub(crate) struct Forwarding {
    pair: Pair,
    _table: Socket,
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = veth::disconnect(&self.pair);
    }
}

/// Links with this name are ours; an existing one belongs to another run.
fn forward(inside: &InsideNetwork) -> Result<Forwarding> {
    const STEP: &str = "connecting the sandbox by a pair of links";
    let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut tried = (0..NETWORKS).map(|step| pair((own + step) % NETWORKS));
    let made = tried.find_map(|pair| match veth::connect_outside(&pair, inside.network.as_fd()) {
        Err(error) if error.errno == Errno::EXIST => None,
        made => Some(made.map(|()| pair)),
    });
    let pair = made
        .ok_or_else(|| LaunchError::new(STEP, "every network for it is in use"))?
        .during(STEP)?;
    let table = veth::masquerade(&pair, &pair.outside_name).during(STEP)?;
    let forwarding = Forwarding { pair, _table: table };
    let pair = &forwarding.pair;
    // Namespaces are entered by processes that do nothing else.
    match fork().during(STEP)? {
        Forked::Child => {
            let done = net::enter(&inside.network).and_then(|()| veth::connect_inside(pair));
            proc::exit_now(done.map_or_else(|error| error.errno.raw_os_error(), |()| 0))
        }
        Forked::Parent { pid, .. } => match proc::wait_pid_rusage(pid).during(STEP)?.status {
            Status::Exited(0) => {}
            Status::Exited(errno) => {
                let errno = Errno::from_raw_os_error(errno);
                return Err(SysError::new("netlink", "the sandbox's end", errno)).during(STEP);
            }
            other => return Err(LaunchError::new(STEP, format!("its process died: {other:?}"))),
        },
    }
    veth::wait_outside(pair).during(STEP)?;
    Ok(forwarding)
}

/// Which helper it is; they take the same settings in different words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NatHelperKind {
    Pasta,
    Slirp4netns,
}

impl NatHelperKind {
    /// The name it is called by: passt is pasta by its name only.
    fn name(self) -> &'static str {
        match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    /// The host's files it may use, where Landlock can enforce that. Not for pasta, which has to mount: it
    /// makes itself an empty root.
    fn files(self, program: &Path) -> Option<Landlock> {
        const RESOLVER_FILE: &str = "/etc/resolv.conf";
        const LIBRARIES: [&str; 6] =
            ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store"];
        let abi = landlock_abi().ok().filter(|_| self == Self::Slirp4netns)?;
        let mut readable: Vec<PathBuf> = LIBRARIES.map(PathBuf::from).into();
        readable.push(program.to_owned());
        // Its directory: the file is replaced when the host's network changes.
        let resolver = Path::new(RESOLVER_FILE).canonicalize().ok();
        readable.extend(resolver.and_then(|file| Some(file.parent()?.to_owned())));
        readable.retain(|path| path.exists());
        Some(Landlock {
            abi,
            restrict_reads: true,
            refuse_truncation: true,
            readable,
            writable: Vec::new(),
            guarded: Vec::new(),
            build_dirs: Vec::new(),
            devices: vec!["/dev/net/tun".into()],
            executables: Execution::Readable,
            refuse_tcp: false,
            scope: true,
        })
    }

    /// The arguments without the program's name. The namespace is standard input. Readiness is reported on
    /// standard output, or on `ready`: pasta closes all other descriptors, and slirp4netns prints messages on
    /// standard output. Nothing is forwarded to the sandbox or to the host's loopback. The sandbox option of
    /// slirp4netns needs an id 0, which the command's user namespace does not have.
    fn arguments(self, ready: RawFd) -> Vec<String> {
        const NETWORK: &str = "/proc/self/fd/0";
        let dns = INSIDE_V4.to_string();
        let ready = format!("--ready-fd={ready}");
        let arguments: &[&str] = match self {
            Self::Pasta => &[
                "--foreground",
                "--quiet",
                "--stderr",
                "--config-net",
                "--no-map-gw",
                "--netns-only",
                "--netns",
                NETWORK,
                "--pid",
                "/proc/self/fd/1",
                "--dns-forward",
                &dns,
                "-t",
                "none",
                "-u",
                "none",
                "-T",
                "none",
                "-U",
                "none",
            ],
            Self::Slirp4netns => &[
                "--configure",
                "--disable-host-loopback",
                "--mtu=65520",
                "--enable-ipv6",
                "--enable-seccomp",
                "--netns-type=path",
                &ready,
                NETWORK,
                "tap0",
            ],
        };
        arguments.iter().copied().map(str::to_owned).collect()
    }
}

/// A running helper.
#[derive(Debug)]
pub(crate) struct Helper {
    process: helper::Helper,
    /// Kept open: closed, the helper would die when it prints something.
    words: OwnedFd,
}

/// What a helper runs.
struct Program {
    path: PathBuf,
    argv: Vec<CString>,
    files: Option<Landlock>,
}

/// What a helper writes to.
struct Said {
    words: OwnedFd,
    ready: OwnedFd,
}

impl Helper {
    fn start(
        helpers: &Helpers,
        path: &Path,
        kind: NatHelperKind,
        inside: &InsideNetwork,
        identity: Option<&Identity>,
    ) -> Result<Self> {
        let (words, said_words) = pipe_for(identity)?;
        let (ready, said_ready) = pipe_for(identity)?;
        let program = Program {
            path: path.to_owned(),
            argv: c_strings(kind.name(), kind.arguments(said_ready.as_raw_fd()))?,
            files: kind.files(path),
        };
        let said = Said { words: said_words, ready: said_ready };
        let kept = [&said.words, &said.ready, &inside.user, &inside.network];
        let kept = kept.map(|fd| fd.as_raw_fd()).to_vec();
        let process = helpers.start(HelperKind::Nat, STEP, kept, |supervisor| {
            let Err(error) = become_helper(kind, &program, inside, identity, &said, supervisor);
            let _ = rustix::io::write(&said.words, error.to_string().as_bytes());
        })?;
        drop(said);
        rustix::io::ioctl_fionbio(&words, true).call("ioctl FIONBIO").during(STEP)?;
        let helper = Self { process, words };
        helper.wait_until_ready(path, &ready)?;
        Ok(helper)
    }

    fn wait_until_ready(&self, path: &Path, ready: &OwnedFd) -> Result<()> {
        let mut watched = [PollFd::new(ready, PollFlags::IN)];
        let in_time = proc::poll(&mut watched, Some(READY_TIMEOUT)).during(STEP)? > 0;
        match in_time.then(|| rustix::io::read(ready, &mut [0; 16])) {
            Some(Ok(1..)) => Ok(()),
            Some(_) => Err(failed(path, "it ended", &self.words())),
            None => Err(failed(path, "it is not ready in time", &self.words())),
        }
    }

    /// Its output so far.
    fn words(&self) -> Vec<u8> {
        let mut heard = vec![0; MAX_OUTPUT_BYTES];
        let length = rustix::io::read(&self.words, heard.as_mut_slice()).unwrap_or(0);
        heard.truncate(length);
        heard
    }
}

/// Read end first. The helper opens the other end by name, with the rights of its id.
fn pipe_for(identity: Option<&Identity>) -> Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).call("pipe2").during(STEP)?;
    if let Some(Identity { host_uid, host_gid, .. }) = identity {
        let (uid, gid) = (Uid::from_raw(*host_uid), Gid::from_raw(*host_gid));
        rustix::fs::fchown(&write, Some(uid), Some(gid)).call("fchown").during(STEP)?;
    }
    Ok((read, write))
}

fn failed(path: &Path, what: &str, heard: &[u8]) -> LaunchError {
    let heard = String::from_utf8_lossy(heard);
    let last = heard.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("without a word");
    let error = LaunchError::new(STEP, format!("{}: {what}: {last}", path.display()));
    if heard.contains("/dev/net/tun") || heard.contains("tuntap") {
        return error
            .with_fix("it needs /dev/net/tun: sudo modprobe tun; sudo chmod 0666 /dev/net/tun");
    }
    error
}

fn c_strings(name: &str, arguments: Vec<String>) -> Result<Vec<CString>> {
    std::iter::once(name.to_owned()).chain(arguments).map(c_string).collect()
}

fn c_string(text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|_| LaunchError::new(STEP, "a zero byte in its path"))
}

/// Enters the sandbox's user namespace as the command's id, with the capabilities there that opening a link
/// needs, and without the caller's files and environment.
fn become_helper(
    kind: NatHelperKind,
    program: &Program,
    inside: &InsideNetwork,
    identity: Option<&Identity>,
    said: &Said,
    supervisor: Pid,
) -> Result<Infallible> {
    let settle = || -> Result<(), SysError> {
        proc::setsid()?;
        other::enter_user(&inside.user)?;
        identity.map_or(Ok(()), take_identity)?;
        creds::keep_over_exec_for_links()?;
        creds::set_no_new_privs()?;
        proc::unblock_all()?;
        // Rust's runtime ignores it, and pasta rejects an inherited setting.
        proc::reset_action(sig::SIGPIPE);
        // From the outside so far: 0 to 2 are where it finds them.
        rustix::stdio::dup2_stdin(&inside.network).call("dup2")?;
        let stdout = if kind == NatHelperKind::Pasta { &said.ready } else { &said.words };
        rustix::stdio::dup2_stdout(stdout).call("dup2")?;
        rustix::stdio::dup2_stderr(&said.words).call("dup2")?;
        rustix::io::fcntl_setfd(&said.ready, FdFlags::empty()).call("fcntl F_SETFD")?;
        creds::end_with_parent(supervisor)
    };
    settle().during(STEP)?;
    close_all_but(vec![said.words.as_raw_fd(), said.ready.as_raw_fd()])?;
    program.files.as_ref().map_or(Ok(()), landlock::restrict)?;
    let path = c_string(program.path.as_os_str().as_bytes())?;
    let environment = [c"PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    let errno = proc::exec(&path, &program.argv, &environment);
    let path = program.path.display().to_string();
    Err(LaunchError::new(STEP, SysError::new("exec", path, errno).to_string()))
}

#[cfg(test)]
#[path = "nat_tests.rs"]
mod tests;
