//! A classic BPF program and the rules the kernel checks before it accepts one. A [`Program`] exists only if
//! those rules hold, so it can be installed or interpreted without further checks.

use crate::Error;

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Opcodes of `include/uapi/linux/bpf_common.h` in the combinations that seccomp accepts.
pub(crate) mod op {
    pub(crate) const LD_ABS: u16 = 0x20;
    pub(crate) const LD_LEN: u16 = 0x80;
    pub(crate) const LDX_LEN: u16 = 0x81;
    pub(crate) const LD_IMM: u16 = 0x00;
    pub(crate) const LDX_IMM: u16 = 0x01;
    pub(crate) const LD_MEM: u16 = 0x60;
    pub(crate) const LDX_MEM: u16 = 0x61;
    pub(crate) const ST: u16 = 0x02;
    pub(crate) const STX: u16 = 0x03;
    pub(crate) const TAX: u16 = 0x07;
    pub(crate) const TXA: u16 = 0x87;
    pub(crate) const RET_K: u16 = 0x06;
    pub(crate) const RET_A: u16 = 0x16;
    pub(crate) const JA: u16 = 0x05;
    pub(crate) const JEQ_K: u16 = 0x15;
    pub(crate) const JGT_K: u16 = 0x25;
    pub(crate) const JGE_K: u16 = 0x35;
    pub(crate) const JSET_K: u16 = 0x45;
    pub(crate) const ADD_K: u16 = 0x04;
    pub(crate) const SUB_K: u16 = 0x14;
    pub(crate) const MUL_K: u16 = 0x24;
    pub(crate) const DIV_K: u16 = 0x34;
    pub(crate) const OR_K: u16 = 0x44;
    pub(crate) const AND_K: u16 = 0x54;
    pub(crate) const LSH_K: u16 = 0x64;
    pub(crate) const RSH_K: u16 = 0x74;
    pub(crate) const NEG: u16 = 0x84;
    pub(crate) const XOR_K: u16 = 0xa4;
    /// Set in arithmetic and jumps: the operand is the X register instead of `k`.
    pub(crate) const X: u16 = 0x08;
}

pub(crate) const MEMORY_WORDS: usize = 16;
const MAX_INSTRUCTIONS: usize = 4096;
const SECCOMP_DATA_SIZE: u32 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Insn>,
}

impl Program {
    /// Applies the kernel's own rules: `bpf_check_classic()` and `seccomp_check_filter()`.
    pub fn new(instructions: Vec<Insn>) -> Result<Self, Error> {
        let length = instructions.len();
        if length > MAX_INSTRUCTIONS {
            return Err(Error::TooLong { length });
        }
        let last = instructions.last().ok_or(Error::Empty)?;
        for (index, insn) in instructions.iter().enumerate() {
            if let Some(problem) = fault(*insn, length - index - 1) {
                return Err(Error::BadInstruction { index, problem });
            }
        }
        if !matches!(last.code, op::RET_K | op::RET_A) {
            let problem = "the last one does not return";
            return Err(Error::BadInstruction { index: length - 1, problem });
        }
        if let Some(index) = uninitialised_load(&instructions) {
            let problem = "loads scratch memory that was not stored";
            return Err(Error::BadInstruction { index, problem });
        }
        Ok(Self { instructions })
    }

    pub fn instructions(&self) -> &[Insn] {
        &self.instructions
    }
}

/// What is wrong with one instruction that is followed by `after` others.
fn fault(insn: Insn, after: usize) -> Option<&'static str> {
    const JUMP_OUTSIDE: Option<&str> = Some("jumps beyond the end");
    let k = insn.k as usize;
    match insn.code {
        op::LD_ABS if insn.k >= SECCOMP_DATA_SIZE || !insn.k.is_multiple_of(4) => {
            Some("loads outside the seccomp data or unaligned")
        }
        op::LD_MEM | op::LDX_MEM | op::ST | op::STX if k >= MEMORY_WORDS => {
            Some("uses scratch memory that does not exist")
        }
        op::JA if k >= after => JUMP_OUTSIDE,
        op::DIV_K if insn.k == 0 => Some("divides by zero"),
        op::LSH_K | op::RSH_K if insn.k >= 32 => Some("shifts by 32 or more"),
        op::LD_ABS | op::LD_LEN | op::LDX_LEN | op::LD_IMM | op::LDX_IMM | op::LD_MEM => None,
        op::LDX_MEM | op::ST | op::STX | op::TAX | op::TXA | op::RET_K | op::RET_A => None,
        op::JA | op::NEG => None,
        other => match other & !op::X {
            op::JEQ_K | op::JGT_K | op::JGE_K | op::JSET_K => {
                let farthest = usize::from(insn.jt.max(insn.jf));
                if farthest >= after { JUMP_OUTSIDE } else { None }
            }
            op::ADD_K | op::SUB_K | op::MUL_K | op::DIV_K | op::OR_K | op::AND_K => None,
            op::LSH_K | op::RSH_K | op::XOR_K => None,
            _ => Some("unknown opcode"),
        },
    }
}

/// The first load from a scratch word that some path reaches without a store, as the kernel's
/// `check_load_and_stores()` finds it: every jump goes forward, so one pass is enough.
fn uninitialised_load(instructions: &[Insn]) -> Option<usize> {
    let mut stored_on_entry = vec![u16::MAX; instructions.len()];
    let mut stored = 0u16;
    for (index, insn) in instructions.iter().enumerate() {
        stored &= stored_on_entry[index];
        let mut jump_to = |distance: usize| {
            if let Some(entry) = stored_on_entry.get_mut(index + 1 + distance) {
                *entry &= stored;
            }
        };
        match insn.code {
            op::ST | op::STX => stored |= 1 << insn.k,
            op::LD_MEM | op::LDX_MEM if stored & (1 << insn.k) == 0 => return Some(index),
            op::JA => {
                jump_to(insn.k as usize);
                stored = u16::MAX;
            }
            code if matches!(code & !op::X, op::JEQ_K | op::JGT_K | op::JGE_K | op::JSET_K) => {
                jump_to(usize::from(insn.jt));
                jump_to(usize::from(insn.jf));
                stored = u16::MAX;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
