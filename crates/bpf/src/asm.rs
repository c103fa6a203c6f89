//! An assembler for classic BPF. Programs are built from the end to the beginning: classic BPF only jumps
//! forward, so every jump target already has its position, and a distance that does not fit into eight bits is
//! known at once and bridged. It decides nothing about filters.

use std::collections::BTreeMap;

use crate::program::op;
use crate::{Error, Insn, Program};

/// The position of an instruction, counted from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Last instruction first.
    reversed: Vec<Insn>,
    returns: BTreeMap<u32, Label>,
    loads: BTreeMap<(u32, Label), Label>,
    /// The nearest copy of, or jump to, an instruction that is too far away.
    stand_ins: BTreeMap<Label, Label>,
}

const FARTHEST_BRANCH: usize = u8::MAX as usize;

impl Assembler {
    /// Ends the program with `value`.
    pub(crate) fn ret(&mut self, value: u32) -> Label {
        if let Some(label) = self.returns.get(&value) {
            return *label;
        }
        let label = self.push(op::RET_K, value);
        self.returns.insert(value, label);
        label
    }

    /// Loads the 32-bit word at `offset` of the seccomp data, then goes to `next`.
    pub(crate) fn load(&mut self, offset: u32, next: Label) -> Label {
        if let Some(label) = self.loads.get(&(offset, next)) {
            return *label;
        }
        self.fall_into(next);
        let label = self.push(op::LD_ABS, offset);
        self.loads.insert((offset, next), label);
        label
    }

    /// Clears the bits of the loaded word that are not in `mask`, then goes to `next`.
    pub(crate) fn and(&mut self, mask: u32, next: Label) -> Label {
        self.fall_into(next);
        self.push(op::AND_K, mask)
    }

    /// Goes to `then` if the comparison of the loaded word with `k` holds, else to `otherwise`.
    pub(crate) fn branch(
        &mut self,
        compare: Compare,
        k: u32,
        then: Label,
        otherwise: Label,
    ) -> Label {
        if then == otherwise {
            return then;
        }
        let code = match compare {
            Compare::Equal => op::JEQ_K,
            Compare::Greater => op::JGT_K,
            Compare::GreaterOrEqual => op::JGE_K,
            Compare::AnyBit => op::JSET_K,
        };
        // Bringing `then` within reach may itself insert one instruction.
        let otherwise = self.within(FARTHEST_BRANCH - 1, otherwise);
        let then = self.within(FARTHEST_BRANCH, then);
        let label = self.push(code, k);
        // Both fit: `within` ensured it.
        let [jt, jf] =
            [then, otherwise].map(|target| u8::try_from(label.0 - target.0 - 1).unwrap_or(u8::MAX));
        self.reversed[label.0].jt = jt;
        self.reversed[label.0].jf = jf;
        label
    }

    /// The program that starts at `entry`.
    pub(crate) fn finish(mut self, entry: Label) -> Result<Program, Error> {
        self.fall_into(entry);
        self.reversed.reverse();
        Program::new(self.reversed)
    }

    fn push(&mut self, code: u16, k: u32) -> Label {
        self.reversed.push(Insn { code, jt: 0, jf: 0, k });
        Label(self.reversed.len() - 1)
    }

    /// How many instructions a jump that is pushed now would skip to reach `target`.
    fn distance(&self, target: Label) -> usize {
        self.reversed.len() - target.0 - 1
    }

    fn fall_into(&mut self, next: Label) {
        if self.distance(next) > 0 {
            self.stand_in(next);
        }
    }

    fn within(&mut self, reach: usize, target: Label) -> Label {
        let near = self.stand_ins.get(&target).copied().unwrap_or(target);
        if self.distance(near) <= reach {
            return near;
        }
        let label = self.stand_in(target);
        self.stand_ins.insert(target, label);
        label
    }

    /// A copy of a return, which costs no more than a jump to it, or else a jump.
    fn stand_in(&mut self, target: Label) -> Label {
        let original = self.reversed[target.0];
        if original.code == op::RET_K {
            return self.push(op::RET_K, original.k);
        }
        // A longer distance cannot be installed: `Program::new` accepts at most 4096 instructions.
        let distance = u32::try_from(self.distance(target)).unwrap_or(u32::MAX);
        self.push(op::JA, distance)
    }
}

#[cfg(test)]
#[path = "asm_tests.rs"]
mod tests;
