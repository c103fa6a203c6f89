//! Identity and privileges of a process: id maps, uids, capabilities, securebits, dumpability. Every call
//! affects only the calling thread: a launcher has only one. Order matters: securebits and the bounding set
//! need CAP_SETPCAP, so they come before the capability sets are emptied.

#![expect(unsafe_code, reason = "rustix cannot name capabilities newer than itself")]

use std::io::Write;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Pid, Uid};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::error::{At, Result, SysError, check};

/// Which of the two id maps of a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    Uid,
    Gid,
}

/// One line of an id map: `count` ids from `inside` on map to those from `outside` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLine {
    pub inside: u32,
    pub outside: u32,
    pub count: u32,
}

/// The three capability sets of a thread, one bit per capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub effective: u64,
    pub permitted: u64,
    pub inheritable: u64,
}

/// Writes an id map of the user namespace of `pid` (`None`: our own). It can be written once.
/// See user_namespaces(7).
pub fn write_map(pid: Option<Pid>, kind: IdKind, lines: &[MapLine]) -> Result<()> {
    let file = match kind {
        IdKind::Uid => "uid_map",
        IdKind::Gid => "gid_map",
    };
    let text: String = lines
        .iter()
        .map(|line| format!("{} {} {}\n", line.inside, line.outside, line.count))
        .collect();
    write_proc(pid, file, text.as_bytes())
}

/// Turns setgroups(2) off in the user namespace of `pid` (`None`: our own); without privilege the
/// gid map can be written only after this (CVE-2014-8989).
pub fn deny_setgroups(pid: Option<Pid>) -> Result<()> {
    write_proc(pid, "setgroups", b"deny")
}

/// The kernel takes such a file in a single write only.
pub(crate) fn write_proc(pid: Option<Pid>, file: &str, content: &[u8]) -> Result<()> {
    let path = match pid {
        None => format!("/proc/self/{file}"),
        Some(pid) => format!("/proc/{}/{file}", pid.as_raw_pid()),
    };
    let path = Path::new(&path);
    let mut open = std::fs::OpenOptions::new().write(true).open(path).at("open", path)?;
    let written = open.write(content).at("write", path)?;
    if written != content.len() {
        return Err(SysError::new("write", path.display().to_string(), Errno::IO));
    }
    Ok(())
}

/// Sets real, effective and saved uid of this thread.
pub fn setresuid(uid: u32) -> Result<()> {
    let uid = Uid::from_raw_unchecked(valid_id("setresuid", uid)?);
    rustix::thread::set_thread_res_uid(uid, uid, uid).call("setresuid")
}

/// Sets real, effective and saved gid of this thread.
pub fn setresgid(gid: u32) -> Result<()> {
    let gid = Gid::from_raw_unchecked(valid_id("setresgid", gid)?);
    rustix::thread::set_thread_res_gid(gid, gid, gid).call("setresgid")
}

/// The kernel reads the id -1 as "leave it as it is", which is never what a caller here means.
fn valid_id(call: &'static str, id: u32) -> Result<u32> {
    if id == u32::MAX { Err(SysError::new(call, "id -1", Errno::INVAL)) } else { Ok(id) }
}

/// Leaves every supplementary group. Fails with `EPERM` where setgroups is denied.
pub fn setgroups_empty() -> Result<()> {
    rustix::thread::set_thread_groups(&[]).call("setgroups")
}

/// Empties the bounding, ambient, effective, permitted and inheritable set of this thread.
pub fn drop_all_capabilities() -> Result<()> {
    drop_bounding_set()?;
    rustix::thread::clear_ambient_capability_set().call("prctl PR_CAP_AMBIENT")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).call("capset")
}

/// Empties the capability sets of this thread but keeps the bounding set, since changing that needs a capability.
/// Sufficient for a process that has `no_new_privs` and executes no program.
pub fn give_up_capabilities() -> Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::clear_ambient_capability_set().call("prctl PR_CAP_AMBIENT")?;
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).call("capset")
}

