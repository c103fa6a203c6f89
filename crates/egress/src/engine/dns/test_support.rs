//! A name server that says what a test wants, and a sandbox's side of the resolver.

use super::message::MAX_REPLY_BYTES;
use crate::config::{Checks, Config, Limits, Lookup, OnUnknown};
use crate::engine::Engine;
use crate::events::{Events, Outbox};
use crate::wire::EgressEvent;
use hickory_proto::op::{Message, Metadata, OpCode, Query as Question, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{DNSClass, Name as WireName, RData, Record, RecordType};
use palisade_hosts::{HostEntry, Rules};
use palisade_record::network::NameQueried;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a test on one thread, as the process does.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async { timeout(TIMEOUT, test).await.unwrap() })
}

/// A server for all names there are, on loopback. Names it does not have do not exist.
#[derive(Clone)]
pub(crate) struct Zone {
    pub(crate) server: SocketAddr,
    names: Rc<RefCell<HashMap<String, Says>>>,
    asked: Rc<RefCell<Vec<String>>>,
}

#[derive(Clone)]
enum Says {
    Addresses(Vec<IpAddr>, u32),
    AliasOf(String),
    Code(ResponseCode),
}

impl Zone {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = socket.local_addr().unwrap();
        let zone = Self { server, names: Rc::default(), asked: Rc::default() };
        spawn_local(zone.clone().serve(socket));
        zone
    }

    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        self.set_for(name, addresses, 300);
    }

    /// With a TTL in seconds.
    pub(crate) fn set_for(&self, name: &str, addresses: &[&str], ttl: u32) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.names.borrow_mut().insert(name.to_owned(), Says::Addresses(addresses, ttl));
    }

    /// The alias alone is told, as an authoritative server does that does not answer for the other name.
    pub(crate) fn set_alias(&self, name: &str, of: &str) {
        self.names.borrow_mut().insert(name.to_owned(), Says::AliasOf(of.to_owned()));
    }

    pub(crate) fn fail(&self, name: &str, code: ResponseCode) {
        self.names.borrow_mut().insert(name.to_owned(), Says::Code(code));
    }

    /// Everything that ever reached it: `name TYPE`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    pub(crate) fn config(&self) -> Lookup {
        Lookup { servers: vec![self.server], known: Vec::new() }
    }

    async fn serve(self, socket: UdpSocket) {
        let mut packet = [0; 4096];
        while let Ok((length, client)) = socket.recv_from(&mut packet).await {
            let query = Message::from_vec(&packet[..length]).unwrap();
            socket.send_to(&self.answer(&query), client).await.unwrap();
        }
    }

    fn answer(&self, query: &Message) -> Vec<u8> {
        let question = query.queries[0].clone();
        let name = question.name().to_ascii().to_lowercase().trim_end_matches('.').to_owned();
        self.asked.borrow_mut().push(format!("{name} {}", question.query_type()));
        let mut reply = Message::response(query.metadata.id, OpCode::Query);
        reply.metadata = Metadata::response_from_request(&query.metadata);
        match self.names.borrow().get(&name) {
            Some(Says::Addresses(addresses, ttl)) => {
                for address in addresses {
                    let data = match address {
                        IpAddr::V4(v4) => RData::A(A(*v4)),
                        IpAddr::V6(v6) => RData::AAAA(AAAA(*v6)),
                    };
                    if data.record_type() == question.query_type() {
                        reply.add_answer(Record::from_rdata(question.name().clone(), *ttl, data));
                    }
                }
            }
            Some(Says::AliasOf(other)) => {
                let target =
                    RData::CNAME(CNAME(WireName::from_ascii(format!("{other}.")).unwrap()));
                reply.add_answer(Record::from_rdata(question.name().clone(), 0, target));
            }
            Some(Says::Code(code)) => reply.metadata.response_code = *code,
            None => reply.metadata.response_code = ResponseCode::NXDomain,
        }
        reply.add_query(question);
        reply.to_vec().unwrap()
    }
}

/// Rules that allow and deny what is written.
pub(crate) fn rules(allowed: &[&str], denied: &[&str]) -> Rules {
    let entries =
        |texts: &[&str]| texts.iter().map(|text| HostEntry::parse(text).unwrap()).collect();
    Rules::new(entries(allowed), entries(denied), Vec::new(), Vec::new())
}

pub(crate) fn config(rules: Rules, lookup: Lookup) -> Config {
    Config {
        checks: Checks::default(),
        rules,
        on_unknown: OnUnknown::Deny,
        limits: Limits::default(),
        follow_redirects: false,
        upstream: None,
        credentials: Vec::new(),
        authority: None,
        lookup,
    }
}

/// The resolver, served on loopback, and somebody who asks it.
pub(crate) struct Inside {
    pub(crate) engine: Rc<Engine>,
    pub(crate) client: UdpSocket,
    pub(crate) outbox: Outbox,
}

/// An answer, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) code: ResponseCode,
    pub(crate) data: Vec<String>,
}

pub(crate) fn code(code: ResponseCode) -> Heard {
    Heard { code, data: Vec::new() }
}

impl Inside {
    pub(crate) async fn start(config: Config) -> Self {
        let (events, outbox) = Events::new();
        let engine = Engine::new(config, events).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        client.connect(socket.local_addr().unwrap()).await.unwrap();
        spawn_local(super::serve_udp(Rc::clone(&engine), socket));
        Self { engine, client, outbox }
    }

    pub(crate) async fn ask(&self, name: &str, record: RecordType) -> Heard {
        let reply = self.send(&question(name, record, DNSClass::IN)).await;
        Heard {
            code: reply.metadata.response_code,
            data: reply.answers.iter().map(|record| record.data.to_string()).collect(),
        }
    }

    pub(crate) async fn address(&self, name: &str, record: RecordType) -> IpAddr {
        let heard = self.ask(name, record).await;
        assert_eq!((heard.code, heard.data.len()), (ResponseCode::NoError, 1), "{heard:?}");
        heard.data[0].parse().unwrap()
    }

    pub(crate) async fn send(&self, query: &Message) -> Message {
        let reply = self.send_raw(&query.to_vec().unwrap()).await;
        assert_eq!(reply.metadata.id, query.metadata.id);
        reply
    }

    pub(crate) async fn send_raw(&self, packet: &[u8]) -> Message {
        self.client.send(packet).await.unwrap();
        let mut reply = [0; 2 * MAX_REPLY_BYTES];
        let length = self.client.recv(&mut reply).await.unwrap();
        assert!(length <= MAX_REPLY_BYTES);
        Message::from_vec(&reply[..length]).unwrap()
    }

    /// What was told about queries since the last time.
    pub(crate) fn event(&mut self) -> Vec<NameQueried> {
        let event = self.outbox.rest().into_iter();
        event
            .filter_map(|event| {
                if let EgressEvent::Queried(queried) = event { Some(queried) } else { None }
            })
            .collect()
    }
}

pub(crate) fn question(name: &str, record: RecordType, class: DNSClass) -> Message {
    let mut name = WireName::from_ascii(name).unwrap();
    name.set_fqdn(true);
    let mut question = Question::query(name, record);
    question.set_query_class(class);
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(question);
    message
}
