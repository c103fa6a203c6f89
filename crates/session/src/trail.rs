//! The first and the last events of a run, as lines, for whoever looks into an incident. Bounded: a flood of one kind takes
//! room from the middle only.

use palisade_record::Event;
use std::collections::VecDeque;

const MAX_FIRST: usize = 64 * 1024;
const MAX_LAST: usize = 192 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Trail {
    first: Vec<String>,
    first_bytes: usize,
    last: VecDeque<String>,
    last_bytes: usize,
    /// Events that are in neither.
    omitted: u64,
}

impl Trail {
    pub(crate) fn add(&mut self, event: &Event) {
        let Ok(line) = serde_json::to_string(event) else { return };
        if line.len() > MAX_FIRST {
            self.omitted += 1;
        } else if self.last.is_empty() && self.first_bytes + line.len() <= MAX_FIRST {
            self.first_bytes += line.len();
            self.first.push(line);
        } else {
            self.last_bytes += line.len();
            self.last.push_back(line);
            while self.last_bytes > MAX_LAST
                && let Some(oldest) = self.last.pop_front()
            {
                self.last_bytes -= oldest.len();
                self.omitted += 1;
            }
        }
    }

    /// A line each; one says how many are missing, where they are.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        for line in &self.first {
            text.push_str(line);
            text.push('\n');
        }
        if self.omitted > 0 {
            text.push_str(&format!("{{\"omitted\":{}}}\n", self.omitted));
        }
        for line in &self.last {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_FIRST, MAX_LAST, Trail};
    use palisade_record::{Approval, Event, EventKind, State};

    /// Proves: ESC-1 trace
    #[test]
    fn a_flood_keeps_the_beginning_and_the_end() {
        let mut trail = Trail::default();
        let event = |number: usize| {
            let (what, reason) = (format!("n{number}."), "x".repeat(200));
            Event::new("s", State::Running, EventKind::ApprovalRecorded(Approval { what, reason }))
        };
        for number in 0..5000 {
            trail.add(&event(number));
        }
        let lines = trail.lines();
        assert!(lines.len() <= MAX_FIRST + MAX_LAST + 5000, "{}", lines.len());
        for kept in ["n0.", "n4999.", "omitted"] {
            assert!(lines.contains(kept), "{kept}");
        }
        assert!(!lines.contains("n2000."));
    }
}
