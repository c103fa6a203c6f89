//! A filter as a specification: for each system call, rules in order; the first that matches wins.
//! [`FilterSpec::compile`] turns it into a program, [`FilterSpec::answer`] says what it means for one call; the
//! two must never differ. Nothing here depends on the host.

use serde::{Deserialize, Serialize};

use crate::compile::{SKIPPED_BY_TRACER, X32_BIT};
use crate::interp::SeccompData;
use crate::{Arch, CallAnswer, Error, Listening, Program, compile};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    arch: Arch,
    default: CallAnswer,
    /// Sorted by number, so that the rules of one call are found by binary search.
    rules: Vec<Rule>,
}

/// Several rules may name one system call; they are tried in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub syscall: u32,
    /// All must hold. If there are none, the rule always holds and reads no argument.
    pub conditions: Vec<Condition>,
    pub answer: CallAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    pub arg: Arg,
    pub width: Width,
    pub test: Test,
}

/// Which of the six arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arg {
    A0,
    A1,
    A2,
    A3,
    A4,
    A5,
}

/// How much of the register counts. A parameter that the kernel reads as `int` must be compared by its low half: the
/// caller controls the rest (CVE-2019-10063).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Width {
    Low32,
    Full,
}

/// Unsigned comparisons of the argument, cut to its width, with 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Test {
    Eq(u64),
    Ne(u64),
    Lt(u64),
    Le(u64),
    Gt(u64),
    Ge(u64),
    MaskedEq {
        mask: u64,
        value: u64,
    },
    /// At least one bit of the mask is set.
    MaskedAny {
        mask: u64,
    },
}

impl FilterSpec {
    /// `default` applies to calls that no rule decides.
    pub fn new(arch: Arch, default: CallAnswer, mut rules: Vec<Rule>) -> Self {
        // Stable: rules of one call keep their order.
        rules.sort_by_key(|rule| rule.syscall);
        Self { arch, default, rules }
    }

    pub fn arch(&self) -> Arch {
        self.arch
    }

    pub fn default(&self) -> CallAnswer {
        self.default
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The same specification always gives the same program. Without a listener, a specification with calls for the
    /// broker is an error: such a filter could only refuse what the specification allows.
    pub fn compile(&self, listening: Listening) -> Result<Program, Error> {
        compile::compile(self, listening)
    }

    /// What this filter means for a call. A listener needs it: a notification does not name the rule it came from.
    pub fn answer(&self, call: &SeccompData) -> CallAnswer {
        if call.arch != self.arch.audit_value() {
            return CallAnswer::KillProcess;
        }
        if call.nr == SKIPPED_BY_TRACER {
            return self.default;
        }
        if self.arch == Arch::X86_64 && call.nr >= X32_BIT {
            return CallAnswer::KillProcess;
        }
        self.rules_of(call.nr)
            .iter()
            .find(|rule| rule.conditions.iter().all(|condition| condition.holds(&call.args)))
            .map_or(self.default, |rule| rule.answer)
    }

    /// The rules of one call, in order.
    fn rules_of(&self, syscall: u32) -> &[Rule] {
        let first = self.rules.partition_point(|rule| rule.syscall < syscall);
        let of_it = self.rules[first..].partition_point(|rule| rule.syscall == syscall);
        &self.rules[first..first + of_it]
    }
}

impl Condition {
    pub(crate) fn holds(&self, arguments: &[u64; 6]) -> bool {
        let argument = arguments[self.arg as usize];
        let value = match self.width {
            Width::Full => argument,
            Width::Low32 => argument & 0xffff_ffff,
        };
        match self.test {
            Test::Eq(other) => value == other,
            Test::Ne(other) => value != other,
            Test::Lt(other) => value < other,
            Test::Le(other) => value <= other,
            Test::Gt(other) => value > other,
            Test::Ge(other) => value >= other,
            Test::MaskedEq { mask, value: expected } => value & mask == expected,
            Test::MaskedAny { mask } => value & mask != 0,
        }
    }
}
