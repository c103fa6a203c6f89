//! Packets that the resolver inside gets: reading one never panics, a name that is read is the one on the wire, and
//! every answer can be read, is short, and says nothing that was not asked for.
#![no_main]

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::RData;
use hickory_proto::rr::rdata::A;
use libfuzzer_sys::fuzz_target;
use palisade_egress::dns::message::{Answer, MAX_REPLY_BYTES, Received, Subject, read};
use std::net::Ipv4Addr;

fuzz_target!(|packet: &[u8]| {
    let query = match read(packet) {
        Received::Nothing => return,
        Received::Bad { reply, .. } => {
            let reply = answer_to(packet, &reply);
            assert!(
                reply.answers.is_empty() && reply.metadata.response_code != ResponseCode::NoError
            );
            return;
        }
        Received::Query(query) => query,
    };
    let asked = Message::from_vec(packet).expect("a query is a message").queries;
    assert_eq!(asked.len(), 1);
    if let Subject::Name(name) = query.subject() {
        let labels: Vec<Vec<u8>> =
            asked[0].name().iter().map(|label| label.to_ascii_lowercase()).collect();
        let same = name.labels().map(str::as_bytes).eq(labels.iter().map(Vec::as_slice));
        assert!(same, "{name:?} is not {labels:?}");
        assert_eq!(query.shown(), name.as_str());
    }
    let address = Answer::with(RData::A(A(Ipv4Addr::new(198, 18, 1, 0))));
    for answer in [Answer::empty(ResponseCode::NXDomain), address] {
        let reply = answer_to(packet, &query.reply(&answer));
        assert_eq!(reply.queries, asked);
        assert_eq!(reply.metadata.response_code, answer.code);
        assert_eq!(reply.answers.len(), usize::from(answer.data.is_some()));
        assert!(!reply.metadata.truncation);
    }
});

fn answer_to(packet: &[u8], reply: &[u8]) -> Message {
    assert!(reply.len() <= MAX_REPLY_BYTES);
    let reply = Message::from_vec(reply).expect("an answer can be read");
    assert_eq!(reply.metadata.message_type, MessageType::Response);
    assert_eq!(reply.metadata.id.to_be_bytes(), packet[..2]);
    reply
}
