//! Interprets a program as the kernel would, for tests and to explain what a filter answers. It must never be
//! more lenient than the kernel: a division by zero ends with 0, "kill".

use crate::program::{MEMORY_WORDS, op};
use crate::{Arch, Program};

/// `struct seccomp_data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeccompData {
    pub nr: u32,
    pub arch: u32,
    pub instruction_pointer: u64,
    pub args: [u64; 6],
}

impl SeccompData {
    pub fn new(arch: Arch, nr: u32, args: [u64; 6]) -> Self {
        Self { nr, arch: arch.audit_value(), instruction_pointer: 0, args }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the words of a little-endian structure")]
    fn word(&self, offset: u32) -> u32 {
        let half = |value: u64| if offset.is_multiple_of(8) { value } else { value >> 32 } as u32;
        match offset {
            0 => self.nr,
            4 => self.arch,
            8 | 12 => half(self.instruction_pointer),
            _ => half(self.args[(offset as usize - 16) / 8]),
        }
    }
}

const SIZE_OF_SECCOMP_DATA: u32 = 64;
/// `SECCOMP_RET_KILL_THREAD`, the kernel's answer when a program fails.
const WENT_WRONG: u32 = 0;

/// The raw 32-bit result; [`crate::Action::from_raw`] decodes it.
pub fn run(program: &Program, data: &SeccompData) -> u32 {
    let instructions = program.instructions();
    let mut memory = [0u32; MEMORY_WORDS];
    let (mut a, mut x) = (0u32, 0u32);
    let mut at = 0;
    while let Some(insn) = instructions.get(at) {
        at += 1;
        let k = insn.k;
        match insn.code {
            op::LD_ABS => a = data.word(k),
            op::LD_LEN => a = SIZE_OF_SECCOMP_DATA,
            op::LDX_LEN => x = SIZE_OF_SECCOMP_DATA,
            op::LD_IMM => a = k,
            op::LDX_IMM => x = k,
            op::LD_MEM => a = memory[k as usize],
            op::LDX_MEM => x = memory[k as usize],
            op::ST => memory[k as usize] = a,
            op::STX => memory[k as usize] = x,
            op::TAX => x = a,
            op::TXA => a = x,
            op::NEG => a = a.wrapping_neg(),
            op::RET_K => return k,
            op::RET_A => return a,
            op::JA => at += k as usize,
            code => {
                let operand = if code & op::X != 0 { x } else { k };
                let holds = match code & !op::X {
                    op::JEQ_K => a == operand,
                    op::JGT_K => a > operand,
                    op::JGE_K => a >= operand,
                    op::JSET_K => a & operand != 0,
                    arithmetic => {
                        match compute(arithmetic, a, operand) {
                            Some(result) => a = result,
                            None => return WENT_WRONG,
                        }
                        continue;
                    }
                };
                at += usize::from(if holds { insn.jt } else { insn.jf });
            }
        }
    }
    WENT_WRONG
}

fn compute(code: u16, a: u32, operand: u32) -> Option<u32> {
    match code {
        op::ADD_K => Some(a.wrapping_add(operand)),
        op::SUB_K => Some(a.wrapping_sub(operand)),
        op::MUL_K => Some(a.wrapping_mul(operand)),
        op::DIV_K => a.checked_div(operand),
        op::OR_K => Some(a | operand),
        op::AND_K => Some(a & operand),
        op::XOR_K => Some(a ^ operand),
        op::LSH_K => Some(a.wrapping_shl(operand)),
        op::RSH_K => Some(a.wrapping_shr(operand)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "interp_tests.rs"]
mod tests;
