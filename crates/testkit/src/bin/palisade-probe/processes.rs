//! Attempts at processes, descriptors, `/proc` and the terminal.
//! Must never look for another way once one is refused.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::proc;
use palisade_testkit::raw;
use rustix::fs::{FlockOperation, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit};

use crate::surroundings::wait_until;
use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("reach-executable", "PATH", reach_executable),
    ("read-by-descriptor", "NAME", read_by_descriptor),
    ("descriptors", "", descriptors),
    ("open-for-writing", "PATH", open_for_writing),
    ("writable-mount", "PATH", writable_mount),
    ("mount-cgroup", "DIRECTORY", mount_cgroup),
    ("trace", "PID|FILE", trace),
    ("trace-child", "", trace_child),
    ("write-memory", "PID|FILE", write_memory),
    ("steal-descriptor", "PID|FILE", steal_descriptor),
    ("limit", "PID|FILE", limit),
    ("slow-down", "PID|FILE", slow_down),
    ("pin", "PID|FILE", pin),
    ("read-proc", "PID|FILE ENTRY", read_proc),
    ("signal", "PID|FILE NUMBER", signal),
    ("signal-everyone", "NUMBER", signal_everyone),
    ("kill-parent", "", kill_parent),
    ("host-name", "", host_name),
    ("variable", "NAME", variable),
    ("linger", "SECONDS FILE", linger),
    ("outlive", "DIRECTORY", outlive),
    ("daemon", "DIRECTORY", daemon),
    ("type", "plain|high-bit TEXT", type_into_terminal),
    ("ask-console", "plain|high-bit", ask_console),
    ("read-terminal", "controlling|standard-error", read_terminal),
];

/// Opens a running program's file for writing. `ETXTBSY` counts as reached: the kernel looks at
/// permissions first, and the file is free to be overwritten once the program ends (CVE-2019-5736).
fn reach_executable(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let found = fs::metadata(path)?;
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.raw_os_error() != Some(Errno::TXTBSY.raw_os_error()) => {
            Err(error.into())
        }
        _ => Ok(format!("inode {}", found.ino())),
    }
}

/// Makes each inherited directory the working directory and reads a file there (CVE-2024-21626).
fn read_by_descriptor(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "NAME")?;
    for number in inherited_descriptors()? {
        let found = std::env::set_current_dir(format!("/proc/self/fd/{number}"))
            .and_then(|()| fs::read_to_string(name));
        if let Ok(content) = found {
            return Ok(content);
        }
    }
    Err(io::Error::from(Errno::BADF).into())
}

fn descriptors(_: &[String]) -> Result<String, Failure> {
    let found = inherited_descriptors()?;
    if found.is_empty() {
        return Err(io::Error::from(Errno::BADF).into());
    }
    Ok(format!("{found:?}"))
}

/// Those above standard error that this process did not open itself.
fn inherited_descriptors() -> io::Result<Vec<u32>> {
    let names = fs::read_dir("/proc/self/fd")?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    // The listing's own descriptor is closed by now.
    let is_open = |number: &u32| Path::new(&format!("/proc/self/fd/{number}")).exists();
    Ok(names
        .iter()
        .filter_map(|name| name.to_str()?.parse().ok())
        .filter(|number| *number > 2 && is_open(number))
        .collect())
}

/// Opens, and writes nothing.
fn open_for_writing(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    OpenOptions::new().write(true).open(path)?;
    Ok(path.to_owned())
}

/// Whether the mount a path is on may be written at all, whoever asks.
fn writable_mount(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    if rustix::fs::statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(Errno::ROFS.into());
    }
    Ok(path.to_owned())
}

/// A control group hierarchy of one's own, the first step to its `release_agent`.
fn mount_cgroup(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWNS | CloneFlags::NEWCGROUP)?;
    rustix::mount::mount("none", directory, "cgroup2", MountFlags::empty(), None)?;
    fs::metadata(Path::new(directory).join("cgroup.procs"))?;
    Ok(directory.to_owned())
}

fn trace(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    raw::trace(pid.as_raw_nonzero().get())?;
    Ok(format!("traced {pid}"))
}

