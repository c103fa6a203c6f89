//! The directories that were created in this run, by device and inode. All threads of the broker know the same ones.

use crate::unpoisoned::Unpoisoned as _;
use std::collections::HashSet;
use std::sync::{Mutex, RwLock};

/// A run does not create more directories in normal use; beyond this they count as existing before the run.
const MAX_NEWBORN: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Newborn {
    known: Mutex<HashSet<(u64, u64)>>,
    /// Shared by threads that are making a directory which is not known yet.
    making: RwLock<()>,
}

impl Newborn {
    /// `make` creates a directory and says which.
    pub(crate) fn remember<E>(
        &self,
        make: impl FnOnce() -> Result<Option<(u64, u64)>, E>,
    ) -> Result<(), E> {
        let _making = self.making.read().held();
        let made = make()?;
        let mut known = self.known.lock().held();
        if known.len() < MAX_NEWBORN {
            known.extend(made);
        }
        Ok(())
    }

    pub(crate) fn forget(&self, directory: (u64, u64)) {
        self.known.lock().held().remove(&directory);
    }

    /// A directory can be seen before it is known here, so this waits for the threads that are making one.
    pub(crate) fn has(&self, directory: (u64, u64)) -> bool {
        let is_known = || self.known.lock().held().contains(&directory);
        is_known() || {
            drop(self.making.write().held());
            is_known()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_directory_that_is_seen_before_it_is_known_is_waited_for() {
        let newborn = Newborn::default();
        let (seen, see) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                newborn.remember(|| {
                    seen.send(()).unwrap();
                    // The other thread finds nothing meanwhile, and does not say so yet.
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    Ok::<_, ()>(Some((1, 2)))
                })
            });
            see.recv().unwrap();
            assert!(newborn.has((1, 2)));
        });
        assert!(!newborn.has((1, 3)));
        newborn.forget((1, 2));
        assert!(!newborn.has((1, 2)));
    }

    #[test]
    fn what_could_not_be_made_is_not_known() {
        let newborn = Newborn::default();
        assert_eq!(newborn.remember(|| Err(())), Err(()));
        newborn.remember(|| Ok::<_, ()>(None)).unwrap();
        assert!(!newborn.has((0, 0)));
    }
}
