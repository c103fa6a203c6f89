//! The command's identity. Even if root starts it, it is not root on the host (PROC-6).

use crate::environment::SANDBOX_USER;
use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts};
use crate::host::Host;
use crate::model::{Confinement, IdMapping, Identity, MountOp, Owner, Plan, READ_ONLY};
use palisade_policy::model::Process;
use std::path::{Path, PathBuf};

/// Far above the ids that distributions and `subuid` assign, and below 2^31, which some programs cannot handle.
const PREFERRED_FIRST: u32 = 1_900_000_000;
const PREFERRED_COUNT: u32 = 60_000;
/// How far from the end of a range an id is chosen if the preferred ids are not mapped.
const FALLBACK_COUNT: u32 = 5_000;
/// The kernel shows this id for ids without a mapping, so it must not be used.
const OVERFLOW_ID: u32 = 65_534;
/// Accounts that exist on every system.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
/// The plan is printed, so it must not contain the accounts of a very large system.
const MAX_NAMES_BYTES: usize = 64 * 1024;
/// The id in the sandbox if root started the command.
const INSIDE_ID: u32 = 1_000;

pub(crate) fn choose(process: &Process, session: &str, facts: &HostFacts) -> Result<Identity> {
    let (host_uid, host_gid, mapping) = if facts.uid == 0 {
        let uid = spare_id(&facts.uid_ranges, session)?;
        let gid = spare_id(&facts.gid_ranges, session)?;
        (uid, gid, IdMapping::ByRoot)
    } else {
        (facts.uid, facts.gid, IdMapping::OwnId)
    };
    let (uid, gid) = match mapping {
        IdMapping::ByRoot => (INSIDE_ID, INSIDE_ID),
        IdMapping::OwnId => (host_uid, host_gid),
    };
    Ok(Identity {
        inside_uid: process.uid.unwrap_or(uid),
        inside_gid: process.gid.unwrap_or(gid),
        host_uid,
        host_gid,
        mapping,
    })
}

/// An id that no user of the host has. It differs between sessions as far as possible, so that two sandboxes
/// cannot send signals to each other.
fn spare_id(ranges: &[(u32, u32)], session: &str) -> Result<u32> {
    let chance = hash(session);
    let preferred = PREFERRED_FIRST + chance % PREFERRED_COUNT;
    if ranges.iter().any(|&(first, count)| preferred >= first && preferred - first < count) {
        return Ok(preferred);
    }
    let no_spare_id = || PlanError::NoSpareId {
        ranges: ranges
            .iter()
            .map(|(first, count)| format!("{count} from {first}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let &(first, count) = ranges.iter().max_by_key(|(_, count)| *count).ok_or_else(no_spare_id)?;
    let offset = count.checked_sub(1).ok_or_else(no_spare_id)?;
    // At most half of the range, to avoid low ids, which belong to users.
    let back = chance % FALLBACK_COUNT.min(count / 2).max(1);
    let id = first.saturating_add(offset - back);
    match if id == OVERFLOW_ID { id - 1 } else { id } {
        0 => Err(no_spare_id()),
        id if id < first => Err(no_spare_id()),
        id => Ok(id),
    }
}

/// FNV-1a, folded to 32 bits: only for distribution, not for secrecy.
fn hash(text: &str) -> u32 {
    let wide = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, e, f, g, h] = wide.to_le_bytes();
    u32::from_le_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
}

impl Plan {
    /// The overlays whose changes are kept, as the sandbox has them.
    pub fn transactions(&self) -> Vec<PathBuf> {
        let Confinement::Namespaces(inside) = &self.sandbox.confinement else { return Vec::new() };
        let transactions = inside.mounts.iter().filter(|op| op.is_transaction());
        transactions.map(|op| op.target().to_owned()).collect()
    }

    /// Writable mounts where the command does everything itself, as the sandbox has them: Landlock gives it all rights there,
    /// and they hide nothing of the host that could be asked about.
    pub fn own_mounts(&self) -> Vec<PathBuf> {
        let Confinement::Namespaces(inside) = &self.sandbox.confinement else { return Vec::new() };
        let hides_names = |target: &Path| {
            self.sandbox.gate.as_ref().is_some_and(|gate| {
                gate.grounds.iter().chain(&gate.private_home).any(|ground| ground == target)
            })
        };
        let has_rights = |target: &Path| match &self.sandbox.landlock {
            Some(landlock) => landlock.writable.iter().any(|above| target.starts_with(above)),
            None => true,
        };
        let writable = inside.mounts.iter().filter(|op| op.is_writable()).map(MountOp::target);
        writable
            .filter(|target| has_rights(target) && !hides_names(target))
            .map(Path::to_owned)
            .collect()
    }

    /// For a run that root started: the trees whose files belong to another user on the host.
    pub fn trees_of_others(&self) -> Vec<PathBuf> {
        let Confinement::Namespaces(inside) = &self.sandbox.confinement else { return Vec::new() };
        let of_others = |op: &&MountOp| match op {
            MountOp::Bind { idmap: Some(owner), .. }
            | MountOp::Overlay { idmap: Some(owner), .. } => *owner != Owner { uid: 0, gid: 0 },
            _ => false,
        };
        inside.mounts.iter().filter(of_others).map(|op| op.target().to_owned()).collect()
    }
}

/// Names for the ids in the sandbox if they are not the caller's own, because programs look them up. Only
/// replaces existing files: `/etc` is the host's and read-only.
pub(crate) fn name_files(
    identity: &Identity,
    home: Option<&Path>,
    host: &Host<'_>,
) -> Vec<MountOp> {
    if identity.mapping != IdMapping::ByRoot {
        return Vec::new();
    }
    let (uid, gid) = (identity.inside_uid, identity.inside_gid);
    let home = home.unwrap_or(Path::new("/")).display();
    let own_user = format!("{SANDBOX_USER}:x:{uid}:{gid}:{SANDBOX_USER}:{home}:/bin/bash\n");
    let own_group = format!("{SANDBOX_USER}:x:{gid}:\n");
    let files = [("/etc/passwd", PASSWD, own_user, uid), ("/etc/group", GROUP, own_group, gid)];
    files
        .into_iter()
        .filter(|(target, ..)| host.kind(Path::new(target)) == Some(EntryKind::File))
        .map(|(target, usual, own, id)| {
            let others = others_in(Path::new(target), id, host).unwrap_or_else(|| usual.to_owned());
            MountOp::File { target: target.into(), content: own + &others, mode: READ_ONLY }
        })
        .collect()
}

/// The host's lines except those with our name or id: servers look up the accounts in their settings. `None` if
/// there is nothing to read.
fn others_in(file: &Path, id: u32, host: &Host<'_>) -> Option<String> {
    let bytes = host.read_part(file, 0, MAX_NAMES_BYTES + 1)?;
    let text = String::from_utf8_lossy(&bytes);
    let is_ours = |line: &str| {
        let mut fields = line.split(':');
        fields.next() == Some(SANDBOX_USER)
            || fields.nth(1).is_some_and(|field| field.parse() == Ok(id))
    };
    let others = text.lines().filter(|line| !line.is_empty() && !is_ours(line));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    (!others.is_empty() && bytes.len() <= MAX_NAMES_BYTES).then_some(others)
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
