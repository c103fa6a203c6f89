//! An attack of the corpus shown in a way of its own: races, many sandboxes at once, refusals before
//! anything starts. It has its line in the table like the others, red until the end is reached.

use crate::am_root;
use crate::proof::{self, Bare, Inside, Line, Off};

/// The line of one such attack.
///
/// ```no_run
/// # use palisade_testkit::Demonstration;
/// let shown = Demonstration::of("K12", "a command named like an option", "words after -- are words");
/// let Some(mut shown) = shown.begin() else { return };
/// // … what the attack does without a sandbox …
/// shown.worked_bare();
/// // … what must be true inside …
/// shown.held();
/// ```
#[derive(Debug)]
pub struct Demonstration {
    line: Line,
}

impl Demonstration {
    /// An attack by its id, what it tries, and what holds it.
    #[must_use]
    pub fn of(id: &'static str, name: impl Into<String>, what_holds: &'static str) -> Self {
        Self {
            line: Line {
                test: proof::test_name(),
                id,
                name: name.into(),
                clauses: &[],
                as_root: Some(Vec::new()),
                as_user: Some(Vec::new()),
                one_caller: None,
                by_design: Some(what_holds),
                no_bare_run: None,
                needs: None,
                bare: Bare::NotTried,
                inside: Inside::NotTried,
                off: Off::NotTried,
            },
        }
    }

    /// For what an ordinary user cannot do even without a sandbox.
    #[must_use]
    pub fn only_as_root(mut self, reason: &'static str) -> Self {
        self.line.as_user = None;
        self.line.one_caller = Some(reason);
        self
    }

    /// For what root is not offered.
    #[must_use]
    pub fn only_as_user(mut self, reason: &'static str) -> Self {
        self.line.as_root = None;
        self.line.one_caller = Some(reason);
        self
    }

    /// For what cannot be shown without a sandbox, and why.
    #[must_use]
    pub fn no_bare_run(mut self, reason: &'static str) -> Self {
        self.line.no_bare_run = Some(reason);
        self.line.bare = Bare::Impossible;
        self
    }

    /// Starts, unless this caller is not the one to try it.
    #[must_use]
    pub fn begin(mut self) -> Option<Self> {
        let mine = if am_root() { &self.line.as_root } else { &self.line.as_user };
        if mine.is_none() {
            println!(
                "{} ({}) is not tried by this caller: {}",
                self.line.id,
                self.line.name,
                self.line.one_caller.unwrap_or_default()
            );
            return None;
        }
        self.line.inside = Inside::Unclear;
        Some(self)
    }

    /// It was seen to work without a sandbox.
    pub fn worked_bare(&mut self) {
        self.line.bare = Bare::Works;
    }

    /// It was seen to be held inside.
    pub fn held(mut self) {
        self.line.inside = Inside::Held;
        self.line.off = Off::NoLayer;
    }
}
