//! A map by path, in the order of the components: everything below a directory follows it.
//!
//! Iteration, equality and order are those of a `BTreeMap<PathBuf, V>`.

use crate::path_text::compare;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;
use std::iter::Map;
use std::ops::Bound;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct PathMap<V>(BTreeMap<Key, V>);

/// Compared by its text.
#[derive(Clone, Debug)]
pub(crate) struct Key(PathBuf);

/// What a key is looked up by, without a copy of the path.
trait AsPath {
    fn as_path(&self) -> &Path;
}

impl<V> PathMap<V> {
    pub(crate) fn get(&self, path: &Path) -> Option<&V> {
        self.0.get(&path as &dyn AsPath)
    }

    pub(crate) fn get_mut(&mut self, path: &Path) -> Option<&mut V> {
        self.0.get_mut(&path as &dyn AsPath)
    }

    pub(crate) fn get_key_value(&self, path: &Path) -> Option<(&Path, &V)> {
        let found = self.0.get_key_value(&path as &dyn AsPath);
        found.map(|(key, value)| (key.0.as_path(), value))
    }

    pub(crate) fn contains_key(&self, path: &Path) -> bool {
        self.0.contains_key(&path as &dyn AsPath)
    }

    pub(crate) fn insert(&mut self, path: PathBuf, value: V) -> Option<V> {
        self.0.insert(Key(path), value)
    }

    pub(crate) fn get_or_insert(&mut self, path: PathBuf, value: V) -> &mut V {
        self.0.entry(Key(path)).or_insert(value)
    }

    pub(crate) fn remove(&mut self, path: &Path) -> Option<V> {
        self.0.remove(&path as &dyn AsPath)
    }

    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&Path, &V) -> bool) {
        self.0.retain(|key, value| keeps(&key.0, value));
    }

    /// From this path on, with it.
    pub(crate) fn from(&self, path: &Path) -> impl Iterator<Item = (&Path, &V)> {
        self.range(Bound::Included(&path as &dyn AsPath))
    }

    /// What follows this path.
    pub(crate) fn after(&self, path: &Path) -> impl Iterator<Item = (&Path, &V)> {
        self.range(Bound::Excluded(&path as &dyn AsPath))
    }

    fn range<'p>(
        &self,
        from: Bound<&'p (dyn AsPath + 'p)>,
    ) -> impl Iterator<Item = (&Path, &V)> + use<'_, V> {
        let range = self.0.range::<dyn AsPath + 'p, _>((from, Bound::Unbounded));
        range.map(|(key, value)| (key.0.as_path(), value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &V)> {
        self.0.iter().map(|(key, value)| (key.0.as_path(), value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(|key| key.0.as_path())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.values_mut()
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_values()
    }
}

impl<V> Default for PathMap<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> IntoIterator for PathMap<V> {
    type Item = (PathBuf, V);
    type IntoIter = Map<IntoIter<Key, V>, fn((Key, V)) -> (PathBuf, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, value)| (key.0, value))
    }
}

impl<V> Extend<(PathBuf, V)> for PathMap<V> {
    fn extend<I: IntoIterator<Item = (PathBuf, V)>>(&mut self, entries: I) {
        self.0.extend(entries.into_iter().map(|(path, value)| (Key(path), value)));
    }
}

impl<V> FromIterator<(PathBuf, V)> for PathMap<V> {
    fn from_iter<I: IntoIterator<Item = (PathBuf, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl AsPath for Key {
    fn as_path(&self) -> &Path {
        &self.0
    }
}

impl AsPath for &Path {
    fn as_path(&self) -> &Path {
        self
    }
}

impl<'p> Borrow<dyn AsPath + 'p> for Key {
    fn borrow(&self) -> &(dyn AsPath + 'p) {
        self
    }
}

impl Ord for dyn AsPath + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.as_path(), other.as_path())
    }
}

impl PartialOrd for dyn AsPath + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn AsPath + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn AsPath + '_ {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}
