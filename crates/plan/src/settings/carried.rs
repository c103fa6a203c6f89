//! Which settings of the caller are copied into the sandbox, and where the copies are.

use super::{Filtered, filter};
use crate::denied::{Class, Denied, listed_paths};
use crate::facts::{EntryKind, HostFacts};
use crate::grant::{Grant, Origin};
use crate::host::Host;
use crate::lists;
use crate::model::MountOp;
use crate::paths::Scope;
use crate::planted::PlantedPlaces;
use crate::view::Composition;
use std::path::{Path, PathBuf};

/// Longer settings are hidden completely.
const MAX_SETTINGS_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    source: PathBuf,
    /// The path at which programs look for it, with links in its directories resolved.
    target: PathBuf,
    content: String,
    /// Whether credentials were removed.
    is_filtered: bool,
}

/// Whether there is a view in which a copy can replace a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Carried,
    None,
}

/// Reads the listed files and decides what of each is copied. A file with a credential is denied from then on,
/// so that no granted directory shows it.
pub(crate) fn collect(
    copies: Copies,
    (grants, planted): (&[Grant], &PlantedPlaces),
    denied: &mut Denied,
    facts: &HostFacts,
    host: &Host<'_>,
    notes: &mut Vec<String>,
) -> Vec<Carried> {
    let scope = Scope::new(facts);
    let mut carried: Vec<Carried> = Vec::new();
    for listed in lists::SETTINGS {
        let below_home = listed.name.strip_prefix("~/");
        if below_home.is_some_and(|name| host.missing_in(name).is_some()) {
            continue;
        }
        for path in listed_paths(listed, &scope, host) {
            let Some(found) = read(&path, (grants, planted), denied, host) else { continue };
            let copy = match filter(listed.tags, &found.content) {
                Filtered::Clean => found,
                Filtered::Without { text, left_out } if copies == Copies::Carried => {
                    denied.add_secret(&path, facts, host);
                    notes.push(format!(
                        "{} is copied in without its credentials ({}); show all of it with --ro",
                        path.display(),
                        left_out.join(", ")
                    ));
                    Carried { content: text, is_filtered: true, ..found }
                }
                Filtered::Without { .. } | Filtered::Unclear => {
                    denied.add_secret(&path, facts, host);
                    notes.push(format!(
                        "{} may contain a credential and is hidden; show it with --ro",
                        path.display()
                    ));
                    continue;
                }
            };
            if !carried.iter().any(|known| known.target == copy.target) {
                carried.push(copy);
            }
        }
    }
    carried
}

/// Puts the copies where nothing else is mounted: a directory that is visible as a whole contains the file
/// itself.
pub(crate) fn place(carried: Vec<Carried>, view: &mut Composition) {
    for Carried { source, target, content, is_filtered } in carried {
        let is_ours = match view.standing_above(&target) {
            None | Some(MountOp::Dir { .. } | MountOp::Tmpfs { .. } | MountOp::Frame { .. }) => {
                true
            }
            Some(_) => false,
        };
        if is_ours && !view.ops.contains_key(&target) {
            let place = target.clone();
            let why = "settings";
            view.ops.insert(place, MountOp::Copy { source, target, content, is_filtered, why });
        }
    }
}

/// Skips files that the user grants or denies by name, and files behind a link that somebody could have made for this.
fn read(
    path: &Path,
    (grants, planted): (&[Grant], &PlantedPlaces),
    denied: &Denied,
    host: &Host<'_>,
) -> Option<Carried> {
    let found = host.resolve(path).ok().filter(|found| found.kind == EntryKind::File)?;
    let is_by_name = |class| matches!(class, Class::Asked | Class::Own);
    // Nothing is copied through a link that would be denied under its own name, such as a secret.
    let is_linked = !found.links.is_empty();
    let is_denied = [path, &found.path]
        .iter()
        .any(|path| denied.above(path).is_some_and(|(_, class)| is_linked || is_by_name(class)));
    let is_asked =
        grants.iter().any(|grant| grant.origin == Origin::Asked && grant.source == found.path);
    let is_planted = planted.first_of(&found.links).is_some();
    if is_denied || is_asked || is_planted {
        return None;
    }
    let content = content(&found.path, host)?;
    // The name itself, not the link's target, because programs look there.
    let target = host.places(path).into_iter().next()?;
    Some(Carried { source: found.path, target, content, is_filtered: false })
}

pub(super) fn content(path: &Path, host: &Host<'_>) -> Option<String> {
    let bytes = host.read_part(path, 0, MAX_SETTINGS_BYTES)?;
    String::from_utf8(bytes).ok().filter(|text| text.len() < MAX_SETTINGS_BYTES)
}
