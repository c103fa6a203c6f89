use super::*;
use crate::attributes::Attributes;
use crate::ids::NodeId;
use crate::layout::{u32_at, u64_at};
use crate::reply::Reply;

fn entry(name: &[u8]) -> DirectoryEntry<'_> {
    DirectoryEntry { ino: 70, next_offset: 71, file_type: FileType::Directory, name }
}

fn found() -> Entry {
    Entry {
        node: NodeId(80),
        generation: 81,
        attributes: Attributes { ino: 82, ..Attributes::default() },
        entry_valid: Duration::from_secs(83),
        attributes_valid: Duration::from_secs(84),
    }
}

#[test]
fn an_entry_has_every_field_in_its_place() {
    let mut listing = Listing::new(4096);
    assert_eq!(listing.add(&entry(b"abc")), Room::Added);
    let reply = Reply::listing(&listing);
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 32);
    assert_eq!([0, 8].map(|offset| u64_at(bytes, offset)), [70, 71]);
    assert_eq!([16, 20].map(|offset| u32_at(bytes, offset)), [3, 4]);
    assert_eq!(&bytes[24..], b"abc\0\0\0\0\0");
}

#[test]
fn an_entry_with_attributes_has_every_field_in_its_place() {
    let mut listing = ListingPlus::new(4096);
    assert_eq!(listing.add(&entry(b"abc"), Some(&found())), Room::Added);
    let reply = Reply::listing_plus(&listing);
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 160);
    let wide = [0, 8, 16, 24, 40, 128, 136].map(|offset| u64_at(bytes, offset));
    assert_eq!(wide, [80, 81, 83, 84, 82, 70, 71]);
    assert_eq!([144, 148].map(|offset| u32_at(bytes, offset)), [3, 4]);
    assert_eq!(&bytes[152..], b"abc\0\0\0\0\0");
}

#[test]
fn an_entry_without_attributes_is_left_to_a_look_up() {
    let mut listing = ListingPlus::new(4096);
    assert_eq!(listing.add(&entry(b"abc"), None), Room::Added);
    assert_eq!(listing.bytes()[..128], [0; 128]);
    assert_eq!(u64_at(listing.bytes(), 128), 70);
}

#[test]
fn names_are_padded_to_eight_bytes() {
    for (length, size) in [(1, 32), (7, 32), (8, 32), (9, 40), (255, 280)] {
        let mut listing = Listing::new(4096);
        assert_eq!(listing.add(&entry(&vec![b'n'; length])), Room::Added);
        assert_eq!(listing.bytes().len(), size, "{length}");
    }
}

#[test]
fn a_full_listing_takes_no_more() {
    let mut listing = Listing::new(32 * 3 + 31);
    for _ in 0..3 {
        assert_eq!(listing.add(&entry(b"12345678")), Room::Added);
    }
    let before = listing.bytes().to_vec();
    assert_eq!(listing.add(&entry(b"1")), Room::Full);
    assert_eq!(listing.bytes(), before);
}

#[test]
fn a_listing_is_filled_to_its_last_byte() {
    let mut listing = ListingPlus::new(160 * 2);
    assert_eq!(listing.add(&entry(b"12345678"), Some(&found())), Room::Added);
    assert_eq!(listing.add(&entry(b"12345678"), None), Room::Added);
    assert_eq!(listing.add(&entry(b"1"), None), Room::Full);
    assert_eq!(listing.bytes().len(), 320);
}

#[test]
fn a_listing_without_room_stays_empty() {
    let mut listing = Listing::new(0);
    assert_eq!(listing.add(&entry(b"1")), Room::Full);
    assert!(Reply::listing(&listing).payload().is_empty());
}

#[test]
fn types_are_those_of_getdents() {
    let types = [
        (FileType::Fifo, 1),
        (FileType::CharacterDevice, 2),
        (FileType::Directory, 4),
        (FileType::BlockDevice, 6),
        (FileType::RegularFile, 8),
        (FileType::Symlink, 10),
        (FileType::Socket, 12),
        (FileType::Unknown, 0),
    ];
    for (file_type, number) in types {
        let mut listing = Listing::new(32);
        assert_eq!(listing.add(&DirectoryEntry { file_type, ..entry(b"x") }), Room::Added);
        assert_eq!(u32_at(listing.bytes(), 20), number, "{file_type:?}");
    }
}
