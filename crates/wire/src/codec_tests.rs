use super::*;
use crate::{AsErrno, Raw, Truncated};
use palisade_sys::Errno;
use proptest::prelude::*;
use serde::Deserialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

const MAX_TEXT: usize = 10;

/// Everything a message may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sample {
    Unit,
    Fields {
        number: u64,
        #[serde(with = "Raw")]
        bytes: Vec<u8>,
        #[serde(with = "Raw")]
        paths: Vec<PathBuf>,
        #[serde(with = "Raw")]
        pairs: Vec<(PathBuf, PathBuf)>,
        #[serde(with = "AsErrno")]
        errno: Option<Errno>,
    },
    Text(#[serde(with = "Truncated::<MAX_TEXT>")] String),
    Bytes(#[serde(with = "Truncated::<MAX_TEXT>")] Vec<u8>),
    Errno(#[serde(with = "AsErrno")] Errno),
}

impl WireMessage for Sample {
    const MAX_BYTES: usize = 4096;
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(|path| OsString::from_vec(path).into())
}

fn any_fields() -> impl Strategy<Value = Sample> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    let paths = proptest::collection::vec(any_path(), 0..8);
    let pairs = proptest::collection::vec((any_path(), any_path()), 0..8);
    let errno = proptest::option::of((1..4096).prop_map(Errno::from_raw_os_error));
    (any::<u64>(), bytes, paths, pairs, errno).prop_map(|(number, bytes, paths, pairs, errno)| {
        Sample::Fields { number, bytes, paths, pairs, errno }
    })
}

proptest! {
    #[test]
    fn a_message_comes_back_as_it_was(message in any_fields()) {
        let packet = encode(&message).unwrap();
        prop_assert_eq!(decode(&packet), Ok(message));
    }

    #[test]
    fn a_truncated_message_and_one_with_trailing_bytes_are_refused(message in any_fields(), more: u8) {
        let mut packet = encode(&message).unwrap();
        for length in 0..packet.len() {
            let cut = decode::<Sample>(&packet[..length]);
            prop_assert!(matches!(cut, Err(WireError::Undecodable(_))), "{}: {:?}", length, cut);
        }
        packet.push(more);
        let longer = decode::<Sample>(&packet);
        prop_assert!(matches!(longer, Err(WireError::Undecodable(_))), "{:?}", longer);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode::<Sample>(&packet);
    }
}

#[test]
fn a_message_beyond_the_limit_is_refused_on_both_sides() {
    let message = Sample::Fields {
        number: 0,
        bytes: vec![0; Sample::MAX_BYTES],
        paths: Vec::new(),
        pairs: Vec::new(),
        errno: None,
    };
    let too_long = WireError::TooLong { limit: Sample::MAX_BYTES };
    assert_eq!(encode(&message), Err(too_long.clone()));
    let packet = postcard::to_extend(&message, Vec::new()).unwrap();
    assert_eq!(decode::<Sample>(&packet), Err(too_long));
}

#[test]
fn text_and_bytes_that_are_shown_are_truncated_by_the_sender() {
    let sent = |message: &Sample| decode::<Sample>(&encode(message).unwrap()).unwrap();
    // Not within a character.
    assert_eq!(sent(&Sample::Text("ééééé é".into())), Sample::Text("ééééé".into()));
    assert_eq!(sent(&Sample::Text("xééééé".into())), Sample::Text("xéééé".into()));
    assert_eq!(sent(&Sample::Bytes(vec![7; 11])), Sample::Bytes(vec![7; MAX_TEXT]));
}

#[test]
fn a_number_that_is_no_errno_is_refused() {
    let packet = encode(&Sample::Errno(Errno::NOENT)).unwrap();
    assert_eq!(packet, [4, 2]);
    for packet in [&[4, 0][..], &[4, 0x80, 0x20]] {
        assert!(matches!(decode::<Sample>(packet), Err(WireError::Undecodable(_))), "{packet:?}");
    }
    assert_eq!(decode(&[0]), Ok(Sample::Unit));
}
