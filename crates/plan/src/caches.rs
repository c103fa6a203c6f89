//! Caches of the sandboxes' own: what a command writes to a tool's cache is kept in a layer above the host's files,
//! which later sandboxes of the same project see and the host never reads.
//!
//! Several caches share one overlay where they can: mounting one costs more than everything else about a cache. A shared
//! overlay stands on a directory above them, of which nothing but the caches is ever shown: those that no earlier run wrote
//! to on the home directory, and the others on the uppermost below it.

use crate::facts::{HostFacts, HostMount};
use crate::host::Host;
use crate::kept_layer::UPPER;
use crate::model::{CacheStack, MountOp, Owner};
use crate::path_text::PathText as _;
use crate::request::{CacheStore, PlanRequest};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// File systems that can hold an upper layer in a user namespace: they know `RENAME_WHITEOUT`, `O_TMPFILE` and extended
/// attributes of users. Tried: ext4 and tmpfs; the rest by their kernel sources.
const HOLD_LAYERS: &[&str] = &["ext4", "ext3", "ext2", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs"];
/// `NAME_MAX`.
const LONGEST_NAME: usize = 255;

/// Why caches of their own cannot be had, if so.
pub(crate) fn obstacle(request: &PlanRequest<'_>) -> Option<String> {
    let unfit = unfit_for_layers(request.layer, request.facts)?;
    Some(format!("Palisade's state is on {unfit}, which cannot hold them"))
}

/// Why the kernel mounts no overlay over the project. Its own answer counts where a file system is not known to do: some
/// can be the lower layer only, and some not even that.
pub(crate) fn obstacle_to_transaction(
    project: &Path,
    layer: &Path,
    facts: &HostFacts,
    host: &Host<'_>,
) -> Option<String> {
    if let Some(unfit) = unfit_for_layers(layer, facts) {
        return Some(format!(
            "Palisade's state is on {unfit}, which cannot hold an overlay's changes"
        ));
    }
    let unknown = unfit_for_layers(project, facts)?;
    let refusal = host.overlay_obstacle(project)?;
    Some(format!("it is on {unknown}, where the kernel mounts no overlay ({refusal})"))
}

/// The file system of a path, if it is not known to hold upper layers.
fn unfit_for_layers<'f>(path: &Path, facts: &'f HostFacts) -> Option<&'f str> {
    let fs_type = mount_of(path, &facts.mounts)?.fs_type.as_str();
    (!HOLD_LAYERS.contains(&fs_type)).then_some(fs_type)
}

fn mount_of<'m>(path: &Path, mounts: &'m [HostMount]) -> Option<&'m HostMount> {
    let holding = mounts.iter().filter(|mount| path.is_in(&mount.mount_point));
    // Of several mounts on one directory the last is on top.
    holding.max_by_key(|mount| mount.mount_point.as_os_str().len())
}

/// The directory that the overlay with this cache stands on: the uppermost below the home directory, where nothing of
/// ours is and nothing else is mounted on the way; otherwise the cache itself.
pub(crate) fn stack_of(cache: &Path, home: Option<&Path>, facts: &HostFacts) -> PathBuf {
    let below = home.and_then(|home| Some((home, cache.strip_prefix(home).ok()?)));
    let top = below.and_then(|(home, rest)| Some(home.join(rest.components().next()?)));
    // The layers that earlier runs wrote are there, and the kernel takes no lower layer inside another.
    let holds_ours = |top: &Path| facts.own_paths.iter().any(|own| own.is_in(top));
    top.filter(|top| !holds_ours(top) && !is_crossed(top, cache, facts))
        .unwrap_or_else(|| cache.to_owned())
}

/// Whether something is mounted on the way from `top` to a directory in it.
fn is_crossed(top: &Path, directory: &Path, facts: &HostFacts) -> bool {
    let points = facts.mounts.iter().map(|mount| mount.mount_point.as_path());
    let mut within = points.filter(|point| point.is_in(top) && !point.is_same(top));
    within.any(|point| directory.is_in(point))
}

