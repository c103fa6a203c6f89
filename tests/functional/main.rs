//! The real binary doing its real work, as root and as an ordinary user.
//! A module a subject; every test names the requirement clauses it proves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it"
)]

mod first_run;
mod limits;
mod network;
mod pipes;
mod signals;
mod tmux;
mod inside;
mod view;
mod own_root;
mod static_mode;
mod programs;
mod terminal;
mod secrets_view;
mod overlay;
mod identity;
mod worktree;
mod doctor;
mod lifecycle;
mod no_userns;
mod environment;
mod readme;
