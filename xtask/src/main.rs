//! Everything that is done to the project rather than by it: tests, proof of conformance,
//! distribution, benchmarks. Nothing here may be needed to build or run `sandbox`.
#![forbid(unsafe_code)]

mod bench;
mod conformance;
mod deny;
mod dist;
mod elf;
mod leaks;
mod measure;
mod programs;
mod proves;
mod requirements;
mod results;
mod setup;
mod stage;
mod suite;
mod testing;
mod tree;

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
    /// Write docs/conformance.md from the requirement clauses that passing tests name.
    Conformance(tree::CheckArguments),
    /// Make the static binary, completions and man pages.
    Dist(tree::CheckArguments),
    /// Measure, side by side, as ratios.
    Bench(bench::BenchArguments),
    /// Check licences, sources, duplicate versions and known vulnerabilities.
    Deny,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Setup => setup::setup(),
        Task::Test(arguments) => testing::test(&arguments),
        Task::Conformance(arguments) => conformance::conformance(arguments),
        Task::Dist(arguments) => dist::dist(arguments),
        Task::Bench(arguments) => bench::bench(&arguments),
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
