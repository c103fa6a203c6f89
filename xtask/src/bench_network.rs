//! A small network for `cargo xtask bench egress`: a place for servers, one for the sandbox's host, and a wire
//! between them. Both are namespaces of their own; nothing of the machine's network is touched.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::measure::BenchContext;

/// Set apart for documentation (RFC 5737), so it looks like any address of the internet.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// Answers requests with a large body.
pub(crate) const BULK_PORT: u16 = 5000;
/// Says every byte back.
pub(crate) const ECHO_PORT: u16 = 5001;
pub(crate) const IPERF_PORT: u16 = 5201;
pub(crate) const TINYPROXY_PORT: u16 = 8888;
pub(crate) const BULK_BYTES: u64 = 1 << 30;

const WITHIN: Duration = Duration::from_secs(10);

/// The places, with what serves there. Everything ends with it.
pub(crate) struct Network {
    host: HeldNamespace,
    _servers: HeldNamespace,
    _iperf: Ended,
    _tinyproxy: Ended,
}

/// A process that holds a network namespace.
struct HeldNamespace(Ended);

/// Killed when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Network {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let (host, servers) = (HeldNamespace::new()?, HeldNamespace::new()?);
        let (host_pid, servers_pid) = (host.pid(), servers.pid());
        let wire = ["link", "add", "wire", "netns", &host_pid, "type", "veth", "peer", "name"];
        ip(&[&wire[..], &["wire", "netns", &servers_pid]].concat())?;
        host.bring_up("203.0.113.1/24")?;
        servers.bring_up(&format!("{SERVER}/24"))?;
        servers.serve(BULK_PORT, answer_requests)?;
        servers.serve(ECHO_PORT, echo)?;
        let iperf = servers.start(&["iperf3", "-s", "-p", &IPERF_PORT.to_string()])?;
        let settings = directory.join("tinyproxy.conf");
        std::fs::write(
            &settings,
            format!(
                "Port {TINYPROXY_PORT}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 600\n\
                 MaxClients 100\nLogLevel Critical\nConnectPort {BULK_PORT}\n"
            ),
        )?;
        let settings = settings.to_str().context("a path that is no text")?;
        let tinyproxy = host.start(&["tinyproxy", "-d", "-c", settings])?;
        let network = Self { host, _servers: servers, _iperf: iperf, _tinyproxy: tinyproxy };
        network.wait_for(SERVER, IPERF_PORT)?;
        network.wait_for(Ipv4Addr::LOCALHOST, TINYPROXY_PORT)?;
        Ok(network)
    }

    /// A command on the sandbox's host, as the user of the surroundings.
    pub(crate) fn command(
        &self,
        words: &[OsString],
        surroundings: &BenchContext<'_>,
    ) -> Result<Command> {
        let mut entered: Vec<OsString> =
            ["nsenter", "-t", &self.host.pid(), "--net"].map(OsString::from).to_vec();
        if let Some(user) = surroundings.user {
            let ids = [format!("--setgid={}", user.gid), format!("--setuid={}", user.uid)];
            entered.extend(ids.map(OsString::from));
        }
        entered.push("--".into());
        entered.extend_from_slice(words);
        // nsenter becomes the user itself, after it has entered.
        BenchContext { user: None, ..*surroundings }.command(&entered)
    }

    fn wait_for(&self, address: Ipv4Addr, port: u16) -> Result<()> {
        let deadline = Instant::now() + WITHIN;
        while self.host.inside(move || TcpStream::connect((address, port)))?.is_err() {
            if Instant::now() > deadline {
                bail!("nobody listens at {address}:{port}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl HeldNamespace {
    fn new() -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "sleep", "infinity"]).stdin(Stdio::null());
        let place = Self(Ended(command.spawn().context("cannot start unshare")?));
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let theirs = format!("/proc/{}/ns/net", place.pid());
        let deadline = Instant::now() + WITHIN;
        while std::fs::read_link(&theirs)? == own {
            if Instant::now() > deadline {
                bail!("unshare made no network namespace");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(place)
    }

    fn pid(&self) -> String {
        self.0.0.id().to_string()
    }

    fn bring_up(&self, address: &str) -> Result<()> {
        for arguments in [
            ["addr", "add", address, "dev", "wire"].as_slice(),
            &["link", "set", "wire", "up"],
            &["link", "set", "lo", "up"],
        ] {
            let entered = ["-t", &self.pid(), "--net", "ip"].map(str::to_owned);
            let status = Command::new("nsenter").args(entered).args(arguments).status()?;
            if !status.success() {
                bail!("ip {} failed", arguments.join(" "));
            }
        }
        Ok(())
    }

    /// Starts a program there that serves until it is dropped.
    fn start(&self, words: &[&str]) -> Result<Ended> {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid(), "--net", "--"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Ended(command.spawn().with_context(|| format!("cannot start {}", words[0]))?))
    }

    /// Runs something in a thread that is there.
    fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let place = File::open(format!("/proc/{}/ns/net", self.pid()))?;
        let entered = std::thread::spawn(move || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(place.as_fd(), network).map(|()| work())
        });
        let entered = entered.join().map_err(|_| anyhow::anyhow!("a thread died"))?;
        entered.context("cannot enter a network namespace")
    }

    /// Serves each connection to a port there in a thread of its own.
    fn serve(&self, port: u16, each: fn(TcpStream) -> std::io::Result<()>) -> Result<()> {
        let listener = self.inside(move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))??;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Thousands of them are idle at the same time.
                let small = std::thread::Builder::new().stack_size(64 * 1024);
                let _ended = small.spawn(move || each(stream));
            }
        });
        Ok(())
    }
}

/// A large answer to every request.
fn answer_requests(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4096];
    let mut length = 0;
    while !head[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut head[length..])? {
            0 => return Ok(()),
            read => length += read,
        }
    }
    let answer =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {BULK_BYTES}\r\n\r\n");
    stream.write_all(answer.as_bytes())?;
    let block = vec![b'x'; 256 * 1024];
    for _ in 0..BULK_BYTES / block.len() as u64 {
        stream.write_all(&block)?;
    }
    Ok(())
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0; 1];
    while stream.read(&mut byte)? > 0 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status().context("cannot start ip")?;
    if !status.success() {
        bail!("ip {} failed", arguments.join(" "));
    }
    Ok(())
}
