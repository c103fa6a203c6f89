use super::*;
use crate::error::ProtocolError;
use crate::handshake::InitFlags;
use crate::layout::{Layout, request};
use crate::request::Request;

/// The operation of a request, which must stop being one wherever it is cut or extended.
#[track_caller]
fn check(opcode: u32, body: &Layout, expected: &Operation<'_>) {
    let bytes = request(opcode, body);
    assert_eq!(&Request::parse(&bytes).unwrap().operation, expected);
    for length in 40..bytes.len() {
        assert!(error(opcode, &body.0[..length - 40]).is_some(), "cut to {length} bytes");
    }
    if !matches!(expected, Operation::Init(_)) {
        assert!(error(opcode, &[&body.0[..], b"x"].concat()).is_some(), "with a byte more");
    }
}

fn error(opcode: u32, body: &[u8]) -> Option<Malformation> {
    let bytes = request(opcode, &Layout(body.to_vec()));
    Request::parse(&bytes).err().map(|ProtocolError { malformation, .. }| malformation)
}

const HANDLE: FileHandle = FileHandle(0xfeed);

fn on_handle(bytes: usize) -> Layout {
    Layout::sized(bytes).u64(0, HANDLE.0)
}

#[test]
fn init_before_extended_flags() {
    let body = Layout::sized(16).u32(0, 7).u32(4, 31).u32(8, 131_072).u32(12, 0x0003_fffb);
    let flags = InitFlags::from_bits_retain(0x0003_fffb);
    let offer = Offer { major: 7, minor: 31, max_readahead: 131_072, flags };
    check(26, &body, &Operation::Init(offer));
}

#[test]
fn init_with_extended_flags() {
    let body = Layout::sized(64).u32(0, 7).u32(4, 38).u32(8, 4096).u32(12, 0x4000_0021).u32(16, 9);
    let bytes = request(26, &body);
    let flags = InitFlags::from_bits_retain(0x9_4000_0021);
    let offer = Offer { major: 7, minor: 38, max_readahead: 4096, flags };
    assert_eq!(Request::parse(&bytes).unwrap().operation, Operation::Init(offer));
    for length in 0..20 {
        assert_eq!(error(26, &body.0[..length]), Some(Malformation::Truncated));
    }
}

#[test]
fn without_the_flag_that_says_so_there_are_no_extended_flags() {
    let body = Layout::sized(64).u32(0, 7).u32(4, 38).u32(8, 4096).u32(12, 0x21).u32(16, 9);
    let bytes = request(26, &body);
    let Operation::Init(offer) = Request::parse(&bytes).unwrap().operation else { panic!() };
    assert_eq!(offer.flags.bits(), 0x21);
}

#[test]
fn lookup() {
    check(1, &Layout::sized(0).then(b"secrets\0"), &Operation::Lookup { name: b"secrets" });
}

#[test]
fn a_look_up_of_a_path_is_refused() {
    for name in [&b"a/b\0"[..], b"..\0", b".\0", b"\0"] {
        assert_eq!(error(1, name), Some(Malformation::BadName));
    }
}

#[test]
fn forget() {
    check(2, &Layout::sized(8).u64(0, 12), &Operation::Forget { count: 12 });
}

