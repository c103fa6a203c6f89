//! Fixtures of the functional and attack tests: a throw-away corner of the host, the real
//! `sandbox` binary run in it, and the three-way form every attack takes.
//! Nothing here may touch the state of the user who runs the tests, or ship in a release.
#![allow(clippy::panic, reason = "a fixture that can not be set up has to fail its test")]

mod attack;
mod binaries;
mod invocation;
mod proof;
pub mod raw;
mod world;

pub use attack::Attack;
pub use binaries::{rust_toolchain, sandbox as sandbox_program};
pub use invocation::{Invocation, Output, Running};
pub use world::World;

use std::fmt::Display;

/// Whether the tests run as the superuser.
#[must_use]
pub fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The version of Landlock this host has; 0 without it.
#[must_use]
pub fn landlock_abi() -> u32 {
    palisade_sys::landlock::landlock_abi().unwrap_or(0)
}

/// The value, or a failed test that says what could not be done.
fn must<T, E: Display>(result: Result<T, E>, what: impl Display) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
