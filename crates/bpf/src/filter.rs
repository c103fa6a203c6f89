//! A filter as people think of it: for each system call, rules in order, the first that holds wins.
//! [`FilterSpec::compile`] turns it into a program; nothing here depends on the host.

use serde::{Deserialize, Serialize};

use crate::{Action, Arch, Error, Program, compile};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterSpec {
    pub arch: Arch,
    /// For calls that no rule decides.
    pub default: Action,
    pub rules: Vec<Rule>,
}

/// Several rules may name one system call; they are tried in the order they stand in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    pub syscall: u32,
    /// All must hold. None at all: the rule always holds, and reads no argument.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    pub action: Action,
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

/// How much of the register counts. A parameter the kernel reads as `int` must be compared by its
/// low half: the caller controls the rest (CVE-2019-10063).
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
    /// The same specification always gives the same program.
    pub fn compile(&self) -> Result<Program, Error> {
        compile::compile(self)
    }
}
