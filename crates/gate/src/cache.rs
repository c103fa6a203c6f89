//! A bounded cache of verdicts.
//!
//! It has two generations. When the young one is full, it replaces the old one. Entries that are used often
//! stay, and nothing has to be sorted.

use crate::rule::Access;
use std::collections::HashMap;

/// The index of the rule that decided, or none.
pub(crate) type Verdict = Option<usize>;

#[derive(Clone, Debug)]
pub(crate) struct Cache {
    young: Generation,
    old: Generation,
    /// Of each generation.
    capacity: usize,
}

type Generation = HashMap<Box<[u8]>, Answers>;

/// One path's verdicts, by access.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    read: Option<Verdict>,
    execute: Option<Verdict>,
    write: Option<Verdict>,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Cache { young: HashMap::new(), old: HashMap::new(), capacity: capacity.div_ceil(2) }
    }

    pub(crate) fn get(&mut self, path: &[u8], access: Access) -> Option<Verdict> {
        if let Some(answers) = self.young.get(path) {
            return answers.of(access);
        }
        let (path, answers) = self.old.remove_entry(path)?;
        self.put(path, answers);
        answers.of(access)
    }

    pub(crate) fn remember(&mut self, path: &[u8], access: Access, verdict: Verdict) {
        if let Some(answers) = self.young.get_mut(path) {
            *answers.slot(access) = Some(verdict);
            return;
        }
        let mut answers = Answers::default();
        *answers.slot(access) = Some(verdict);
        self.put(path.into(), answers);
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    fn put(&mut self, path: Box<[u8]>, answers: Answers) {
        if self.capacity == 0 {
            return;
        }
        if self.young.len() >= self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(path, answers);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

impl Answers {
    fn of(self, access: Access) -> Option<Verdict> {
        match access {
            Access::Read => self.read,
            Access::Execute => self.execute,
            Access::Write => self.write,
        }
    }

    fn slot(&mut self, access: Access) -> &mut Option<Verdict> {
        match access {
            Access::Read => &mut self.read,
            Access::Execute => &mut self.execute,
            Access::Write => &mut self.write,
        }
    }
}
