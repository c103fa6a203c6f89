//! The nodes that the kernel knows, by number: a name in the directory of another node.
//!
//! A name keeps its number as long as the kernel remembers it, because another number would detach what is mounted
//! there. Nodes hold no descriptors: the command decides how many there are.

use palisade_fuse::NodeId;
use rustix::fs::FileType;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The kernel remembers fewer; each costs some hundred bytes.
const MAX_NODES: usize = 1 << 19;

/// Where the file is that a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In a ground.
    Own,
    /// On the host; only its type is told.
    Stub,
}

/// What was granted of a stub without anything being mounted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameGrant {
    Nothing,
    /// To enter the directory, by its name alone: not to list it.
    Enter,
    /// To know that it exists.
    Exists,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: NodeId,
    pub(crate) name: Box<[u8]>,
    pub(crate) origin: Origin,
    pub(crate) kind: FileType,
    lookups: u64,
    /// Something is mounted there or below, or will be: the name must not disappear.
    pub(crate) is_held: bool,
    pub(crate) name_grant: NameGrant,
    /// So many open files were granted for one use.
    pub(crate) lent: usize,
}

impl Node {
    /// Whether the sandbox sees that a stub is there.
    pub(crate) fn is_visible(&self) -> bool {
        self.is_held || self.is_named()
    }

    /// Whether that was granted by itself.
    pub(crate) fn is_named(&self) -> bool {
        self.name_grant != NameGrant::Nothing
    }

    /// Whether the number stays if the file is elsewhere by now. That of a directory has to: a new one would detach what
    /// is mounted below it.
    fn may_become(&self, origin: Origin) -> bool {
        self.origin == origin || self.kind == FileType::Directory
    }

