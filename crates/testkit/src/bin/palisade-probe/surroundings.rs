//! Programs that run another program in surroundings made for an attack, and say afterwards what
//! became of them. They end with the other program's code and take away everything they made.

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use palisade_sys::{proc, tty};
use palisade_testkit::raw;
use rustix::io::Errno;

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("stand-in", "PID-FILE -- COMMAND…", stand_in),
    ("once-pid-1-settled", "-- COMMAND…", once_pid_1_settled),
    ("with-bystander", "-- COMMAND…", with_bystander),
    ("in-terminal", "-- COMMAND…", in_terminal),
    ("in-terminal-with-typing", "TEXT -- COMMAND…", in_terminal_with_typing),
    ("with-session-key", "NAME VALUE -- COMMAND…", with_session_key),
    ("with-shared-memory", "PATH CONTENT -- COMMAND…", with_shared_memory),
    ("with-queues", "POSIX-NAME SYSTEM-V-KEY CONTENT -- COMMAND…", with_queues),
];

/// A process that may be traced and signalled by its child, as a supervisor must not be.
fn stand_in(arguments: &[String]) -> Result<String, Failure> {
    let file = argument(arguments, 0, "PID-FILE")?;
    // Where there is no Yama there is nothing to allow.
    let _ = raw::allow_tracers();
    fs::write(file, std::process::id().to_string())?;
    end_with(run(arguments)?)
}

/// Once pid 1 has given up its capabilities: who has more than the attacker cannot be traced by it,
/// and the command may start a moment before.
fn once_pid_1_settled(arguments: &[String]) -> Result<String, Failure> {
    wait_until(|| {
        let status = fs::read_to_string("/proc/1/status").unwrap_or_default();
        status.lines().any(|line| line == "CapPrm:\t0000000000000000")
    })?;
    end_with(run(arguments)?)
}

/// Beside a process that has nothing to do with the command. It has to answer afterwards: a process
/// with a deadly signal waiting for it never gets that far.
fn with_bystander(arguments: &[String]) -> Result<String, Failure> {
    let mut bystander = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let code = run(arguments);
    let mut answer = String::new();
    if let (Some(mut questions), Some(answers)) = (bystander.stdin.take(), bystander.stdout.take())
    {
        // To a dead one this fails, and there is no answer either.
        let _ = writeln!(questions, "alive");
        BufReader::new(answers).read_line(&mut answer)?;
    }
    bystander.kill()?;
    bystander.wait()?;
    println!("bystander {}", if answer.is_empty() { "killed" } else { "unharmed" });
    end_with(code?)
}

/// In the session of a new terminal, which is standard error; tells what was typed there.
fn in_terminal(arguments: &[String]) -> Result<String, Failure> {
    let (_master, terminal) = enter_new_terminal()?;
    let code = run(arguments)?;
    rustix::fs::fcntl_setfl(&terminal, rustix::fs::OFlags::NONBLOCK)?;
    let mut typed = [0; 64];
    let length = match rustix::io::read(&terminal, &mut typed) {
        Err(Errno::AGAIN) => 0,
        read => read?,
    };
    println!("typed {:?}", String::from_utf8_lossy(&typed[..length]));
    end_with(code)
}

/// In such a session, where somebody has typed something that nobody has read yet.
fn in_terminal_with_typing(arguments: &[String]) -> Result<String, Failure> {
    let (master, _terminal) = enter_new_terminal()?;
    rustix::io::write(&master, argument(arguments, 0, "TEXT")?.as_bytes())?;
    end_with(run(arguments)?)
}

/// The master and the terminal, which is this session's and standard error.
fn enter_new_terminal() -> Result<(OwnedFd, OwnedFd), Failure> {
    let master = tty::open_ptmx_in(palisade_sys::CWD, Path::new("/dev/ptmx"))?;
    let terminal = tty::open_slave(&master)?;
    proc::setsid()?;
    tty::set_controlling_tty(&terminal)?;
    // Raw: what is typed can be read at once, and nothing is echoed.
    tty::make_raw(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Ok((master, terminal))
}

/// With a key in a session keyring of its own; tells which key was left there by the command.
fn with_session_key(arguments: &[String]) -> Result<String, Failure> {
    let name = c_string(argument(arguments, 0, "NAME")?)?;
    raw::join_new_session_keyring()?;
    raw::add_session_key(&name, argument(arguments, 1, "VALUE")?.as_bytes())?;
    let code = run(arguments)?;
    if let Ok(left) = raw::read_session_key(LEFT_KEY) {
        println!("left {}", String::from_utf8_lossy(&left));
    }
    end_with(code)
}

/// The key that an attacker leaves for the next run.
pub(crate) const LEFT_KEY: &std::ffi::CStr = c"palisade-left-behind";

fn with_shared_memory(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    fs::write(path, argument(arguments, 1, "CONTENT")?)?;
    let code = run(arguments);
    fs::remove_file(path)?;
    end_with(code?)
}

fn with_queues(arguments: &[String]) -> Result<String, Failure> {
    let name = c_string(argument(arguments, 0, "POSIX-NAME")?)?;
    let content = argument(arguments, 2, "CONTENT")?.as_bytes();
    let posix = raw::PosixQueue::create(&name, content)?;
    let system_v = raw::SystemVQueue::create(number(arguments, 1, "SYSTEM-V-KEY")?, content)?;
    let code = run(arguments)?;
    // `exit` runs no destructors.
    drop((posix, system_v));
    end_with(code)
}

/// Runs what stands after `--` and returns its code as a shell has it.
pub(crate) fn run(arguments: &[String]) -> Result<i32, Failure> {
    let command = arguments.iter().skip_while(|word| *word != "--").skip(1).collect::<Vec<_>>();
    let Some((program, words)) = command.split_first() else {
        return Err(Failure::Usage("COMMAND is missing".to_owned()));
    };
    let status = Command::new(program).args(words).status()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

pub(crate) fn end_with(code: i32) -> Result<String, Failure> {
    std::process::exit(code)
}

pub(crate) fn wait_until(condition: impl Fn() -> bool) -> io::Result<()> {
    let deadline = Instant::now() + palisade_testkit::patiently(Duration::from_secs(30));
    while !condition() {
        if Instant::now() > deadline {
            return Err(Errno::TIMEDOUT.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

pub(crate) fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|error| Failure::Refused(io::Error::other(error)))
}
