//! Taking grants back while the command runs. What is open already stays open; nothing new is found.

use super::GateState;
use crate::gate::action::Action;
use palisade_gate::{Access, Effect, Rule};
use palisade_keeper::KeeperRequest;
use std::path::{Path, PathBuf};

/// What is taken away now; it is gone when the keeper has said so of every graft.
#[derive(Debug)]
pub(in crate::gate) struct Revocation {
    pub(in crate::gate) id: u64,
    /// What was granted there.
    pub(in crate::gate) paths: Vec<PathBuf>,
    /// A directory above it that stays granted.
    pub(in crate::gate) part_of: Option<PathBuf>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::gate) enum NotRevoked {
    #[error("{} is granted as part of {}; revoke that", path.display(), above.display())]
    PartOf { path: PathBuf, above: PathBuf },
    #[error(
        "{} was granted when the sandbox was started, and stays until it ends (see sandbox plan)", .0.display()
    )]
    ByPolicy(PathBuf),
    #[error("nothing is granted at {}", .0.display())]
    Nothing(PathBuf),
    #[error(
        "{}: the process that granted it was lost, and nobody else can take it away; end the sandbox", .0.display()
    )]
    Unreachable(PathBuf),
}

/// What the keeper is taking away.
#[derive(Debug)]
pub(super) struct Leaving {
    id: u64,
    path: PathBuf,
}

impl GateState<'_> {
    /// Takes back what is granted at a path and below it. Rules that allowed it do not count there any more, for the rest of
    /// this run: the next use is a question.
    pub(in crate::gate) fn revoke(&mut self, path: &Path) -> Result<Revocation, NotRevoked> {
        if self.grants.is_lost(path) {
            return Err(NotRevoked::Unreachable(path.to_owned()));
        }
        let mut above = path.ancestors().skip(1);
        let part_of = above.find(|above| self.granted.contains_key(*above)).map(Path::to_owned);
        let mut paths: Vec<PathBuf> =
            self.granted.keys().filter(|granted| granted.starts_with(path)).cloned().collect();
        paths.sort_unstable();
        let was_allowed_once = self.fresh.iter().any(|fresh| fresh.path.starts_with(path));
        let was_made = self.made.forget_within(path);
        let is_under_way = self.grants.end_within(path, &mut self.actions);
        if paths.is_empty() && !was_allowed_once && !was_made && !is_under_way {
            let path = path.to_owned();
            return Err(match part_of {
                Some(above) => NotRevoked::PartOf { path, above },
                None if self.is_visible(&path, Access::Read) => NotRevoked::ByPolicy(path),
                None => NotRevoked::Nothing(path),
            });
        }
        let is_taken_back = |rule: &Rule| {
            rule.effect == Effect::Allow
                && rule.pattern.path().is_some_and(|at| at.starts_with(path))
        };
        self.decider.revoke(path);
        self.answered.retain(|rule| !is_taken_back(rule));
        self.fresh.retain(|fresh| !fresh.path.starts_with(path));
        self.granted.retain(|granted, _| !granted.starts_with(path));
        self.standing.retain(|standing, _| !standing.starts_with(path));
        let id = self.new_token();
        let path = path.to_owned();
        // It knows what it shows there; what it was told to show before this comes first.
        self.actions
            .push_back(Action::Keeper(KeeperRequest::Revoke { token: id, path: path.clone() }));
        self.leaving.push(Leaving { id, path });
        Ok(Revocation { id, paths, part_of })
    }

    /// The keeper has taken all of it away.
    pub(super) fn has_revoked(&mut self, id: u64) {
        for Leaving { path, .. } in self.leaving.extract_if(.., |leaving| leaving.id == id) {
            self.grants.revoked(&path, &mut self.actions);
            self.actions.push_back(Action::Revoked(id));
        }
    }
}
