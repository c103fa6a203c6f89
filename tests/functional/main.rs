//! The real binary doing its real work, as root and as an ordinary user.
//! A module a subject; every test names the requirement clauses it proves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it"
)]

mod agent_preset;
mod approve;
mod approve_support;
mod audit;
mod bad_input;
mod blocked_calls;
mod broker;
mod broker_threads;
mod check_path;
mod delegation;
mod doctor;
mod egress;
mod egress_alone;
mod egress_asked;
mod egress_credentials;
mod egress_ends;
mod egress_http2;
mod egress_names;
mod egress_nat;
mod egress_policy;
mod egress_programs;
mod egress_proxy;
mod egress_publish;
mod egress_support;
mod egress_told;
mod egress_websocket;
mod environment;
mod explain_syscall;
mod faults;
mod first_run;
mod flat_start;
mod further_commands;
mod gate;
mod gate_answers;
mod gate_ask_in;
mod gate_attributes;
mod gate_calls;
mod gate_changes;
mod gate_failure;
mod gate_output;
mod gate_programs;
mod gate_screen;
mod gate_terminal;
mod gate_unattended;
pub(crate) mod gate_writes;
mod git_in_place;
mod guarded_programs;
mod helper_death;
mod hostile_names;
mod identity;
mod inside;
mod large_trees;
mod lifecycle;
mod limits;
mod limits_cpu;
mod limits_files;
mod limits_host;
mod limits_io;
mod limits_many;
mod limits_memory;
mod limits_presets;
mod limits_support;
mod limits_told;
mod limits_usage;
mod metrics;
mod network;
mod no_userns;
mod output;
mod overlay;
mod own_root;
mod pipes;
mod policy;
mod policy_trust;
mod poor_hosts;
mod private_home;
mod processes;
mod programs;
mod readme;
mod report;
mod rules;
mod secrets_view;
mod signals;
mod static_mode;
mod terminal;
mod tmux;
mod top;
mod typing;
mod view;
mod worktree;
