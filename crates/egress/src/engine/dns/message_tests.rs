use super::*;
use crate::engine::dns::test_support::question;
use hickory_proto::rr::rdata::{A, PTR};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn packet(name: &str) -> Vec<u8> {
    question(name, RecordType::A, DNSClass::IN).to_vec().unwrap()
}

fn query(packet: &[u8]) -> Query {
    match read(packet) {
        Received::Query(query) => query,
        other => panic!("{other:?}"),
    }
}

fn refused(packet: &[u8]) -> ResponseCode {
    match read(packet) {
        Received::Bad { code, reply } => {
            let reply = Message::from_vec(&reply).unwrap();
            assert_eq!(reply.metadata.id.to_be_bytes(), packet[..2]);
            assert_eq!(reply.metadata.message_type, MessageType::Response);
            // BADVERS and BADSIG have one number.
            assert_eq!(u16::from(reply.metadata.response_code), u16::from(code));
            code
        }
        other => panic!("{other:?}"),
    }
}

/// A question whose labels are any bytes.
fn labels(labels: &[&[u8]]) -> Vec<u8> {
    let mut packet = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        packet.push(u8::try_from(label.len()).unwrap());
        packet.extend_from_slice(label);
    }
    packet.extend([0, 0, 1, 0, 1]);
    packet
}

#[test]
fn a_question_is_read_and_answered() {
    let query = query(&packet("Www.Example.COM."));
    assert_eq!(query.subject(), Subject::Name(Name::parse("www.example.com").unwrap()));
    assert_eq!(query.shown(), "www.example.com");
    let reply = query.reply(&Answer::with(RData::A(A(Ipv4Addr::new(198, 18, 1, 0)))));
    let reply = Message::from_vec(&reply).unwrap();
    assert_eq!(reply.queries[0].name().to_ascii(), "Www.Example.COM.", "letter for letter");
    assert_eq!(reply.answers[0].name.to_ascii(), "Www.Example.COM.");
    assert_eq!(reply.answers[0].data.to_string(), "198.18.1.0");
    assert!(reply.metadata.recursion_available && reply.metadata.recursion_desired);
    assert!(reply.edns.is_none(), "EDNS only for those who speak it");
}

#[test]
fn edns_is_answered_and_its_options_are_not_kept() {
    let mut message = question("a.example", RecordType::A, DNSClass::IN);
    let mut edns = Edns::new();
    edns.set_max_payload(4096);
    message.set_edns(edns);
    let reply = query(&message.to_vec().unwrap()).reply(&Answer::empty(ResponseCode::NXDomain));
    let reply = Message::from_vec(&reply).unwrap();
    assert_eq!(reply.edns.unwrap().max_payload(), PAYLOAD);

    let mut edns = Edns::new();
    edns.set_version(1);
    message.set_edns(edns);
    assert_eq!(refused(&message.to_vec().unwrap()), ResponseCode::BADVERS);
}

#[test]
fn what_is_not_one_plain_question_is_refused() {
    let good = packet("a.example");
    let with = |at: usize, byte: u8| {
        let mut packet = good.clone();
        packet[at] = byte;
        packet
    };
    for (what, packet) in [
        ("no question", with(5, 0)),
        ("two questions", with(5, 2)),
        ("an answer", with(7, 1)),
        ("an authority", with(9, 1)),
        ("an additional that is not there", with(11, 1)),
        ("two additionals", with(11, 2)),
        ("truncated", with(2, 0b0000_0011)),
        ("bytes behind it", [good.as_slice(), b"x"].concat()),
        ("cut off", good[..good.len() - 1].to_vec()),
        ("a pointer to itself", [&good[..12], &[0xc0, 12, 0, 1, 0, 1]].concat()),
        ("a label too long", labels(&[&[b'a'; 64]])),
        ("very long", [good.as_slice(), &[0; MAX_QUERY_BYTES]].concat()),
    ] {
        assert_eq!(refused(&packet), ResponseCode::FormErr, "{what}");
    }
    for opcode in 1..16_u8 {
        assert_eq!(refused(&with(2, opcode << 3)), ResponseCode::NotImp, "{opcode}");
    }
}

