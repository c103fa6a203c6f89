//! Services without a protocol: what comes is noted and sent back. Datagrams too.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use serde_json::json;

use crate::Result;
use crate::journal::Journal;
use crate::names;

const ECHO: u16 = 7;
/// 443 is where QUIC would be.
const DATAGRAM_PORTS: [u16; 3] = [7, 123, 443];
/// A greeting that comes before a word of the client's, as with mail and ssh.
const GREETING: u16 = 25;

pub(crate) fn serve(journal: &Journal, datagram_addresses: &[&str]) -> Result<()> {
    listen(journal, TcpListener::bind((names::EVERYWHERE, ECHO))?, b"");
    let greeting = TcpListener::bind((names::EVERYWHERE, GREETING))?;
    listen(journal, greeting, b"220 mail.example\r\n");
    for address in datagram_addresses {
        for port in DATAGRAM_PORTS {
            let socket = UdpSocket::bind((*address, port))?;
            let journal = journal.clone();
            thread::spawn(move || datagrams(&journal, &socket));
        }
    }
    Ok(())
}

fn listen(journal: &Journal, listener: TcpListener, greeting: &'static [u8]) {
    let journal = journal.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let journal = journal.clone();
            thread::spawn(move || echo(&journal, stream, greeting));
        }
    });
}

fn echo(journal: &Journal, mut stream: TcpStream, greeting: &[u8]) -> io::Result<()> {
    let local = names::met_at(&stream)?;
    journal.note(&json!({"kind": "tcp", "local": local}));
    stream.write_all(greeting)?;
    let mut buffer = [0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..length])?;
    }
}

fn datagrams(journal: &Journal, socket: &UdpSocket) -> io::Result<()> {
    let local = socket.local_addr()?.to_string();
    let mut buffer = [0; 64 * 1024];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        journal.note(&json!({"kind": "udp", "local": local, "text": text}));
        socket.send_to(&buffer[..length], from)?;
    }
}
