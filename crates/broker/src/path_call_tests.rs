use super::*;
use crate::call::CWD;
use palisade_bpf::table;

fn parsed(name: &str, args: [u64; 6]) -> Option<PathCall> {
    let number = table::number(Arch::X86_64, name).unwrap();
    let notification = Notification { id: 1, thread: None, number, args };
    PathCalls::of(Arch::X86_64, true).parse(&notification)
}

const PATH: u64 = 0x7f00_1234_5678;
/// As a C library passes it: an int, with whatever above it.
const NO_DIRECTORY: u64 = 0xffff_ff9c;

/// Proves: GATE-2 open-family
#[test]
fn opening_for_reading_is_one_and_opening_for_writing_is_none() {
    let plain = Wants::Open { directory: false, path_only: false };
    let here = PathArg { dir: CWD, address: PATH };
    let expected = PathCall::looking(here, true, plain);
    assert_eq!(parsed("open", [PATH, 0, 0, 0, 0, 0]), Some(expected));
    let expected = Some(PathCall { close_on_exec: true, ..expected });
    assert_eq!(parsed("openat", [NO_DIRECTORY, PATH, 0o2_000_000, 0, 0, 0]), expected);
    let flags = u64::from((OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW).bits());
    let at = PathArg { dir: 5, address: PATH };
    let wants = Wants::Open { directory: true, path_only: true };
    let expected = Some(PathCall::looking(at, false, wants));
    assert_eq!(parsed("openat", [5, PATH, flags, 0, 0, 0]), expected);
    let tmpfile = OFlags::TMPFILE.difference(OFlags::DIRECTORY);
    for writes in [OFlags::WRONLY, OFlags::RDWR, OFlags::CREATE, OFlags::TRUNC, tmpfile] {
        assert_eq!(parsed("openat", [5, PATH, writes.bits().into(), 0, 0, 0]), None, "{writes:?}");
    }
}

/// Proves: GATE-2 stat-family, GATE-2 chdir, GATE-2 exec
#[test]
fn each_call_has_its_path_and_its_flags_where_the_kernel_has_them() {
    let nofollow = u64::from(AtFlags::SYMLINK_NOFOLLOW.bits());
    let from = |dir| {
        move |follow, wants| Some(PathCall::looking(PathArg { dir, address: PATH }, follow, wants))
    };
    let (here, at) = (from(CWD), from(3));
    for name in ["stat", "access", "statfs", "getxattr", "listxattr"] {
        assert_eq!(parsed(name, [PATH, 0, 0, 0, 0, 0]), here(true, Wants::Look), "{name}");
    }
    for name in ["lstat", "readlink", "lgetxattr", "llistxattr"] {
        assert_eq!(parsed(name, [PATH, 0, 0, 0, 0, 0]), here(false, Wants::Look), "{name}");
    }
    assert_eq!(parsed("chdir", [PATH, 0, 0, 0, 0, 0]), here(true, Wants::Enter));
    assert_eq!(parsed("execve", [PATH, 0, 0, 0, 0, 0]), here(true, Wants::Execute));
    assert_eq!(parsed("faccessat", [3, PATH, 0, nofollow, 0, 0]), at(true, Wants::Look));
    assert_eq!(parsed("readlinkat", [3, PATH, 0, 0, 0, 0]), at(false, Wants::Look));
    for (name, flags) in
        [("newfstatat", 3), ("statx", 2), ("faccessat2", 3), ("getxattrat", 2), ("listxattrat", 2)]
    {
        let mut args = [3, PATH, 0, 0, 0, 0];
        assert_eq!(parsed(name, args), at(true, Wants::Look), "{name}");
        args[flags] = nofollow;
        assert_eq!(parsed(name, args), at(false, Wants::Look), "{name}");
    }
    assert_eq!(parsed("execveat", [3, PATH, 0, 0, nofollow, 0]), at(false, Wants::Execute));
    for (mask, follow) in [(2, true), (0x0200_0002, false)] {
        let watch = parsed("inotify_add_watch", [9, PATH, mask, 0, 0, 0]);
        assert_eq!(watch, here(follow, Wants::Look), "{mask:x}");
    }
    for (flags, follow) in [(0, false), (0x400, true)] {
        let handle = parsed("name_to_handle_at", [3, PATH, 0, 0, flags, 0]);
        assert_eq!(handle, at(follow, Wants::Look), "{flags:x}");
    }
}

#[test]
fn other_calls_are_none_and_exec_only_where_programs_are_asked_about() {
    for name in ["creat", "unlink", "rename", "mkdir", "truncate", "openat2", "read"] {
        assert_eq!(parsed(name, [PATH; 6]), None, "{name}");
    }
    let number = table::number(Arch::X86_64, "execve").unwrap();
    let notification = Notification { id: 1, thread: None, number, args: [PATH; 6] };
    assert_eq!(PathCalls::of(Arch::X86_64, false).parse(&notification), None);
    let unknown = Notification { number: u32::MAX, ..notification };
    assert_eq!(PathCalls::of(Arch::X86_64, true).parse(&unknown), None);
}
