use super::*;

#[test]
fn a_name_is_one_component_of_a_path() {
    for bad in [&b"\0"[..], b".\0", b"..\0", b"/\0", b"a/b\0", b"../etc\0", b"/etc\0"] {
        assert_eq!(Reader::new(bad).name(), Err(Malformation::BadName), "{bad:?}");
    }
    for good in [&b"a"[..], b"...", b".git", b"\xff\xfe", b"a\nb"] {
        let bytes = [good, b"\0"].concat();
        assert_eq!(Reader::new(&bytes).name(), Ok(good));
    }
}

#[test]
fn a_name_without_an_end_is_refused() {
    assert_eq!(Reader::new(b"abc").name(), Err(Malformation::UnendedName));
    assert_eq!(Reader::new(b"").name(), Err(Malformation::UnendedName));
}

#[test]
fn a_field_that_is_cut_takes_nothing() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert_eq!(reader.u32(), Err(Malformation::Truncated));
    assert_eq!(reader.rest(), [1, 2, 3]);
}

#[test]
fn counted_data_is_all_that_is_left() {
    assert_eq!(Reader::new(b"abc").counted(3), Ok(&b"abc"[..]));
    for stated in [0, 2, 4, u32::MAX] {
        let wrong = Malformation::Count { stated, received: 3 };
        assert_eq!(Reader::new(b"abc").counted(stated), Err(wrong));
    }
}
