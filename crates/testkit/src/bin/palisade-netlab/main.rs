//! A small internet for one test, and a host in it: two network namespaces with a link between them. The world's loopback
//! holds many addresses, an authoritative DNS server, web, git, ssh, HTTP/2 and WebSocket servers by name; the host has a few addresses of its
//! own, and servers on its loopback. A log tells everything that arrived.
//! Started by `unshare`; must never listen on, or connect to, anything outside these namespaces.

mod certificates;
mod enter;
mod git;
mod http2;
mod journal;
mod names;
mod pages;
mod plain;
mod request;
mod resolver;
mod setting;
mod ssh;
mod started;
mod web;
mod websocket;
mod world;

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use journal::Journal;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "palisade-netlab serve DIRECTORY [ssh] [http2] [websocket] [uplink] | world DIRECTORY [ssh] [http2] [websocket] | enter PID -- COMMAND…";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", directory, parts @ ..] => serve(&PathBuf::from(directory), parts),
        ["world", directory, parts @ ..] => world::serve(&PathBuf::from(directory), parts),
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

/// The host: serves until its input ends, which is when the test does, and takes the world along.
fn serve(directory: &std::path::Path, parts: &[&str]) -> Result<()> {
    let journal = Journal::new(directory)?;
    let mut world = world::World::start(directory, parts)?;
    setting::prepare(directory, world.id(), parts.contains(&"uplink"))?;
    world.open()?;
    setting::wait_for_world()?;
    plain::serve(&journal, &names::HOST_DATAGRAMS)?;
    web::serve_host(directory, &journal)?;
    println!("ready");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    world.end()
}
