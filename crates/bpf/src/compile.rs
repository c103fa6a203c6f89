//! Compiles a [`FilterSpec`] into a program: the architecture is checked, then the number is found by binary
//! search over ranges with the same answer. Arguments are loaded only in the leaf of their own system call: the
//! kernel caches a call as "always allowed" (5.11, `seccomp_is_const_allow()`) only if the path to its answer
//! reads nothing but architecture and number.

use crate::asm::{Assembler, Compare, Label};
use crate::{
    Action, Arch, CallAnswer, Condition, Error, FilterSpec, Listening, Program, Refusal, Test,
    Width, table,
};

/// On x86_64, numbers from here on are calls of the x32 ABI, which has its own, unlisted entry points.
pub(crate) const X32_BIT: u32 = 0x4000_0000;

/// A tracer sets this number to skip a call; the kernel executes nothing for it.
pub(crate) const SKIPPED_BY_TRACER: u32 = u32::MAX;

/// Offsets in `struct seccomp_data`; both architectures are little-endian.
const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

const MAX_ERRNO: u16 = 4095;

pub(crate) fn compile(spec: &FilterSpec, listening: Listening) -> Result<Program, Error> {
    let default = action(spec.default(), listening, || "any other call".to_owned())?;
    let rulings = spec
        .rules()
        .iter()
        .map(|rule| {
            let name = || match table::name(spec.arch(), rule.syscall) {
                Some(name) => name.to_owned(),
                None => format!("call {}", rule.syscall),
            };
            Ok(Ruling {
                syscall: rule.syscall,
                conditions: &rule.conditions,
                action: action(rule.answer, listening, name)?,
            })
        })
        .collect::<Result<Vec<Ruling>, Error>>()?;

    let mut asm = Assembler::default();
    let kill = asm.ret(Action::KillProcess.to_raw());
    let search = search_tree(&mut asm, &segments(spec.arch(), default, &rulings), default);
    let load_number = asm.load(OFFSET_NR, search);
    let check_arch = asm.branch(Compare::Equal, spec.arch().audit_value(), load_number, kill);
    let entry = asm.load(OFFSET_ARCH, check_arch);
    asm.finish(entry)
}

/// A rule as it is compiled for the kernel.
struct Ruling<'a> {
    syscall: u32,
    conditions: &'a [Condition],
    action: Action,
}

fn action(
    answer: CallAnswer,
    listening: Listening,
    name: impl FnOnce() -> String,
) -> Result<Action, Error> {
    match answer {
        CallAnswer::Refuse(Refusal { errno, .. }) if errno > MAX_ERRNO => {
            Err(Error::ErrnoTooLarge { errno })
        }
        _ => answer.action(listening).ok_or_else(|| Error::NobodyListens { name: name() }),
    }
}

/// The numbers from `start` up to the next segment's start.
struct Segment<'a> {
    start: u32,
    leaf: Leaf<'a>,
}

enum Leaf<'a> {
    Always(Action),
    Rules(&'a [Ruling<'a>]),
}

/// Covers all numbers; neighbours with the same unconditional answer are merged.
fn segments<'a>(arch: Arch, default: Action, rulings: &'a [Ruling<'a>]) -> Vec<Segment<'a>> {
    let unlisted = || Leaf::Always(default);
    let mut segments = Segments(vec![Segment { start: 0, leaf: unlisted() }]);
    let numbers_end = match arch {
        Arch::X86_64 => X32_BIT,
        Arch::Aarch64 => u32::MAX,
    };
    for of_one_call in rulings.chunk_by(|a, b| a.syscall == b.syscall) {
        let first = &of_one_call[0];
        if first.syscall >= numbers_end {
            continue;
        }
        let leaf = if first.conditions.is_empty() {
            Leaf::Always(first.action)
        } else {
            Leaf::Rules(of_one_call)
        };
        segments.add(first.syscall, leaf);
        segments.add(first.syscall + 1, unlisted());
    }
    if arch == Arch::X86_64 {
        segments.add(X32_BIT, Leaf::Always(Action::KillProcess));
        segments.add(SKIPPED_BY_TRACER, unlisted());
    }
    segments.0
}

struct Segments<'a>(Vec<Segment<'a>>);

impl<'a> Segments<'a> {
    fn add(&mut self, start: u32, leaf: Leaf<'a>) {
        if self.0.last().is_some_and(|last| last.start == start) {
            self.0.pop();
        }
        let same = match (self.0.last().map(|last| &last.leaf), &leaf) {
            (Some(Leaf::Always(before)), Leaf::Always(now)) => before == now,
            _ => false,
        };
        if !same {
            self.0.push(Segment { start, leaf });
        }
    }
}

fn search_tree(asm: &mut Assembler, segments: &[Segment], default: Action) -> Label {
    match segments {
        [] => asm.ret(default.to_raw()),
        [Segment { leaf: Leaf::Always(action), .. }] => asm.ret(action.to_raw()),
        [Segment { leaf: Leaf::Rules(rulings), .. }] => rule_list(asm, rulings, default),
        _ => {
            let (below, from) = segments.split_at(segments.len() / 2);
            let then = search_tree(asm, from, default);
            let otherwise = search_tree(asm, below, default);
            asm.branch(Compare::GreaterOrEqual, from[0].start, then, otherwise)
        }
    }
}

