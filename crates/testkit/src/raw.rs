//! System calls that only an attacker makes, for the probe program.
//! Each makes one attempt and hands back the kernel's own answer; none may do lasting harm where it
//! is let through. Never shipped: the product has its own calls in `palisade-sys`.
#![expect(unsafe_code, reason = "attacks need system calls that nobody wraps")]

mod memory;
mod shared_name;

pub use memory::{FullQueue, Mapping, SystemVMemory};
pub use shared_name::{NamedCall, SharedName};

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_long, pid_t};

/// A number that every call here understands as "no address".
const NOWHERE: usize = 0;

/// The result of a call that answers -1 and errno.
fn checked(returned: c_long) -> io::Result<c_long> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

fn new_descriptor(returned: c_long) -> io::Result<OwnedFd> {
    let raw = RawFd::try_from(checked(returned)?).map_err(io::Error::other)?;
    // SAFETY: the call succeeded, so the number is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// io_uring_setup(2) with one entry.
pub fn io_uring_setup() -> io::Result<OwnedFd> {
    // `struct io_uring_params` is 120 bytes, all of them zero for the defaults.
    let mut parameters = [0_u64; 15];
    // SAFETY: the kernel reads and writes 120 bytes at the pointer, which is what the array has.
    new_descriptor(unsafe {
        libc::syscall(libc::SYS_io_uring_setup, 1_u32, parameters.as_mut_ptr())
    })
}

/// getpid by the gate of 32-bit programs, which has numbers of its own.
#[cfg(target_arch = "x86_64")]
pub fn getpid_by_int_0x80() -> i32 {
    const I386_GETPID: i32 = 20;
    let answer: i32;
    // SAFETY: getpid takes no argument and touches no memory; the gate keeps every register but eax
    // and, on some kernels, r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") I386_GETPID => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer
}

/// getpid by its number in the x32 ABI.
#[cfg(target_arch = "x86_64")]
pub fn getpid_by_x32() -> io::Result<c_long> {
    const X32_BIT: c_long = 0x4000_0000;
    // SAFETY: getpid takes no argument and touches no memory, and so does whatever is not there.
    checked(unsafe { libc::syscall(X32_BIT | libc::SYS_getpid) })
}

/// clone3(2) into a new user namespace; the child ends at once.
pub fn clone3_into_user_namespace() -> io::Result<()> {
    let mut arguments = [0_u64; 8];
    arguments[0] = 0x1000_0000; // CLONE_NEWUSER
    arguments[4] = libc::SIGCHLD.unsigned_abs().into(); // exit_signal
    // SAFETY: `struct clone_args` of version 0 is eight u64. Without CLONE_VM the child has its own
    // memory, and it does nothing but end.
    let child = checked(unsafe {
        libc::syscall(libc::SYS_clone3, arguments.as_mut_ptr(), size_of_val(&arguments))
    })?;
    if child == 0 {
        // SAFETY: _exit runs no handler of the copied process.
        unsafe { libc::_exit(0) };
    }
    let child = pid_t::try_from(child).map_err(io::Error::other)?;
    // SAFETY: waits for our own child and asks for no status.
    checked(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }.into()).map(drop)
}

/// Starts an empty session keyring for this process.
pub fn join_new_session_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: c_long = 1;
    // SAFETY: a null name asks for an anonymous keyring; no memory of ours is touched.
    checked(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, NOWHERE) }).map(drop)
}

const SESSION_KEYRING: c_long = -3;
const USER_KEY: &CStr = c"user";

/// Puts a key of type `user` into the session keyring.
pub fn add_session_key(name: &CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: two C strings and a buffer with its length, all borrowed for the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_add_key,
            USER_KEY.as_ptr(),
            name.as_ptr(),
            content.as_ptr(),
            content.len(),
            SESSION_KEYRING,
        )
    })
    .map(drop)
}

/// Finds a key of type `user` in the session keyring and reads it.
pub fn read_session_key(name: &CStr) -> io::Result<Vec<u8>> {
    const SEARCH: c_long = 10;
    const READ: c_long = 11;
    // SAFETY: two C strings, borrowed for the call.
    let key = checked(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            SEARCH,
            SESSION_KEYRING,
            USER_KEY.as_ptr(),
            name.as_ptr(),
            NOWHERE,
        )
    })?;
    let mut content = vec![0_u8; 256];
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let length = checked(unsafe {
        libc::syscall(libc::SYS_keyctl, READ, key, content.as_mut_ptr(), content.len())
    })?;
    content.truncate(usize::try_from(length).unwrap_or_default());
    Ok(content)
}

