//! One process of the tree, and how it is read. Its files are kept open between looks where possible, because opening
//! is most of the cost. Must never take another process with the same pid for the known one.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::Result;
use crate::ledger::{Account, Counters, Io};
use crate::memory::Memory;
use crate::procfs::{self, Proc, Stat, numbers_in, parse_io, parse_statm, parse_status};

/// What is kept of a process between looks.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) start: u64,
    pub(crate) parent: i32,
    pub(crate) threads: u64,
    /// It has ended and was not reaped yet.
    pub(crate) has_ended: bool,
    pub(crate) memory: Memory,
    /// Its memory appears to be its parent's; see [`Memory::resembles`].
    pub(crate) borrows: bool,
    /// How often it was read.
    pub(crate) looks: u32,
    /// The sample that read it last.
    pub(crate) seen: u64,
    /// The thread to read if the main thread has ended. `/proc/PID` of such a process shows neither memory nor
    /// descriptors (proc(5)), so both could be hidden there.
    speaker: Option<i32>,
    files: Option<Files>,
}

#[derive(Debug)]
struct Files {
    stat: OwnedFd,
    statm: Option<OwnedFd>,
    children: Option<OwnedFd>,
    io: Option<OwnedFd>,
}

/// The parameters of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) has_children_lists: bool,
    pub(crate) host_has_swap: bool,
    pub(crate) may_hold_files: bool,
    pub(crate) sample: u64,
}

/// The result of reading a process: the process, its usage, whether its I/O could be read, its children.
pub(crate) struct Read {
    pub(crate) process: Process,
    pub(crate) account: Account,
    pub(crate) has_io: bool,
    pub(crate) children: Vec<i32>,
}

impl Process {
    /// Reads process `pid`; `None` if it does not exist.
    pub(crate) fn read(
        proc: &mut Proc,
        pid: i32,
        before: Option<Self>,
        manner: Manner,
    ) -> Result<Option<Read>> {
        let mut before = before;
        let held = before.as_mut().and_then(|known| known.files.take());
        let Some((mut files, stat)) = open(proc, pid, held, manner)? else { return Ok(None) };
        let before = before.filter(|known| known.start == stat.start);
        let has_ended = stat.is_zombie && stat.threads <= 1;
        let mut process = Self {
            start: stat.start,
            parent: stat.parent,
            threads: stat.threads,
            has_ended,
            memory: before.as_ref().map(|known| known.memory).unwrap_or_default(),
            borrows: false,
            looks: before.as_ref().map_or(0, |known| known.looks).saturating_add(1),
            seen: manner.sample,
            speaker: None,
            files: None,
        };
        if has_ended {
            process.memory = Memory::default();
        } else {
            if stat.is_zombie {
                process.speaker = living_thread(proc, pid)?;
            }
            process.read_memory(proc, pid, &files, manner)?;
        }
        if files.io.is_none() {
            // A process cannot be inspected between leaving pid 1's image and its own exec.
            files.io = proc.file(pid, "io")?;
        }
        let io = match &files.io {
            Some(file) => proc.read(file.as_fd())?.and_then(parse_io),
            None => None,
        };
        let children = match manner.has_children_lists {
            true => find_children(proc, pid, stat.threads, files.children.as_ref())?,
            false => Vec::new(),
        };
        process.files = manner.may_hold_files.then_some(files);
        Ok(Some(Read { process, account: account(&stat, io), has_io: io.is_some(), children }))
    }

    /// Closes its open files.
    pub(crate) fn let_go(&mut self) {
        self.files = None;
    }

    /// Whether `/proc/PID` itself shows its memory.
    pub(crate) fn speaks_itself(&self) -> bool {
        self.speaker.is_none()
    }

    /// The name of one of its files below `/proc/PID`.
    pub(crate) fn file_name(&self, name: &str) -> String {
        match self.speaker {
            Some(thread) => format!("task/{thread}/{name}"),
            None => name.to_owned(),
        }
    }

