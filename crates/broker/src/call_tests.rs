use super::*;

fn asked(arch: Arch, name: &str, args: [u64; 6]) -> Option<Asked> {
    let number = table::number(arch, name).unwrap();
    Calls::of(arch).parse(&Notification { id: 1, thread: None, number, args })
}

fn parsed(arch: Arch, name: &str, args: [u64; 6]) -> Option<Call> {
    match asked(arch, name, args)? {
        Asked::Perform(call) => Some(call),
        Asked::Exec(_) => None,
    }
}

#[test]
fn the_path_of_a_program_is_found_in_both_calls() {
    let here = PathArg { dir: CWD, address: 0x1000 };
    assert_eq!(asked(Arch::X86_64, "execve", [0x1000, 1, 2, 0, 0, 0]), Some(Asked::Exec(here)));
    let there = PathArg { dir: 7, address: 0x1000 };
    assert_eq!(asked(Arch::X86_64, "execveat", [7, 0x1000, 1, 2, 0, 0]), Some(Asked::Exec(there)));
}

#[test]
fn arguments_land_where_they_belong() {
    let open = parsed(Arch::X86_64, "openat", [5, 0x1000, 0x41, 0o644, 0, 0]);
    let path = PathArg { dir: 5, address: 0x1000 };
    assert_eq!(open, Some(Call::Open { path, flags: 0x41, mode: 0o644 }));
    let here = PathArg { dir: CWD, address: 0x1000 };
    let made = parsed(Arch::X86_64, "creat", [0x1000, 0o600, 0, 0, 0, 0]);
    assert_eq!(made, Some(Call::Open { path: here, flags: 0o1101, mode: 0o600 }));
    let renamed = parsed(Arch::Aarch64, "renameat2", [3, 0x10, 4, 0x20, 2, 0]);
    let (from, to) = (PathArg { dir: 3, address: 0x10 }, PathArg { dir: 4, address: 0x20 });
    assert_eq!(renamed, Some(Call::Rename { from, to, flags: 2 }));
}

#[test]
fn the_upper_half_of_a_descriptor_does_not_count() {
    let made = parsed(Arch::X86_64, "mkdirat", [0xdead_ffff_ff9c, 0x10, 0o755, 0, 0, 0]);
    let path = PathArg { dir: CWD, address: 0x10 };
    assert_eq!(made, Some(Call::MakeDirectory { path, mode: 0o755 }));
}

/// Every call that the rule file hands to the broker is one that it can perform.
#[test]
fn every_brokered_call_is_known() {
    use palisade_bpf::{BaselineOptions, CallAnswer, Profile};
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let options =
            BaselineOptions { guard_writes: true, guard_exec: true, ..BaselineOptions::new(arch) };
        let spec = Profile::baseline(options).spec();
        let calls = Calls::of(arch);
        let brokered = spec.rules().iter().filter(|rule| rule.answer == CallAnswer::Broker);
        let mut seen = 0;
        for rule in brokered {
            let call = Notification { id: 1, thread: None, number: rule.syscall, args: [0; 6] };
            assert!(calls.parse(&call).is_some(), "{}", rule.syscall);
            seen += 1;
        }
        assert!(seen > 8, "{seen}");
    }
}
