use super::*;

fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
    Insn { code, jt, jf, k }
}

const ALLOW: Insn = Insn { code: op::RET_K, jt: 0, jf: 0, k: 0x7fff_0000 };

fn problem_at(instructions: &[Insn]) -> Option<usize> {
    match Program::new(instructions.to_vec()) {
        Ok(_) => None,
        Err(Error::BadInstruction { index, .. }) => Some(index),
        Err(other) => panic!("{other}"),
    }
}

/// Proves: SYS-1 filter-exact
#[test]
fn length_is_limited_as_in_the_kernel() {
    assert_eq!(Program::new(Vec::new()), Err(Error::Empty));
    assert!(Program::new(vec![ALLOW; 4096]).is_ok());
    assert_eq!(Program::new(vec![ALLOW; 4097]), Err(Error::TooLong { length: 4097 }));
}

/// Proves: SYS-1 filter-exact
#[test]
fn jumps_stay_inside() {
    assert_eq!(problem_at(&[insn(op::JA, 0, 0, 0), ALLOW]), None);
    assert_eq!(problem_at(&[insn(op::JA, 0, 0, 1), ALLOW]), Some(0));
    assert_eq!(problem_at(&[insn(op::JA, 0, 0, u32::MAX), ALLOW]), Some(0));
    assert_eq!(problem_at(&[insn(op::JEQ_K, 1, 0, 7), ALLOW, ALLOW]), None);
    assert_eq!(problem_at(&[insn(op::JEQ_K, 0, 2, 7), ALLOW, ALLOW]), Some(0));
    assert_eq!(problem_at(&[insn(op::JSET_K | op::X, 2, 0, 0), ALLOW, ALLOW]), Some(0));
}

/// Proves: SYS-1 filter-exact
#[test]
fn bad_operands_and_opcodes_are_found() {
    for bad in [
        insn(op::LD_ABS, 0, 0, 64),
        insn(op::LD_ABS, 0, 0, 2),
        insn(op::ST, 0, 0, 16),
        insn(op::DIV_K, 0, 0, 0),
        insn(op::LSH_K, 0, 0, 32),
        insn(0x28, 0, 0, 0), // LD|H|ABS: seccomp has words only
        insn(0x94, 0, 0, 3), // MOD: refused by seccomp_check_filter()
        insn(0xffff, 0, 0, 0),
    ] {
        assert_eq!(problem_at(&[bad, ALLOW]), Some(0), "{bad:?}");
    }
    assert_eq!(problem_at(&[ALLOW, insn(op::LD_ABS, 0, 0, 0)]), Some(1), "does not return");
}

/// Proves: SYS-1 filter-exact
#[test]
fn scratch_memory_is_stored_before_it_is_loaded() {
    let load = insn(op::LD_MEM, 0, 0, 3);
    let store = insn(op::ST, 0, 0, 3);
    assert_eq!(problem_at(&[store, load, ALLOW]), None);
    assert_eq!(problem_at(&[load, ALLOW]), Some(0));
    let skips_the_store = insn(op::JEQ_K, 0, 1, 0);
    assert_eq!(problem_at(&[skips_the_store, store, load, ALLOW]), Some(2));
}
