//! The DNS resolver for programs in the sandbox.
//!
//! It answers with synthetic addresses, logs every query and limits their number. No content of a query may
//! leave the machine except the name of a host that a rule allows.

mod answer;
pub mod message;
mod suspicion;
mod synthetic;
#[cfg(test)]
pub(crate) mod test_support;

use crate::config::Config;
use crate::engine::Engine;
use crate::rate::Bucket;
use crate::wire::EgressEvent;
use answer::{Outcome, Step};
use hickory_proto::op::ResponseCode;
use message::{MAX_QUERY_BYTES, Query, Received, Subject, code_word};
use palisade_hosts::Name;
use palisade_record::network::NameQueried;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use suspicion::Watch;
use synthetic::Synthetic;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Limit for UDP queries that wait for a lookup outside.
const MAX_WAITING: usize = 256;
/// An idle connection is closed after this time (RFC 7766: a few seconds are enough).
const IDLE: Duration = Duration::from_secs(10);
/// For a complete query to arrive, or for a reply to be sent.
const SLOWEST: Duration = Duration::from_secs(5);

/// State of the resolver. Part of the engine.
#[derive(Debug)]
pub struct State {
    synthetic: Synthetic,
    watch: RefCell<Watch>,
    /// `None` means no limit.
    bucket: Option<RefCell<Bucket>>,
}

impl State {
    pub fn new(config: &Config) -> Self {
        let now = Instant::now();
        let bucket = || RefCell::new(Bucket::new(config.limits.queries_a_second, now));
        Self {
            synthetic: Synthetic::default(),
            watch: RefCell::new(Watch::new(now)),
            bucket: config.checks.bounded.then(bucket),
        }
    }

    /// Counts and inspects a name that would become known outside, whichever way it arrived. A `known` name
    /// reveals nothing new and does not count against the rate.
    pub(crate) fn count(&self, name: &str, known: Known) -> Counting {
        let suspicion = self.watch.borrow_mut().look(name, Instant::now());
        let is_within = known == Known::Yes || self.is_within_rate();
        Counting {
            suspicion: suspicion.map(|suspicion| suspicion.to_string()),
            counted: is_within.then_some(Counted(())),
        }
    }

    /// Whether it was counted recently.
    pub(crate) fn was_counted(&self, name: &Name) -> bool {
        self.watch.borrow().knows(name.as_str())
    }

    /// The name that a synthetic address represents.
    pub fn name_of(&self, address: IpAddr) -> Option<Name> {
        self.synthetic.name_of(address)
    }

    fn is_within_rate(&self) -> bool {
        self.bucket.as_ref().is_none_or(|bucket| bucket.borrow_mut().take(Instant::now()))
    }
}

/// Whether a name is already known outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}

/// Proof that a name was counted and is within the rate. A lookup requires it.
#[derive(Debug)]
pub(crate) struct Counted(());

impl Counted {
    /// For a name that does not come from inside.
    pub(crate) fn of_configuration() -> Self {
        Self(())
    }

    /// For a name that was counted before and is remembered.
    pub(crate) fn again() -> Self {
        Self(())
    }
}

/// The result of counting a name.
#[derive(Debug)]
pub(crate) struct Counting {
    /// What is suspicious about it.
    pub(crate) suspicion: Option<String>,
    /// `None` if the rate is exceeded.
    pub(crate) counted: Option<Counted>,
}

/// Answers UDP queries until the socket fails. Without the socket no name has an address, so the run ends.
pub async fn serve_udp(engine: Rc<Engine>, socket: UdpSocket) {
    let error = answer_datagrams(&engine, socket).await;
    let why = format!("the resolver's socket failed: {error}");
    engine.events.tell(EgressEvent::Unable { why });
}

async fn answer_datagrams(engine: &Rc<Engine>, socket: UdpSocket) -> io::Error {
    let socket = Rc::new(socket);
    let mut waiting = JoinSet::new();
    // One byte more than allowed, so that longer packets are detected.
    let mut packet = [0; MAX_QUERY_BYTES + 1];
    loop {
        engine.events.room().await;
        let (length, client) = tokio::select! {
            received = socket.recv_from(&mut packet) => match received {
                Ok(received) => received,
                Err(error) => return error,
            },
            Some(_) = waiting.join_next() => continue,
        };
        let Some(packet) = packet.get(..length) else { continue };
        match hear(engine, packet) {
            Heard::Nothing => {}
            Heard::Reply(reply) => send(&socket, &reply, client),
            Heard::LookUp(look_up) if waiting.len() >= MAX_WAITING => {
                send(&socket, &look_up.put_off(engine), client);
            }
            Heard::LookUp(look_up) => {
                let (engine, socket) = (Rc::clone(engine), Rc::clone(&socket));
                waiting.spawn_local(async move {
                    send(&socket, &look_up.finish(&engine).await, client);
                });
            }
        }
    }
}

