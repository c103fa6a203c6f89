use super::*;
use crate::{Action, Insn};

fn insn(code: u16, k: u32) -> Insn {
    Insn { code, jt: 0, jf: 0, k }
}

fn result(instructions: &[Insn], data: &SeccompData) -> u32 {
    let mut all = instructions.to_vec();
    all.push(insn(op::RET_A, 0));
    run(&Program::new(all).expect("valid"), data)
}

const DATA: SeccompData = SeccompData {
    nr: 0x11,
    arch: 0x22,
    instruction_pointer: 0x3333_3333_4444_4444,
    args: [0x5555_5555_6666_6666, 1, 2, 3, 4, 0x7777_7777_8888_8888],
};

#[test]
fn loads_see_the_structure_as_the_kernel_lays_it_out() {
    for (offset, word) in [
        (0, 0x11),
        (4, 0x22),
        (8, 0x4444_4444),
        (12, 0x3333_3333),
        (16, 0x6666_6666),
        (20, 0x5555_5555),
        (24, 1),
        (56, 0x8888_8888),
        (60, 0x7777_7777),
    ] {
        assert_eq!(result(&[insn(op::LD_ABS, offset)], &DATA), word, "offset {offset}");
    }
    assert_eq!(result(&[insn(op::LD_LEN, 0)], &DATA), 64);
}

#[test]
fn arithmetic_wraps_and_registers_move() {
    let start = |value| insn(op::LD_IMM, value);
    assert_eq!(result(&[start(u32::MAX), insn(op::ADD_K, 2)], &DATA), 1);
    assert_eq!(result(&[start(1), insn(op::SUB_K, 2)], &DATA), u32::MAX);
    assert_eq!(result(&[start(1), insn(op::NEG, 0)], &DATA), u32::MAX);
    assert_eq!(result(&[start(0xf0), insn(op::XOR_K, 0xff)], &DATA), 0x0f);
    assert_eq!(result(&[start(3), insn(op::TAX, 0), insn(op::MUL_K | op::X, 0)], &DATA), 9);
    let remember = [start(5), insn(op::ST, 2), start(0), insn(op::LDX_MEM, 2), insn(op::TXA, 0)];
    assert_eq!(result(&remember, &DATA), 5);
}

#[test]
fn dividing_by_a_zero_register_kills() {
    let program = [insn(op::LDX_IMM, 0), insn(op::LD_IMM, 7), insn(op::DIV_K | op::X, 0)];
    assert_eq!(result(&program, &DATA), WENT_WRONG);
}

#[test]
fn actions_survive_their_encoding() {
    for action in
        [Action::Allow, Action::Errno(0), Action::Errno(4095), Action::KillProcess, Action::Notify]
    {
        assert_eq!(Action::from_raw(action.to_raw()), Some(action));
    }
    assert_eq!(Action::from_raw(WENT_WRONG), None);
}