/// The overlays behind the caches in the view, and where each keeps what is written. The steps are told which of them
/// they are parts of.
pub(crate) fn stacks(
    mounts: &mut [MountOp],
    project: &Path,
    request: &PlanRequest<'_>,
    host: &Host<'_>,
) -> Vec<CacheStack> {
    let mut stacks: BTreeMap<&Path, CacheStack> = BTreeMap::new();
    let mut store = None;
    for op in mounts.iter() {
        let MountOp::Overlay { lower, hidden, stack: Some(stack), idmap, .. } = op else {
            continue;
        };
        let store = store.get_or_insert_with(|| (request.caches)(project));
        let found = stacks.entry(stack).or_insert_with(|| new_stack(stack, *idmap, store));
        let within = lower.strip_prefix(stack).unwrap_or(Path::new(""));
        found.hidden.extend(hidden.iter().map(|hidden| within.join(hidden)));
    }
    let stacks = stacks.into_values().collect();
    let (Some(home), Some(store)) = (host.home(), store) else { return stacks };
    let (unwritten, mut apart): (Vec<_>, Vec<_>) =
        stacks.into_iter().partition(|stack| could_stand_on(home, stack, host, request.facts));
    apart.extend(share(home, unwritten, &store));
    for op in mounts {
        let MountOp::Overlay { stack: Some(stack), .. } = op else { continue };
        if !apart.iter().any(|apart| apart.lower == *stack) {
            *stack = home.to_owned();
        }
    }
    apart
}

fn new_stack(lower: &Path, idmap: Option<Owner>, store: &CacheStore) -> CacheStack {
    let name = layer_name(lower);
    let with_it = store.finished.iter().filter(|layer| layer.stacks.contains(&name));
    CacheStack {
        lower: lower.to_owned(),
        layer: store.top.join(&name),
        below: with_it.map(|layer| layer.directory.join(&name).join(UPPER)).collect(),
        hidden: Vec::new(),
        stands_for: Vec::new(),
        idmap,
    }
}

/// Whether an overlay on the home directory could take the place of this one. What earlier runs wrote is below the home
/// directory too, and the kernel takes no lower layer inside another. An upper one it does take, since 5.13, which is also
/// the first with Landlock: a process that would walk into it gets `ELOOP`, and no cache leads there.
fn could_stand_on(home: &Path, stack: &CacheStack, host: &Host<'_>, facts: &HostFacts) -> bool {
    home != Path::new("/")
        && facts.landlock_abi > 0
        && stack.below.is_empty()
        && stack.lower.starts_with(home)
        && !is_crossed(home, &stack.lower, facts)
        // One overlay has one id map, which only root's runs have.
        && stack.idmap == host.owner(home).filter(|_| facts.uid == 0)
}

/// One overlay on the home directory in place of these.
fn share(home: &Path, stacks: Vec<CacheStack>, store: &CacheStore) -> Option<CacheStack> {
    let mut shared = new_stack(home, stacks.first()?.idmap, store);
    for stack in stacks {
        let within = stack.lower.strip_prefix(home).unwrap_or(Path::new(""));
        shared.hidden.extend(stack.hidden.iter().map(|hidden| within.join(hidden)));
        shared.stands_for.push(within.to_owned());
    }
    Some(shared)
}

/// A path as one name: `/home/u/.cargo` is `%2Fhome%2Fu%2F.cargo`.
pub fn layer_name(path: &Path) -> OsString {
    let mut name = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'%' | b'\n' => name.extend(format!("%{byte:02X}").into_bytes()),
            _ => name.push(*byte),
        }
    }
    OsString::from_vec(name)
}

/// The path of such a name. None if it is not one of ours.
pub fn path_of_layer(name: &std::ffi::OsStr) -> Option<PathBuf> {
    let mut path = Vec::new();
    let mut bytes = name.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'%' => {
                let digits = [*bytes.next()?, *bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => *byte,
        });
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// Whether a name of this path can exist.
pub(crate) fn fits(path: &Path) -> bool {
    layer_name(path).len() <= LONGEST_NAME
}

#[cfg(test)]
#[path = "caches_tests.rs"]
mod tests;
