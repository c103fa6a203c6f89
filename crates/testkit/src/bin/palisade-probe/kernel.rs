//! Attempts at the kernel's surface.
//! Must never look for another way once one is refused.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use palisade_sys::clone::{CloneFlags, unshare};
use palisade_testkit::raw;
use rustix::io::Errno;
use rustix::mount::{FsOpenFlags, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::net::{AddressFamily, Protocol, SocketType};

use crate::surroundings::{LEFT_KEY, c_string};
use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("io-uring", "", io_uring),
    #[cfg(target_arch = "x86_64")]
    ("int-0x80", "", int_0x80),
    #[cfg(target_arch = "x86_64")]
    ("x32", "", x32),
    ("clone3-namespace", "", clone3_namespace),
    ("unshare-namespace", "", unshare_namespace),
    ("rare-socket", "NAME", rare_socket),
    ("read-session-key", "NAME", read_session_key),
    ("leave-session-key", "VALUE", leave_session_key),
    ("receive-posix", "NAME", receive_posix),
    ("receive-system-v", "KEY", receive_system_v),
    ("bpf", "", bpf),
    ("userfaultfd", "", userfaultfd),
    ("perf-event", "", perf_event),
    ("fsopen", "", fsopen),
    ("fanotify", "", fanotify),
    ("listener", "", listener),
    ("kernel-log", "", kernel_log),
    ("set-clock", "", set_clock),
    ("real-time", "", real_time),
    ("raise-limit", "", raise_limit),
    ("mount-cgroup-v1", "DIRECTORY", mount_cgroup_v1),
    ("run-from-memory", "PROBE…", run_from_memory),
    ("call-setns", "", setns),
    ("call-chroot", "", chroot),
    ("call-mount", "", mount),
    ("call-umount", "", umount),
    ("load-module", "", load_module),
    ("unload-module", "", unload_module),
    ("kexec", "", kexec),
    ("arguments", "WORD…", arguments),
];

fn io_uring(_: &[String]) -> Result<String, Failure> {
    raw::io_uring_setup()?;
    Ok("has a ring".to_owned())
}

#[cfg(target_arch = "x86_64")]
fn int_0x80(_: &[String]) -> Result<String, Failure> {
    let pid = raw::getpid_by_int_0x80();
    if u32::try_from(pid) != Ok(std::process::id()) {
        return Err(io::Error::from_raw_os_error(-pid).into());
    }
    Ok("the 32-bit gate answered".to_owned())
}

/// A kernel without the x32 ABI answers `ENOSYS`, which still is an answer of the kernel's.
#[cfg(target_arch = "x86_64")]
fn x32(_: &[String]) -> Result<String, Failure> {
    match raw::getpid_by_x32() {
        Err(error) if error.raw_os_error() != Some(Errno::NOSYS.raw_os_error()) => {
            Err(error.into())
        }
        _ => Ok("the kernel answered".to_owned()),
    }
}

fn clone3_namespace(_: &[String]) -> Result<String, Failure> {
    raw::clone3_into_user_namespace()?;
    Ok("had a child in a new user namespace".to_owned())
}

fn unshare_namespace(_: &[String]) -> Result<String, Failure> {
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWNET)?;
    Ok("is in a new user namespace".to_owned())
}

/// Families and protocols that no ordinary program needs: name, family, type, protocol.
const RARE_SOCKETS: &[(&str, u16, SocketType, u32)] = &[
    ("ax25", 3, SocketType::DGRAM, 0),
    ("packet", 17, SocketType::DGRAM, 0),
    ("netlink-xfrm", 16, SocketType::RAW, 6),
    ("netlink-netfilter", 16, SocketType::RAW, 12),
    ("netlink-kobject-uevent", 16, SocketType::RAW, 15),
    ("netlink-generic", 16, SocketType::RAW, 16),
    ("rds", 21, SocketType::SEQPACKET, 0),
    ("can", 29, SocketType::RAW, 1),
    ("tipc", 30, SocketType::RDM, 0),
    ("bluetooth", 31, SocketType::RAW, 1),
    ("rxrpc", 33, SocketType::DGRAM, 2),
    ("alg", 38, SocketType::SEQPACKET, 0),
    ("vsock", 40, SocketType::STREAM, 0),
    ("qipcrtr", 42, SocketType::DGRAM, 0),
    ("smc", 43, SocketType::STREAM, 0),
    ("xdp", 44, SocketType::RAW, 0),
];

fn rare_socket(arguments: &[String]) -> Result<String, Failure> {
    let wanted = argument(arguments, 0, "NAME")?;
    let Some((name, family, kind, protocol)) =
        RARE_SOCKETS.iter().find(|(name, ..)| *name == wanted)
    else {
        return Err(Failure::Usage(format!("no such socket: {wanted}")));
    };
    let protocol = std::num::NonZeroU32::new(*protocol).map(Protocol::from_raw);
    rustix::net::socket(AddressFamily::from_raw(*family), *kind, protocol)?;
    Ok(format!("has a {name} socket"))
}

fn read_session_key(arguments: &[String]) -> Result<String, Failure> {
    let name = c_string(argument(arguments, 0, "NAME")?)?;
    Ok(String::from_utf8_lossy(&raw::read_session_key(&name)?).into_owned())
}

