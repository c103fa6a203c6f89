//! A web server and a client of the proxy, for tests: plain sockets, so that every byte is the test's own.

use crate::config::Config;
use crate::engine::Engine;
use crate::events::Outbox;
use crate::explicit;
use crate::test_support::{engine, listen};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

#[derive(Debug)]
pub(crate) struct Web {
    pub(crate) port: u16,
    /// Every request as it came, head and body.
    pub(crate) seen: Rc<RefCell<Vec<String>>>,
    pub(crate) connections: Rc<RefCell<usize>>,
}

impl Web {
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }
}

pub(crate) const FINE: &str = "HTTP/1.1 200 fine\r\nContent-Length: 5\r\n\r\nhello";

/// Answers every request with what `answer` makes of it.
pub(crate) async fn web(answer: impl Fn(&str) -> String + 'static) -> Web {
    let (listener, _) = listen().await;
    serving(listener, answer)
}

/// Reads no body: what is one is the next request to it, as to Python's `http.server`.
pub(crate) async fn heedless() -> Web {
    let (listener, address) = listen().await;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let connections = Rc::new(RefCell::new(0));
    let web =
        Web { port: address.port(), seen: Rc::clone(&seen), connections: Rc::clone(&connections) };
    spawn_local(async move {
        while let Ok((client, _)) = listener.accept().await {
            *connections.borrow_mut() += 1;
            spawn_local(answer_heads(client, Rc::clone(&seen)));
        }
    });
    web
}

async fn answer_heads(mut client: TcpStream, seen: Rc<RefCell<Vec<String>>>) {
    let mut read = String::new();
    loop {
        let Some(end) = read.find("\r\n\r\n") else {
            let mut more = Vec::new();
            if !matches!(client.read_buf(&mut more).await, Ok(1..)) {
                return;
            }
            read.push_str(&String::from_utf8(more).unwrap());
            continue;
        };
        let head: String = read.drain(..end + 4).collect();
        let is_last = head.contains("connection: close");
        seen.borrow_mut().push(head);
        if client.write_all(FINE.as_bytes()).await.is_err() || is_last {
            return;
        }
    }
}

/// The same for answers that name the server's own port.
pub(crate) async fn web_that_knows<A: Fn(&str) -> String + 'static>(
    answer: impl FnOnce(u16) -> A,
) -> Web {
    let (listener, address) = listen().await;
    serving(listener, answer(address.port()))
}

fn serving(listener: TcpListener, answer: impl Fn(&str) -> String + 'static) -> Web {
    let address = listener.local_addr().unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let connections = Rc::new(RefCell::new(0));
    let web =
        Web { port: address.port(), seen: Rc::clone(&seen), connections: Rc::clone(&connections) };
    let answer = Rc::new(answer);
    spawn_local(async move {
        while let Ok((client, _)) = listener.accept().await {
            *connections.borrow_mut() += 1;
            spawn_local(answer_all(client, Rc::clone(&answer), Rc::clone(&seen)));
        }
    });
    web
}

pub(crate) async fn answer_all<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: S,
    answer: Rc<impl Fn(&str) -> String>,
    seen: Rc<RefCell<Vec<String>>>,
) {
    let mut read = Vec::new();
    loop {
        while length(&read).is_none_or(|length| read.len() < length) {
            if !matches!(client.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        }
        let request: Vec<u8> = read.drain(..length(&read).unwrap()).collect();
        let request = String::from_utf8(request).unwrap();
        let answer = answer(&request);
        seen.borrow_mut().push(request);
        if client.write_all(answer.as_bytes()).await.is_err() || client.flush().await.is_err() {
            return;
        }
        if answer.contains("101 ") {
            // From here on it says back what it hears.
            let (mut reader, mut writer) = tokio::io::split(client);
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
            return;
        }
        if answer.to_lowercase().contains("connection: close") || !answer.contains("HTTP/1.1") {
            return;
        }
    }
}

/// How long the request is, once its head is there.
fn length(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let head = text.find("\r\n\r\n")? + 4;
    let field = |name: &str| {
        let line = text[..head].lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(": ")?.1.to_owned())
    };
    if field("transfer-encoding").is_some() {
        return Some(head + text[head..].find("0\r\n\r\n")? + 5);
    }
    Some(head + field("content-length").map_or(0, |length| length.parse().unwrap()))
}

/// The explicit proxy, serving.
pub(crate) async fn proxy(config: Config) -> (SocketAddr, Rc<Engine>, Outbox) {
    let (engine, outbox) = engine(config);
    (proxy_of(Rc::clone(&engine)).await, engine, outbox)
}

pub(crate) async fn proxy_of(engine: Rc<Engine>) -> SocketAddr {
    let (listener, address) = listen().await;
    spawn_local(async move {
        while let Ok((client, _)) = listener.accept().await {
            spawn_local(explicit::serve(Rc::clone(&engine), client));
        }
    });
    address
}

/// Says all of it and no more, and hears everything that is answered.
pub(crate) async fn ask(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // A reset ends it as well.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// A configuration in which these names, on this port, are this machine.
pub(crate) fn local(names: &[&str], port: u16) -> Config {
    let entries: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let config = crate::test_support::config(&entries);
    names.iter().fold(config, |config, name| config.knows(name, Ipv4Addr::LOCALHOST))
}
