//! `palisade-client SANDBOX run [OPTIONS] -- COMMAND`: looks like `sandbox run` to its caller, but makes a sandbox that
//! outlives its commands, lets a first one run in it, and runs COMMAND as a further one. So whatever is tested with
//! `sandbox run` can be tested with a further command.
//!
//! `palisade-client SANDBOX bench COUNT -- COMMAND` runs COMMAND as many times in one sandbox, and as many times by a
//! bare fork and exec, in turns, and prints the medians of both, in microseconds. COMMAND is a path.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a program of the tests")]

use palisade_launch::ExitCause;
use palisade_supervisor::control::client::Client;
use palisade_supervisor::control::interface::{
    CommandKind, CommandStreams, Environment, Event, Grace, Request, Response, StartCommand,
};
use palisade_sys::clone::Forked;
use palisade_sys::proc;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

const OWN_FAILURE: u8 = 125;
const WARM_UP: usize = 3;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [sandbox, verb, rest @ ..] = words.as_slice() else { panic!("SANDBOX run|bench …") };
    let split = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (options, command) = (&rest[..split], rest.get(split + 1..).unwrap_or_default());
    match verb.to_str() {
        Some("run") => run(sandbox, options, command),
        Some("bench") => bench(sandbox, options, command),
        // Not a sandbox: what is started by this program is started by it without one as well.
        _ => {
            let status = Command::new(sandbox).args(&words[1..]).status().unwrap();
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
            ExitCode::from(u8::try_from(code).unwrap())
        }
    }
}

fn start(sandbox: &OsStr, options: &[OsString]) -> Result<(Client, Child), ExitCode> {
    let options: Vec<&str> = options.iter().map(|word| word.to_str().unwrap()).collect();
    let wanted = palisade_testkit::sandbox_of(&options);
    let (mut client, mut child, response) = match Client::start(Command::new(sandbox), wanted) {
        Ok(started) => started,
        Err(error) => {
            eprintln!("client: {error}");
            return Err(ExitCode::from(OWN_FAILURE));
        }
    };
    if let Response::Created { .. } = response {
        return Ok((client, child));
    }
    eprintln!("client: {response:?} {:?}", client.next_event());
    let status = child.wait().unwrap();
    Err(ExitCode::from(
        status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(OWN_FAILURE),
    ))
}

fn request(command: &[OsString]) -> Request {
    Request::StartCommand(StartCommand {
        kind: CommandKind::Program,
        argv: command.iter().map(|word| word.as_bytes().to_vec()).collect(),
        environment: Environment::Extended(Vec::new()),
        cwd: None,
        umask: None,
        rlimits: Vec::new(),
        streams: CommandStreams::Descriptors,
    })
}

/// The command's end, with our own streams.
fn run_one(client: &mut Client, command: &[OsString]) -> ExitCode {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    match client.ask(&request(command), &streams).unwrap().0 {
        Response::Starting { .. } => {}
        refused => {
            eprintln!("client: {refused:?}");
            return ExitCode::from(OWN_FAILURE);
        }
    }
    loop {
        match client.next_event() {
            Ok(Event::CommandExited { cause: ExitCause::Code(code), .. }) => {
                return ExitCode::from(u8::try_from(code).unwrap());
            }
            Ok(Event::CommandExited { cause: ExitCause::Signal(signal), .. }) => {
                return ExitCode::from(u8::try_from(128 + signal).unwrap());
            }
            Ok(Event::CommandFailed { exit_code, message, .. }) => {
                eprintln!("client: {message}");
                return ExitCode::from(u8::try_from(exit_code).unwrap());
            }
            Ok(Event::Ended { exit_code, error }) => {
                eprintln!("client: the sandbox ended with {exit_code}: {error:?}");
                return ExitCode::from(u8::try_from(exit_code).unwrap_or(OWN_FAILURE));
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("client: {error}");
                return ExitCode::from(OWN_FAILURE);
            }
        }
    }
}

fn run(sandbox: &OsStr, options: &[OsString], command: &[OsString]) -> ExitCode {
    let (mut client, child) = match start(sandbox, options) {
        Ok(started) => started,
        Err(code) => return code,
    };
    let first = run_one(&mut client, &["/bin/true".into()]);
    assert_eq!(first, ExitCode::SUCCESS, "the first command");
    let code = run_one(&mut client, command);
    end(client, child);
    code
}

/// Ends the sandbox, and returns when its supervisor has written its last records: the caller may remove the home next.
fn end(mut client: Client, mut supervisor: Child) {
    let end = Request::End { signal: proc::sig::SIGTERM, grace: Grace::Milliseconds(0) };
    if client.ask(&end, &[]).is_ok() {
        while !matches!(client.next_event(), Ok(Event::Ended { .. }) | Err(_)) {}
    }
    supervisor.wait().unwrap();
}

fn bench(sandbox: &OsStr, options: &[OsString], command: &[OsString]) -> ExitCode {
    let (count, options) = options.split_first().unwrap();
    let count: usize = count.to_str().unwrap().parse().unwrap();
    let (mut client, child) = match start(sandbox, options) {
        Ok(started) => started,
        Err(code) => return code,
    };
    let words: Vec<CString> =
        command.iter().map(|word| CString::new(word.as_bytes()).unwrap()).collect();
    let (mut inside, mut bare) = (Vec::new(), Vec::new());
    // In turns: whatever else the machine does slows both down. The first rounds fill caches.
    for _ in 0..count + WARM_UP {
        let begun = Instant::now();
        assert_eq!(run_one(&mut client, command), ExitCode::SUCCESS);
        inside.push(begun.elapsed());
        let begun = Instant::now();
        fork_and_exec(&words);
        bare.push(begun.elapsed());
    }
    end(client, child);
    let median = |mut times: Vec<Duration>| {
        times.drain(..WARM_UP);
        times.sort();
        times[times.len() / 2].as_micros()
    };
    println!("{} {}", median(inside), median(bare));
    ExitCode::SUCCESS
}

/// The least that starting a program takes.
fn fork_and_exec(words: &[CString]) {
    match palisade_sys::clone::fork().unwrap() {
        Forked::Child => {
            proc::exec(&words[0], words, &[]);
            proc::exit_now(127)
        }
        Forked::Parent { pid, .. } => {
            let status = proc::wait_pid_rusage(pid).unwrap().status;
            assert_eq!(status, proc::Status::Exited(0));
        }
    }
}
