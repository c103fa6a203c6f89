//! Resolves paths as the command will see them in the finished view, link by link, and finds the corresponding
//! path of the host. Must never follow a link out of the view: in the sandbox it leads elsewhere or nowhere.

use crate::facts::EntryKind;
use crate::host::{Host, MAX_LINKS, join};
use crate::model::{Confinement, Landlock, MountOp, NodeKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

pub(crate) struct Reach<'a> {
    seen: Seen<'a>,
    host: &'a Host<'a>,
}

enum Seen<'a> {
    /// By target. Seals are separate, because they are mounted on something else.
    View { mounts: BTreeMap<&'a Path, &'a MountOp>, seals: Vec<&'a Path> },
    /// The host's own tree, with the paths that Landlock allows to write.
    Host(Option<&'a Landlock>),
}

/// What is at a path, with links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) kind: EntryKind,
    /// `None` if it exists only in the sandbox.
    pub(crate) on_host: Option<PathBuf>,
}

enum Look {
    Node(EntryKind, Option<PathBuf>),
    Link(PathBuf),
}

impl<'a> Reach<'a> {
    pub(crate) fn new(
        confinement: &'a Confinement,
        landlock: Option<&'a Landlock>,
        host: &'a Host<'a>,
    ) -> Self {
        let seen = match confinement {
            Confinement::Namespaces(inside) => {
                let is_seal = |op: &&MountOp| matches!(op, MountOp::Seal { .. });
                let ops = || inside.mounts.iter();
                Seen::View {
                    mounts: ops().filter(|op| !is_seal(op)).map(|op| (op.target(), op)).collect(),
                    seals: ops().filter(is_seal).map(MountOp::target).collect(),
                }
            }
            Confinement::NoNamespaces | Confinement::None => Seen::Host(landlock),
        };
        Self { seen, host }
    }

    /// Resolves a path as the kernel will.
    pub(crate) fn resolve(&self, path: &Path) -> Option<Found> {
        Some(self.walk(path)?.0)
    }