/// `struct msgbuf` with room for one short text.
#[repr(C)]
struct Message {
    kind: c_long,
    text: [u8; 32],
}

/// A System V message queue everybody may use, with one message in it; gone when dropped.
#[derive(Debug)]
pub struct SystemVQueue(libc::c_int);

impl SystemVQueue {
    pub fn create(key: i32, text: &[u8]) -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let id = unsafe { libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o666) };
        checked(id.into())?;
        let queue = Self(id);
        let mut message = Message { kind: 1, text: [0; 32] };
        let length = text.len().min(message.text.len());
        message.text[..length].copy_from_slice(&text[..length]);
        // SAFETY: the message is a long and `length` bytes, as the call expects.
        checked(unsafe { libc::msgsnd(id, (&raw const message).cast(), length, 0) }.into())?;
        Ok(queue)
    }
}

impl Drop for SystemVQueue {
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer; a queue that is gone already is no matter.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Takes the first message of the System V queue with this key.
pub fn receive_by_system_v(key: i32) -> io::Result<Vec<u8>> {
    // SAFETY: takes numbers only.
    let id = unsafe { libc::msgget(key, 0) };
    checked(id.into())?;
    let mut message = Message { kind: 0, text: [0; 32] };
    let room = message.text.len();
    // SAFETY: the message has a long and room for `room` bytes.
    let length =
        checked(unsafe { libc::msgrcv(id, (&raw mut message).cast(), room, 0, libc::IPC_NOWAIT) }
            as c_long)?;
    Ok(message.text[..usize::try_from(length).unwrap_or_default()].to_vec())
}

/// A POSIX message queue everybody may use, with one message in it; gone when dropped.
#[derive(Debug)]
pub struct PosixQueue<'name>(&'name CStr);

impl<'name> PosixQueue<'name> {
    pub fn create(name: &'name CStr, text: &[u8]) -> io::Result<Self> {
        let queue = open_posix_queue(name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY)?;
        let created = Self(name);
        // SAFETY: the buffer and its length are borrowed for the call.
        let sent = unsafe { libc::mq_send(queue.as_raw_fd(), text.as_ptr().cast(), text.len(), 0) };
        checked(sent.into())?;
        Ok(created)
    }
}

impl Drop for PosixQueue<'_> {
    fn drop(&mut self) {
        // SAFETY: a C string; a queue that is gone already is no matter.
        unsafe { libc::mq_unlink(self.0.as_ptr()) };
    }
}

/// Takes the first message of the POSIX queue with this name.
pub fn receive_by_posix_queue(name: &CStr) -> io::Result<Vec<u8>> {
    let queue = open_posix_queue(name, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let mut text = vec![0_u8; 64];
    // SAFETY: the buffer is as large as the messages of the queue can be.
    let length = checked(unsafe {
        libc::mq_receive(
            queue.as_raw_fd(),
            text.as_mut_ptr().cast(),
            text.len(),
            std::ptr::null_mut(),
        )
    } as c_long)?;
    text.truncate(usize::try_from(length).unwrap_or_default());
    Ok(text)
}

/// By the system call: libc's wrapper wants a slash before the name, and returns a type of its own.
fn open_posix_queue(name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: all zeros is a valid value of this struct of integers.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 64;
    let bare_name = &name.to_bytes_with_nul()[1..];
    // SAFETY: a C string without its leading slash, and attributes the kernel only reads.
    new_descriptor(unsafe {
        libc::syscall(
            libc::SYS_mq_open,
            bare_name.as_ptr(),
            flags | libc::O_CLOEXEC,
            0o666,
            &raw const attributes,
        )
    })
}

/// bpf(2), asked for a pinned object that does not exist: harmless, and it needs no capability.
pub fn bpf_get_missing_object() -> io::Result<OwnedFd> {
    const OBJ_GET: c_long = 7;
    let path = c"/sys/fs/bpf/palisade-no-such-object";
    let attributes = [path.as_ptr().expose_provenance() as u64, 0];
    // SAFETY: the attributes are a pointer to a C string that outlives the call, and zeros.
    new_descriptor(unsafe {
        libc::syscall(libc::SYS_bpf, OBJ_GET, attributes.as_ptr(), size_of_val(&attributes))
    })
}

/// userfaultfd(2), for faults of user mode, which needs no capability (5.11).
pub fn userfaultfd() -> io::Result<OwnedFd> {
    const USER_MODE_ONLY: c_long = 1;
    // SAFETY: takes a number only.
    new_descriptor(unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY) })
}