fn leave_session_key(arguments: &[String]) -> Result<String, Failure> {
    raw::add_session_key(LEFT_KEY, argument(arguments, 0, "VALUE")?.as_bytes())?;
    Ok("left a key".to_owned())
}

fn receive_posix(arguments: &[String]) -> Result<String, Failure> {
    let name = c_string(argument(arguments, 0, "NAME")?)?;
    Ok(String::from_utf8_lossy(&raw::receive_by_posix_queue(&name)?).into_owned())
}

fn receive_system_v(arguments: &[String]) -> Result<String, Failure> {
    let received = raw::receive_by_system_v(number(arguments, 0, "KEY")?)?;
    Ok(String::from_utf8_lossy(&received).into_owned())
}

/// `EPERM` is what the filter answers; any other answer is the kernel's own.
fn answered_by_the_kernel<T>(outcome: io::Result<T>) -> Result<String, Failure> {
    match outcome {
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => Err(error.into()),
        Err(error) => Ok(format!("the kernel answered: {error}")),
        Ok(_) => Ok("the kernel agreed".to_owned()),
    }
}

fn bpf(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::bpf_get_missing_object())
}

fn userfaultfd(_: &[String]) -> Result<String, Failure> {
    raw::userfaultfd()?;
    Ok("catches page faults".to_owned())
}

fn perf_event(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::perf_event_open())
}

/// In namespaces of its own, where an ordinary user may.
fn fsopen(_: &[String]) -> Result<String, Failure> {
    unshare(CloneFlags::NEWUSER | CloneFlags::NEWNS)?;
    rustix::mount::fsopen("tmpfs", FsOpenFlags::empty())?;
    Ok("has a file system of its own".to_owned())
}

/// A name that is nowhere: the kernel says so before it asks for a capability.
const MISSING: &str = "/palisade-no-such-directory";

fn setns(_: &[String]) -> Result<String, Failure> {
    let not_a_namespace = File::open("/dev/null")?;
    answered_by_the_kernel(
        rustix::thread::move_into_link_name_space(not_a_namespace.as_fd(), None)
            .map_err(io::Error::from),
    )
}

fn chroot(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(rustix::process::chroot(MISSING).map_err(io::Error::from))
}

fn mount(_: &[String]) -> Result<String, Failure> {
    let mounted = rustix::mount::mount("none", MISSING, "tmpfs", MountFlags::empty(), None);
    answered_by_the_kernel(mounted.map_err(io::Error::from))
}

fn umount(_: &[String]) -> Result<String, Failure> {
    let unknown_flags = UnmountFlags::from_bits_retain(0xff00);
    answered_by_the_kernel(rustix::mount::unmount(MISSING, unknown_flags).map_err(io::Error::from))
}

fn load_module(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::load_empty_module())
}

fn unload_module(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::unload_missing_module())
}

fn kexec(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::kexec_load_nonsense())
}

fn fanotify(_: &[String]) -> Result<String, Failure> {
    raw::fanotify()?;
    Ok("watches files wherever they are".to_owned())
}

/// A filter of one's own that answers notifications oneself.
fn listener(_: &[String]) -> Result<String, Failure> {
    raw::install_listener()?;
    Ok("decides about its own calls".to_owned())
}

fn kernel_log(_: &[String]) -> Result<String, Failure> {
    raw::kernel_log_size()?;
    Ok("may read the kernel's log".to_owned())
}

/// A clock that does not exist: only the filter says `EPERM` to that.
fn set_clock(_: &[String]) -> Result<String, Failure> {
    answered_by_the_kernel(raw::set_missing_clock())
}

fn real_time(_: &[String]) -> Result<String, Failure> {
    raw::become_real_time()?;
    Ok("goes before everybody else".to_owned())
}

/// Lowers a hard limit, which everybody may, and takes that back, which is a privilege.
fn raise_limit(_: &[String]) -> Result<String, Failure> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let low = Rlimit { current: Some(64), maximum: Some(64) };
    setrlimit(Resource::Nofile, low)?;
    let again = Rlimit { current: Some(64), maximum: Some(65) };
    setrlimit(Resource::Nofile, again)?;
    Ok("has its limit back".to_owned())
}

/// A hierarchy of the first version, whose `release_agent` the kernel would run as the host's root.
fn mount_cgroup_v1(arguments: &[String]) -> Result<String, Failure> {
    let directory = argument(arguments, 0, "DIRECTORY")?;
    unshare(CloneFlags::NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)?;
    let options = c"none,name=palisade-probe";
    rustix::mount::mount("none", directory, "cgroup", MountFlags::empty(), options)?;
    std::fs::write(std::path::Path::new(directory).join("release_agent"), "/bin/true")?;
    rustix::mount::unmount(directory, UnmountFlags::empty())?;
    Ok("the kernel would run a program of its choice".to_owned())
}

/// Copies this program into memory and runs it from there: no path leads to it.
fn run_from_memory(arguments: &[String]) -> Result<String, Failure> {
    let memory = rustix::fs::memfd_create("nowhere", rustix::fs::MemfdFlags::empty())?;
    let mut memory = File::from(memory);
    io::copy(&mut File::open("/proc/self/exe")?, &mut memory)?;
    Err(raw::execute_descriptor(&memory, arguments).into())
}

/// How the program itself was called.
fn arguments(arguments: &[String]) -> Result<String, Failure> {
    Ok(format!("{arguments:?}"))
}