/// With the least of it: a process without a core file does what it did.
fn limit(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::prlimit(Some(pid), Resource::Core, none)?;
    Ok(format!("limited {pid}"))
}

fn slow_down(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    rustix::process::setpriority_process(Some(pid), 19)?;
    Ok(format!("slowed {pid} down"))
}

/// To the CPUs that it may use anyway.
fn pin(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    let cpus = rustix::thread::sched_getaffinity(None)?;
    rustix::thread::sched_setaffinity(Some(pid), &cpus)?;
    Ok(format!("pinned {pid}"))
}

/// Traces a process this one started, as a debugger does.
fn trace_child(_: &[String]) -> Result<String, Failure> {
    let mut child = Command::new("sleep").arg("600").spawn()?;
    let traced = raw::trace(i32::try_from(child.id()).map_err(io::Error::other)?);
    child.kill()?;
    child.wait()?;
    traced?;
    Ok("traced a child".to_owned())
}

/// The address does not exist, so `EFAULT` tells that access was granted.
fn write_memory(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    match raw::write_memory_nowhere(pid.as_raw_nonzero().get()) {
        Err(error) if error.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
            Ok(format!("may write the memory of {pid}"))
        }
        Err(error) => Err(error.into()),
        Ok(()) => Ok(format!("wrote the memory of {pid}")),
    }
}

fn steal_descriptor(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    rustix::process::pidfd_getfd(&pidfd, 0, PidfdGetfdFlags::empty())?;
    Ok(format!("has a descriptor of {pid}"))
}

fn read_proc(arguments: &[String]) -> Result<String, Failure> {
    let entry = argument(arguments, 1, "ENTRY")?;
    let path = format!("/proc/{}/{entry}", pid(arguments)?);
    Ok(String::from_utf8_lossy(&fs::read(path)?).replace('\0', " "))
}

fn signal(arguments: &[String]) -> Result<String, Failure> {
    let pid = pid(arguments)?;
    proc::kill(pid, number(arguments, 1, "NUMBER")?)?;
    Ok(format!("signalled {pid}"))
}

/// Says so first: with a layer off it may end a helper, and the run with it, before there is anything to say of the outcome.
fn signal_everyone(arguments: &[String]) -> Result<String, Failure> {
    println!("trying to signal everyone");
    proc::kill_all(number(arguments, 0, "NUMBER")?)?;
    Ok("signalled everyone".to_owned())
}

/// How long a killed process may take to be gone.
const SOON: std::time::Duration = std::time::Duration::from_secs(2);

/// The process that is there to end this one when its time has come.
fn kill_parent(_: &[String]) -> Result<String, Failure> {
    let parent = rustix::process::getppid().ok_or(Errno::SRCH)?;
    proc::kill(parent, rustix::process::Signal::KILL.as_raw())?;
    // A dead parent is not this one's any more; one that ignores the signal stays.
    let soon = std::time::Instant::now() + palisade_testkit::patiently(SOON);
    while rustix::process::getppid() == Some(parent) {
        if std::time::Instant::now() > soon {
            return Err(Errno::TIMEDOUT.into());
        }
        std::thread::yield_now();
    }
    Ok("is without a parent".to_owned())
}

fn host_name(_: &[String]) -> Result<String, Failure> {
    Ok(rustix::system::uname().nodename().to_string_lossy().into_owned())
}

fn variable(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "NAME")?;
    let value = std::env::var(name).map_err(|_| io::Error::from(Errno::NOENT))?;
    Ok(value)
}

/// Stays for a while, and leaves a sign that it did.
fn linger(arguments: &[String]) -> Result<String, Failure> {
    std::thread::sleep(std::time::Duration::from_secs(number(arguments, 0, "SECONDS")?));
    fs::write(argument(arguments, 1, "FILE")?, "stayed")?;
    Ok("stayed".to_owned())
}

