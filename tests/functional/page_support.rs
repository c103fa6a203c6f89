//! A server with a page for one test, and a browser that looks at it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use palisade_testkit::{Browser, Invocation, Running, World};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service_support::{Answer, answer};

/// At a TCP socket. Ended with the test.
pub(crate) struct PageServer<'a> {
    world: &'a World,
    running: Option<Running>,
    pub(crate) port: u16,
    /// With the code that works once.
    pub(crate) link: String,
    pub(crate) token: String,
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl<'a> PageServer<'a> {
    pub(crate) fn start(world: &'a World) -> Self {
        let port = free_port();
        let listen = format!("tcp:127.0.0.1:{port}");
        let running = world.sandbox(["serve", "--listen", &listen]).spawn();
        running.wait_for_stderr("#code=");
        let said = running.said();
        let link = said.split_whitespace().find(|word| word.contains("#code=")).unwrap().to_owned();
        let token = world.home().join(".local/state/palisade/service/token");
        let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Self { world, running: Some(running), port, link, token }
    }

    /// Without the code.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// A request by curl without any proof.
    pub(crate) fn curl(&self, path: &str) -> Invocation {
        let curl = self.world.bare("curl").args(["-sS", "-m", "60"]);
        curl.arg(format!("http://127.0.0.1:{}{path}", self.port))
    }

    fn with_token(&self, path: &str) -> Invocation {
        self.curl(path).args(["-H", &format!("Authorization: Bearer {}", self.token)])
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        answer(self.with_token(path))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let curl = self.with_token(path).args(["-H", "Content-Type: application/json", "-d", "@-"]);
        answer(curl.stdin(body.to_string()))
    }

    /// Makes a sandbox, and says its id.
    pub(crate) fn create(&self, body: &Value) -> String {
        self.post("/v1/sandboxes", body).expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, sandbox: &str, script: &str) -> Value {
        let body = json!({ "argv": ["sh", "-c", script], "wait": true });
        self.post(&format!("/v1/sandboxes/{sandbox}/commands"), &body).expect(200)
    }

    /// Starts a command in the background, and says its number.
    pub(crate) fn begin(&self, sandbox: &str, argv: &[&str]) -> u64 {
        let path = format!("/v1/sandboxes/{sandbox}/commands");
        let started = self.post(&path, &json!({ "argv": argv })).expect(201);
        started["number"].as_u64().unwrap()
    }

    /// What such a command wrote, when it has ended.
    pub(crate) fn output(&self, sandbox: &str, command: u64) -> String {
        let path = format!("/v1/sandboxes/{sandbox}/commands/{command}/output");
        crate::service_support::written(&self.get(&path).body)
    }

    /// A browser that has logged in with the link.
    pub(crate) fn browser(&self) -> Browser {
        let mut browser = Browser::start(self.world);
        browser.resize(1280, 900);
        browser.open(&self.link);
        browser.wait_for_text("Sandboxes");
        browser
    }
}

impl Drop for PageServer<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal(Signal::TERM);
            let _ = running.wait();
        }
    }
}

/// Something that listens at a port of this machine for as long as the test runs.
pub(crate) struct Listening {
    pub(crate) port: u16,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let serve = Arc::new(serve);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if seen.load(Ordering::SeqCst) {
                    break;
                }
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { port, is_over, thread: Some(thread) }
    }

    /// A site of somebody else: one page, whatever is asked for. It remembers nothing.
    pub(crate) fn site(page: &'static str) -> Self {
        Self::start(move |mut stream| {
            let mut request = [0; 8192];
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
        })
    }

    /// As `ssh -L PORT:SOCKET` makes it.
    pub(crate) fn tunnel(socket: &Path) -> Self {
        let socket: PathBuf = socket.to_owned();
        Self::start(move |outside| {
            let Ok(inside) = UnixStream::connect(&socket) else { return };
            let (Ok(mut from_outside), Ok(mut to_inside)) =
                (outside.try_clone(), inside.try_clone())
            else {
                return;
            };
            let (mut from_inside, mut to_outside) = (inside, outside);
            let there = std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_outside, &mut to_inside);
                let _ = to_inside.shutdown(std::net::Shutdown::Both);
            });
            let _ = std::io::copy(&mut from_inside, &mut to_outside);
            let _ = to_outside.shutdown(std::net::Shutdown::Both);
            let _ = there.join();
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes it up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
