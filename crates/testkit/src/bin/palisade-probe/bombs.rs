//! Attempts to have more than was given: processes, memory, space, files, time. All of them stop at the number
//! they are told, so that they harm nobody where they are let through, and give everything back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_sys::proc;
use palisade_testkit::raw::{self, FullQueue, Mapping, SystemVMemory};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Resource, Rlimit};
use rustix::thread::CpuSet;

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("start-many", "children|daemons|threads COUNT SECONDS", start_many),
    ("hold-memory", "WAY MIB SECONDS [DIRECTORY]", hold_memory),
    ("hold-space", "written|deleted|allocated MIB SECONDS DIRECTORY", hold_space),
    ("make-files", "COUNT SECONDS DIRECTORY", make_files),
    ("use-cpu", "alone|unwaited MILLISECONDS", use_cpu),
    ("raise-file-size", "PATH BYTES", raise_file_size),
    ("widen-affinity", "", widen_affinity),
    ("leave-group", "MEMBERS-FILE… -- COMMAND…", leave_group),
];

const MIB: usize = 1 << 20;
/// Steps small enough to stop soon after a limit.
const STEP: usize = MIB;
/// As large as a pipe gets without a privilege.
const PIPE_BYTES: usize = MIB;
/// About what a socket takes by default before somebody reads.
const SOCKET_BYTES: usize = 128 * 1024;
/// As much CPU time as each of many children uses: far less than lies between two looks, also where others use the CPUs.
const SLICE: Duration = Duration::from_millis(5);

fn unknown(way: &str) -> Failure {
    Failure::Usage(format!("no way is called `{way}`"))
}

/// Whoever is refused stays for the time, as a bomb does, and is told by then.
fn start_many(arguments: &[String]) -> Result<String, Failure> {
    let count: usize = number(arguments, 1, "COUNT")?;
    let seconds: u64 = number(arguments, 2, "SECONDS")?;
    let (waits, stays) = io::pipe()?;
    // Everybody reads until this process has closed the other end, by ending.
    let mut crowd = Crowd { waits, stays: Some(stays) };
    let started = match argument(arguments, 0, "the way")? {
        "children" => (0..count).try_for_each(|_| crowd.child()),
        "daemons" => (0..count).try_for_each(|_| crowd.daemon()),
        // They end with the call.
        "threads" => {
            return threads(count, seconds).map(|()| at_once(count)).map_err(Failure::from);
        }
        other => return Err(unknown(other)),
    };
    if started.is_err() {
        hold(seconds);
    }
    started?;
    Ok(at_once(count))
}

fn at_once(count: usize) -> String {
    format!("{count} at once")
}

struct Crowd {
    waits: io::PipeReader,
    stays: Option<io::PipeWriter>,
}

impl Crowd {
    fn child(&mut self) -> io::Result<()> {
        if raw::fork()? == 0 {
            self.wait_for_the_end();
        }
        Ok(())
    }

