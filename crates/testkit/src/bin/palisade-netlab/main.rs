//! A small internet for one test: a network namespace whose loopback holds many addresses, an
//! authoritative DNS server, web, git and ssh servers by name, and a log of everything that arrived.
//! Started by `unshare`; must never listen on, or connect to, anything outside that namespace.

mod certificates;
mod enter;
mod git;
mod journal;
mod names;
mod pages;
mod plain;
mod request;
mod resolver;
mod setting;
mod ssh;
mod web;

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use journal::Journal;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "palisade-netlab serve DIRECTORY [ssh] [uplink] | enter PID -- COMMAND…";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", directory, parts @ ..] => serve(&PathBuf::from(directory), parts),
        ["enter", process, "--", program, arguments @ ..] => {
            enter::enter(process, program, arguments)
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("palisade-netlab: {error}");
            ExitCode::from(125)
        }
    }
}

/// Serves until its input ends, which is when the test does.
fn serve(directory: &std::path::Path, parts: &[&str]) -> Result<()> {
    let journal = Journal::new(directory)?;
    let certificates = certificates::Certificates::new(directory)?;
    setting::prepare(directory, parts.contains(&"uplink"))?;
    resolver::serve(&journal)?;
    plain::serve(&journal)?;
    web::serve(directory, &journal, certificates)?;
    let ssh = parts.contains(&"ssh").then(|| ssh::serve(directory)).transpose()?;
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    if let Some(mut server) = ssh {
        server.kill()?;
        server.wait()?;
    }
    Ok(())
}
