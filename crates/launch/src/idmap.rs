//! Id maps for runs that root starts: user namespaces that exist only as the id map of a mount.
//!
//! On disk the files belong to the project's owner. Through such a mount they belong to the command's host id,
//! and what the command creates belongs to the owner.

use crate::error::{During, LaunchError, Result};
use palisade_plan::model::{MountOp, Owner};
use palisade_sys::clone::{CloneFlags, Forked, clone3};
use palisade_sys::creds::{IdKind, MapLine, write_map};
use palisade_sys::fdpass::{recv_with_fds, socketpair};
use palisade_sys::{At as _, Mode, OFlags, Pid, proc};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

const STEP: &str = "making an id map for root's mounts";
/// No project has files with ids above this.
const LAST_ORDINARY_ID: u32 = 65_535;

/// A map for each owner that the plan's mounts have.
#[derive(Debug, Default)]
pub(crate) struct OwnerMaps(BTreeMap<Owner, MappedNamespace>);

impl OwnerMaps {
    pub(crate) fn for_plan(ops: &[MountOp], host: Owner) -> Result<Self> {
        let mut maps = BTreeMap::new();
        for op in ops {
            let (MountOp::Bind { idmap: Some(owner), .. }
            | MountOp::Overlay { idmap: Some(owner), .. }) = op
            else {
                continue;
            };
            if !maps.contains_key(owner) {
                maps.insert(*owner, mapped(*owner, host).during(STEP)?);
            }
        }
        Ok(Self(maps))
    }

    pub(crate) fn get(&self, owner: Owner) -> Result<BorrowedFd<'_>> {
        self.0.get(&owner).map(AsFd::as_fd).ok_or_else(|| {
            LaunchError::new(STEP, format!("no map for owner {}:{}", owner.uid, owner.gid))
        })
    }
}

/// A user namespace in which `owner` on disk is `host`, kept alive by its descriptor alone.
pub(crate) fn user_namespace(owner: Owner, host: Owner) -> palisade_sys::Result<OwnedFd> {
    mapped(owner, host).map(|MappedNamespace { namespace, .. }| namespace)
}

fn mapped(owner: Owner, host: Owner) -> palisade_sys::Result<MappedNamespace> {
    mapped_namespace(&lines(owner.uid, host.uid), &lines(owner.gid, host.gid))
}

/// A user namespace that serves only as an id map.
#[derive(Debug)]
pub(crate) struct MappedNamespace {
    namespace: OwnedFd,
    _maker: Maker,
}

impl AsFd for MappedNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// The child that held a namespace until it was opened. It exits by itself; the namespace can be used before
/// that.
#[derive(Debug)]
struct Maker(Pid);

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = proc::wait_pid_rusage(self.0);
    }
}

/// A new user namespace with these maps. The child that holds it until it is opened sees its socket close when
/// we are done or killed, so it never outlives us.
pub(crate) fn mapped_namespace(
    uids: &[MapLine],
    gids: &[MapLine],
) -> palisade_sys::Result<MappedNamespace> {
    let (ours, theirs) = socketpair()?;
    match clone3(CloneFlags::NEWUSER)? {
        Forked::Child => {
            drop(ours);
            let _ = recv_with_fds(&theirs, &mut [0]);
            proc::exit_now(0)
        }
        Forked::Parent { pid, .. } => {
            drop(theirs);
            let maker = Maker(pid);
            let opened = map_and_open(pid, uids, gids);
            drop(ours);
            opened.map(|namespace| MappedNamespace { namespace, _maker: maker })
        }
    }
}

fn map_and_open(pid: Pid, uids: &[MapLine], gids: &[MapLine]) -> palisade_sys::Result<OwnedFd> {
    write_map(Some(pid), IdKind::Gid, gids)?;
    write_map(Some(pid), IdKind::Uid, uids)?;
    let path = format!("/proc/{}/ns/user", pid.as_raw_pid());
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .at("open", Path::new(&path))
}

/// `owner` on disk is `host` to the kernel. Every other ordinary id stays the same, so other people's files in
/// a shared project remain distinguishable and never look like the command's.
fn lines(owner: u32, host: u32) -> Vec<MapLine> {
    let mut lines = vec![MapLine { inside: owner, outside: host, count: 1 }];
    let mut first = 0;
    let mut cuts = [owner, host];
    cuts.sort_unstable();
    for cut in cuts {
        if cut > LAST_ORDINARY_ID {
            continue;
        }
        if cut > first {
            lines.push(MapLine { inside: first, outside: first, count: cut - first });
        }
        first = cut.max(first.saturating_sub(1)) + 1;
    }
    if first <= LAST_ORDINARY_ID {
        lines.push(MapLine { inside: first, outside: first, count: LAST_ORDINARY_ID - first + 1 });
    }
    lines
}

#[cfg(test)]
#[path = "idmap_tests.rs"]
mod tests;
