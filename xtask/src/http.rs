//! Requests to a server of ours over one TCP connection, by hand: what a client library does would be measured, too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    token: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address, token: token.to_owned() })
    }

    /// The body of the answer. Anything but success is an error.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut status = String::new();
        self.stream.read_line(&mut status)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("{method} {path}: the server closed the connection");
            }
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().context("the length of an answer")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let is_done = status.split(' ').nth(1).is_some_and(|code| code.starts_with('2'));
        if !is_done {
            bail!("{method} {path}: {}: {body}", status.trim());
        }
        Ok(body)
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<String> {
        self.ask("POST", path, body)
    }
}
