use super::*;
use crate::ids::NodeId;
use crate::layout::{u32_at, u64_at};

const ATTRIBUTES: Attributes = Attributes {
    ino: 41,
    size: 42,
    blocks: 43,
    accessed: Timestamp { seconds: 44, nanoseconds: 45 },
    modified: Timestamp { seconds: 46, nanoseconds: 47 },
    changed: Timestamp { seconds: 48, nanoseconds: 49 },
    mode: 0o100_644,
    links: 1,
    uid: 50,
    gid: 51,
    device: 0,
    block_size: 512,
};
const ENTRY: Entry = Entry {
    node: NodeId(2),
    generation: 3,
    attributes: ATTRIBUTES,
    entry_valid: Duration::new(4, 5),
    attributes_valid: Duration::new(6, 7),
};
const OPENED: Opened =
    Opened { handle: FileHandle(0xfeed), flags: OpenFlags::DIRECT_IO.union(OpenFlags::KEEP_CACHE) };

#[test]
fn an_error_is_a_negative_errno_and_nothing_else() {
    for (errno, number) in [(Errno::NOENT, -2), (Errno::NOSYS, -38), (Errno::INTR, -4)] {
        let reply = Reply::error(errno);
        assert_eq!(reply.error_field(), number);
        assert!(reply.payload().is_empty());
    }
}

#[test]
fn done_is_no_error_and_no_bytes() {
    let reply = Reply::done();
    assert_eq!((reply.error_field(), reply.payload()), (0, &b""[..]));
}

#[test]
fn an_entry_has_every_field_in_its_place() {
    let reply = Reply::entry(&ENTRY);
    let bytes = reply.payload();
    assert_eq!((reply.error_field(), bytes.len()), (0, 128));
    assert_eq!([0, 8, 16, 24].map(|offset| u64_at(bytes, offset)), [2, 3, 4, 6]);
    assert_eq!([32, 36].map(|offset| u32_at(bytes, offset)), [5, 7]);
    assert_eq!(bytes[40..], ATTRIBUTES.write(Writer::default()).finish());
}

#[test]
fn no_entry_is_node_0_for_a_time() {
    let reply = Reply::no_entry(Duration::new(4, 5));
    let bytes = reply.payload();
    assert_eq!((reply.error_field(), bytes.len()), (0, 128));
    assert_eq!((u64_at(bytes, 16), u32_at(bytes, 32)), (4, 5));
    assert_eq!(bytes[..16], [0; 16]);
    assert_eq!(bytes[36..], [0; 92]);
}

#[test]
fn attributes_come_with_the_time_they_may_be_used() {
    let reply = Reply::attributes(&ATTRIBUTES, Duration::new(4, 5));
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 104);
    assert_eq!((u64_at(bytes, 0), u32_at(bytes, 8), u32_at(bytes, 12)), (4, 5, 0));
    assert_eq!(bytes[16..], ATTRIBUTES.write(Writer::default()).finish());
}

#[test]
fn statx_comes_with_the_time_it_may_be_used() {
    let reply = Reply::statx(&ATTRIBUTES, None, Duration::new(4, 5));
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 288);
    assert_eq!((u64_at(bytes, 0), u32_at(bytes, 8)), (4, 5));
    assert_eq!(bytes[12..32], [0; 20]);
    assert_eq!(bytes[32..], ATTRIBUTES.write_statx(None, Writer::default()).finish());
}

#[test]
fn an_open_file_has_every_field_in_its_place() {
    let reply = Reply::opened(OPENED);
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 16);
    assert_eq!((u64_at(bytes, 0), u32_at(bytes, 8), u32_at(bytes, 12)), (0xfeed, 3, 0));
}

#[test]
fn a_created_file_is_an_entry_and_an_open_file() {
    let reply = Reply::created(&ENTRY, OPENED);
    let parts = [Reply::entry(&ENTRY).payload, Reply::opened(OPENED).payload].concat();
    assert_eq!(reply.payload(), parts);
    assert_eq!(parts.len(), 144);
}

#[test]
fn data_is_as_it_is() {
    let borrowed = Reply::data(&b"a\0b"[..]);
    assert_eq!(borrowed.payload(), b"a\0b");
    assert_eq!(Reply::data(b"a\0b".to_vec()), borrowed);
    assert_eq!(borrowed.clone().into_owned(), borrowed);
}

#[test]
fn sizes_and_positions_have_their_fields_in_place() {
    for reply in [Reply::written(77), Reply::xattr_size(77)] {
        assert_eq!(reply.payload().len(), 8);
        assert_eq!((u32_at(reply.payload(), 0), u32_at(reply.payload(), 4)), (77, 0));
    }
    let reply = Reply::position(1 << 40);
    assert_eq!((reply.payload().len(), u64_at(reply.payload(), 0)), (8, 1 << 40));
}

#[test]
fn the_state_of_the_file_system_has_every_field_in_its_place() {
    let reply = Reply::statfs(&FileSystemStats {
        blocks: 1,
        blocks_free: 2,
        blocks_available: 3,
        files: 4,
        files_free: 5,
        block_size: 6,
        max_name: 7,
        fragment_size: 8,
    });
    let bytes = reply.payload();
    assert_eq!(bytes.len(), 80);
    assert_eq!([0, 8, 16, 24, 32].map(|offset| u64_at(bytes, offset)), [1, 2, 3, 4, 5]);
    assert_eq!([40, 44, 48].map(|offset| u32_at(bytes, offset)), [6, 7, 8]);
    assert_eq!(bytes[52..], [0; 28]);
}

#[test]
fn the_state_of_a_file_system_is_that_of_the_host() {
    let stat = rustix::fs::statvfs("/").unwrap();
    let stats = FileSystemStats::from(&stat);
    assert_eq!(stats.blocks, stat.f_blocks);
    assert_eq!(u64::from(stats.max_name), stat.f_namemax);
}