/// A client that does not read loses replies, as on any network.
fn send(socket: &UdpSocket, reply: &[u8], client: SocketAddr) {
    let _lost = socket.try_send_to(reply, client);
}

/// Answers the queries of one connection, one after another.
pub async fn serve_tcp(engine: Rc<Engine>, stream: TcpStream) {
    let _over = converse(&engine, stream).await;
}

async fn converse(engine: &Engine, mut stream: TcpStream) -> io::Result<()> {
    let mut packet = Vec::new();
    loop {
        let length = usize::from(timeout(IDLE, stream.read_u16()).await??);
        if length > MAX_QUERY_BYTES {
            return Ok(());
        }
        packet.resize(length, 0);
        timeout(SLOWEST, stream.read_exact(&mut packet)).await??;
        engine.events.room().await;
        let reply = match hear(engine, &packet) {
            Heard::Nothing => return Ok(()),
            Heard::Reply(reply) => reply,
            Heard::LookUp(look_up) => look_up.finish(engine).await,
        };
        let Ok(length) = u16::try_from(reply.len()) else { return Ok(()) };
        let framed = [&length.to_be_bytes(), reply.as_slice()].concat();
        timeout(SLOWEST, stream.write_all(&framed)).await??;
    }
}

/// What to do with a packet.
enum Heard {
    Nothing,
    Reply(Vec<u8>),
    LookUp(LookUp),
}

/// An allowed name that has to be looked up before the reply.
struct LookUp {
    query: Query,
    suspicion: Option<String>,
    counted: Counted,
    name: Name,
    rule: String,
}

impl LookUp {
    async fn finish(self, engine: &Engine) -> Vec<u8> {
        let Self { query, suspicion, counted, name, rule } = self;
        let outcome = answer::look_up(engine, &query, &name, counted, rule).await;
        tell(engine, &query, outcome, suspicion)
    }

    fn put_off(self, engine: &Engine) -> Vec<u8> {
        let reason = "too many names are being looked up";
        let outcome = Outcome::bad(ResponseCode::ServFail, reason).by(Some(self.rule));
        tell(engine, &self.query, outcome, self.suspicion)
    }
}

/// Whether the query repeats one that was answered before and is still remembered. It reveals nothing new, and
/// nothing is sent outside. Programs that resolve their host for every connection send such queries.
fn is_repeated(engine: &Engine, query: &Query) -> bool {
    let Subject::Name(name) = query.subject() else { return false };
    let stays_here = || engine.config.upstream.is_some() || engine.judge_name(&name).is_open();
    engine.dns.synthetic.knows(&name) && (engine.remembers(&name) || stays_here())
}

fn hear(engine: &Engine, packet: &[u8]) -> Heard {
    let query = match message::read(packet) {
        Received::Query(query) => query,
        Received::Bad { code, reply } => {
            tell_malformed(engine, code);
            let within = engine.dns.is_within_rate();
            return if within { Heard::Reply(reply) } else { Heard::Nothing };
        }
        Received::Nothing => return Heard::Nothing,
    };
    let known = if is_repeated(engine, &query) { Known::Yes } else { Known::No };
    let Counting { suspicion, counted } = engine.dns.count(&query.shown(), known);
    let Some(counted) = counted else {
        let limit = format!("{} queries a second", engine.config.limits.queries_a_second);
        let outcome = Outcome::bad(ResponseCode::Refused, "too many queries").by(Some(limit));
        return Heard::Reply(tell(engine, &query, outcome, suspicion));
    };
    match answer::first(engine, &query) {
        Step::Answered(outcome) => Heard::Reply(tell(engine, &query, outcome, suspicion)),
        Step::LookUp { name, rule } => {
            Heard::LookUp(LookUp { query, suspicion, counted, name, rule })
        }
    }
}

/// Logs the query with its outcome, and returns the reply.
fn tell(engine: &Engine, query: &Query, outcome: Outcome, suspicion: Option<String>) -> Vec<u8> {
    let Outcome { answer, rule, reason } = outcome;
    let reply = query.reply(&answer);
    engine.events.tell(EgressEvent::Queried(NameQueried {
        name: query.shown(),
        record: query.record_type().to_string(),
        answer: code_word(answer.code).to_owned(),
        rule,
        reason,
        suspicion,
        count: 1,
    }));
    reply
}

fn tell_malformed(engine: &Engine, code: ResponseCode) {
    engine.events.tell(EgressEvent::Queried(NameQueried {
        name: "(malformed)".to_owned(),
        record: "any".to_owned(),
        answer: code_word(code).to_owned(),
        rule: None,
        reason: Some("not a query".to_owned()),
        suspicion: None,
        count: 1,
    }));
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
