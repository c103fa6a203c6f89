//! A small internet of a test's own, in network namespaces that end with it (`palisade-netlab`).
//! The `sandbox` under test runs in that of the host, as on a host whose network is this one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::invocation::Invocation;
use crate::world::World;
use crate::{am_root, binaries, must, patiently};

const TIMEOUT: Duration = Duration::from_secs(20);

/// What a lab has beside its names, web and echo servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An ssh server, and a key to log in with.
    Ssh,
    /// A server of HTTP/2 for `h2.example` and `h2-other.example`, on port 8000 without TLS and on 9443 with it. It answers
    /// every authority.
    Http2,
    /// A WebSocket server that sends back what it gets, for `ws.example` on the same ports.
    WebSocket,
    /// An interface with a default route, as translators of addresses want one.
    Uplink,
}

/// A running lab. Everything in it ends when this is dropped.
#[derive(Debug)]
pub struct Lab {
    process: Child,
    directory: TempDir,
}

impl Lab {
    /// Names, web and echo servers.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same and more.
    #[must_use]
    pub fn with(parts: &[Part]) -> Self {
        let parent =
            std::env::var_os("PALISADE_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = must(
            tempfile::Builder::new().prefix("palisade-lab-").tempdir_in(&parent),
            format_args!("cannot make a lab in {}", parent.display()),
        );
        let mut command = Command::new("unshare");
        if !am_root() {
            // Its capabilities are for the lab alone: whoever enters it has none.
            command.args(["--user", "--map-current-user", "--keep-caps"]);
        }
        command
            .args(["--net", "--mount"])
            .arg(binaries::netlab())
            .arg("serve")
            .arg(directory.path())
            .args(parts.iter().map(|part| match part {
                Part::Ssh => "ssh",
                Part::Http2 => "http2",
                Part::WebSocket => "websocket",
                Part::Uplink => "uplink",
            }))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = must(command.spawn(), "cannot start a lab");
        let mut said = String::new();
        if let Some(output) = process.stdout.take() {
            must(BufReader::new(output).read_line(&mut said), "the lab says nothing");
        }
        if said != "ready\n" {
            let mut why = String::new();
            if let Some(mut errors) = process.stderr.take() {
                let _ = errors.read_to_string(&mut why);
            }
            panic!("no lab: {said}{why}");
        }
        Self { process, directory }
    }

    /// Where its files are; nothing of it is granted to a sandbox.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The words that run a program in the lab; for [`Invocation::started_by`].
    #[must_use]
    pub fn enter(&self) -> Vec<String> {
        let program = binaries::netlab().to_string_lossy().into_owned();
        [program, "enter".into(), self.process.id().to_string(), "--".into()].into()
    }

    /// A program of the host in the lab, without a sandbox.
    #[must_use]
    pub fn bare(&self, world: &World, program: &str) -> Invocation {
        world.bare(program).started_by(&self.enter())
    }

    /// `sandbox run FLAGS -- COMMAND` in the lab, with a report.
    #[must_use]
    pub fn sandbox_run<F: AsRef<std::ffi::OsStr>, C: AsRef<std::ffi::OsStr>>(
        &self,
        world: &World,
        flags: impl IntoIterator<Item = F>,
        command: impl IntoIterator<Item = C>,
    ) -> Invocation {
        world.sandbox_run(flags, command).started_by(&self.enter())
    }

    /// A page of one of the lab's web servers.
    pub fn page(&self, host: &str, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path().join("www").join(host).join(path);
        if let Some(parent) = file.parent() {
            must(fs::create_dir_all(parent), parent.display());
        }
        must(fs::write(&file, content), file.display());
        file
    }

    /// The certificate that the lab's web servers are vouched for by. Programs that read the system's
    /// bundle trust it already.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.path().join("authority.pem")
    }

    /// A private key whose owner may log in at `ssh.example`.
    #[must_use]
    pub fn ssh_key(&self) -> PathBuf {
        self.path().join("ssh-key")
    }

    /// Whether the server of HTTP/2 got a request for this authority.
    #[must_use]
    pub fn asked_over_http2(&self, authority: &str) -> bool {
        let path = self.path().join("http2.log");
        let log = must(fs::read_to_string(&path), path.display());
        log.lines().any(|line| line.ends_with(&format!(" :authority: {authority}")))
    }

    /// Everything that arrived at a server of the lab so far.
    #[must_use]
    pub fn journal(&self) -> Vec<Value> {
        let path = self.path().join("journal.jsonl");
        let text = must(fs::read_to_string(&path), path.display());
        // What is not ended by a line feed is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| must(serde_json::from_str(line), line)).collect()
    }

    /// Forgets what arrived.
    pub fn forget(&self) {
        for kept in ["journal.jsonl", "http2.log"] {
            let path = self.path().join(kept);
            must(fs::write(&path, ""), path.display());
        }
    }

    /// Whether anything like this arrived.
    pub fn saw(&self, like: impl Fn(&Value) -> bool) -> bool {
        self.journal().iter().any(like)
    }

    /// Waits for something like this to arrive.
    #[track_caller]
    pub fn wait_for(&self, what: &str, like: impl Fn(&Value) -> bool) {
        let end = Instant::now() + patiently(TIMEOUT);
        while !self.saw(&like) {
            assert!(Instant::now() < end, "{what} never arrived: {:#?}", self.journal());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a connection was accepted at an address that starts so, such as `10.0.0.5:`.
    #[must_use]
    pub fn connected(&self, address: &str) -> bool {
        self.saw(|entry| {
            entry["kind"] == "tcp"
                && entry["local"].as_str().is_some_and(|local| local.starts_with(address))
        })
    }

    /// Whether this name, or one below it, was looked up outside.
    #[must_use]
    pub fn asked_for(&self, name: &str) -> bool {
        self.saw(|entry| {
            entry["kind"] == "dns"
                && entry["name"].as_str().is_some_and(|asked| asked.ends_with(name))
        })
    }

    /// Whether a web server got a request for this host whose first line starts so.
    #[must_use]
    pub fn requested(&self, host: &str, line: &str) -> bool {
        self.saw(|entry| {
            entry["kind"] == "http"
                && entry["host"] == host
                && entry["line"].as_str().is_some_and(|seen| seen.starts_with(line))
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It ends when its input does, and takes its own children along.
        drop(self.process.stdin.take());
        let end = Instant::now() + patiently(TIMEOUT);
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