#[test]
fn batch_forget() {
    let body = Layout::sized(40).u32(0, 2).u64(8, 3).u64(16, 1).u64(24, 4).u64(32, u64::MAX);
    let bytes = request(42, &body);
    let Operation::BatchForget(list) = Request::parse(&bytes).unwrap().operation else { panic!() };
    let expected =
        [Forgotten { node: NodeId(3), count: 1 }, Forgotten { node: NodeId(4), count: u64::MAX }];
    assert_eq!(list.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_batch_with_another_count_is_refused() {
    for stated in [0, 1, 3, u32::MAX] {
        let wrong = Malformation::Count { stated, received: 32 };
        assert_eq!(error(42, &Layout::sized(40).u32(0, stated).0), Some(wrong));
    }
    assert_eq!(error(42, &Layout::sized(8).u32(0, 0).0), None);
}

#[test]
fn getattr_with_and_without_a_handle() {
    let body = Layout::sized(16).u32(0, 1).u64(8, HANDLE.0);
    check(3, &body, &Operation::GetAttr { handle: Some(HANDLE) });
    let body = Layout::sized(16).u32(0, 0).u64(8, HANDLE.0);
    check(3, &body, &Operation::GetAttr { handle: None });
}

/// `struct fuse_setattr_in` with every field set.
fn setattr(valid: u32) -> Layout {
    Layout::sized(88)
        .u32(0, valid)
        .u64(8, HANDLE.0)
        .u64(16, 4096)
        .u64(32, 1)
        .u64(40, u64::MAX)
        .u64(48, 3)
        .u32(56, 10)
        .u32(60, 20)
        .u32(64, 30)
        .u32(68, 0o600)
        .u32(76, 1000)
        .u32(80, 1001)
}

#[test]
fn setattr_changes_only_what_is_marked() {
    let none = Changes::default();
    let at = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
    let single = [
        (0, Changes { mode: Some(0o600), ..none }),
        (1, Changes { uid: Some(1000), ..none }),
        (2, Changes { gid: Some(1001), ..none }),
        (3, Changes { size: Some(4096), ..none }),
        (4, Changes { accessed: Some(NewTime::At(at(1, 10))), ..none }),
        (5, Changes { modified: Some(NewTime::At(at(-1, 20))), ..none }),
        (6, Changes { handle: Some(HANDLE), ..none }),
        (9, none),
        (10, Changes { changed: Some(at(3, 30)), ..none }),
        (11, Changes { clears_set_id: true, ..none }),
    ];
    check(4, &setattr(0), &Operation::SetAttr(none));
    for (bit, changes) in single {
        check(4, &setattr(1 << bit), &Operation::SetAttr(changes));
    }
}

#[test]
fn setattr_to_the_time_of_now() {
    let now = Some(NewTime::Now);
    let changes = Changes { accessed: now, modified: now, ..Changes::default() };
    check(4, &setattr(0b1_1011_0000), &Operation::SetAttr(changes));
    check(4, &setattr(0b1_1000_0000), &Operation::SetAttr(changes));
}

#[test]
fn statx() {
    let body = Layout::sized(24).u32(0, 1).u64(8, HANDLE.0).u32(16, 0x100).u32(20, 0xfff);
    check(52, &body, &Operation::Statx { handle: Some(HANDLE), flags: 0x100, mask: 0xfff });
}

#[test]
fn operations_without_arguments() {
    check(5, &Layout::sized(0), &Operation::ReadLink);
    check(17, &Layout::sized(0), &Operation::StatFs);
    check(38, &Layout::sized(0), &Operation::Destroy);
}

#[test]
fn symlink() {
    let expected = Operation::Symlink { name: b"link", target: b"../a/b" };
    check(6, &Layout::sized(0).then(b"link\0../a/b\0"), &expected);
    assert_eq!(error(6, b"link\0\0"), Some(Malformation::BadName));
}

#[test]
fn mknod() {
    let body = Layout::sized(16).u32(0, 0o010_644).u32(4, 0x0103).u32(8, 0o22).then(b"pipe\0");
    let expected = Operation::MkNod { name: b"pipe", mode: 0o010_644, device: 0x0103, umask: 0o22 };
    check(8, &body, &expected);
}

#[test]
fn mkdir() {
    let body = Layout::sized(8).u32(0, 0o755).u32(4, 0o22).then(b"new\0");
    check(9, &body, &Operation::MkDir { name: b"new", mode: 0o755, umask: 0o22 });
}

#[test]
fn unlink_and_rmdir() {
    check(10, &Layout::sized(0).then(b"f\0"), &Operation::Unlink { name: b"f" });
    check(11, &Layout::sized(0).then(b"d\0"), &Operation::RmDir { name: b"d" });
}

#[test]
fn rename_in_both_forms() {
    let new_parent = NodeId(8);
    let renamed = |flags| Operation::Rename { name: b"a", new_parent, new_name: b"bc", flags };
    check(12, &Layout::sized(8).u64(0, 8).then(b"a\0bc\0"), &renamed(0));
    check(45, &Layout::sized(16).u64(0, 8).u32(8, 2).then(b"a\0bc\0"), &renamed(2));
    assert_eq!(error(12, &Layout::sized(8).then(b"a\0b/c\0").0), Some(Malformation::BadName));
}

#[test]
fn link() {
    let body = Layout::sized(8).u64(0, 8).then(b"new\0");
    check(13, &body, &Operation::Link { old: NodeId(8), new_name: b"new" });
}

#[test]
fn open_and_opendir() {
    check(14, &Layout::sized(8).u32(0, 0x8001), &Operation::Open { flags: 0x8001 });
    check(27, &Layout::sized(8).u32(0, 0x18000), &Operation::OpenDir { flags: 0x18000 });
}

#[test]
fn create() {
    let body = Layout::sized(16).u32(0, 0xc1).u32(4, 0o100_644).u32(8, 0o22).then(b"new\0");
    let expected = Operation::Create { name: b"new", flags: 0xc1, mode: 0o100_644, umask: 0o22 };
    check(35, &body, &expected);
}

#[test]
fn read_and_the_listings_of_a_directory() {
    let body = on_handle(40).u64(8, 1 << 40).u32(16, 131_072).u32(32, 0x8000);
    let (handle, offset, size) = (HANDLE, 1 << 40, 131_072);
    check(15, &body, &Operation::Read { handle, offset, size, flags: 0x8000 });
    check(28, &body, &Operation::ReadDir { handle, offset, size });
    check(44, &body, &Operation::ReadDirPlus { handle, offset, size });
}

#[test]
fn write() {
    let body = on_handle(40).u64(8, 4096).u32(16, 3).u32(20, 4).u32(32, 0x8001).then(b"abc");
    let (data, flags, write_flags) = (&b"abc"[..], 0x8001, 4);
    let expected = Operation::Write { handle: HANDLE, offset: 4096, data, flags, write_flags };
    check(16, &body, &expected);
}

#[test]
fn a_write_of_another_size_than_its_data_is_refused() {
    for stated in [2, 4, u32::MAX] {
        let body = on_handle(40).u32(16, stated).then(b"abc");
        assert_eq!(error(16, &body.0), Some(Malformation::Count { stated, received: 3 }));
    }
}

#[test]
fn release_and_releasedir() {
    let body = on_handle(24).u32(8, 0x8000).u32(12, 1).u64(16, 99);
    check(18, &body, &Operation::Release { handle: HANDLE, flags: 0x8000 });
    check(29, &body, &Operation::ReleaseDir { handle: HANDLE, flags: 0x8000 });
}

#[test]
fn flush() {
    let body = on_handle(24).u64(16, 99);
    check(25, &body, &Operation::Flush { handle: HANDLE, lock_owner: 99 });
}

#[test]
fn fsync_and_fsyncdir() {
    for (flags, data_only) in [(0, false), (1, true)] {
        let body = on_handle(16).u32(8, flags);
        check(20, &body, &Operation::FSync { handle: HANDLE, data_only });
        check(30, &body, &Operation::FSyncDir { handle: HANDLE, data_only });
    }
}

#[test]
fn setxattr() {
    let body = Layout::sized(8).u32(0, 2).u32(4, 1).then(b"user.a/b\0\0v");
    check(21, &body, &Operation::SetXattr { name: b"user.a/b", value: b"\0v", flags: 1 });
}

#[test]
fn getxattr_listxattr_and_removexattr() {
    let body = Layout::sized(8).u32(0, 64).then(b"user.a\0");
    check(22, &body, &Operation::GetXattr { name: b"user.a", size: 64 });
    check(23, &Layout::sized(8).u32(0, 0), &Operation::ListXattr { size: 0 });
    check(24, &Layout::sized(0).then(b"user.a\0"), &Operation::RemoveXattr { name: b"user.a" });
}

#[test]
fn access() {
    check(34, &Layout::sized(8).u32(0, 5), &Operation::Access { mask: 5 });
}

#[test]
fn interrupt() {
    let request = Unique(0xabcd_ef00);
    check(36, &Layout::sized(8).u64(0, request.0), &Operation::Interrupt { request });
}

#[test]
fn lseek() {
    let body = on_handle(24).u64(8, 100).u32(16, 3);
    check(46, &body, &Operation::Lseek { handle: HANDLE, offset: 100, whence: 3 });
}

#[test]
fn ioctl() {
    let body = on_handle(32)
        .u32(8, 0x10)
        .u32(12, 0x5401)
        .u64(16, 0x7fff_0000)
        .u32(24, 4)
        .u32(28, 60)
        .then(b"abcd");
    let expected = Operation::Ioctl {
        handle: HANDLE,
        flags: 0x10,
        command: 0x5401,
        argument: 0x7fff_0000,
        input: b"abcd",
        output_size: 60,
    };
    check(39, &body, &expected);
}

#[test]
fn poll() {
    let body = on_handle(24).u64(8, 7).u32(16, 1).u32(20, 5);
    let expected = Operation::Poll { handle: HANDLE, kernel_handle: 7, flags: 1, events: 5 };
    check(40, &body, &expected);
}

#[test]
fn an_unknown_operation_is_known_by_its_number() {
    // Locks, BMAP, FALLOCATE, COPY_FILE_RANGE, DAX, SYNCFS, TMPFILE, and what does not exist yet.
    for opcode in [0, 7, 19, 31, 32, 33, 37, 41, 43, 47, 48, 49, 50, 51, 53, 4096, u32::MAX] {
        for body in [&b""[..], b"any thing"] {
            let bytes = request(opcode, &Layout(body.to_vec()));
            assert_eq!(Request::parse(&bytes).unwrap().operation, Operation::Other(opcode));
        }
    }
}

#[test]
fn some_operations_have_no_reply() {
    let request = Unique(1);
    let silent = [
        Operation::Forget { count: 1 },
        Operation::BatchForget(ForgottenList(&[])),
        Operation::Interrupt { request },
        Operation::Other(41),
    ];
    assert!(silent.iter().all(|operation| !operation.expects_reply()));
    let answered = [Operation::Destroy, Operation::StatFs, Operation::Other(43)];
    assert!(answered.iter().all(Operation::expects_reply));
}