/// Drops every capability of this thread but CAP_SYS_PTRACE, needed to inspect the processes of its user namespace.
pub fn keep_only_sys_ptrace() -> Result<()> {
    keep_only(CapabilitySet::SYS_PTRACE)
}

/// Drops every capability of this thread but CAP_NET_ADMIN, needed to query the networks of its user namespace.
pub fn keep_only_net_admin() -> Result<()> {
    keep_only(CapabilitySet::NET_ADMIN)
}

/// Drops every capability of this thread but those needed to open a link in a network of its user namespace, and passes
/// these on to an executed program. See capabilities(7), ambient.
pub fn keep_over_exec_for_links() -> Result<()> {
    let kept = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_ADMIN);
    let mut sets = rustix::thread::capabilities(None).call("capget")?;
    // First: a capability that is no longer in the bounding set cannot be made inheritable.
    sets.inheritable = kept;
    rustix::thread::set_capabilities(None, sets).call("capset")?;
    drop_bounding_set()?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: kept };
    rustix::thread::set_capabilities(None, sets).call("capset")?;
    kept.iter()
        .try_for_each(|one| rustix::thread::configure_capability_in_ambient_set(one, true))
        .call("prctl PR_CAP_AMBIENT")
}

/// Drops every capability of this thread but those needed to change mounts and to enter mount namespaces.
pub fn keep_only_mounting() -> Result<()> {
    keep_only(MOUNTING)
}

/// The same for root, which also needs to walk the directories of all users, to write id maps, and to act as another
/// user temporarily ([`act_as`]).
pub fn keep_only_mounting_as_root() -> Result<()> {
    keep_only(
        MOUNTING
            .union(CapabilitySet::DAC_READ_SEARCH)
            .union(CapabilitySet::SETUID)
            .union(CapabilitySet::SETGID)
            .union(CapabilitySet::SYS_PTRACE),
    )
}

/// Drops every capability of this thread but those needed to act as another user temporarily ([`act_as`]) and to inspect
/// processes.
pub fn keep_only_acting_as_another() -> Result<()> {
    let acting = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
    keep_only(acting.union(CapabilitySet::SYS_PTRACE))
}

const MOUNTING: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_CHROOT);

fn keep_only(kept: CapabilitySet) -> Result<()> {
    drop_bounding_set()?;
    rustix::thread::clear_ambient_capability_set().call("prctl PR_CAP_AMBIENT")?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).call("capset")
}

/// Opens and creates files as these ids (of our own user namespace) from now on. Files of other users become
/// inaccessible, also to root until it sets its own uid again. Clears the parent-death signal. See setfsuid(2).
pub fn act_as(uid: u32, gid: u32) -> Result<()> {
    set_fs_id(libc::SYS_setfsgid, "setfsgid", gid)?;
    set_fs_id(libc::SYS_setfsuid, "setfsuid", uid)
}

/// These calls return the previous id even when they fail. Passing the id -1 changes nothing and returns the current
/// one.
fn set_fs_id(call: libc::c_long, name: &'static str, id: u32) -> Result<()> {
    let id = valid_id(name, id)?;
    // SAFETY: the call takes a number only.
    unsafe { libc::syscall(call, id) };
    // SAFETY: as above.
    let now = unsafe { libc::syscall(call, u32::MAX) };
    if now == libc::c_long::from(id) {
        Ok(())
    } else {
        Err(SysError::new(name, id.to_string(), Errno::PERM))
    }
}

/// Keeps the permitted capabilities when the uid changes. See capabilities(7).
fn keep_capabilities_over_setuid() -> Result<()> {
    rustix::thread::set_keep_capabilities(true).call("prctl PR_SET_KEEPCAPS")
}

/// Changes to these ids without supplementary groups, and keeps the permitted capabilities.
pub fn take_ids_with_capabilities(uid: u32, gid: u32) -> Result<()> {
    keep_capabilities_over_setuid()?;
    setgroups_empty()?;
    setresgid(gid)?;
    setresuid(uid)
}

