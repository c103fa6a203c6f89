//! Fixtures of the functional and attack tests: a throw-away corner of the host, the real
//! `sandbox` binary run in it, and the three-way form every attack takes.
//! Nothing here may touch the state of the user who runs the tests, or ship in a release.
#![allow(clippy::panic, reason = "a fixture that cannot be set up has to fail its test")]

mod attack;
mod binaries;
mod browser;
mod demonstration;
mod descendants;
mod invocation;
mod lab;
pub mod layers;
mod packages;
mod patience;
mod processors;
mod proof;
pub mod raw;
mod session;
mod world;

pub use attack::Attack;
pub use binaries::{client as client_program, example, rust_toolchain, sandbox as sandbox_program};
pub use browser::Browser;
pub use demonstration::Demonstration;
pub use descendants::Descendants;
pub use invocation::{Invocation, Output, Running};
pub use lab::{Lab, Part};
pub use packages::{node_packages, python_packages, sdk_sources};
pub use palisade_supervisor::control;
pub use patience::{patiently, tries};
pub use processors::pin;
pub use session::{Session, is_alive, memory_holds, sandbox_of};
pub use world::World;

use std::fmt::Display;
use std::sync::OnceLock;

/// Whether the tests run as the superuser.
#[must_use]
pub fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether runs have the gate as a file system here: the sandbox is asked itself.
#[must_use]
pub fn gate_is_fuse() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let output = World::new().sandbox(["plan", "--json", "--", "true"]).run();
        output.assert_code(0);
        let plan: serde_json::Value = must(serde_json::from_slice(&output.stdout), "plan --json");
        plan["gate"]["trigger"] == "fuse"
    })
}

/// The version of Landlock this host has; 0 without it.
#[must_use]
pub fn landlock_abi() -> u32 {
    palisade_sys::landlock::landlock_abi().unwrap_or(0)
}

/// Whether the sandbox gets a control group when this caller starts it: the sandbox is asked itself.
#[must_use]
pub fn has_control_group() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let output = World::new().sandbox(["plan", "--json", "--pids", "9", "--", "true"]).run();
        output.assert_code(0);
        let plan: serde_json::Value = must(serde_json::from_slice(&output.stdout), "plan --json");
        plan["limits"][0]["holder"].as_str().is_some_and(|holder| holder.starts_with("cgroup"))
    })
}

/// Whether an overlay on a tmpfs can hide a directory below it whole: the mark for that is an
/// extended attribute of a kind that tmpfs has since Linux 6.6. Before, removing or replacing such
/// a directory inside fails with EIO.
#[must_use]
pub fn overlays_replace_directories() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(6))
}

/// The value, or a failed test that says what could not be done.
fn must<T, E: Display>(result: Result<T, E>, what: impl Display) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
