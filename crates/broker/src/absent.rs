//! A short-lived cache of paths that do not exist on the host. Programs look for the same missing files
//! repeatedly, and each lookup would otherwise go through the supervisor. A file that appears meanwhile is
//! found when the entry expires.

use std::collections::HashMap;
use std::time::{Duration, Instant};

const REMEMBERED_FOR: Duration = Duration::from_secs(1);
const MAX_REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Absent {
    followed: HashMap<Box<[u8]>, Instant>,
    /// A dangling link exists, if it is not followed.
    unfollowed: HashMap<Box<[u8]>, Instant>,
}

impl Absent {
    pub(crate) fn has(&self, path: &[u8], follow: bool) -> bool {
        let known = if follow { &self.followed } else { &self.unfollowed };
        known.get(path).is_some_and(|since| since.elapsed() < REMEMBERED_FOR)
    }

    pub(crate) fn learn(&mut self, path: Vec<u8>, follow: bool) {
        let known = if follow { &mut self.followed } else { &mut self.unfollowed };
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(path.into(), Instant::now());
    }

    /// The view has changed.
    pub(crate) fn forget(&mut self) {
        self.followed.clear();
        self.unfollowed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Absent, MAX_REMEMBERED};

    #[test]
    fn it_is_known_the_way_it_was_looked_for_until_something_comes_into_view() {
        let mut absent = Absent::default();
        absent.learn(b"/opt/x".to_vec(), true);
        assert!(absent.has(b"/opt/x", true));
        assert!(!absent.has(b"/opt/x", false));
        assert!(!absent.has(b"/opt", true));
        absent.forget();
        assert!(!absent.has(b"/opt/x", true));
    }

    /// Proves: GATE-5 bounded
    #[test]
    fn it_does_not_grow_for_ever() {
        let mut absent = Absent::default();
        for number in 0..3 * MAX_REMEMBERED {
            absent.learn(number.to_string().into_bytes(), true);
            assert!(absent.followed.len() <= MAX_REMEMBERED);
        }
    }
}
