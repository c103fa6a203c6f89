//! A collector for one test: a server at loopback that reads OTLP over HTTP, in Protocol Buffers, by itself.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use palisade_testkit::Invocation;

use crate::sessions_support::wait_until;

/// What a collector does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Takes it.
    Good,
    /// Reads nothing and answers nothing, until the other side has had enough.
    Silent,
    /// Answers with a line that does not end.
    Endless,
    /// Sends it somewhere else.
    Redirect,
    /// Refuses the first request of each path, and takes it when it comes again.
    BusyAtFirst,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                // Its own end: a connection that says nothing.
                if serve(stream, manner, &kept).is_none() {
                    return;
                }
            }
        });
        Self { port, requests, thread: Some(thread) }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// For a program that sends here.
    pub(crate) fn for_program(&self, program: Invocation) -> Invocation {
        program.env("OTEL_EXPORTER_OTLP_ENDPOINT", self.endpoint())
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let traces = requests.iter().filter(|request| request.path.ends_with("/v1/traces"));
        traces.flat_map(|request| spans_of(&request.body)).collect()
    }

    /// The span of this name; waits until it is there.
    #[track_caller]
    pub(crate) fn span(&self, name: &str) -> Span {
        let find = || self.spans().into_iter().find(|span| span.name == name);
        wait_until(&format!("a span `{name}` comes"), || find().is_some());
        find().unwrap()
    }

    /// The sums of a metric, by their attributes, added up; and how many values histograms have.
    pub(crate) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let requests = self.requests();
        let metrics = requests.iter().filter(|request| request.path.ends_with("/v1/metrics"));
        metrics.map(|request| metric_of(&request.body, name, labels)).sum()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Says nothing, which ends the thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// None: there was no request.
fn serve(stream: TcpStream, manner: Manner, kept: &Mutex<Vec<Request>>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    if manner == Manner::Silent {
        let mut rest = Vec::new();
        // Until the client closes.
        let _ = reader.read_to_end(&mut rest);
        return Some(());
    }
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let is_first = {
        let mut kept = kept.lock().unwrap();
        let is_first = kept.iter().all(|request| request.path != path);
        kept.push(Request { path, headers, body });
        is_first
    };
    // A client that has had enough is no error.
    let _ = match manner {
        Manner::Endless => {
            let line = vec![b'x'; 1 << 16];
            while writer.write_all(&line).is_ok() {}
            Ok(())
        }
        Manner::Redirect => {
            writer.write_all(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
        }
        Manner::BusyAtFirst if is_first => {
            writer.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        }
        _ => writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    };
    Some(())
}

/// A span, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty: none.
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Numbers as text.
    pub(crate) attributes: BTreeMap<String, String>,
    /// 2: an error.
    pub(crate) status: u64,
    /// Of the program that sent it.
    pub(crate) resource: BTreeMap<String, String>,
}

/// A field of a message: a number, or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// All fields of a message, with their numbers. Fails the test where it is none.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(message: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = message.split_first().unwrap();
            *message = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("a number without an end");
    }
    fn fixed<const N: usize>(message: &mut &[u8]) -> [u8; N] {
        let (bytes, rest) = message.split_at(N);
        *message = rest;
        bytes.try_into().unwrap()
    }
    let mut all = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => Field::Number(u64::from_le_bytes(fixed(&mut message))),
            2 => {
                let length = usize::try_from(varint(&mut message)).unwrap();
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(bytes)
            }
            5 => Field::Number(u32::from_le_bytes(fixed(&mut message)).into()),
            kind => panic!("a field of kind {kind}"),
        };
        all.push((tag >> 3, field));
    }
    all
}

/// The messages in a field of a message.
fn messages(message: &[u8], number: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter();
    let wanted = all.filter(|(known, _)| *known == number);
    wanted
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("field {number} is no message"),
        })
        .collect()
}

fn text(message: &[u8], number: u64) -> String {
    let found = messages(message, number).last().copied().unwrap_or_default();
    String::from_utf8(found.to_vec()).unwrap()
}

fn hex(message: &[u8], number: u64) -> String {
    let found = messages(message, number).last().copied().unwrap_or_default();
    found.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(message: &[u8], number: u64) -> Option<u64> {
    fields(message).into_iter().find_map(|(known, field)| match field {
        Field::Number(value) if known == number => Some(value),
        _ => None,
    })
}

fn attributes(message: &[u8], field: u64) -> BTreeMap<String, String> {
    let pairs = messages(message, field).into_iter().map(|pair| {
        let value = messages(pair, 2)[0];
        let value = match number(value, 3).or_else(|| number(value, 2)) {
            Some(number) => number.cast_signed().to_string(),
            None => text(value, 1),
        };
        (text(pair, 1), value)
    });
    pairs.collect()
}

fn spans_of(request: &[u8]) -> Vec<Span> {
    let mut all = Vec::new();
    for resource_spans in messages(request, 1) {
        let resource = attributes(messages(resource_spans, 1)[0], 1);
        let scoped = messages(resource_spans, 2).into_iter();
        for span in scoped.flat_map(|scoped| messages(scoped, 2)) {
            let status = messages(span, 15).first().and_then(|status| number(status, 3));
            all.push(Span {
                trace: hex(span, 1),
                id: hex(span, 2),
                parent: hex(span, 4),
                state: text(span, 3),
                name: text(span, 5),
                kind: number(span, 6).unwrap(),
                start: number(span, 7).unwrap(),
                end: number(span, 8).unwrap(),
                attributes: attributes(span, 9),
                status: status.unwrap_or(0),
                resource: resource.clone(),
            });
        }
    }
    all
}

fn metric_of(request: &[u8], name: &str, labels: &[(&str, &str)]) -> u64 {
    let mut sum = 0;
    for resource_metrics in messages(request, 1) {
        let scoped = messages(resource_metrics, 2).into_iter();
        let metrics = scoped.flat_map(|scoped| messages(scoped, 2));
        for metric in metrics.filter(|metric| text(metric, 1) == name) {
            for data in messages(metric, 7) {
                assert_eq!(number(data, 2), Some(1), "a run counts its own alone: a delta");
                for point in messages(data, 1) {
                    let has = attributes(point, 7);
                    if labels
                        .iter()
                        .all(|(name, value)| has.get(*name).is_some_and(|it| it == value))
                    {
                        sum += number(point, 6).unwrap_or(0);
                    }
                }
            }
            for data in messages(metric, 9) {
                sum += messages(data, 1)
                    .into_iter()
                    .map(|point| number(point, 4).unwrap())
                    .sum::<u64>();
            }
        }
    }
    sum
}

/// The names of processes that send, of this user's.
pub(crate) fn senders() -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_sender = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        name.trim() == "sandbox-otlp" && !state.contains(") Z ")
    };
    pids.filter(is_sender).collect()
}
