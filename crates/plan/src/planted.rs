//! Links that a command could have created for the next run to follow.
//!
//! A command can change everything in a writable grant: `.venv` in the project, named by `VIRTUAL_ENV`, may
//! have become a link to any path. A grant must never extend the view through such a link.

use crate::error::{PlanError, Result};
use crate::grant::{Grant, GrantKind, Origin};
use crate::host::Link;
use std::path::PathBuf;

/// Removes the grants that lead out of a writable grant through a link inside it. For a grant that the user
/// asked for, this is an error.
pub(crate) fn refuse(grants: Vec<Grant>, notes: &mut Vec<String>) -> Result<Vec<Grant>> {
    let writable: Vec<PathBuf> = grants
        .iter()
        .filter(|grant| grant.kind == GrantKind::ReadWrite)
        .map(|grant| grant.source.clone())
        .collect();
    let mut kept = Vec::with_capacity(grants.len());
    for grant in grants {
        match planted(&grant, &writable) {
            None => kept.push(grant),
            Some(link) if grant.origin == Origin::Asked => {
                return Err(PlanError::PlantedLink {
                    what: grant.why(),
                    link: link.place.clone(),
                    path: grant.source.clone(),
                });
            }
            Some(link) => notes.push(format!(
                "{} ({}) is not granted through the link {}, which a command in a sandbox can create: add it with --ro \
                 or --rw if it is meant",
                grant.source.display(),
                grant.why(),
                link.place.display()
            )),
        }
    }
    Ok(kept)
}

fn planted<'a>(grant: &'a Grant, writable: &[PathBuf]) -> Option<&'a Link> {
    grant.links.iter().find(|link| {
        writable.iter().any(|tree| link.place.starts_with(tree) && !grant.source.starts_with(tree))
    })
}

#[cfg(test)]
mod tests {
    use super::refuse;
    use crate::error::Result;
    use crate::grant::{Grant, GrantKind, Origin};
    use crate::host::Link;
    use crate::model::NodeKind;
    use std::path::{Path, PathBuf};

    fn grant(source: &str, kind: GrantKind, origin: Origin, link: Option<&str>) -> Grant {
        let link = link.map(|place| Link { place: place.into(), points_to: source.into() });
        Grant {
            source: source.into(),
            target: source.into(),
            node: NodeKind::Dir,
            kind,
            exec: true,
            origin,
            idmap: None,
            links: link.into_iter().collect(),
        }
    }

    fn kept(other: Grant) -> Result<Vec<PathBuf>> {
        let project = grant("/home/u/p", GrantKind::ReadWrite, Origin::Project, None);
        let grants = refuse(vec![project, other], &mut Vec::new())?;
        Ok(grants.into_iter().skip(1).map(|grant| grant.source).collect())
    }

    /// Proves: FS-3 approved-mounts
    #[test]
    fn a_toolchain_behind_a_link_in_the_project_is_left_out() {
        let toolchain = grant(
            "/home/u/private",
            GrantKind::ReadOnly,
            Origin::Toolchain,
            Some("/home/u/p/.venv"),
        );
        assert_eq!(kept(toolchain), Ok(vec![]));
    }

    #[test]
    fn a_cache_behind_a_link_in_the_project_is_left_out() {
        let cache =
            grant("/home/u/private", GrantKind::ReadWrite, Origin::Cache, Some("/home/u/p/cache"));
        assert_eq!(kept(cache), Ok(vec![]));
    }

    #[test]
    fn what_is_asked_for_behind_such_a_link_is_refused() {
        let asked =
            grant("/home/u/private", GrantKind::ReadWrite, Origin::Asked, Some("/home/u/p/out"));
        let refused = kept(asked).unwrap_err();
        assert!(refused.refused_by_policy());
        assert!(refused.to_string().contains("/home/u/p/out"));
    }

    #[test]
    fn links_elsewhere_and_links_that_stay_inside_are_followed() {
        for (source, link) in [("/data/rustup", "/home/u/.rustup"), ("/home/u/p/v2", "/home/u/p/v")]
        {
            let toolchain = grant(source, GrantKind::ReadOnly, Origin::Toolchain, Some(link));
            assert_eq!(kept(toolchain), Ok(vec![Path::new(source).to_owned()]));
        }
    }
}
