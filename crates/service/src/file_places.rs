//! How much work with files goes on at once: in all, and in one sandbox, whose client must not keep those of others waiting.

use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Each has a thread.
const MAX_FILE_WORK: usize = 128;
const MAX_OF_ONE: usize = 24;

#[derive(Clone, Debug, Default)]
pub(crate) struct FilePlaces(Arc<Mutex<HashMap<String, usize>>>);

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct FilePlace {
    places: FilePlaces,
    sandbox: String,
}

impl FilePlaces {
    pub(crate) fn take(&self, sandbox: &str) -> Result<FilePlace, Problem> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.get(sandbox).is_some_and(|own| *own >= MAX_OF_ONE) {
            return Err(Problem::busy(format!(
                "{MAX_OF_ONE} requests work with files of this sandbox or watch them; end one"
            )));
        }
        if taken.values().sum::<usize>() >= MAX_FILE_WORK {
            return Err(Problem::busy(format!(
                "{MAX_FILE_WORK} requests work with files; try again"
            )));
        }
        *taken.entry(sandbox.to_owned()).or_default() += 1;
        Ok(FilePlace { places: self.clone(), sandbox: sandbox.to_owned() })
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.sandbox) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.sandbox);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FilePlaces, MAX_FILE_WORK, MAX_OF_ONE};

    #[test]
    fn one_sandbox_leaves_room_for_others_and_places_come_back() {
        let places = FilePlaces::default();
        let own: Vec<_> = (0..MAX_OF_ONE).map(|_| places.take("one").unwrap()).collect();
        assert!(places.take("one").is_err());
        let others: Vec<_> =
            (MAX_OF_ONE..MAX_FILE_WORK).map(|it| places.take(&it.to_string()).unwrap()).collect();
        assert!(places.take("another").is_err());
        drop((own, others));
        assert!(places.take("one").is_ok() && places.0.lock().unwrap().is_empty());
    }
}