#[test]
fn a_record_beside_the_question_is_refused() {
    let mut message = question("a.example", RecordType::A, DNSClass::IN);
    let data = RData::A(A(Ipv4Addr::LOCALHOST));
    message.add_additional(Record::from_rdata(WireName::root(), 1, data));
    assert_eq!(refused(&message.to_vec().unwrap()), ResponseCode::FormErr);
}

#[test]
fn answers_and_scraps_get_no_answer() {
    let mut answer = packet("a.example");
    answer[2] |= 0x80;
    for packet in [&answer, &answer[..11], &[]] {
        assert!(matches!(read(packet), Received::Nothing));
    }
}

/// A dot or a NUL inside a label must not make another name of it (N11).
/// Proves: NET-3 spellings
#[test]
fn odd_bytes_never_make_another_name() {
    for odd in [
        labels(&[b"allowed.example"]),
        labels(&[b"allowed", b"example\0"]),
        labels(&[b"allowed", b"exam ple"]),
        labels(&[b"user@allowed", b"example"]),
        labels(&["ällowed".as_bytes(), b"example"]),
        labels(&[b"\xff\xfe", b"example"]),
        labels(&[b"*", b"example"]),
        labels(&[b"127", b"0", b"0", b"1"]),
        labels(&[b"2130706433"]),
    ] {
        let query = query(&odd);
        assert_eq!(query.subject(), Subject::NoHostName, "{}", query.shown());
    }
    assert_eq!(query(&labels(&[b"a\xffb", b"example"])).shown(), r"a\255b.example");
    let hyphen = query(&labels(&[b"-A", b"example"]));
    assert_eq!(hyphen.subject(), Subject::Name(Name::parse("-a.example").unwrap()));
    assert_eq!(hyphen.shown(), "-a.example");
    let root = query(&labels(&[]));
    assert_eq!((root.subject(), root.shown().as_str()), (Subject::Root, "."));
}

#[test]
fn the_longest_answers_fit() {
    let label = "a".repeat(61);
    let long = format!("{label}.{label}.{label}.{label}.");
    let mut message = question(&long, RecordType::PTR, DNSClass::IN);
    message.set_edns(Edns::new());
    let reply = query(&message.to_vec().unwrap()).reply(&Answer::with(RData::PTR(PTR(
        WireName::from_ascii(long.replace('a', "b")).unwrap(),
    ))));
    assert!(reply.len() <= MAX_REPLY_BYTES, "{}", reply.len());
    assert!(!Message::from_vec(&reply).unwrap().metadata.truncation);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        holds(&bytes);
    }

    #[test]
    fn any_change_to_a_query_is_read(at in 0_usize..40, byte in any::<u8>()) {
        let mut message = question("www.allowed.example", RecordType::A, DNSClass::IN);
        message.set_edns(Edns::new());
        let mut packet = message.to_vec().unwrap();
        let at = at % packet.len();
        packet[at] = byte;
        holds(&packet);
    }

    /// A name that is read is the name on the wire, label for label.
    #[test]
    fn a_name_is_what_was_asked(bytes in proptest::collection::vec("[a-zA-Z0-9_.-]{1,12}|[\\x00-\\x7f]{1,6}", 1..5)) {
        let wire: Vec<&[u8]> = bytes.iter().map(|label| label.as_bytes()).collect();
        if let Received::Query(query) = read(&labels(&wire))
            && let Subject::Name(name) = query.subject()
        {
            let lower: Vec<String> = bytes.iter().map(|label| label.to_lowercase()).collect();
            prop_assert_eq!(name.labels().collect::<Vec<_>>(), lower);
        }
    }
}

fn holds(packet: &[u8]) {
    match read(packet) {
        Received::Nothing => {}
        Received::Bad { reply, .. } => assert!(Message::from_vec(&reply).is_ok()),
        Received::Query(query) => {
            query.subject();
            query.shown();
            let reply = query.reply(&Answer::empty(ResponseCode::Refused));
            assert!(reply.len() <= MAX_REPLY_BYTES);
            let reply = Message::from_vec(&reply).unwrap();
            assert_eq!(reply.queries[0], query.question);
        }
    }
}