/// Asks the kernel for its last capability instead of trusting our headers. A caller with an empty set needs no
/// CAP_SETPCAP.
fn drop_bounding_set() -> Result<()> {
    for capability in 0..u64::BITS {
        // Nearly all are set, so each is asked about only if it cannot be dropped.
        let Err(errno) = prctl(libc::PR_CAPBSET_DROP, capability) else { continue };
        match prctl(libc::PR_CAPBSET_READ, capability) {
            Ok(0) => {}
            Err(Errno::INVAL) => break,
            Ok(_) | Err(_) => {
                let capability = capability.to_string();
                return Err(SysError::new("prctl PR_CAPBSET_DROP", capability, errno));
            }
        }
    }
    Ok(())
}

/// The capability sets of this thread.
pub fn capability_sets() -> Result<Capabilities> {
    let sets = rustix::thread::capabilities(None).call("capget")?;
    Ok(Capabilities {
        effective: sets.effective.bits(),
        permitted: sets.permitted.bits(),
        inheritable: sets.inheritable.bits(),
    })
}

/// Tries to get CAP_SYS_ADMIN back; with the sets emptied the answer must be `EPERM`.
pub fn try_regain_capability() -> std::result::Result<(), Errno> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.permitted |= CapabilitySet::SYS_ADMIN;
    sets.effective |= CapabilitySet::SYS_ADMIN;
    rustix::thread::set_capabilities(None, sets)
}

/// Permanently removes the special meaning of uid 0: no capabilities by exec or setuid, no ambient ones. See
/// capabilities(7). `PR_SET_KEEPCAPS` is not locked: it keeps what a process has, which is nothing, and ping and
/// setpriv fail without it.
pub fn lock_securebits() -> Result<()> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(bits).call("prctl PR_SET_SECUREBITS")
}

/// Keeps exec from ever granting a privilege. Cannot be undone.
pub fn set_no_new_privs() -> Result<()> {
    rustix::thread::set_no_new_privs(true).call("prctl PR_SET_NO_NEW_PRIVS")
}

/// Whether other processes of the same user may trace this one and read its /proc files.
pub fn set_dumpable(dumpable: bool) -> Result<()> {
    let behavior =
        if dumpable { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    rustix::process::set_dumpable_behavior(behavior).call("prctl PR_SET_DUMPABLE")
}

/// Sends this process `signal` when its parent thread dies. A parent that died before the call is not
/// noticed: check getppid(2) afterwards. Changing uid or gid clears the setting.
pub fn set_pdeathsig(signal: i32) -> Result<()> {
    let signal = rustix::process::Signal::from_named_raw(signal).ok_or(Errno::INVAL);
    signal
        .and_then(|signal| rustix::process::set_parent_process_death_signal(Some(signal)))
        .call("prctl PR_SET_PDEATHSIG")
}

/// Kills this process when `parent` ends, and exits now if `parent` has already ended. Must be repeated after a change
/// of ids, which clears the setting.
pub fn end_with_parent(parent: Pid) -> Result<()> {
    set_pdeathsig(crate::proc::sig::SIGKILL)?;
    if rustix::process::getppid() != Some(parent) {
        crate::proc::exit_now(1);
    }
    Ok(())
}

/// Makes this process the parent of orphaned descendants.
pub fn set_child_subreaper() -> Result<()> {
    // The kernel reads the value as a boolean; rustix types it as a pid.
    rustix::process::set_child_subreaper(Some(Pid::INIT)).call("prctl PR_SET_CHILD_SUBREAPER")
}

fn prctl(option: libc::c_int, argument: u32) -> std::result::Result<libc::c_long, Errno> {
    // SAFETY: the two options used read their argument as a number and touch no memory.
    check(unsafe { libc::prctl(option, libc::c_ulong::from(argument), 0, 0, 0) }.into())
}

#[cfg(test)]
#[path = "creds_tests.rs"]
mod tests;
