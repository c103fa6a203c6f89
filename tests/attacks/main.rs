//! The attack corpus, each attack run three ways: bare, inside, and inside with its layers off.
//! A module a group; the harness is `palisade_testkit::Attack`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it"
)]

mod answering;
mod applied;
mod asking_people;
mod attributes;
mod audit;
mod egress;
mod egress_http;
mod egress_names;
mod egress_nat;
mod egress_tls;
mod executables;
mod files;
mod further_commands;
mod gate;
mod gate_people;
mod gate_processes;
mod gate_self_answer;
mod gate_special;
mod gate_writes;
mod guard;
mod guard_build_dirs;
mod guard_git;
mod guard_moved;
mod guard_ways;
mod host;
mod kernel;
mod mounts;
mod network;
mod people;
mod planted;
mod policy;
mod proc;
mod processes;
mod races;
mod resources;
mod secrets;
mod selfcheck;
mod sessions;
mod terminal;

/// The list that the table is made from names every layer there is, in the same words and order.
#[test]
fn the_corpus_knows_every_layer() {
    let corpus = include_str!("corpus.yaml");
    let named: Vec<&str> =
        corpus.lines().filter_map(|line| line.trim().strip_prefix("- name: ")).collect();
    let layers = palisade_plan::layer::Layer::ALL.map(palisade_plan::layer::Layer::name);
    assert_eq!(named, layers);
}