    fn read_memory(
        &mut self,
        proc: &mut Proc,
        pid: i32,
        files: &Files,
        manner: Manner,
    ) -> Result<()> {
        let opened = match self.speaker {
            Some(_) => proc.file(pid, &self.file_name("statm"))?,
            None => None,
        };
        let Some(file) = opened.as_ref().or(files.statm.as_ref()) else { return Ok(()) };
        let Some(text) = proc.read(file.as_fd())? else { return Ok(()) };
        let statm = parse_statm(text).ok_or_else(|| procfs::form(pid, "statm", text))?;
        self.memory.note(statm, rustix::param::page_size() as u64);
        if self.memory.needs_status(manner.host_has_swap)
            && let Some(status) = proc.file(pid, &self.file_name("status"))?
            && let Some(text) = proc.read(status.as_fd())?
        {
            self.memory.explain(parse_status(text));
        }
        Ok(())
    }
}

/// Open files refer to the process they were opened for; once that has ended, its pid may be reused.
fn open(
    proc: &mut Proc,
    pid: i32,
    held: Option<Files>,
    manner: Manner,
) -> Result<Option<(Files, Stat)>> {
    if let Some(files) = held
        && let Some(text) = proc.read(files.stat.as_fd())?
    {
        let stat = procfs::stat(pid, text)?;
        return Ok(Some((files, stat)));
    }
    let Some(stat_file) = proc.file(pid, "stat")? else { return Ok(None) };
    let Some(text) = proc.read(stat_file.as_fd())? else { return Ok(None) };
    let stat = procfs::stat(pid, text)?;
    let children = match manner.has_children_lists && stat.threads <= 1 {
        true => proc.file(pid, &format!("task/{pid}/children"))?,
        false => None,
    };
    let statm = proc.file(pid, "statm")?;
    Ok(Some((Files { stat: stat_file, statm, children, io: None }, stat)))
}

/// Every thread has its own list of the children it created.
pub(crate) fn find_children(
    proc: &mut Proc,
    pid: i32,
    threads: u64,
    held: Option<&OwnedFd>,
) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    if threads <= 1 {
        match held {
            Some(file) => proc.children(file.as_fd(), &mut found)?,
            None => children_of_thread(proc, pid, pid, &mut found)?,
        }
        return Ok(found);
    }
    for thread in threads_of(proc, pid)? {
        children_of_thread(proc, pid, thread, &mut found)?;
    }
    Ok(found)
}

fn children_of_thread(proc: &mut Proc, pid: i32, thread: i32, found: &mut Vec<i32>) -> Result<()> {
    match proc.file(pid, &format!("task/{thread}/children"))? {
        Some(file) => proc.children(file.as_fd(), found),
        None => Ok(()),
    }
}

fn threads_of(proc: &Proc, pid: i32) -> Result<Vec<i32>> {
    match proc.directory(pid, "task")? {
        Some(tasks) => numbers_in(&tasks),
        None => Ok(Vec::new()),
    }
}

/// A thread that still has the memory which the main thread released.
fn living_thread(proc: &mut Proc, pid: i32) -> Result<Option<i32>> {
    for thread in threads_of(proc, pid)? {
        let Some(file) = proc.file(pid, &format!("task/{thread}/statm"))? else { continue };
        let resident = proc.read(file.as_fd())?.and_then(parse_statm).map(|statm| statm.resident);
        if resident.is_some_and(|pages| pages > 0) {
            return Ok(Some(thread));
        }
    }
    Ok(None)
}

fn account(stat: &Stat, io: Option<Io>) -> Account {
    let io = io.unwrap_or_default();
    Account {
        total: Counters {
            user: stat.user.saturating_add(stat.children_user),
            system: stat.system.saturating_add(stat.children_system),
            io,
        },
        collected: Counters { user: stat.children_user, system: stat.children_system, io },
    }
}
