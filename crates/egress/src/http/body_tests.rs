use super::*;
use proptest::prelude::*;

/// The content, and what follows the body.
fn read(
    bytes: &[u8],
    framing: Framing,
    from: From,
    step: usize,
) -> Result<(Vec<u8>, Vec<u8>), BodyFault> {
    let mut body = Body::new(framing, from);
    let mut content = Vec::new();
    let (mut at, mut seen) = (0, 0);
    while !body.is_done() {
        let piece = body.advance(&bytes[at..seen])?;
        let start = at + piece.framing;
        content.extend_from_slice(&bytes[start..start + piece.content]);
        at = start + piece.content;
        if piece == Piece::default() && !body.is_done() {
            if seen == bytes.len() {
                body.end()?;
            }
            seen = (seen + step).min(bytes.len());
        }
    }
    Ok((content, bytes[at..].to_vec()))
}

fn strict(text: &str) -> Result<(Vec<u8>, Vec<u8>), BodyFault> {
    read(text.as_bytes(), Framing::Chunked, From::Inside, 3)
}

#[test]
fn a_body_ends_where_its_length_says() {
    let (content, rest) = read(b"helloGET /", Framing::Length(5), From::Inside, 2).unwrap();
    assert_eq!((content.as_slice(), rest.as_slice()), (b"hello".as_slice(), b"GET /".as_slice()));
    assert_eq!(read(b"hell", Framing::Length(5), From::Inside, 2), Err(BodyFault::Truncated));
    let (content, rest) = read(b"all of it", Framing::UntilClose, From::Server, 2).unwrap();
    assert_eq!((content.len(), rest.len()), (9, 0));
    let (content, rest) = read(b"next", Framing::NONE, From::Inside, 2).unwrap();
    assert_eq!((content.len(), rest.len()), (0, 4));
}

#[test]
fn chunks_are_taken_out_of_their_frames() {
    let (content, rest) = strict("5\r\nhello\r\n00A\r\n, you two!\r\n0\r\n\r\nGET /").unwrap();
    assert_eq!(
        (content.as_slice(), rest.as_slice()),
        (b"hello, you two!".as_slice(), b"GET /".as_slice())
    );
    let (_, rest) = strict("0\r\nX-Sum: 5\r\n\r\nrest").unwrap();
    assert_eq!(rest, b"rest");
}

/// Proves: NET-4 one-reading
#[test]
fn chunks_that_can_be_read_in_two_ways_end_the_connection() {
    let cases = [
        ("5\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("5 \r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        (" 5\r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("5;a=b\r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("0x5\r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("+5\r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("-1\r\n\r\n", BodyFault::Size),
        ("\r\n5\r\nhello", BodyFault::Size),
        ("5\r\rhello", BodyFault::Size),
        ("00000000000000005\r\nhello\r\n0\r\n\r\n", BodyFault::Size),
        ("fffffffffffffffff\r\n", BodyFault::Size),
        ("5\r\nhelloX\r\n0\r\n\r\n", BodyFault::End),
        ("5\r\nhello\n0\r\n\r\n", BodyFault::End),
        ("5\r\nhello\r0\r\n\r\n", BodyFault::End),
        ("0\r\nX : y\r\n\r\n", BodyFault::Trailer),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", BodyFault::Trailer),
        ("0\r\nX: a\nb\r\n\r\n", BodyFault::Trailer),
        ("5\r\nhel", BodyFault::Truncated),
        ("5\r\nhello\r\n", BodyFault::Truncated),
        ("0\r\n", BodyFault::Truncated),
    ];
    for (text, expected) in cases {
        assert_eq!(strict(text), Err(expected), "{text:?}");
    }
}

#[test]
fn a_server_may_add_to_its_chunks() {
    let text = b"5;name=\"value\"\r\nhello\r\n0 \r\nwhat ever\r\n\r\n";
    let (content, _) = read(text, Framing::Chunked, From::Server, 4).unwrap();
    assert_eq!(content, b"hello");
    let endless = [b"5;".to_vec(), vec![b'a'; MAX_HEAD_BYTES + 2]].concat();
    assert_eq!(read(&endless, Framing::Chunked, From::Server, 4096), Err(BodyFault::Size));
}

proptest! {
    #[test]
    fn what_is_framed_anew_is_the_same(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        step in 1_usize..50,
    ) {
        let mut framed: Vec<u8> = pieces.iter().flat_map(|piece| Frames::chunk(piece)).collect();
        framed.extend_from_slice(Frames::Chunks.at_the_end());
        framed.extend_from_slice(b"rest");
        let (content, rest) = read(&framed, Framing::Chunked, From::Inside, step).unwrap();
        prop_assert_eq!(content, pieces.concat());
        prop_assert_eq!(rest, b"rest");
    }

    /// Proves: NET-4 one-reading
    #[test]
    fn how_it_arrives_changes_nothing(text in "[0-9a-f;\r\n x:]{0,40}", step in 1_usize..10) {
        let at_once = read(text.as_bytes(), Framing::Chunked, From::Inside, text.len().max(1));
        prop_assert_eq!(read(text.as_bytes(), Framing::Chunked, From::Inside, step), at_once);
    }
}