    /// In a session of its own, and nobody's child but the first process's.
    fn daemon(&mut self) -> io::Result<()> {
        let child = raw::fork()?;
        if child == 0 {
            let code = match rustix::process::setsid()
                .map_err(io::Error::from)
                .and_then(|_| raw::fork())
            {
                Ok(0) => self.wait_for_the_end(),
                Ok(_) => 0,
                Err(error) => error.raw_os_error().unwrap_or(1),
            };
            proc::exit_now(code)
        }
        match ended(child)? {
            proc::Status::Exited(0) => Ok(()),
            proc::Status::Exited(errno) => Err(io::Error::from_raw_os_error(errno)),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn wait_for_the_end(&mut self) -> ! {
        drop(self.stays.take());
        let _ = self.waits.read(&mut [0]);
        proc::exit_now(0)
    }
}

fn ended(child: i32) -> io::Result<proc::Status> {
    let pid = Pid::from_raw(child).ok_or(Errno::CHILD)?;
    Ok(proc::wait_pid_rusage(pid).map_err(|error| error.errno)?.status)
}

fn threads(count: usize, seconds: u64) -> io::Result<()> {
    let (stays, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Arc::new(std::sync::Mutex::new(waits));
    let mut started = Vec::new();
    let mut outcome = Ok(());
    for _ in 0..count {
        let waits = std::sync::Arc::clone(&waits);
        let wait = move || drop(waits.lock().map(|waits| waits.recv()));
        match std::thread::Builder::new().stack_size(64 * 1024).spawn(wait) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                outcome = Err(error);
                hold(seconds);
                break;
            }
        }
    }
    drop(stays);
    for thread in started {
        let _ = thread.join();
    }
    outcome
}

/// Everything that is kept is given back at once when it is dropped.
type Kept = Vec<Box<dyn std::any::Any>>;

fn hold_memory(arguments: &[String]) -> Result<String, Failure> {
    let way = argument(arguments, 0, "WAY")?;
    let bytes = number::<usize>(arguments, 1, "MIB")? * MIB;
    let seconds: u64 = number(arguments, 2, "SECONDS")?;
    let _ = raise_open_files();
    let mut kept: Kept = Vec::new();
    match way {
        "anonymous" => in_steps(bytes, STEP, &mut kept, |step| Ok(vec![1_u8; step]))?,
        "shared" => in_steps(bytes, STEP, &mut kept, |step| Ok(Mapping::shared(step)?))?,
        "children" => return in_children(bytes, seconds),
        "file" => {
            let file = PathBuf::from(argument(arguments, 3, "DIRECTORY")?).join("bomb");
            kept.push(Box::new(Removed(file.clone())));
            write_file(&file, bytes)?;
        }
        "memfd" => in_steps(bytes, STEP, &mut kept, memory_file)?,
        "memfd-in-flight" => in_steps(bytes, STEP, &mut kept, in_flight)?,
        "memfd-mapped" => {
            in_steps(bytes, STEP, &mut kept, |step| {
                Ok(Mapping::unread(memory_file(step)?, step)?)
            })?;
        }
        "pipes" => in_steps(bytes, PIPE_BYTES, &mut kept, full_pipe)?,
        "sockets" => in_steps(bytes, SOCKET_BYTES, &mut kept, full_socket)?,
        "system-v-memory" => {
            in_steps(bytes, STEP, &mut kept, |step| Ok(SystemVMemory::filled(step)?))?;
        }
        "system-v-queues" => {
            in_steps(bytes, FullQueue::BYTES, &mut kept, |_| Ok(FullQueue::new()?))?;
        }
        "page-tables" => in_steps(bytes, STEP, &mut kept, |step| Ok(Mapping::of_tables(step)?))?,
        other => return Err(unknown(other)),
    }
    hold(seconds);
    Ok(format!("{} MiB held", bytes / MIB))
}

fn in_steps<T: 'static>(
    bytes: usize,
    step: usize,
    kept: &mut Kept,
    take: impl Fn(usize) -> Result<T, Failure>,
) -> Result<(), Failure> {
    for _ in 0..bytes.div_ceil(step) {
        kept.push(Box::new(take(step)?));
    }
    Ok(())
}

/// Long enough for somebody who only looks now and then.
fn hold(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// No process has much of it.
fn in_children(bytes: usize, seconds: u64) -> Result<String, Failure> {
    const EACH: usize = 4 * MIB;
    let (waits, stays) = io::pipe()?;
    let (mut born, tells) = io::pipe()?;
    let mut crowd = Crowd { waits, stays: Some(stays) };
    let count = bytes / EACH;
    for _ in 0..count {
        if raw::fork()? == 0 {
            let memory = std::hint::black_box(vec![1_u8; EACH]);
            let _ = (&tells).write_all(&[memory[0]]);
            crowd.wait_for_the_end();
        }
    }
    drop(tells);
    let mut filled = vec![0; count];
    born.read_exact(&mut filled)?;
    hold(seconds);
    Ok(format!("{} MiB held", bytes / MIB))
}

fn memory_file(bytes: usize) -> Result<OwnedFd, Failure> {
    let file = memfd_create("bomb", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(&vec![1; bytes])?;
    Ok(file.into())
}

/// A memory file on its way from one end of a socket to the other: in nobody's table of descriptors.
fn in_flight(bytes: usize) -> Result<(UnixStream, UnixStream), Failure> {
    let ends = UnixStream::pair()?;
    let file = memory_file(bytes)?;
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&files));
    rustix::net::sendmsg(&ends.0, &[io::IoSlice::new(b"x")], &mut message, SendFlags::empty())?;
    Ok(ends)
}

fn full_pipe(bytes: usize) -> Result<(OwnedFd, OwnedFd), Failure> {
    let ends = rustix::pipe::pipe()?;
    rustix::pipe::fcntl_setpipe_size(&ends.1, bytes)?;
    rustix::io::write(&ends.1, &vec![1; bytes])?;
    Ok(ends)
}

