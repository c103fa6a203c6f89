//! Links that somebody could have made for this run to follow: a command in an earlier sandbox, or whoever wrote the
//! project.
//!
//! `.venv` in the project, named by `VIRTUAL_ENV`, may have become a link to any path, and a repository may come with a
//! `target` that is one. A grant must never extend the view through such a link, nor the right to execute.

use crate::error::{PlanError, Result};
use crate::grant::{Grant, GrantKind, Origin};
use crate::host::{Host, Link};
use crate::path_text::PathText as _;
use std::path::{Path, PathBuf};

/// Where such links may be, by their real paths on the host.
#[derive(Debug, Default)]
pub(crate) struct PlantedPlaces {
    /// Written by this run.
    writable: Vec<PathBuf>,
    /// Written by others: what this run keeps as it is.
    unwritten: Vec<PathBuf>,
    /// Of those that are written, the ones that no such link leads to.
    beyond_doubt: Vec<PathBuf>,
}

impl PlantedPlaces {
    /// `project` counts however it is granted, or not at all: its links came with it, or an earlier run made them.
    pub(crate) fn of(grants: &[Grant], project: Option<&Path>, host: &Host<'_>) -> Self {
        let is_written = |grant: &Grant| grant.kind == GrantKind::ReadWrite;
        let sources = |wanted: &dyn Fn(&Grant) -> bool| -> Vec<PathBuf> {
            let wanted = grants.iter().filter(|grant| wanted(grant));
            wanted.map(|grant| grant.source.clone()).collect()
        };
        let mut unwritten = sources(&|grant| holds_work_of_others(grant, host));
        let is_project_written =
            grants.iter().any(|grant| grant.origin == Origin::Project && is_written(grant));
        unwritten.extend(project.filter(|_| !is_project_written).map(Path::to_owned));
        let writable = sources(&is_written);
        let mut places = Self { writable, unwritten, beyond_doubt: Vec::new() };
        places.beyond_doubt =
            sources(&|grant| is_written(grant) && places.first_of(&grant.links).is_none());
        places
    }

    /// Removes the grants that lead through such a link to where nothing else leads. For a grant that the user asked
    /// for, this is an error.
    pub(crate) fn refuse(&self, grants: Vec<Grant>, notes: &mut Vec<String>) -> Result<Vec<Grant>> {
        let mut kept = Vec::with_capacity(grants.len());
        for grant in grants {
            match grant.links.iter().find(|link| self.is_refused(&grant, link)) {
                None => kept.push(grant),
                Some(link) if grant.origin == Origin::Asked => {
                    return Err(PlanError::PlantedLink {
                        what: grant.why(),
                        link: link.place.clone(),
                        path: grant.source.clone(),
                    });
                }
                Some(link) => notes.push(format!(
                    "{} ({}) is not granted through the link {}, which a command in a sandbox or whoever wrote the \
                     project can have made: add it with --ro or --rw if it is meant",
                    grant.source.display(),
                    grant.why(),
                    link.place.display()
                )),
            }
        }
        Ok(kept)
    }

    /// The first of these links that somebody could have made.
    pub(crate) fn first_of<'l>(&self, links: &'l [Link]) -> Option<&'l Link> {
        links.iter().find(|link| self.hold(&link.place))
    }

    /// The first that leads out of where it could have been made.
    pub(crate) fn first_out<'l>(&self, links: &'l [Link], to: &Path) -> Option<&'l Link> {
        links.iter().find(|link| self.leads_out(link, to))
    }

    pub(crate) fn hold(&self, path: &Path) -> bool {
        self.all().any(|tree| path.is_in(tree))
    }

    fn is_refused(&self, grant: &Grant, link: &Link) -> bool {
        // What may be read beside it can be read anyway. But for writing, the link's maker would choose the place.
        let is_chosen = grant.kind != GrantKind::ReadOnly
            && self.unwritten.iter().any(|tree| link.place.is_in(tree))
            && !self
                .beyond_doubt
                .iter()
                .any(|tree| link.place.is_in(tree) && grant.source.is_in(tree));
        is_chosen || self.leads_out(link, &grant.source)
    }

    fn leads_out(&self, link: &Link, to: &Path) -> bool {
        self.all().any(|tree| link.place.is_in(tree) && !to.is_in(tree))
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.writable.iter().chain(&self.unwritten)
    }
}

/// Directories that are not written themselves, but whose contents are no more to be trusted than the project's. A home
/// directory under an overlay has links of its owner, and no run changed them.
fn holds_work_of_others(grant: &Grant, host: &Host<'_>) -> bool {
    let holds_home = host.home().is_some_and(|home| home.is_in(&grant.source));
    match grant.kind {
        GrantKind::Overlay => grant.origin == Origin::Asked && !holds_home,
        // Another run may have had the host's.
        GrantKind::OwnCache | GrantKind::Transaction => true,
        GrantKind::ReadOnly | GrantKind::ReadWrite => false,
    }
}

#[cfg(test)]
#[path = "planted_tests.rs"]
mod tests;
