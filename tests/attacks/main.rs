//! The attack corpus, each attack run three ways: bare, inside, and inside with its layers off.
//! A module a group; the harness is `palisade_testkit::Attack`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it"
)]

mod files;
mod host;
mod kernel;
mod mounts;
mod network;
mod policy;
mod proc;
mod processes;
mod races;
mod secrets;
mod selfcheck;
mod terminal;
