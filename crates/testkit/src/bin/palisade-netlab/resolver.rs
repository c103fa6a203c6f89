//! The authoritative server of every name in the lab, over UDP and TCP. It remembers who asked what.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use serde_json::json;

use crate::Result;
use crate::journal::Journal;
use crate::names;

/// Nobody may rely on an old answer.
const TTL: u32 = 0;
const MAX_MESSAGE_BYTES: usize = 4096;

#[derive(Clone)]
struct Zone {
    journal: Journal,
    asked: Arc<Mutex<HashMap<(String, RecordType), u64>>>,
}

pub(crate) fn serve(journal: &Journal) -> Result<()> {
    let zone = Zone { journal: journal.clone(), asked: Arc::default() };
    let datagrams = UdpSocket::bind((names::RESOLVER, 53))?;
    let streams = TcpListener::bind((names::RESOLVER, 53))?;
    thread::spawn({
        let zone = zone.clone();
        move || zone.datagrams(&datagrams)
    });
    thread::spawn(move || {
        for stream in streams.incoming().flatten() {
            let zone = zone.clone();
            thread::spawn(move || zone.stream(stream));
        }
    });
    Ok(())
}

impl Zone {
    fn datagrams(&self, socket: &UdpSocket) {
        let mut buffer = [0; MAX_MESSAGE_BYTES];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if let Some(answer) = self.answer(&buffer[..length], "udp") {
                // Whoever went away does not want it.
                let _ = socket.send_to(&answer, from);
            }
        }
    }

    fn stream(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut question = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut question)?;
            let Some(answer) = self.answer(&question, "tcp") else { return Ok(()) };
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes()[..], &answer].concat())?;
        }
    }

    fn answer(&self, packet: &[u8], over: &str) -> Option<Vec<u8>> {
        let question = Message::from_vec(packet).ok()?;
        let query = question.queries.first()?.clone();
        let name = query.name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
        let kind = query.query_type;
        self.journal.note(&json!({
            "kind": "dns", "name": name, "record": kind.to_string(), "over": over,
        }));
        let mut answer = question.clone();
        answer.additionals.clear();
        answer.edns = None;
        answer.metadata.message_type = MessageType::Response;
        answer.metadata.authoritative = true;
        answer.metadata.recursion_available = true;
        let count = self.count(&name, kind);
        let aliased = names::aliased(&name);
        let mut owner = query.name.clone();
        for next in &aliased {
            let next = Name::from_ascii(format!("{next}.")).ok()?;
            let data = RData::CNAME(CNAME(next.clone()));
            answer.answers.push(Record::from_rdata(owner, TTL, data));
            owner = next;
        }
        match names::addresses(aliased.last().unwrap_or(&name), count) {
            Some(addresses) => answer.answers.extend(records(kind, &owner, &addresses)),
            None => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        answer.to_vec().ok()
    }

    /// How often this was asked before.
    fn count(&self, name: &str, kind: RecordType) -> u64 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry((name.to_owned(), kind)).or_default();
        *count += 1;
        *count - 1
    }
}

fn records(kind: RecordType, owner: &Name, addresses: &[IpAddr]) -> Vec<Record> {
    let wanted = match kind {
        RecordType::A => names::of_family(addresses, false),
        RecordType::AAAA => names::of_family(addresses, true),
        _ => Vec::new(),
    };
    let data = |address| match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    wanted
        .into_iter()
        .map(|address| Record::from_rdata(owner.clone(), TTL, data(address)))
        .collect()
}