/// perf_event_open(2) of this process's own CPU clock, user mode only.
pub fn perf_event_open() -> io::Result<OwnedFd> {
    const SOFTWARE: u64 = 1;
    const SIZE_OF_VERSION_0: u64 = 64;
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
    const ANY_CPU: c_long = -1;
    const NO_GROUP: c_long = -1;
    let mut attributes = [0_u64; 8];
    attributes[0] = SOFTWARE | SIZE_OF_VERSION_0 << 32;
    attributes[5] = EXCLUDE_KERNEL_AND_HYPERVISOR;
    // SAFETY: 64 bytes of attributes, as their second word says.
    new_descriptor(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0_i32,
            ANY_CPU,
            NO_GROUP,
            0_usize,
        )
    })
}

/// init_module(2) of nothing at all.
pub fn load_empty_module() -> io::Result<()> {
    // SAFETY: no bytes are read at the pointer, and the parameters are an empty C string.
    checked(unsafe { libc::syscall(libc::SYS_init_module, NOWHERE, 0_usize, c"".as_ptr()) })
        .map(drop)
}

/// delete_module(2) of a module that does not exist.
pub fn unload_missing_module() -> io::Result<()> {
    let name = c"palisade_no_such_module";
    // SAFETY: a C string, and flags that wait for nothing.
    checked(unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) })
        .map(drop)
}

/// kexec_load(2) with flags that no kernel knows, so that nothing is ever loaded or unloaded.
pub fn kexec_load_nonsense() -> io::Result<()> {
    const UNKNOWN_FLAGS: u64 = 0xffff_fff0;
    // SAFETY: no segments are read, and the flags are refused before anything else is looked at.
    checked(unsafe {
        libc::syscall(libc::SYS_kexec_load, 0_usize, 0_usize, NOWHERE, UNKNOWN_FLAGS)
    })
    .map(drop)
}

/// ptrace(2) of another process, without stopping it; it is let go when this process ends.
pub fn trace(pid: i32) -> io::Result<()> {
    // SAFETY: PTRACE_SEIZE takes numbers only.
    checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, NOWHERE, NOWHERE) }).map(drop)
}

/// process_vm_writev(2) to an address that no process has: `EFAULT` if access was granted.
pub fn write_memory_nowhere(pid: i32) -> io::Result<()> {
    let byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 };
    // SAFETY: one readable byte of ours; the other address belongs to the other process.
    checked(unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) }
        as c_long)
    .map(drop)
}

/// Lets any process of the same user trace this one, where Yama would not.
pub fn allow_tracers() -> io::Result<()> {
    const SET_PTRACER: libc::c_int = 0x5961_6d61;
    const ANY: libc::c_ulong = libc::c_ulong::MAX;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(SET_PTRACER, ANY) }.into()).map(drop)
}

/// How the number of an ioctl is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// As the header has it.
    Plain,
    /// With a bit the kernel ignores and a careless filter does not (CVE-2019-10063).
    WithHighBit,
}

impl Command {
    fn number(self, command: c_long) -> c_long {
        match self {
            Self::Plain => command,
            Self::WithHighBit => command | 1 << 32,
        }
    }
}

/// Types one byte into a terminal.
pub fn type_into(terminal: impl AsFd, byte: u8, form: Command) -> io::Result<()> {
    const TIOCSTI: c_long = 0x5412;
    let terminal = terminal.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one byte at the pointer; the descriptor is borrowed for the call.
    checked(unsafe {
        libc::syscall(libc::SYS_ioctl, terminal, form.number(TIOCSTI), &raw const byte)
    })
    .map(drop)
}

/// Asks the console driver for the shift state; `ENOTTY` on any other terminal.
pub fn ask_console(form: Command) -> io::Result<()> {
    const TIOCLINUX: c_long = 0x541c;
    const GET_SHIFT_STATE: u8 = 6;
    let mut subcode = GET_SHIFT_STATE;
    // SAFETY: the driver reads the subcode and writes its answer over that byte.
    checked(unsafe { libc::syscall(libc::SYS_ioctl, 2, form.number(TIOCLINUX), &raw mut subcode) })
        .map(drop)
}

/// `struct file_handle` with room for the largest handle.
#[repr(C)]
struct Handle {
    size: u32,
    kind: i32,
    bytes: [u8; 128],
}

/// The handle of a file by name_to_handle_at(2): its kind and its bytes, as [`open_handle`] takes them.
pub fn handle_of(path: &std::path::Path) -> io::Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut handle = Handle { size: 128, kind: 0, bytes: [0; 128] };
    let mut mount = 0_i32;
    // SAFETY: a C string, a handle that says how much room it has, and an int for the mount's number.
    checked(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    })?;
    let mut packed = handle.kind.to_ne_bytes().to_vec();
    packed.extend_from_slice(&handle.bytes[..handle.size as usize]);
    Ok(packed)
}

