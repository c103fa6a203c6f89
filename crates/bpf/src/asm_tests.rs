use super::*;
use crate::Arch;
use crate::interp::{SeccompData, run};

fn run_with_number(program: &Program, nr: u32) -> u32 {
    run(program, &SeccompData::new(Arch::X86_64, nr, [0; 6]))
}

/// A chain of comparisons whose both ends lie far behind: number n answers n, others answer 999.
fn ladder(rungs: u32) -> Result<Program, Error> {
    let mut asm = Assembler::default();
    let none = asm.ret(999);
    let mut next = none;
    for rung in (0..rungs).rev() {
        let found = asm.ret(rung);
        next = asm.branch(Compare::Equal, rung, found, next);
    }
    let entry = asm.load(0, next);
    asm.finish(entry)
}

/// Proves: SYS-1 filter-exact
#[test]
fn a_ladder_far_longer_than_a_branch_reaches() {
    let program = ladder(900).expect("fits");
    for nr in [0, 1, 127, 254, 255, 256, 511, 899] {
        assert_eq!(run_with_number(&program, nr), nr);
    }
    assert_eq!(run_with_number(&program, 900), 999);
}

/// Proves: SYS-1 filter-exact
#[test]
fn branches_to_distant_code_are_bridged() {
    for filler in [0, 1, 2, 252, 253, 254, 255, 256, 257, 600] {
        let mut asm = Assembler::default();
        let no = asm.ret(1);
        let yes = asm.ret(2);
        // Not a return, so that it has to be reached by a jump.
        let distant_no = asm.branch(Compare::Equal, 77, yes, no);
        let distant_yes = asm.branch(Compare::Equal, 88, no, yes);
        let mut chain = distant_no;
        for step in 0..filler {
            chain = asm.and(u32::MAX - step, chain);
        }
        let both_far = asm.branch(Compare::AnyBit, 1, distant_yes, distant_no);
        let again = asm.branch(Compare::Greater, 1000, chain, both_far);
        let entry = asm.load(0, again);
        let program = asm.finish(entry).expect("fits");
        assert_eq!(run_with_number(&program, 77), 2, "odd: not 88, filler {filler}");
        assert_eq!(run_with_number(&program, 88), 1, "even and not 77, filler {filler}");
        assert_eq!(run_with_number(&program, 90), 1, "even and not 77, filler {filler}");
        assert_eq!(run_with_number(&program, 2000), 1, "by the chain, filler {filler}");
    }
}

#[test]
fn distant_returns_share_their_copies() {
    let mut asm = Assembler::default();
    let denied = asm.ret(5);
    let mut next = asm.ret(6);
    for rung in 0..1000 {
        next = asm.branch(Compare::Equal, rung, denied, next);
    }
    let entry = asm.load(0, next);
    let program = asm.finish(entry).expect("fits");
    // One copy of the return for about every 255 comparisons.
    assert!(program.instructions().len() < 1010, "{}", program.instructions().len());
}

/// Proves: SYS-1 filter-exact
#[test]
fn too_long_a_program_is_refused() {
    assert!(matches!(ladder(3000), Err(Error::TooLong { .. })));
}