    fn set_origin(&mut self, origin: Origin) {
        if self.origin != origin {
            self.origin = origin;
            // What is mounted below holds it by itself.
            self.is_held = false;
            self.name_grant = NameGrant::Nothing;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Nodes {
    by_id: HashMap<NodeId, Node>,
    by_name: BTreeMap<(NodeId, Box<[u8]>), NodeId>,
    last: u64,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        let root = Node {
            parent: NodeId::ROOT,
            name: Box::default(),
            origin: Origin::Own,
            kind: FileType::Directory,
            lookups: 1,
            is_held: true,
            name_grant: NameGrant::Exists,
            lent: 0,
        };
        let by_id = HashMap::from([(NodeId::ROOT, root)]);
        Self { by_id, by_name: BTreeMap::new(), last: NodeId::ROOT.0 }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn child(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.by_name.get(&(parent, name.into())).copied()
    }

    /// The names in a directory that have a node.
    pub(crate) fn children(&self, parent: NodeId) -> impl Iterator<Item = (&[u8], NodeId, &Node)> {
        let from = (parent, Box::default());
        let below = self.by_name.range(from..).take_while(move |((of, _), _)| *of == parent);
        below.filter_map(|((_, name), id)| Some((&**name, *id, self.by_id.get(id)?)))
    }

    /// The node of a name, which the kernel is told of once more. A name that stands for something else than before gets
    /// a new number: what the kernel or we hold of the old one, an open file say, must not be taken for the new one. None
    /// if there are too many.
    pub(crate) fn look_up(
        &mut self,
        parent: NodeId,
        name: &[u8],
        origin: Origin,
        kind: FileType,
    ) -> Option<NodeId> {
        if let Some(id) = self.child(parent, name) {
            let known = self.by_id.get_mut(&id).filter(|node| node.kind == kind);
            if let Some(node) = known.filter(|node| node.may_become(origin)) {
                node.lookups += 1;
                node.set_origin(origin);
                return Some(id);
            }
            self.detach(parent, name);
        }
        if self.by_id.len() >= MAX_NODES {
            return None;
        }
        self.last += 1;
        let id = NodeId(self.last);
        let node = Node {
            parent,
            name: name.into(),
            origin,
            kind,
            lookups: 1,
            is_held: false,
            name_grant: NameGrant::Nothing,
            lent: 0,
        };
        self.by_id.insert(id, node);
        self.by_name.insert((parent, name.into()), id);
        Some(id)
    }

    /// The kernel gives up so many look-ups.
    pub(crate) fn forget(&mut self, id: NodeId, count: u64) {
        let Some(node) = self.by_id.get_mut(&id).filter(|_| id != NodeId::ROOT) else { return };
        node.lookups = node.lookups.saturating_sub(count);
        if node.lookups == 0
            && let Some(node) = self.by_id.remove(&id)
        {
            let key = (node.parent, node.name);
            if self.by_name.get(&key) == Some(&id) {
                self.by_name.remove(&key);
            }
        }
    }

    /// The name is gone; whoever still holds the file keeps the number.
    pub(crate) fn detach(&mut self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.by_name.remove(&(parent, name.into()))
    }

    /// The next look-up gives the name another number. The kernel keeps the text of a link that it was told, for everybody, but
    /// not for longer than it knows the link by this number.
    pub(crate) fn renew(&mut self, id: NodeId) {
        if let Some(node) = self.by_id.get(&id).filter(|_| self.is_attached(id)) {
            let (parent, name) = (node.parent, node.name.clone());
            self.detach(parent, &name);
        }
    }

    pub(crate) fn is_attached(&self, id: NodeId) -> bool {
        id == NodeId::ROOT
            || self
                .by_id
                .get(&id)
                .is_some_and(|node| self.child(node.parent, &node.name) == Some(id))
    }

    /// A name was moved, over whatever had its new place.
    pub(crate) fn rename(&mut self, from: (NodeId, &[u8]), to: (NodeId, &[u8])) {
        let moved = self.detach(from.0, from.1);
        self.detach(to.0, to.1);
        self.attach(moved, to);
    }

    /// Two names changed places.
    pub(crate) fn exchange(&mut self, one: (NodeId, &[u8]), other: (NodeId, &[u8])) {
        let (first, second) = (self.detach(one.0, one.1), self.detach(other.0, other.1));
        self.attach(first, other);
        self.attach(second, one);
    }

    /// The sandbox has a private version where the host has a node's file. Whether the node stands for it from now on; if
    /// not, its name is free for another.
    pub(crate) fn becomes_own(&mut self, id: NodeId, kind: FileType) -> bool {
        let Some(node) = self.by_id.get_mut(&id) else { return false };
        if node.kind == kind && node.may_become(Origin::Own) {
            node.set_origin(Origin::Own);
            return true;
        }
        let (parent, name) = (node.parent, node.name.clone());
        self.detach(parent, &name);
        false
    }

    /// All nodes below this one. The kernel moves no directory below itself (rename(2), `EINVAL`), so this ends.
    fn below(&self, id: NodeId) -> Vec<NodeId> {
        let (mut all, mut next) = (Vec::new(), vec![id]);
        while let Some(id) = next.pop() {
            let children = self.children(id).map(|(_, child, _)| child);
            let first = all.len();
            all.extend(children);
            next.extend(&all[first..]);
        }
        all
    }

    /// Whether something is mounted at a node or below it, or will be.
    pub(crate) fn is_held_at_or_below(&self, id: NodeId) -> bool {
        let is_held = |id: &NodeId| self.by_id.get(id).is_some_and(|node| node.is_held);
        is_held(&id) || self.below(id).iter().any(is_held)
    }

    /// A directory of the sandbox's own was moved. What the host has below the old path is not below the new one: those
    /// nodes stand for nothing any more.
    fn detach_stubs_below(&mut self, id: NodeId) {
        for id in self.below(id) {
            if let Some(node) = self.by_id.get(&id).filter(|node| node.origin == Origin::Stub) {
                let (parent, name) = (node.parent, node.name.clone());
                self.detach(parent, &name);
            }
        }
    }

    fn attach(&mut self, id: Option<NodeId>, (parent, name): (NodeId, &[u8])) {
        let Some(id) = id else { return };
        if let Some(node) = self.by_id.get_mut(&id) {
            node.parent = parent;
            node.name = name.into();
            self.by_name.insert((parent, name.into()), id);
        }
        self.detach_stubs_below(id);
    }

    /// None for a name that is gone. May be longer than a call can take (`PATH_MAX`): directories are moved below others.
    pub(crate) fn path(&self, id: NodeId) -> Option<PathBuf> {
        let (mut names, mut at) = (Vec::new(), id);
        while at != NodeId::ROOT {
            let node = self.by_id.get(&at).filter(|_| self.is_attached(at))?;
            names.push(&*node.name);
            at = node.parent;
        }
        let mut path = PathBuf::from("/");
        path.extend(names.into_iter().rev().map(OsStr::from_bytes));
        Some(path)
    }

    pub(crate) fn path_of_name(&self, parent: NodeId, name: &[u8]) -> Option<PathBuf> {
        let mut path = self.path(parent)?;
        path.push(Path::new(OsStr::from_bytes(name)));
        Some(path)
    }

    /// Whether a stub of a directory is on the way to something that is mounted below it: the sandbox sees that it is
    /// there, and what is on the way.
    pub(crate) fn is_way(&self, id: NodeId) -> bool {
        let is_held = self.by_id.get(&id).is_some_and(|node| node.is_held);
        is_held && self.children(id).any(|(_, _, child)| child.is_held)
    }

    /// Something is about to be mounted there: neither the name nor those above it may go.
    pub(crate) fn hold(&mut self, id: NodeId) {
        let mut at = id;
        while at != NodeId::ROOT
            && let Some(node) = self.by_id.get_mut(&at)
        {
            node.is_held |= node.origin == Origin::Stub;
            at = node.parent;
        }
    }

    /// Nothing is mounted at this path any more: its name, and those above that were held for it alone, may go.
    pub(crate) fn release(&mut self, path: &Path) {
        let names = path.iter().skip(1).map(OsStr::as_bytes);
        let mut way = vec![NodeId::ROOT];
        for name in names {
            let Some(next) = way.last().and_then(|at| self.child(*at, name)) else { break };
            way.push(next);
        }
        for id in way.into_iter().rev() {
            let carries = self.children(id).any(|(_, _, child)| child.is_held);
            let Some(node) = self.by_id.get_mut(&id) else { return };
            if carries || node.origin == Origin::Own {
                return;
            }
            node.is_held = false;
        }
    }

    /// The longest part of the path of a node that the sandbox itself has.
    pub(crate) fn existing(&self, id: NodeId) -> usize {
        let mut at = id;
        while let Some(node) = self.by_id.get(&at) {
            let exists = node.origin == Origin::Own || node.is_visible();
            if exists && node.kind == FileType::Directory && at != id {
                return self.path(at).map_or(0, |path| path.as_os_str().len());
            }
            if at == NodeId::ROOT {
                break;
            }
            at = node.parent;
        }
        0
    }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
