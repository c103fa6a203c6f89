//! Memory in places where nobody who looks at processes finds it: page tables, System V objects, files that are
//! mapped and never read. Each holds it for as long as the value lives.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_long, c_void};

use super::checked;

/// What the kernel gives a queue of messages by default.
const QUEUE_BYTES: usize = 16 * 1024;
/// A page table of this size leads to this much memory.
const TABLE_BYTES: usize = 4096;
const BYTES_PER_TABLE: usize = 2 << 20;

/// Addresses that lead to memory.
#[derive(Debug)]
pub struct Mapping {
    address: *mut c_void,
    length: usize,
}

impl Mapping {
    fn new(length: usize, rights: i32, flags: i32, file: i32) -> io::Result<Self> {
        // SAFETY: the kernel picks the addresses, so that nothing else lies there.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, file, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address, length })
    }

    /// Memory that children share, all of it used.
    pub fn shared(length: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let mapping = Self::new(length, libc::PROT_READ | libc::PROT_WRITE, flags, -1)?;
        // SAFETY: exactly the bytes that were mapped for writing.
        unsafe { std::ptr::write_bytes(mapping.address.cast::<u8>(), 1, length) };
        Ok(mapping)
    }

    /// A file, none of it read.
    pub fn unread(file: impl AsFd, length: usize) -> io::Result<Self> {
        Self::new(length, libc::PROT_READ, libc::MAP_SHARED, file.as_fd().as_raw_fd())
    }

    /// So many bytes of page tables, which lead to nothing but the one page of zeros.
    pub fn of_tables(length: usize) -> io::Result<Self> {
        let addresses = length / TABLE_BYTES * BYTES_PER_TABLE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Self::new(addresses, libc::PROT_READ, flags, -1)?;
        // A large page of zeros would need no table. Not every kernel has large pages, and then it is no matter.
        // SAFETY: advice about addresses that are ours.
        unsafe { libc::madvise(mapping.address, addresses, libc::MADV_NOHUGEPAGE) };
        for at in (0..addresses).step_by(BYTES_PER_TABLE) {
            let place = mapping.address.cast::<u8>().wrapping_add(at);
            // SAFETY: within the mapping, which can be read.
            unsafe { std::ptr::read_volatile(place) };
        }
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nobody holds a reference into it.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

/// System V shared memory that no process has attached; gone when dropped.
#[derive(Debug)]
pub struct SystemVMemory(libc::c_int);

impl SystemVMemory {
    pub fn filled(length: usize) -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, length, libc::IPC_CREAT | 0o600) };
        checked(id.into())?;
        let memory = Self(id);
        // SAFETY: the kernel picks the addresses, so that nothing else lies there.
        let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        checked(address as c_long)?;
        // SAFETY: as many bytes as the segment was made with.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 1, length) };
        // SAFETY: nobody uses the addresses any more.
        checked(unsafe { libc::shmdt(address) }.into())?;
        Ok(memory)
    }
}

impl Drop for SystemVMemory {
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer; what is gone already is no matter.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A System V queue that takes no more messages; gone when dropped.
#[derive(Debug)]
pub struct FullQueue(libc::c_int);

impl FullQueue {
    /// How much is in it.
    pub const BYTES: usize = QUEUE_BYTES;

    pub fn new() -> io::Result<Self> {
        const TEXT: usize = 8192 - size_of::<c_long>();
        #[repr(C)]
        struct Message {
            kind: c_long,
            text: [u8; TEXT],
        }
        // SAFETY: takes numbers only.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) };
        checked(id.into())?;
        let queue = Self(id);
        let message = Message { kind: 1, text: [1; TEXT] };
        for _ in 0..QUEUE_BYTES / TEXT {
            // SAFETY: the message is a long and as many bytes as are named.
            let sent =
                unsafe { libc::msgsnd(id, (&raw const message).cast(), TEXT, libc::IPC_NOWAIT) };
            checked(sent.into())?;
        }
        Ok(queue)
    }
}

impl Drop for FullQueue {
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer; what is gone already is no matter.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}
