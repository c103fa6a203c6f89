use super::{HeadTail, MAX_TAIL, Size};
use proptest::prelude::*;

/// What a reader gets: the head, whether something is missing, the tail.
fn through(limit: u64, pieces: &[&[u8]]) -> (Vec<u8>, Option<(u64, u64)>, Vec<u8>) {
    let mut output = HeadTail::new(limit);
    let mut head = Vec::new();
    for piece in pieces {
        let passed = output.take(piece);
        head.extend_from_slice(&piece[..passed]);
    }
    let ending = output.end();
    (head, ending.cut.map(|cut| (cut.seen, cut.bytes)), ending.tail.into())
}

/// Proves: RES-2 output
#[test]
fn up_to_the_cap_nothing_is_missing_and_one_byte_more_cuts() {
    let (head, cut, tail) = through(8, &[b"abcdefgh"]);
    assert_eq!(([head, tail].concat(), cut), (b"abcdefgh".to_vec(), None));
    let (head, cut, tail) = through(8, &[b"abcdefghi"]);
    assert_eq!((&*head, cut, &*tail), (&b"abcd"[..], Some((9, 1)), &b"fghi"[..]));
}

/// Proves: RES-2 output
#[test]
fn the_end_begins_with_a_whole_line_if_one_is_near() {
    let lines = b"first line\nsecond line\nthird line\nfourth line\n";
    let (head, cut, tail) = through(32, &[lines]);
    assert_eq!(head, b"first line\nsecon");
    assert_eq!(tail, b"fourth line\n");
    assert_eq!(cut, Some((46, 46 - 16 - 12)));
    // Where the tail begins with a line by chance, all of it is kept.
    let (_, _, tail) = through(24, &[lines]);
    assert_eq!(tail, b"fourth line\n");
    // A line that is the whole tail is kept in part rather than not at all.
    let (_, _, tail) = through(8, &[b"0123456789\n"]);
    assert_eq!(tail, b"789\n");
}

/// Proves: RES-2 output
#[test]
fn no_character_is_cut_in_two() {
    let text = "äöü€😀".repeat(20);
    for limit in 1..=u64::try_from(text.len()).unwrap() {
        let (head, _, tail) = through(limit, &[text.as_bytes()]);
        assert!(std::str::from_utf8(&head).is_ok(), "head of {limit}: {head:x?}");
        assert!(std::str::from_utf8(&tail).is_ok(), "tail of {limit}: {tail:x?}");
        assert!(u64::try_from(head.len() + tail.len()).unwrap() <= limit);
    }
}

#[test]
fn what_is_no_text_loses_no_more_than_the_cap_says() {
    let (head, cut, tail) = through(16, &[&[0x80; 100]]);
    assert_eq!((head.len(), cut, tail.len()), (8, Some((100, 84)), 8));
}

/// Proves: RES-4 output
#[test]
fn a_large_cap_does_not_mean_a_large_memory() {
    let mut output = HeadTail::new(1 << 40);
    output.passed = (1 << 40) - MAX_TAIL;
    output.seen = output.passed;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        output.take(&piece);
    }
    assert!(output.is_past_head());
    assert_eq!(u64::try_from(output.tail.len()).unwrap(), MAX_TAIL);
}

#[test]
fn sizes_read_well() {
    let shown = [0, 1, 1023, 1024, 1536, 12_897_484, 5 << 30].map(|size| Size(size).to_string());
    assert_eq!(shown, ["0 bytes", "1 byte", "1023 bytes", "1 kB", "1.5 kB", "12.2 MB", "5 GB"]);
}

proptest! {
    /// Proves: RES-2 output
    #[test]
    fn however_it_comes_in_pieces_the_result_is_the_same(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            "[a\nä€😀]{0,100}".prop_map(String::into_bytes),
        ],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        limit in 1_u64..320,
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (head, cut, tail) = through(limit, &pieces);
        prop_assert_eq!(&(head.clone(), cut, tail.clone()), &through(limit, &[&bytes]));
        let seen = u64::try_from(bytes.len()).unwrap();
        let kept = u64::try_from(head.len() + tail.len()).unwrap();
        prop_assert!(kept <= limit);
        prop_assert!(bytes.starts_with(&head) && bytes.ends_with(&tail));
        match cut {
            None => prop_assert_eq!([head, tail].concat(), bytes),
            Some((all, missing)) => {
                prop_assert!(seen > limit);
                prop_assert_eq!((all, missing), (seen, seen - kept));
            }
        }
    }
}
