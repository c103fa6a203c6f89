use super::*;
use crate::layout::{u16_at, u32_at};
use crate::reply::Reply;

const KIB: u32 = 1024;
const TERMS: Terms = Terms {
    flags: InitFlags::USUAL,
    max_write: 1024 * KIB,
    max_readahead: 128 * KIB,
    max_background: 16,
};

/// What a kernel of that version offers: every flag.
fn offer(minor: u32) -> Offer {
    let flags = InitFlags::from_bits_retain(u64::MAX);
    Offer { major: 7, minor, max_readahead: u32::MAX, flags }
}

#[track_caller]
fn agreed(offer: &Offer, terms: &Terms) -> Agreement {
    match offer.agree(terms) {
        Ok(Handshake::Agreed(agreement)) => agreement,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_smaller_of_both_versions_is_agreed() {
    for (theirs, expected) in [(31, 31), (38, 38), (45, 45), (46, 45), (u32::MAX, 45)] {
        assert_eq!(agreed(&offer(theirs), &TERMS).minor, expected);
    }
}

#[test]
fn an_old_kernel_is_refused_with_its_version() {
    for (major, minor) in [(7, 30), (7, 0), (6, 99), (0, 0)] {
        let old = Offer { major, minor, ..offer(0) }.agree(&TERMS).unwrap_err();
        assert_eq!(old, OldKernel { major, minor });
        let text = format!("the kernel speaks version {major}.{minor} of the FUSE protocol");
        assert!(old.to_string().starts_with(&text), "{old}");
    }
}

#[test]
fn a_later_major_version_is_asked_for_another_offer() {
    let later = Offer { major: 8, ..offer(0) };
    assert_eq!(later.agree(&TERMS), Ok(Handshake::LaterMajor));
    let reply = Reply::our_version();
    assert_eq!(reply.payload().len(), 64);
    assert_eq!((u32_at(reply.payload(), 0), u32_at(reply.payload(), 4)), (7, 45));
}

#[test]
fn only_what_is_wanted_and_offered_is_agreed() {
    let all = agreed(&offer(45), &TERMS).flags;
    assert_eq!(all, InitFlags::USUAL | InitFlags::ALWAYS);
    let few = Offer { flags: InitFlags::ASYNC_READ | InitFlags::DONT_MASK, ..offer(45) };
    assert_eq!(agreed(&few, &TERMS).flags, InitFlags::ASYNC_READ);
}

#[test]
fn what_changes_messages_or_needs_privileges_is_never_agreed() {
    let everything = Terms { flags: InitFlags::from_bits_retain(u64::MAX), ..TERMS };
    let flags = agreed(&offer(45), &everything).flags.bits();
    // EXPORT_SUPPORT, MAP_ALIGNMENT, SETXATTR_EXT, the reserved one, SECURITY_CTX, CREATE_SUPP_GROUP, PASSTHROUGH,
    // ALLOW_IDMAP, OVER_IO_URING, REQUEST_TIMEOUT.
    for bit in [4, 26, 29, 31, 32, 34, 37, 40, 41, 42] {
        assert_eq!(flags & (1 << bit), 0, "bit {bit}");
    }
}

#[test]
fn read_ahead_is_at_most_what_both_sides_say() {
    assert_eq!(agreed(&offer(45), &TERMS).max_readahead, 128 * KIB);
    let less = Offer { max_readahead: 4096, ..offer(45) };
    assert_eq!(agreed(&less, &TERMS).max_readahead, 4096);
}

#[test]
fn pages_follow_from_the_largest_write() {
    let page = u32::try_from(rustix::param::page_size()).unwrap();
    let cases = [(0, 1), (1, 1), (page, 1), (page + 1, 2), (16 * page, 16)];
    for (max_write, pages) in cases {
        let agreement = agreed(&offer(45), &Terms { max_write, ..TERMS });
        assert_eq!(agreement.max_pages, pages, "{max_write}");
        assert!(agreement.max_write >= page);
    }
    let agreement = agreed(&offer(45), &Terms { max_write: u32::MAX, ..TERMS });
    assert_eq!(agreement.max_pages, u16::MAX);
    assert_eq!(agreement.max_write, page * 65535);
}

#[test]
fn without_agreed_pages_a_write_is_32_of_them() {
    let page = u32::try_from(rustix::param::page_size()).unwrap();
    let plain = Offer { flags: InitFlags::BIG_WRITES, ..offer(31) };
    let agreement = agreed(&plain, &Terms { max_write: u32::MAX, ..TERMS });
    assert_eq!((agreement.max_write, agreement.max_pages), (32 * page, 32));
}

#[test]
fn the_reply_has_every_field_in_its_place() {
    let flags = InitFlags::ASYNC_READ | InitFlags::INIT_EXT | InitFlags::DIRECT_IO_ALLOW_MMAP;
    let agreement = Agreement {
        minor: 39,
        flags,
        max_write: 0x1_0000,
        max_readahead: 0x2_0000,
        max_background: 16,
        max_pages: 17,
    };
    let reply = Reply::init(&agreement);
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 64);
    let words = [0, 4, 8, 12, 20, 24, 32].map(|offset| u32_at(bytes, offset));
    assert_eq!(words, [7, 39, 0x2_0000, 0x4000_0001, 0x1_0000, 1, 0x10]);
    let halves = [16, 18, 28, 30].map(|offset| u16_at(bytes, offset));
    assert_eq!(halves, [16, 12, 17, 0]);
    assert_eq!(bytes[36..], [0; 28]);
}
