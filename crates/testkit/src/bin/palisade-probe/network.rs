//! Attempts at the network: ways to the host's services, and ways to be taken for one.
//! Must never look for another way once one is refused.

use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketType};

use crate::processes::is_over;
use crate::surroundings::wait_until;
use crate::{Failure, Probe, argument, number, wait_for_line};

pub(crate) const PROBES: &[Probe] = &[
    ("connect", "PORT", connect),
    ("connect-v6", "PORT", connect_v6),
    ("connect-abstract", "NAME", connect_abstract),
    ("send-datagram", "PORT", send_datagram),
    ("raw-socket", "", raw_socket),
    ("pose-as-service", "PORT", pose_as_service),
    ("pose-as-abstract", "NAME", pose_as_abstract),
    ("leave-socket", "PATH", leave_socket),
    ("serve-socket", "PATH", serve_socket),
];

fn connect(arguments: &[String]) -> Result<String, Failure> {
    let port = number(arguments, 0, "PORT")?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    Ok(port.to_string())
}

fn connect_v6(arguments: &[String]) -> Result<String, Failure> {
    let port = number(arguments, 0, "PORT")?;
    TcpStream::connect((Ipv6Addr::LOCALHOST, port))?;
    Ok(port.to_string())
}

fn connect_abstract(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "NAME")?;
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    Ok(name.to_owned())
}

/// Nobody answers a datagram, so only its receiver knows whether it arrived.
fn send_datagram(arguments: &[String]) -> Result<String, Failure> {
    let port: u16 = number(arguments, 0, "PORT")?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.send_to(b"carried out", (Ipv4Addr::LOCALHOST, port))?;
    Ok(port.to_string())
}

fn raw_socket(_: &[String]) -> Result<String, Failure> {
    const ICMP: u32 = 1;
    let protocol = std::num::NonZeroU32::new(ICMP).map(rustix::net::Protocol::from_raw);
    rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol)?;
    Ok("has a raw socket".to_owned())
}

/// Listens where a program of the host would look for another.
fn pose_as_service(arguments: &[String]) -> Result<String, Failure> {
    let port = number(arguments, 0, "PORT")?;
    let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    wait_for_line()?;
    Ok(port.to_string())
}

fn pose_as_abstract(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "NAME")?;
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    wait_for_line()?;
    Ok(name.to_owned())
}

/// Leaves a process behind that listens on a socket in a file.
fn leave_socket(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    Command::new(std::env::current_exe()?)
        .args(["serve-socket", path])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    wait_until(|| UnixStream::connect(path).is_ok())?;
    Ok(path.to_owned())
}

/// Listens until the file `stop` appears in the working directory, or that is gone.
fn serve_socket(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    palisade_sys::proc::setsid()?;
    let _listener = UnixListener::bind(path)?;
    let here = File::open(".")?;
    wait_until(|| is_over(&here))?;
    Ok(path.to_owned())
}
