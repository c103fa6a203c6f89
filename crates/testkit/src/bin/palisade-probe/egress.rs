//! Attempts to get out: names, pages, raw requests, datagrams and echo requests, each in the plainest way
//! and without a word to any proxy unless one is named. Must never judge whether it arrived: the far end
//! knows.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sockopt};

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("look-up", "NAME", look_up),
    ("query", "SERVER NAME", query),
    ("page", "PLACE HOST PATH", page),
    ("raw", "PLACE TEXT", raw),
    ("datagram", "PLACE", datagram),
    ("ping", "ADDRESS", ping),
    ("hold", "PLACE COUNT", hold),
];

const TIMEOUT: Duration = Duration::from_secs(5);

/// By the resolver that programs use.
fn look_up(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "NAME")?;
    let found: Vec<SocketAddr> = (name, 0).to_socket_addrs()?.collect();
    Ok(format!("{name} {found:?}"))
}

/// By a packet of its own, past that resolver.
fn query(arguments: &[String]) -> Result<String, Failure> {
    let server: IpAddr = number(arguments, 0, "SERVER")?;
    let name = argument(arguments, 1, "NAME")?;
    let mut packet = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(u8::try_from(label.len()).map_err(io::Error::other)?);
        packet.extend_from_slice(label.as_bytes());
    }
    packet.extend_from_slice(&[0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send_to(&packet, (server, 53))?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(format!("{length} bytes of an answer"))
}

fn page(arguments: &[String]) -> Result<String, Failure> {
    let (host, path) = (argument(arguments, 1, "HOST")?, argument(arguments, 2, "PATH")?);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(argument(arguments, 0, "PLACE")?, request.as_bytes())
}

/// `\r`, `\n` and `\0` in the text are what they say.
fn raw(arguments: &[String]) -> Result<String, Failure> {
    let text = argument(arguments, 1, "TEXT")?;
    let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0");
    exchange(argument(arguments, 0, "PLACE")?, text.as_bytes())
}

fn exchange(place: &str, request: &[u8]) -> Result<String, Failure> {
    let mut stream = connect(place)?;
    stream.write_all(request)?;
    // Whoever keeps connections open for more requests ends this one then.
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    // A server that keeps the connection open has still answered.
    match stream.read_to_end(&mut answer) {
        Err(error) if answer.is_empty() => Err(error.into()),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

fn connect(place: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name stands for nothing");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn datagram(arguments: &[String]) -> Result<String, Failure> {
    let place: SocketAddr = number(arguments, 0, "PLACE")?;
    let own = if place.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(own)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.connect(place)?;
    socket.send(b"carried out")?;
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer)?;
    Ok(format!("{length} bytes came back"))
}

/// With a socket for echo requests, which needs no privilege where the host lets everyone ping.
fn ping(arguments: &[String]) -> Result<String, Failure> {
    let address: std::net::Ipv4Addr = number(arguments, 0, "ADDRESS")?;
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(TIMEOUT))?;
    let request = [8, 0, 0, 0, 0, 0, 0, 1];
    let place = SocketAddr::from((address, 0));
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &place)?;
    let mut answer = [0; 64];
    let (_, length) = rustix::net::recv(&socket, &mut answer, rustix::net::RecvFlags::empty())?;
    Ok(format!("{length} bytes came back"))
}

/// Many connections at once to a server that sends back what it gets; each is used once and kept.
fn hold(arguments: &[String]) -> Result<String, Failure> {
    let place = argument(arguments, 0, "PLACE")?;
    let count: usize = number(arguments, 1, "COUNT")?;
    let use_once = |mut stream: TcpStream| {
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])?;
        Ok(stream)
    };
    let held: Vec<TcpStream> =
        (0..count).filter_map(|_| connect(place).and_then(use_once).ok()).collect();
    Ok(format!("{} of {count}", held.len()))
}
