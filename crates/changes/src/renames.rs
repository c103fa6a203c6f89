//! Recognises a deleted file in an added one: by the same content first, then by similarity, as git measures it. Bounded:
//! what exceeds the bounds is shown as deleted and added, which is just as true.

use crate::changeset::{Change, ChangeKind, ChangeSet, Rename};
use crate::contents::{digest, is_binary, read};
use crate::entry::EntryKind;
use crate::layers::Layers;
use palisade_sys::Result as SysResult;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

/// Files of one size that are compared by content.
const MAX_EXACT_BYTES: u64 = 256 << 20;
/// Pairs that are compared by similarity, and the longest file among them.
const MAX_PAIRS: usize = 250_000;
const MAX_FILES: usize = 500;
const MAX_SIMILAR_BYTES: usize = 1 << 20;
const LEAST_SIMILARITY: u8 = 50;
/// As in git: longer lines count in parts.
const PART_BYTES: usize = 64;

pub(crate) fn find(layers: &Layers, set: &ChangeSet) -> SysResult<Vec<Rename>> {
    let of_kind = |kind: ChangeKind| {
        let is_candidate = move |change: &&Change| {
            let is_new = change.hard_link_of.is_none();
            change.kind == kind
                && is_new
                && match change.entry_kind() {
                    EntryKind::File => size(change) > 0,
                    EntryKind::Link => true,
                    _ => false,
                }
        };
        set.changes.iter().filter(is_candidate).collect::<Vec<_>>()
    };
    let (deleted, added) = (of_kind(ChangeKind::Deleted), of_kind(ChangeKind::Added));
    if deleted.is_empty() || added.is_empty() {
        return Ok(Vec::new());
    }
    let mut renames = exact(layers, &deleted, &added)?;
    let from_or_to: BTreeSet<&Path> =
        renames.iter().flat_map(|rename| [rename.from.as_path(), rename.to.as_path()]).collect();
    let is_free = |change: &&Change| {
        change.entry_kind() == EntryKind::File && !from_or_to.contains(change.path.as_path())
    };
    let deleted: Vec<&Change> = deleted.into_iter().filter(is_free).collect();
    let added: Vec<&Change> = added.into_iter().filter(is_free).collect();
    if deleted.len() <= MAX_FILES
        && added.len() <= MAX_FILES
        && deleted.len() * added.len() <= MAX_PAIRS
    {
        renames.extend(similar(layers, &deleted, &added)?);
    }
    renames.sort_by(|one, other| one.to.cmp(&other.to));
    Ok(renames)
}

fn size(change: &Change) -> u64 {
    change.new.as_ref().or(change.old.as_ref()).map_or(0, |entry| entry.size)
}

/// Type, size and digest of the content, or the target of a link.
type Fingerprint = (bool, u64, Vec<u8>);

fn exact(layers: &Layers, deleted: &[&Change], added: &[&Change]) -> SysResult<Vec<Rename>> {
    let sizes = |changes: &[&Change]| -> BTreeSet<(bool, u64)> {
        changes.iter().map(|change| (is_link(change), size(change))).collect()
    };
    let (of_deleted, of_added) = (sizes(deleted), sizes(added));
    let mut sources: BTreeMap<Fingerprint, Vec<&Change>> = BTreeMap::new();
    for change in deleted {
        if of_added.contains(&(is_link(change), size(change)))
            && let Some(print) = fingerprint(layers, change)?
        {
            sources.entry(print).or_default().push(change);
        }
    }
    let mut renames = Vec::new();
    for change in added {
        if !of_deleted.contains(&(is_link(change), size(change))) {
            continue;
        }
        let Some(print) = fingerprint(layers, change)? else { continue };
        let Some(sources) = sources.get_mut(&print) else { continue };
        let same_name =
            sources.iter().position(|from| from.path.file_name() == change.path.file_name());
        if !sources.is_empty() {
            let from = sources.remove(same_name.unwrap_or(0)).path.clone();
            renames.push(Rename { from, to: change.path.clone(), similarity: 100 });
        }
    }
    Ok(renames)
}

fn is_link(change: &Change) -> bool {
    change.entry_kind() == EntryKind::Link
}

/// None for what is too long, or not ours to read.
fn fingerprint(layers: &Layers, change: &Change) -> SysResult<Option<Fingerprint>> {
    let Some(at) = change.new_at.or(change.old_at) else { return Ok(None) };
    if is_link(change) {
        let target = layers.read_link(at.layer, &change.path)?;
        return Ok(Some((true, size(change), target)));
    }
    if size(change) > MAX_EXACT_BYTES {
        return Ok(None);
    }
    let digest = digest(layers, &change.path, at.layer).ok();
    Ok(digest.map(|digest| (false, size(change), digest.to_vec())))
}

fn similar(layers: &Layers, deleted: &[&Change], added: &[&Change]) -> SysResult<Vec<Rename>> {
    let parts = |change: &Change| -> Option<Parts> {
        let at = change.new_at.or(change.old_at)?;
        let content = read(layers, &change.path, at, MAX_SIMILAR_BYTES).ok()??;
        (!is_binary(&content)).then(|| Parts::of(&content))
    };
    let sources: Vec<Option<Parts>> = deleted.iter().copied().map(parts).collect();
    let mut scored = Vec::new();
    for (to, change) in added.iter().enumerate() {
        let near = |from: &Change| {
            let (one, other) = (size(from), size(change));
            one.min(other) * 100 >= one.max(other) * u64::from(LEAST_SIMILARITY)
        };
        if !deleted.iter().copied().any(near) {
            continue;
        }
        let Some(target) = parts(change) else { continue };
        for (from, source) in sources.iter().enumerate() {
            if let Some(source) = source
                && near(deleted[from])
            {
                let similarity = source.similarity(&target);
                if similarity >= LEAST_SIMILARITY {
                    scored.push((similarity, from, to));
                }
            }
        }
    }
    scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.cmp(other)));
    let (mut used, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut renames = Vec::new();
    for (similarity, from, to) in scored {
        if !used.contains(&from) && !taken.contains(&to) {
            used.insert(from);
            taken.insert(to);
            renames.push(Rename {
                from: deleted[from].path.clone(),
                to: added[to].path.clone(),
                // 100 means the same content.
                similarity: similarity.min(99),
            });
        }
    }
    Ok(renames)
}

/// How many bytes a file has of each of its lines.
struct Parts {
    bytes: HashMap<u64, usize>,
    total: usize,
}

impl Parts {
    fn of(content: &[u8]) -> Self {
        let mut bytes = HashMap::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            for part in line.chunks(PART_BYTES) {
                let mut hasher = DefaultHasher::new();
                part.hash(&mut hasher);
                *bytes.entry(hasher.finish()).or_default() += part.len();
            }
        }
        Self { bytes, total: content.len() }
    }

    /// The bytes that both have, in percent of the longer one.
    fn similarity(&self, other: &Self) -> u8 {
        let shared: usize = self
            .bytes
            .iter()
            .filter_map(|(part, bytes)| Some(*bytes.min(other.bytes.get(part)?)))
            .sum();
        let longer = self.total.max(other.total).max(1);
        u8::try_from(shared * 100 / longer).unwrap_or(100)
    }
}
