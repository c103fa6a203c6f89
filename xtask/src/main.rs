//! Everything that is done to the project rather than by it: tests, proof of conformance,
//! distribution, benchmarks, fuzzing. Nothing here may be needed to build or run `sandbox`.
#![forbid(unsafe_code)]

mod attacks;
mod bench;
mod bench_commands;
mod bench_egress;
mod bench_gate;
mod bench_limits;
mod bench_network;
mod bench_question;
mod bench_service;
mod bench_sessions;
mod bench_trees;
mod chart;
mod compat;
mod conformance;
mod deny;
mod dist;
mod elf;
mod fuzz;
mod http;
mod leaks;
mod measure;
mod packages;
mod programs;
mod proves;
mod requirements;
mod results;
mod setup;
mod stage;
mod suite;
mod test_packages;
mod testing;
mod tree;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the Palisade project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need: packages, and an ordinary user where the caller is root.
    Setup,
    /// Set up, build, and run every test, as root and as an ordinary user.
    Test(testing::TestArguments),
    /// Run the attacks, print what held each, and write docs/attacks.md.
    Attacks(attacks::AttacksArguments),
    /// Run the tests on a stock kernel of Debian, in an emulated machine.
    VmTest(vm::VmArguments),
    /// What runs inside that machine.
    #[command(hide = true)]
    VmGuest,
    /// Write docs/conformance.md from the requirement clauses that passing tests name.
    Conformance(tree::CheckArguments),
    /// Make the static binary and man pages.
    Dist(tree::CheckArguments),
    /// Run other projects' tests and everyday work, bare and inside, and compare test by test.
    Compat(compat::CompatArguments),
    /// Measure, side by side, as ratios.
    Bench(bench::BenchArguments),
    /// Let libFuzzer try the targets in fuzz/, each for some time.
    Fuzz(fuzz::FuzzArguments),
    /// Check licences, sources, duplicate versions and known vulnerabilities.
    Deny,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Setup => setup::setup().and_then(|()| test_packages::install()),
        Task::Test(arguments) => testing::test(&arguments),
        Task::Attacks(arguments) => attacks::attacks(&arguments),
        Task::VmTest(arguments) => vm::vm_test(&arguments),
        Task::VmGuest => vm::guest(),
        Task::Conformance(arguments) => conformance::conformance(arguments),
        Task::Dist(arguments) => dist::dist(arguments),
        Task::Compat(arguments) => compat::compat(&arguments),
        Task::Bench(arguments) => bench::bench(&arguments),
        Task::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Task::Deny => deny::deny(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
