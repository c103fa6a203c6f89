//! Seccomp filters: system call tables, a typed description of a filter, its compilation to classic BPF, and an
//! interpreter that answers as the kernel would. The crate is pure: it must never install a filter, read a file at run
//! time or contain unsafe code.

#![forbid(unsafe_code)]

mod action;
mod answer;
mod arch;
mod asm;
pub mod baseline;
mod compile;
mod custom;
mod error;
mod filter;
mod groups;
pub mod interp;
mod own;
mod profile;
mod program;
pub mod table;

#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod test_support;

pub use action::Action;
pub use answer::{CallAnswer, Listening, Notice, Refusal};
pub use arch::Arch;
pub use baseline::BaselineOptions;
pub use custom::{ListMode, known_name};
pub use error::Error;
pub use filter::{Arg, Condition, FilterSpec, Rule, Test, Width};
pub use groups::{Entry, EntryRule, Group, GroupDecision, Switch};
pub use interp::SeccompData;
pub use own::{
    broker_spec, egress_spec, gatefs_spec, init_spec, keeper_spec, maker_spec, proxy_spec,
};
pub use profile::{CallVerdict, ExplainedRule, Explanation, Profile};
pub use program::{Insn, Program};
