use super::*;
use crate::interp::SeccompData;
use crate::{Arch, CallAnswer, Profile, table};

/// Proves: GATE-10 remove
#[test]
fn what_removes_a_name_is_shown_to_the_broker_where_it_could_be_allowed() {
    let arch = Arch::X86_64;
    for (gate_paths, guard_writes) in [(true, true), (true, false), (false, true), (false, false)] {
        let plain = BaselineOptions::new(arch);
        let options = BaselineOptions { gate_paths, guard_writes, ..plain };
        let spec = Profile::baseline(options).spec();
        for name in ["unlink", "unlinkat", "rmdir"] {
            let number = table::number(arch, name).expect(name);
            let expected = match gate_paths && guard_writes {
                true => CallAnswer::Broker,
                false => CallAnswer::Allow,
            };
            assert_eq!(spec.answer(&SeccompData::new(arch, number, [0; 6])), expected, "{name}");
        }
    }
}
