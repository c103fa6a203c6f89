//! DNS messages (RFC 1035, EDNS by RFC 6891), as far as a resolver for one machine needs them.
//!
//! Parsing is strict: one question and nothing else but EDNS. Whatever else a message contains is never read
//! and never forwarded.

use hickory_proto::op::{
    Edns, Header, Message, MessageType, Metadata, OpCode, Query as Question, ResponseCode,
};
use hickory_proto::rr::{DNSClass, Name as WireName, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};
use palisade_hosts::{Host, Name};
use std::net::IpAddr;

/// Far above the longest question with EDNS, padding (RFC 8467: to a multiple of 128) and cookies.
pub const MAX_QUERY_BYTES: usize = 1024;
/// Our replies are never longer, so none is ever truncated.
pub const MAX_REPLY_BYTES: usize = 1024;
/// The UDP payload size that we advertise: not fragmented on any usual network (DNS flag day 2020).
const PAYLOAD: u16 = 1232;
/// TTL of every record, in seconds. A name keeps its addresses much longer, but after this time programs query
/// again, so that it is checked again whether the name is allowed and exists.
const TTL: u32 = 60;

/// The content of a packet.
#[derive(Debug)]
pub enum Received {
    Query(Query),
    /// Not a supported query, with the reply to send.
    Bad {
        code: ResponseCode,
        reply: Vec<u8>,
    },
    /// Nothing to reply to: too short for an id, or itself a response.
    Nothing,
}

/// A question about one name.
#[derive(Debug)]
pub struct Query {
    metadata: Metadata,
    question: Question,
    edns: bool,
}

/// The subject of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Root,
    Name(Name),
    /// A complete name below `in-addr.arpa` or `ip6.arpa`.
    Reverse(IpAddr),
    /// An address written as a name (`127.0.0.1`, `2130706433`), or bytes that do not occur in host names.
    NoHostName,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: ResponseCode,
    pub data: Option<RData>,
}

impl Answer {
    pub fn empty(code: ResponseCode) -> Self {
        Self { code, data: None }
    }

    pub fn with(data: RData) -> Self {
        Self { code: ResponseCode::NoError, data: Some(data) }
    }
}

/// Parses a packet from inside.
pub fn read(packet: &[u8]) -> Received {
    let mut decoder = BinDecoder::new(packet);
    let Ok(Header { metadata, counts }) = Header::read(&mut decoder) else {
        return Received::Nothing;
    };
    if metadata.message_type != MessageType::Query {
        return Received::Nothing;
    }
    if metadata.op_code != OpCode::Query {
        return bad(metadata, ResponseCode::NotImp);
    }
    let shaped = counts.queries == 1
        && counts.answers == 0
        && counts.authorities == 0
        && counts.additionals <= 1
        && !metadata.truncation
        && packet.len() <= MAX_QUERY_BYTES;
    if !shaped {
        return bad(metadata, ResponseCode::FormErr);
    }
    let question = Question::read(&mut decoder);
    let extra =
        Message::read_records(&mut decoder, counts.additionals.into(), true, metadata.op_code);
    let (Ok(question), Ok((others, edns, _signature))) = (question, extra) else {
        return bad(metadata, ResponseCode::FormErr);
    };
    if !others.is_empty() || !decoder.is_empty() {
        return bad(metadata, ResponseCode::FormErr);
    }
    let query = Query { metadata, question, edns: edns.is_some() };
    if edns.is_some_and(|edns| edns.version() != 0) {
        let code = ResponseCode::BADVERS;
        return Received::Bad { code, reply: query.reply(&Answer::empty(code)) };
    }
    Received::Query(query)
}

fn bad(metadata: Metadata, code: ResponseCode) -> Received {
    let reply = encode(&response(metadata, code));
    Received::Bad { code, reply }
}

fn response(metadata: Metadata, code: ResponseCode) -> Message {
    let mut message = Message::response(metadata.id, metadata.op_code);
    message.metadata = Metadata::response_from_request(&metadata);
    message.metadata.recursion_available = true;
    message.metadata.response_code = code;
    message
}

fn encode(message: &Message) -> Vec<u8> {
    message.to_vec().unwrap_or_default()
}

impl Query {
    pub fn record_type(&self) -> RecordType {
        self.question.query_type()
    }

    pub fn is_internet(&self) -> bool {
        self.question.query_class() == DNSClass::IN
    }

    pub fn subject(&self) -> Subject {
        let name = self.question.name();
        if name.is_root() {
            return Subject::Root;
        }
        if let Some(address) = reverse(name) {
            return Subject::Reverse(address);
        }
        if !name.iter().flatten().copied().all(is_plain) {
            return Subject::NoHostName;
        }
        match Host::parse(&self.shown()) {
            Ok(Host::Name(name)) => Subject::Name(name),
            Ok(Host::Address(_)) | Err(_) => Subject::NoHostName,
        }
    }

    /// The name for the log: lower case, without the trailing dot, other bytes as `\DDD` (RFC 4343).
    pub fn shown(&self) -> String {
        let name = self.question.name();
        if name.is_root() {
            return ".".to_owned();
        }
        let mut text = String::with_capacity(name.len());
        for label in name {
            if !text.is_empty() {
                text.push('.');
            }
            for &byte in label {
                if is_plain(byte) {
                    text.push(char::from(byte.to_ascii_lowercase()));
                } else {
                    text.push_str(&format!("\\{byte:03}"));
                }
            }
        }
        text
    }

    /// Repeats the name with its original case: some resolvers mix cases and compare
    /// (draft-vixie-dnsext-dns0x20).
    pub fn reply(&self, answer: &Answer) -> Vec<u8> {
        let mut message = response(self.metadata, answer.code);
        if let Some(data) = &answer.data {
            let name = self.question.name().clone();
            message.add_answer(Record::from_rdata(name, TTL, data.clone()));
        }
        message.add_query(self.question.clone());
        if self.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD);
            message.set_edns(edns);
        }
        encode(&message)
    }
}

fn reverse(name: &WireName) -> Option<IpAddr> {
    let net = name.parse_arpa_name().ok()?;
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}

/// Whether a byte needs no escape in text.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The code's conventional name, as in the logs of resolvers.
pub fn code_word(code: ResponseCode) -> &'static str {
    match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        ResponseCode::BADVERS => "BADVERS",
        _ => "OTHER",
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