    /// The same, and the links on the way, by their paths on the host.
    pub(crate) fn walk(&self, path: &Path) -> Option<(Found, Vec<PathBuf>)> {
        let mut at = PathBuf::from("/");
        let mut links = Vec::new();
        let mut ahead = path.to_owned();
        'behind_a_link: loop {
            let mut parts = ahead.components();
            while let Some(part) = parts.next() {
                match part {
                    Component::RootDir => at = PathBuf::from("/"),
                    Component::ParentDir => drop(at.pop()),
                    Component::CurDir | Component::Prefix(_) => {}
                    Component::Normal(name) => {
                        let next = at.join(name);
                        match self.look(&next)? {
                            Look::Node(..) => at = next,
                            Look::Link(_) if links.len() == MAX_LINKS => return None,
                            Look::Link(to) => {
                                // One that is recreated in the view has the host's path.
                                links.push(self.on_host(&next).unwrap_or(next));
                                ahead = join(&to, parts.as_path());
                                continue 'behind_a_link;
                            }
                        }
                    }
                }
            }
            let Look::Node(kind, on_host) = self.look(&at)? else { return None };
            return Some((Found { path: at, kind, on_host }, links));
        }
    }

    /// The paths directly below a directory, sorted.
    pub(crate) fn children(&self, dir: &Found) -> Vec<PathBuf> {
        let on_host = dir.on_host.as_deref().map(|path| self.host.children(path));
        let mut names: BTreeSet<OsString> =
            on_host.iter().flat_map(|names| names.iter()).map(|(name, _)| name.clone()).collect();
        if let Seen::View { mounts, .. } = &self.seen {
            let below = mounts.keys().filter_map(|target| target.strip_prefix(&dir.path).ok());
            names.extend(
                below.filter_map(|rest| Some(rest.components().next()?.as_os_str().into())),
            );
        }
        names.into_iter().map(|name| dir.path.join(name)).collect()
    }

    /// A part of a file's content.
    pub(crate) fn read(&self, file: &Found, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.host.read_part(file.on_host.as_deref()?, offset, length)
    }

    /// Whether two paths refer to the same file, through a hard link or another mount.
    pub(crate) fn is_same_file(&self, one: &Found, other: &Found) -> bool {
        match (&one.on_host, &other.on_host) {
            (Some(one), Some(other)) => self.host.is_same_file(one, other),
            _ => false,
        }
    }

    /// Whether the command can change it, or something in it.
    pub(crate) fn is_writable(&self, found: &Found) -> bool {
        let path = found.path.as_path();
        match &self.seen {
            Seen::View { mounts, seals } => {
                let sealed = seals.iter().any(|seal| path.starts_with(seal));
                let stands_on = path.ancestors().find_map(|above| mounts.get(above));
                let below = (Bound::Included(path), Bound::Unbounded);
                let mut held =
                    mounts.range::<Path, _>(below).take_while(|(at, _)| at.starts_with(path));
                !sealed && stands_on.is_some_and(|op| op.is_writable())
                    || held.any(|(_, op)| op.is_writable())
            }
            Seen::Host(landlock) => landlock.is_some_and(|landlock| {
                let mut open = landlock.writable.iter().chain(&landlock.guarded);
                open.any(|open| path.starts_with(open) || open.starts_with(path))
            }),
        }
    }

    /// Looks at a path in which only the last name may be a link.
    fn look(&self, path: &Path) -> Option<Look> {
        let Seen::View { mounts, .. } = &self.seen else { return self.look_on_host(path) };
        match mounts.get(path) {
            Some(MountOp::Bind { source, kind: NodeKind::Dir, .. }) => {
                Some(Look::Node(EntryKind::Dir, Some(source.clone())))
            }
            Some(MountOp::Bind { source, kind: NodeKind::File, .. }) => {
                Some(Look::Node(EntryKind::File, Some(source.clone())))
            }
            Some(MountOp::Overlay { lower, .. }) => {
                Some(Look::Node(EntryKind::Dir, Some(lower.clone())))
            }
            Some(MountOp::Symlink { points_to, .. }) => Some(Look::Link(points_to.clone())),
            Some(MountOp::Copy { source, .. }) => {
                Some(Look::Node(EntryKind::File, Some(source.clone())))
            }
            Some(MountOp::File { .. }) => Some(Look::Node(EntryKind::File, None)),
            Some(MountOp::Device { .. } | MountOp::Blank { .. }) => {
                Some(Look::Node(EntryKind::Other, None))
            }
            Some(_) => Some(Look::Node(EntryKind::Dir, None)),
            None if self.is_above_something(path) => Some(Look::Node(EntryKind::Dir, None)),
            None => self.look_on_host(&self.on_host(path)?),
        }
    }

    fn look_on_host(&self, path: &Path) -> Option<Look> {
        Some(match self.host.kind(path)? {
            EntryKind::Symlink => Look::Link(self.host.read_link(path)?),
            kind => Look::Node(kind, Some(path.to_owned())),
        })
    }

    /// Parent directories of a mount point are created with it.
    fn is_above_something(&self, path: &Path) -> bool {
        let Seen::View { mounts, .. } = &self.seen else { return false };
        let is_bound = self.on_host(path).is_some_and(|path| self.host.exists(&path));
        let after = (Bound::Excluded(path), Bound::Unbounded);
        let mut next = mounts.range::<Path, _>(after);
        path == Path::new("/")
            || !is_bound && next.next().is_some_and(|(target, _)| target.starts_with(path))
    }

    /// The path of the host, through the mount that contains it.
    fn on_host(&self, path: &Path) -> Option<PathBuf> {
        let Seen::View { mounts, .. } = &self.seen else { return Some(path.to_owned()) };
        match path.ancestors().skip(1).find_map(|above| mounts.get(above))? {
            MountOp::Bind { source, target, .. } => {
                Some(join(source, path.strip_prefix(target).ok()?))
            }
            MountOp::Overlay { lower, target, hidden, .. } => {
                let rest = path.strip_prefix(target).ok()?;
                let is_hidden = hidden.iter().any(|hidden| rest.starts_with(hidden));
                (!is_hidden).then(|| join(lower, rest))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