/// Leaves a daemon behind: forked twice, in a session of its own. Its sign of life is a lock.
fn outlive(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    let mut go_between = Command::new("/bin/sh");
    go_between.args(["-c", r#""$0" daemon "$1" & exit 0"#]);
    go_between.arg(std::env::current_exe()?).arg(directory);
    go_between.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let is_locked = || {
        let file = File::open(Path::new(directory).join(LOCK));
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    };
    wait_until(is_locked)?;
    Ok("left a daemon behind".to_owned())
}

const LOCK: &str = "alive";
const STOP: &str = "stop";

/// Holds its lock until it finds the stop file, or its directory gone.
fn daemon(arguments: &[String]) -> Result<String, Failure> {
    let directory = PathBuf::from(argument(arguments, 0, "DIRECTORY")?);
    proc::setsid()?;
    let lock = File::create(directory.join(LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let directory = File::open(directory)?;
    wait_until(|| is_over(&directory))?;
    Ok("was told to stop".to_owned())
}

/// Whether the stop file is there, or the directory is not. Without naming a path: where the supervisor is
/// gone, calls that do so fail, and a daemon that lives must not look dead for that.
pub(crate) fn is_over(directory: &File) -> bool {
    if directory.metadata().is_ok_and(|found| found.nlink() == 0) {
        return true;
    }
    let Ok(mut names) = directory
        .try_clone()
        .map_err(drop)
        .and_then(|again| rustix::fs::Dir::new(again).map_err(drop))
    else {
        return false;
    };
    names.rewind();
    names.flatten().any(|entry| entry.file_name().to_bytes() == STOP.as_bytes())
}

fn flock(file: &File, operation: FlockOperation) -> Result<(), Errno> {
    rustix::fs::flock(file, operation)
}

fn type_into_terminal(arguments: &[String]) -> Result<String, Failure> {
    let form = form(arguments)?;
    let text = argument(arguments, 1, "TEXT")?;
    // The controlling terminal: without a session of its own that is the caller's.
    let terminal = File::open("/dev/tty")?;
    text.bytes().try_for_each(|byte| raw::type_into(&terminal, byte, form))?;
    Ok("typed".to_owned())
}

/// On a terminal that is no console the driver answers `ENOTTY`: the call went through.
fn ask_console(arguments: &[String]) -> Result<String, Failure> {
    match raw::ask_console(form(arguments)?) {
        Err(error) if error.raw_os_error() == Some(Errno::NOTTY.raw_os_error()) => {
            Ok("the driver answered".to_owned())
        }
        Err(error) => Err(error.into()),
        Ok(()) => Ok("the console answered".to_owned()),
    }
}

/// Reads what was typed and not read yet.
fn read_terminal(arguments: &[String]) -> Result<String, Failure> {
    let terminal = match argument(arguments, 0, "controlling|standard-error")? {
        "controlling" => {
            let terminal = File::open("/dev/tty")?;
            // From the background nothing can be read, but a process may take the foreground.
            raw::ignore_terminal_stops()?;
            rustix::termios::tcsetpgrp(&terminal, rustix::process::getpgrp())?;
            terminal
        }
        _ => File::from(io::stderr().as_fd().try_clone_to_owned()?),
    };
    let is_terminal = rustix::termios::isatty(&terminal);
    if !is_terminal {
        return Err(Errno::NOTTY.into());
    }
    rustix::fs::fcntl_setfl(&terminal, rustix::fs::OFlags::NONBLOCK)?;
    let mut typed = [0; 64];
    let length = rustix::io::read(&terminal, &mut typed)?;
    Ok(String::from_utf8_lossy(&typed[..length]).into_owned())
}

fn form(arguments: &[String]) -> Result<raw::Command, Failure> {
    match argument(arguments, 0, "plain|high-bit")? {
        "plain" => Ok(raw::Command::Plain),
        "high-bit" => Ok(raw::Command::WithHighBit),
        other => Err(Failure::Usage(format!("neither plain nor high-bit: {other}"))),
    }
}

/// A process by its number, or by a file that holds it.
fn pid(arguments: &[String]) -> Result<Pid, Failure> {
    let named = argument(arguments, 0, "PID|FILE")?;
    let text = match named.parse::<i32>() {
        Ok(_) => named.to_owned(),
        Err(_) => fs::read_to_string(named)?,
    };
    text.trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| Failure::Usage(format!("not a process id: {text}")))
}
