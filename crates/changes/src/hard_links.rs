//! Which of the names that a session changed are names of one file.

use crate::changeset::{ChangeKind, ChangeSet};
use crate::contents::Located;
use crate::difference::change;
use crate::entry::EntryKind;
use crate::layers::Layers;
use palisade_sys::Result as SysResult;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Names of files with several, by device and inode.
#[derive(Debug, Default)]
pub(crate) struct HardLinks(HashMap<(u64, u64), Vec<LinkedName>>);

#[derive(Debug)]
struct LinkedName {
    path: PathBuf,
    /// None if nothing but the link changed.
    kind: Option<ChangeKind>,
    old_at: Option<Located>,
    new_at: Located,
}

impl LinkedName {
    /// The file from before stays, with other permissions at most. Its inode, if so.
    fn kept_inode(&self) -> Option<u64> {
        let is_kept =
            matches!(self.kind, None | Some(ChangeKind::ModeChanged | ChangeKind::Touched));
        self.old_at.filter(|_| is_kept).map(|old| old.found.inode)
    }
}

impl HardLinks {
    /// A name that was looked at, changed or not.
    pub(crate) fn note(
        &mut self,
        path: &Path,
        kind: Option<ChangeKind>,
        old_at: Option<Located>,
        new_at: Located,
    ) {
        if new_at.found.kind == EntryKind::File && new_at.found.links > 1 {
            let name = LinkedName { path: path.to_owned(), kind, old_at, new_at };
            let inode = (new_at.found.device, new_at.found.inode);
            self.0.entry(inode).or_default().push(name);
        }
    }

    /// The first name counts as the file and the others as links to it. A name whose file is kept comes first.
    pub(crate) fn name(self, layers: &Layers, set: &mut ChangeSet) -> SysResult<()> {
        let mut link_of: HashMap<PathBuf, (PathBuf, ChangeKind)> = HashMap::new();
        for mut group in self.0.into_values() {
            group.sort_by_cached_key(|name| (name.kept_inode().is_none(), name.path.clone()));
            let mut names = group.into_iter();
            let Some(first) = names.next() else { continue };
            for name in names {
                let kind = match name.kind {
                    _ if name.kept_inode().is_some() && name.kept_inode() == first.kept_inode() => {
                        continue;
                    }
                    None | Some(ChangeKind::Touched) => ChangeKind::Linked,
                    Some(ChangeKind::ModeChanged) => ChangeKind::Modified,
                    Some(kind) => kind,
                };
                if name.kind.is_none() {
                    let (path, sides) = (name.path.clone(), (name.old_at, Some(name.new_at)));
                    set.changes.push(change(layers, path, ChangeKind::Linked, sides)?);
                }
                link_of.insert(name.path, (first.path.clone(), kind));
            }
        }
        for change in &mut set.changes {
            if let Some((first, kind)) = link_of.remove(&change.path) {
                change.hard_link_of = Some(first);
                change.kind = kind;
            }
        }
        Ok(())
    }
}