/// open_by_handle_at(2) of a directory on the file system that `place` is on.
pub fn open_handle(place: &std::fs::File, packed: &[u8]) -> io::Result<OwnedFd> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidInput);
    let (kind, content) = packed.split_first_chunk().ok_or_else(malformed)?;
    let size = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut handle = Handle { size, kind: i32::from_ne_bytes(*kind), bytes: [0; 128] };
    handle.bytes.get_mut(..content.len()).ok_or_else(malformed)?.copy_from_slice(content);
    // SAFETY: the handle says how many of its bytes count, and the kernel only reads it.
    new_descriptor(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            place.as_raw_fd(),
            &raw const handle,
            libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        )
    })
}

/// truncate(2) to nothing.
pub fn truncate(path: &str) -> io::Result<()> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: a C string, borrowed for the call.
    checked(unsafe { libc::truncate(path.as_ptr(), 0) }.into()).map(drop)
}

/// fanotify_init(2) in the form that needs no capability (5.13).
pub fn fanotify() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    new_descriptor(unsafe {
        libc::syscall(
            libc::SYS_fanotify_init,
            libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID,
            libc::O_RDONLY,
        )
    })
}

/// A filter that allows everything, with a listener for its notifications.
pub fn install_listener() -> io::Result<OwnedFd> {
    const SET_MODE_FILTER: c_long = 1;
    const NEW_LISTENER: c_long = 1 << 3;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    let instruction = libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: ALLOW };
    let program = libc::sock_fprog { len: 1, filter: (&raw const instruction).cast_mut() };
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    // SAFETY: a program of one instruction that the kernel only reads.
    new_descriptor(unsafe {
        libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, NEW_LISTENER, &raw const program)
    })
}

/// syslog(2): how large the kernel's log is, which asks for the same permission as reading it.
pub fn kernel_log_size() -> io::Result<()> {
    const READ_ALL: c_long = 3;
    let mut nothing = [0_u8; 1];
    // SAFETY: a buffer of one byte, and its length.
    checked(unsafe { libc::syscall(libc::SYS_syslog, READ_ALL, nothing.as_mut_ptr(), 1) }).map(drop)
}

/// clock_settime(2) of a clock that no kernel has.
pub fn set_missing_clock() -> io::Result<()> {
    const MISSING: c_long = 1000;
    let time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a time that the kernel only reads.
    checked(unsafe { libc::syscall(libc::SYS_clock_settime, MISSING, &raw const time) }).map(drop)
}

/// sched_setscheduler(2) of this process to the lowest real-time priority.
pub fn become_real_time() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: a parameter that the kernel only reads.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) }.into())
        .map(drop)
}

/// execveat(2) of what a descriptor holds, under a name and with these arguments; returns only if
/// it is refused.
pub fn execute_descriptor(program: &std::fs::File, arguments: &[String]) -> io::Error {
    let words: Result<Vec<std::ffi::CString>, _> = std::iter::once("palisade-probe")
        .chain(arguments.iter().map(String::as_str))
        .map(std::ffi::CString::new)
        .collect();
    let words = match words {
        Ok(words) => words,
        Err(error) => return error.into(),
    };
    let mut pointers: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let no_environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: an empty path, and two arrays of C strings that end with a null.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            pointers.as_ptr(),
            no_environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Ignores the signal that stops a process of the background which changes its terminal.
pub fn ignore_terminal_stops() -> io::Result<()> {
    // SAFETY: no handler of ours is installed.
    let former = unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
    if former == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// fork(2) and nothing else; 0 in the child, which must not have threads.
pub fn fork() -> io::Result<pid_t> {
    // SAFETY: the probe has one thread, so that the child finds no lock held by another.
    let pid = unsafe { libc::fork() };
    checked(pid.into())?;
    Ok(pid)
}

/// Children end without anybody being told, and their time is added to nobody's.
pub fn ignore_children() -> io::Result<()> {
    // SAFETY: no handler is installed, so none can run.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What this process has used of the CPUs.
pub fn own_cpu_time() -> io::Result<std::time::Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `struct timespec`, which is what the pointer leads to.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    checked(read.into())?;
    let seconds = u64::try_from(time.tv_sec).map_err(io::Error::other)?;
    Ok(std::time::Duration::new(seconds, u32::try_from(time.tv_nsec).map_err(io::Error::other)?))
}
