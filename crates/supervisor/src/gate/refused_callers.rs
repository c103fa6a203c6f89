//! Processes that were refused a change of a file a moment ago. A tool that may not rename, remove or change something looks at
//! it to find out what is wrong: that look is not another question, and is refused as the change was.
//!
//! Only for the same process and path, and only to look: whether it may be read or written was not answered.

use super::inquiry::Inquiry;
use crate::process::{Held, Known, process_of};
use palisade_gate::{PathAccess, Wants};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Each holds a descriptor; the oldest is asked about again.
const MAX_REFUSED: usize = 128;
/// A tool looks at once. What a process that runs for long looks at later is another use of the file.
const STILL_REFUSED: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct RefusedCallers(VecDeque<Refused>);

#[derive(Debug)]
struct Refused {
    caller: Held,
    path: PathBuf,
    until: Instant,
}

impl RefusedCallers {
    /// The calls of this inquiry are refused. Each caller is still waiting.
    pub(super) fn refuse(&mut self, inquiry: &Inquiry, now: Instant) {
        let Some(path) = inquiry.lent_path() else { return };
        let changes = inquiry.requests.iter().filter(|request| is_change_of_name(request.wants));
        let pids: Vec<u32> = changes.map(|request| process_of(request.pid)).collect();
        if !pids.is_empty() {
            self.0.retain(|refused| refused.until > now && refused.caller.lives());
        }
        for pid in pids {
            let Some(caller) = Held::of(&Known::of_process(pid)) else { continue };
            self.0.retain(|refused| refused.caller.pid != pid || refused.path != path);
            if self.0.len() == MAX_REFUSED {
                self.0.pop_front();
            }
            let until = now + STILL_REFUSED;
            self.0.push_back(Refused { caller, path: path.clone(), until });
        }
    }

    /// Whether a call only looks at what its process was refused to change.
    pub(super) fn has(&self, request: &PathAccess, path: &Path, now: Instant) -> bool {
        if request.wants != Wants::Look {
            return false;
        }
        let is_meant = |refused: &&Refused| refused.path == path && refused.until > now;
        let mut refused = self.0.iter().filter(is_meant).peekable();
        if refused.peek().is_none() {
            return false;
        }
        let pid = process_of(request.pid);
        // Asked last: while it lives, its number is nobody else's.
        refused.any(|refused| refused.caller.pid == pid && refused.caller.lives())
    }
}

/// Moving it to another directory begins with a look at it as the source.
fn is_change_of_name(wants: Wants) -> bool {
    matches!(wants, Wants::Rename | Wants::Remove | Wants::Change | Wants::Source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::inquiry::Found;
    use palisade_keeper::FileKind;

    fn request(wants: Wants) -> PathAccess {
        PathAccess {
            id: 1,
            call: String::new(),
            wants,
            path: b"/srv/file".to_vec(),
            existing: 0,
            is_covered: false,
            is_read_only: false,
            new_path: Vec::new(),
            follow: false,
            may_be_served: false,
            pid: std::process::id(),
            executable: Vec::new(),
            cwd: Vec::new(),
        }
    }

    #[test]
    fn a_refusal_ends_after_a_moment_and_begins_anew_with_another() {
        let (mut refused, path) = (RefusedCallers::default(), Path::new("/srv/file"));
        let now = Instant::now();
        let mut inquiry = Inquiry::new(1, request(Wants::Remove), now);
        inquiry.found = Some(Found { path: path.to_owned(), kind: FileKind::File });
        let (soon, late) = (now + STILL_REFUSED / 2, now + STILL_REFUSED);
        refused.refuse(&inquiry, now);
        assert!(refused.has(&request(Wants::Look), path, soon));
        assert!(!refused.has(&request(Wants::Look), path, late));
        refused.refuse(&inquiry, soon);
        assert!(refused.has(&request(Wants::Look), path, late));
        assert_eq!(refused.0.len(), 1);
    }
}