fn full_socket(bytes: usize) -> Result<(UnixStream, UnixStream), Failure> {
    let mut ends = UnixStream::pair()?;
    ends.0.set_nonblocking(true)?;
    ends.0.write_all(&vec![1; bytes])?;
    Ok(ends)
}

/// So that descriptors are not what runs out first.
fn raise_open_files() -> Result<(), Failure> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    Ok(())
}

/// A file that goes with this.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn write_file(path: &Path, bytes: usize) -> Result<File, Failure> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    let step = vec![1; STEP];
    for _ in 0..bytes.div_ceil(STEP) {
        file.write_all(&step)?;
    }
    Ok(file)
}

fn hold_space(arguments: &[String]) -> Result<String, Failure> {
    let way = argument(arguments, 0, "the way")?;
    let bytes = number::<usize>(arguments, 1, "MIB")? * MIB;
    let seconds: u64 = number(arguments, 2, "SECONDS")?;
    let path = Path::new(argument(arguments, 3, "DIRECTORY")?).join("filling");
    let _removed = Removed(path.clone());
    let _held = match way {
        "written" => write_file(&path, bytes)?,
        // No name leads to what is written after this.
        "deleted" => {
            let file = File::create_new(&path)?;
            fs::remove_file(&path)?;
            let step = vec![1; STEP];
            (0..bytes.div_ceil(STEP)).try_for_each(|_| (&file).write_all(&step))?;
            file
        }
        // Nothing is written.
        "allocated" => {
            let file = File::create_new(&path)?;
            fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes as u64)?;
            file
        }
        other => return Err(unknown(other)),
    };
    hold(seconds);
    Ok(format!("{} MiB of space", bytes / MIB))
}

fn make_files(arguments: &[String]) -> Result<String, Failure> {
    let count: usize = number(arguments, 0, "COUNT")?;
    let seconds: u64 = number(arguments, 1, "SECONDS")?;
    let directory = Path::new(argument(arguments, 2, "DIRECTORY")?).join("many");
    fs::create_dir(&directory)?;
    let made =
        (0..count).try_for_each(|name| File::create(directory.join(name.to_string())).map(drop));
    if made.is_ok() {
        hold(seconds);
    }
    fs::remove_dir_all(&directory)?;
    made?;
    Ok(format!("{count} files"))
}

fn use_cpu(arguments: &[String]) -> Result<String, Failure> {
    let time = Duration::from_millis(number(arguments, 1, "MILLISECONDS")?);
    match argument(arguments, 0, "the way")? {
        "alone" => spin(time)?,
        // Their time is added to nobody's when they end.
        "unwaited" => {
            raw::ignore_children()?;
            for _ in 0..time.as_millis() / SLICE.as_millis() {
                let child = raw::fork()?;
                if child == 0 {
                    proc::exit_now(i32::from(spin(SLICE).is_err()));
                }
                // Comes back without a child once it has ended.
                let _ = ended(child);
            }
        }
        other => return Err(unknown(other)),
    }
    Ok(format!("{} ms of CPU time", time.as_millis()))
}

fn spin(time: Duration) -> io::Result<()> {
    let until = raw::own_cpu_time()? + time;
    while raw::own_cpu_time()? < until {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Takes off the limit, soft and hard, and writes beyond it.
fn raise_file_size(arguments: &[String]) -> Result<String, Failure> {
    let path = Path::new(argument(arguments, 0, "PATH")?);
    let bytes: usize = number(arguments, 1, "BYTES")?;
    let none = Rlimit { current: None, maximum: None };
    rustix::process::setrlimit(Resource::Fsize, none)?;
    write_file(path, bytes)?;
    Ok(format!("{bytes} bytes in one file"))
}

/// Every CPU of the host.
fn widen_affinity(_: &[String]) -> Result<String, Failure> {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    rustix::thread::sched_setaffinity(None, &all)?;
    let count = rustix::thread::sched_getaffinity(None)?.count();
    if count < 2 { Err(Errno::INVAL.into()) } else { Ok(format!("{count} CPUs")) }
}

/// Goes where other limits hold, by the file that lists a group's members, and becomes the command there.
fn leave_group(arguments: &[String]) -> Result<String, Failure> {
    let split = arguments.iter().position(|word| word == "--");
    let (files, command) = arguments.split_at(split.unwrap_or(arguments.len()));
    for file in files {
        fs::write(file, "0")?;
    }
    crate::attempt(&command.iter().skip(1).cloned().collect::<Vec<_>>())
}
