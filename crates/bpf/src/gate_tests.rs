use super::*;
use crate::interp::SeccompData;
use crate::{Arch, CallAnswer, FilterSpec, Profile, table};

/// Proves: GATE-10 remove
#[test]
fn what_removes_a_name_is_shown_to_the_broker_where_it_could_be_allowed() {
    let arch = Arch::X86_64;
    for (gate_programs, guard_writes) in
        [(true, true), (true, false), (false, true), (false, false)]
    {
        let plain = BaselineOptions::new(arch);
        let options = BaselineOptions { gate_programs, guard_writes, ..plain };
        let spec = Profile::baseline(options).spec();
        for name in ["unlink", "unlinkat", "rmdir"] {
            let number = table::number(arch, name).expect(name);
            let expected = match gate_programs && guard_writes {
                true => CallAnswer::Broker,
                false => CallAnswer::Allow,
            };
            assert_eq!(spec.answer(&SeccompData::new(arch, number, [0; 6])), expected, "{name}");
        }
    }
}

/// Where a file system notices the use of a path, only what it cannot notice is shown to the broker.
#[test]
fn programs_and_tests_for_writing_are_shown_to_the_broker_with_either_trigger() {
    let arch = Arch::X86_64;
    let options = BaselineOptions { gate_programs: true, ..BaselineOptions::new(arch) };
    let spec = Profile::baseline(options).spec();
    let says = |name: &str, args: [u64; 6]| {
        let number = table::number(arch, name).expect(name);
        spec.answer(&SeccompData::new(arch, number, args))
    };
    for name in ["execve", "execveat", "openat2"] {
        assert_eq!(says(name, [0; 6]), CallAnswer::Broker, "{name}");
    }
    for name in ["stat", "newfstatat", "statx", "open", "openat", "readlink", "chdir", "access"] {
        assert_eq!(says(name, [0; 6]), CallAnswer::Allow, "{name}");
    }
    for (name, mode) in [("access", 1), ("faccessat", 2), ("faccessat2", 2)] {
        let with = |value| {
            let mut args = [0; 6];
            args[mode] = value;
            args
        };
        assert_eq!(says(name, with(2)), CallAnswer::Broker, "{name} W_OK");
        assert_eq!(says(name, with(4)), CallAnswer::Allow, "{name} R_OK");
    }
}

/// What a call is answered whose other arguments are 0.
fn answer(spec: &FilterSpec, name: &str, (argument, value): (usize, u64)) -> CallAnswer {
    let mut args = [0; 6];
    args[argument] = value;
    let number = table::number(Arch::X86_64, name).expect(name);
    spec.answer(&SeccompData::new(Arch::X86_64, number, args))
}

/// Such calls end with the look-up, which the file system has to answer at once.
#[test]
fn what_looks_a_name_up_and_nothing_else_is_shown_to_the_broker_where_there_are_stubs() {
    const ENOSYS: u16 = 38;
    let arch = Arch::X86_64;
    for gate_stubs in [true, false] {
        let options = BaselineOptions { gate_stubs, ..BaselineOptions::new(arch) };
        let spec = Profile::baseline(options).spec();
        let says = |name: &str, argument, value| answer(&spec, name, (argument, value));
        let told = if gate_stubs { CallAnswer::Broker } else { CallAnswer::Allow };
        for (name, argument, value) in [
            ("open", 1, 0o10_000_000),
            ("openat", 2, 0o12_000_000),
            ("name_to_handle_at", 4, 0),
            ("inotify_add_watch", 2, 0),
        ] {
            assert_eq!(says(name, argument, value), told, "{name}");
        }
        assert_eq!(says("openat", 2, 0o2_000_000), CallAnswer::Allow);
        assert_eq!(says("statx", 2, 0), CallAnswer::Allow);
        // Also with AT_EMPTY_PATH, which does not mean that there is no path.
        for flags in [0x4000, 0x5000] {
            match says("statx", 2, flags) {
                CallAnswer::Refuse(refusal) if gate_stubs => assert_eq!(refusal.errno, ENOSYS),
                answer => assert_eq!((answer, gate_stubs), (CallAnswer::Allow, false)),
            }
        }
    }
}

/// Proves: GATE-2 open-family, GATE-2 stat-family, GATE-2 chdir, GATE-2 exec
#[test]
fn what_names_a_path_and_writes_nothing_is_shown_to_the_broker() {
    const AT_EMPTY_PATH: u64 = 0x1000;
    let arch = Arch::X86_64;
    let options =
        BaselineOptions { gate_paths: true, gate_programs: true, ..BaselineOptions::new(arch) };
    let spec = Profile::baseline(options).spec();
    let says = |name: &str, argument, value| answer(&spec, name, (argument, value));
    for name in [
        "stat",
        "lstat",
        "access",
        "faccessat",
        "readlink",
        "readlinkat",
        "statfs",
        "chdir",
        "getxattr",
        "lgetxattr",
        "listxattr",
        "llistxattr",
        "execve",
    ] {
        assert_eq!(says(name, 5, 0), CallAnswer::Broker, "{name}");
    }
    for (name, flags) in [
        ("newfstatat", 3),
        ("faccessat2", 3),
        ("statx", 2),
        ("getxattrat", 2),
        ("listxattrat", 2),
        ("execveat", 4),
    ] {
        assert_eq!(says(name, flags, 0x100), CallAnswer::Broker, "{name}");
        assert_eq!(says(name, flags, AT_EMPTY_PATH), CallAnswer::Allow, "{name} of a descriptor");
    }
    for (name, flags) in [("open", 1), ("openat", 2)] {
        for reads in [0, 0o2_000_000, 0o10_200_000] {
            assert_eq!(says(name, flags, reads), CallAnswer::Broker, "{name} {reads:o}");
        }
        for writes in [1, 2, 0o100, 0o1000, 0o20_000_000] {
            assert_eq!(says(name, flags, writes), CallAnswer::Allow, "{name} {writes:o}");
        }
    }
    for name in
        ["fstat", "fstatfs", "fchdir", "unlink", "rename", "mkdir", "creat", "truncate", "read"]
    {
        assert_eq!(says(name, 5, 0), CallAnswer::Allow, "{name}");
    }
}
