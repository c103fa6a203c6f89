//! The program that attempts one forbidden thing and says how it went.
//! Prints `done …` and exits 0, or prints `refused ERRNO …` and exits 1; 2 is a wrong call.
//! It must never hide a refusal by trying another way: each way is its own subcommand.

mod attributes;
mod bombs;
mod egress;
mod files;
mod kernel;
mod loops;
mod mounts;
mod network;
mod notified;
mod person;
mod processes;
mod races;
mod surroundings;

use std::io;
use std::process::ExitCode;

/// One subcommand: its name, its arguments for the usage text, and what it does.
type Probe = (&'static str, &'static str, fn(&[String]) -> Result<String, Failure>);

/// Every group's table of subcommands.
const GROUPS: [&[Probe]; 13] = [
    files::PROBES,
    attributes::PROBES,
    mounts::PROBES,
    processes::PROBES,
    kernel::PROBES,
    loops::PROBES,
    network::PROBES,
    egress::PROBES,
    notified::PROBES,
    person::PROBES,
    races::PROBES,
    surroundings::PROBES,
    bombs::PROBES,
];

enum Failure {
    Refused(io::Error),
    Usage(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Refused(errno.into())
    }
}

impl From<palisade_sys::SysError> for Failure {
    fn from(error: palisade_sys::SysError) -> Self {
        Self::Refused(error.errno.into())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match attempt(&arguments) {
        Ok(what) => {
            println!("done {what}");
            ExitCode::SUCCESS
        }
        Err(Failure::Refused(error)) => {
            println!("refused {} {error}", error.raw_os_error().unwrap_or(0));
            ExitCode::from(1)
        }
        Err(Failure::Usage(problem)) => {
            eprintln!("palisade-probe: {problem}; the probes are:");
            for (name, usage, _) in GROUPS.iter().flat_map(|group| group.iter()) {
                eprintln!("  {name} {usage}");
            }
            ExitCode::from(2)
        }
    }
}

/// Finds the probe that the first word names and lets it try.
fn attempt(words: &[String]) -> Result<String, Failure> {
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::Usage("name a probe".to_owned()));
    };
    match GROUPS.iter().flat_map(|group| group.iter()).find(|(known, _, _)| known == name) {
        Some((_, _, probe)) => probe(arguments),
        None => Err(Failure::Usage(format!("no probe is called `{name}`"))),
    }
}

fn argument<'a>(arguments: &'a [String], index: usize, what: &str) -> Result<&'a str, Failure> {
    arguments
        .get(index)
        .map(String::as_str)
        .ok_or_else(|| Failure::Usage(format!("{what} is missing")))
}

/// Says `ready` and waits for a line, or for the end of the input.
fn wait_for_line() -> io::Result<()> {
    println!("ready");
    io::stdin().read_line(&mut String::new()).map(drop)
}

fn number<N: std::str::FromStr>(
    arguments: &[String],
    index: usize,
    what: &str,
) -> Result<N, Failure> {
    let text = argument(arguments, index, what)?;
    text.parse().map_err(|_| Failure::Usage(format!("{what} is not a number in range: {text}")))
}
