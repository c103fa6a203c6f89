use libseccomp::{ScmpArch, ScmpSyscall};

use super::*;

const BOTH: [(Arch, ScmpArch); 2] =
    [(Arch::X86_64, ScmpArch::X8664), (Arch::Aarch64, ScmpArch::Aarch64)];

/// Proves: SYS-1 filter-exact
///
/// libseccomp keeps its own tables; where it knows a name, it must agree.
#[test]
fn numbers_agree_with_libseccomp() {
    for (arch, oracle) in BOTH {
        let mut compared = 0;
        for (name, number) in entries(arch) {
            // Older versions of the library do not know the newest names.
            let Ok(known) = ScmpSyscall::from_name_by_arch(name, oracle) else { continue };
            assert_eq!(i64::from(i32::from(known)), i64::from(number), "{name} on {arch:?}");
            compared += 1;
        }
        assert!(compared > 300, "libseccomp knew only {compared} names of {arch:?}");
    }
}

/// Proves: SYS-1 filter-exact
///
/// The other way round: nothing libseccomp knows is missing from our tables.
#[test]
fn no_number_known_to_libseccomp_is_missing() {
    for (arch, oracle) in BOTH {
        for number in 0..470 {
            let Ok(known) = ScmpSyscall::from(number).get_name_by_arch(oracle) else { continue };
            assert_eq!(name(arch, number.unsigned_abs()), Some(known.as_str()), "{arch:?}");
        }
    }
}

#[test]
fn names_and_numbers_lead_to_each_other() {
    for (arch, _) in BOTH {
        for (known, known_number) in entries(arch) {
            assert_eq!(number(arch, known), Some(known_number));
            assert_eq!(name(arch, known_number), Some(known));
        }
        assert_eq!(number(arch, "file_setattr"), Some(469));
        assert_eq!(name(arch, 470), None);
    }
}

/// Proves: POL-2 unknown-key
#[test]
fn a_misspelt_name_finds_the_meant_one() {
    assert_eq!(nearest("openatt"), Some("openat"));
    assert_eq!(nearest("exitgroup"), Some("exit_group"));
    assert_eq!(nearest("teleport_the_process"), None);
}