/// The rules of one system call, last one first, because the assembler works backwards.
fn rule_list(asm: &mut Assembler, rulings: &[Ruling], default: Action) -> Label {
    let mut next = Step::anywhere(asm.ret(default.to_raw()));
    let last = rulings.iter().position(|ruling| ruling.conditions.is_empty());
    let reachable = last.map_or(rulings, |last| &rulings[..=last]);
    for ruling in reachable.iter().rev() {
        let mut step = Step::anywhere(asm.ret(ruling.action.to_raw()));
        for condition in ruling.conditions.iter().rev() {
            step = condition_step(asm, *condition, step, next);
        }
        next = step;
    }
    next.enter(asm, None)
}

/// Code that expects a certain word to be loaded. The load is emitted only for predecessors that have not loaded it, so
/// that comparing one argument with many values loads it once.
#[derive(Clone, Copy)]
struct Step {
    label: Label,
    expects: Option<u32>,
}

impl Step {
    fn anywhere(label: Label) -> Self {
        Self { label, expects: None }
    }

    fn enter(self, asm: &mut Assembler, loaded: Option<u32>) -> Label {
        match self.expects {
            Some(offset) if loaded != Some(offset) => asm.load(offset, self.label),
            _ => self.label,
        }
    }
}

/// One half of an argument: the offset it is loaded from, or zero if the width cuts it off.
#[derive(Clone, Copy)]
enum Word {
    At(u32),
    Zero,
}

#[expect(clippy::cast_possible_truncation, reason = "splitting a word into its two halves")]
fn halves(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}

fn condition_step(asm: &mut Assembler, condition: Condition, then: Step, otherwise: Step) -> Step {
    let low_offset = OFFSET_ARGS + 8 * condition.arg as u32;
    let low = Word::At(low_offset);
    let high = match condition.width {
        Width::Full => Word::At(low_offset + 4),
        Width::Low32 => Word::Zero,
    };
    match condition.test {
        Test::Eq(value) => masked_equal(asm, [high, low], u64::MAX, value, then, otherwise),
        Test::Ne(value) => masked_equal(asm, [high, low], u64::MAX, value, otherwise, then),
        Test::MaskedEq { mask, value } => {
            masked_equal(asm, [high, low], mask, value, then, otherwise)
        }
        Test::Gt(value) => ordered(asm, [high, low], Compare::Greater, value, then, otherwise),
        Test::Le(value) => ordered(asm, [high, low], Compare::Greater, value, otherwise, then),
        Test::Ge(value) => {
            ordered(asm, [high, low], Compare::GreaterOrEqual, value, then, otherwise)
        }
        Test::Lt(value) => {
            ordered(asm, [high, low], Compare::GreaterOrEqual, value, otherwise, then)
        }
        Test::MaskedAny { mask } => {
            let (mask_high, mask_low) = halves(mask);
            let in_low = word_step(asm, low, Compare::AnyBit, mask_low, then, otherwise);
            word_step(asm, high, Compare::AnyBit, mask_high, then, in_low)
        }
    }
}

fn masked_equal(
    asm: &mut Assembler,
    [high, low]: [Word; 2],
    mask: u64,
    value: u64,
    then: Step,
    otherwise: Step,
) -> Step {
    let (mask_high, mask_low) = halves(mask);
    let (value_high, value_low) = halves(value);
    let in_low = masked_word_step(asm, low, mask_low, value_low, then, otherwise);
    masked_word_step(asm, high, mask_high, value_high, in_low, otherwise)
}

fn ordered(
    asm: &mut Assembler,
    [high, low]: [Word; 2],
    compare_low: Compare,
    value: u64,
    then: Step,
    otherwise: Step,
) -> Step {
    let (value_high, value_low) = halves(value);
    let in_low = word_step(asm, low, compare_low, value_low, then, otherwise);
    let same_high = word_step(asm, high, Compare::Equal, value_high, in_low, otherwise);
    word_step(asm, high, Compare::Greater, value_high, then, same_high)
}

fn masked_word_step(
    asm: &mut Assembler,
    word: Word,
    mask: u32,
    value: u32,
    then: Step,
    otherwise: Step,
) -> Step {
    match (word, mask) {
        (_, u32::MAX) | (Word::Zero, _) => {
            word_step(asm, word, Compare::Equal, value, then, otherwise)
        }
        (_, 0) if value == 0 => then,
        (_, 0) => otherwise,
        (Word::At(offset), _) => {
            let then = then.enter(asm, None);
            let otherwise = otherwise.enter(asm, None);
            let compare = asm.branch(Compare::Equal, value, then, otherwise);
            Step { label: asm.and(mask, compare), expects: Some(offset) }
        }
    }
}

fn word_step(
    asm: &mut Assembler,
    word: Word,
    compare: Compare,
    k: u32,
    then: Step,
    otherwise: Step,
) -> Step {
    match word {
        Word::Zero => {
            let holds = match compare {
                Compare::Equal | Compare::GreaterOrEqual => k == 0,
                Compare::Greater | Compare::AnyBit => false,
            };
            if holds { then } else { otherwise }
        }
        Word::At(_) if compare == Compare::AnyBit && k == 0 => otherwise,
        Word::At(offset) => {
            let then = then.enter(asm, Some(offset));
            let otherwise = otherwise.enter(asm, Some(offset));
            Step { label: asm.branch(compare, k, then, otherwise), expects: Some(offset) }
        }
    }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
