use super::*;
use crate::layout::{Layout, request};
use proptest::prelude::*;

const STATFS: u32 = 17;

fn header(length: u32, opcode: u32) -> Layout {
    Layout::sized(40).u32(0, length).u32(4, opcode).u64(8, 9).u64(16, 1).u32(32, 1).u32(36, 0)
}

#[test]
fn the_header_says_who_asks_about_what() {
    let bytes = request(STATFS, &Layout::sized(0));
    let read = Request::parse(&bytes).unwrap();
    assert_eq!(read.unique, Unique(0x1122_3344_5566));
    assert_eq!(read.node, NodeId(5));
    assert_eq!((read.uid, read.gid), (1000, 1001));
    assert_eq!(read.pid, Pid::from_raw(77));
    assert_eq!(read.operation, Operation::StatFs);
}

#[test]
fn a_caller_outside_the_pid_namespace_has_no_pid() {
    for pid in [0, u32::MAX, 1 << 31] {
        let bytes = header(40, STATFS).u32(32, pid).0;
        assert_eq!(Request::parse(&bytes).unwrap().pid, None, "{pid:#x}");
    }
}

#[test]
fn a_cut_header_is_refused_and_cannot_be_answered() {
    let bytes = request(STATFS, &Layout::sized(0));
    for length in 0..40 {
        let error = Request::parse(&bytes[..length]).unwrap_err();
        let malformation = Malformation::Truncated;
        assert_eq!(error, ProtocolError { unique: None, opcode: 0, malformation }, "{length}");
    }
}

#[test]
fn a_length_that_is_not_the_messages_is_refused() {
    for stated in [0, 39, 41, 48, u32::MAX] {
        let error = Request::parse(&header(stated, STATFS).0).unwrap_err();
        let malformation = Malformation::Length { stated, received: 40 };
        let unique = Some(Unique(9));
        assert_eq!(error, ProtocolError { unique, opcode: STATFS, malformation });
    }
}

#[test]
fn bytes_after_the_last_field_are_refused() {
    let bytes = header(48, STATFS).then(&[0; 8]).0;
    let error = Request::parse(&bytes).unwrap_err();
    assert_eq!(error.malformation, Malformation::Trailing(8));
}

#[test]
fn extensions_are_passed_over() {
    let body = b"name\0\0\0\0security";
    let bytes = header(40 + 5, 1).then(&body[..5]).0;
    let plain = Request::parse(&bytes).unwrap().operation;
    assert_eq!(plain, Operation::Lookup { name: b"name" });
    let bytes = header(40 + 5 + 8, 1).u16(36, 1).then(b"name\0security").0;
    assert_eq!(Request::parse(&bytes).unwrap().operation, plain);
}

#[test]
fn extensions_that_reach_into_the_header_are_refused() {
    for units in [1, 5, 6, 7, u16::MAX] {
        let bytes = header(40, STATFS).u16(36, units).0;
        assert_eq!(Request::parse(&bytes).unwrap_err().malformation, Malformation::Truncated);
    }
}

#[test]
fn a_malformed_request_that_has_no_reply_has_no_number() {
    for (opcode, answered) in [(2, false), (36, false), (42, false), (41, true), (1, true)] {
        let bytes = header(41, opcode).then(b"x").0;
        match Request::parse(&bytes) {
            Err(error) => assert_eq!(error.unique.is_some(), answered, "{opcode}"),
            Ok(request) => assert_eq!((opcode, request.operation.expects_reply()), (41, false)),
        }
    }
}

#[test]
fn an_error_names_the_operation_and_what_is_wrong() {
    let error = Request::parse(&header(44, 15).then(&[0; 4]).0).unwrap_err();
    assert_eq!(error.to_string(), "request 15 of the FUSE protocol: it ends within a field");
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&bytes);
    }

    #[test]
    fn parsing_a_body_never_panics_and_lends_only_of_it(
        opcode in 0_u32..60,
        extensions in prop_oneof![9 => Just(0_u16), 1 => 0_u16..8],
        body in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..200),
    ) {
        let length = u32::try_from(40 + body.len()).unwrap();
        let bytes = header(length, opcode).u16(36, extensions).then(&body).0;
        let Ok(request) = Request::parse(&bytes) else { return Ok(()) };
        match request.operation {
            Operation::Lookup { name } | Operation::Create { name, .. } => {
                prop_assert!(!name.is_empty() && !name.contains(&0) && !name.contains(&b'/'));
            }
            Operation::Write { data, .. } => prop_assert_eq!(data.len() + 40, body.len()),
            Operation::BatchForget(list) => {
                prop_assert_eq!(list.iter().count() * 16 + 8, body.len());
            }
            _ => {}
        }
    }
}
