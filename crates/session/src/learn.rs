//! From a recorded run to a policy: the rules that would have answered everything it touched.
//!
//! They are a proposal, for somebody to read before it counts. Secrets are never among them: a run that is
//! learnt from does not get them.

use crate::caller::Caller;
use crate::error::SessionError;
use crate::gate::is_library;
use crate::run::{Planned, RunRequest, plan};
use jiff::Timestamp;
use palisade_gate::{Access, Effect, Origin, Pattern, Rule, Store, Surroundings, group};
use palisade_plan::model::Gate;
use palisade_record::{RunReport, TouchedPath};
use std::path::{Path, PathBuf};

/// In as few lines as can be answered for: directories where several files of one were touched.
pub fn rules(
    caller: &Caller,
    request: &RunRequest,
    report: &RunReport,
) -> Result<Vec<Rule>, SessionError> {
    let Planned { plan, .. } = plan(caller, request, &report.session_id)?;
    Ok(plan.gate.map_or_else(Vec::new, |gate| of_touched(&gate, caller, &report.granted_paths)))
}

fn of_touched(gate: &Gate, caller: &Caller, touched: &[TouchedPath]) -> Vec<Rule> {
    let around = Surroundings {
        home: caller.facts.home.as_deref(),
        mounted: &gate.mounted,
        never: &gate.never,
        secrets: &gate.secrets,
    };
    let mut rules = Vec::new();
    for access in [Access::Read, Access::Execute] {
        let wanted = touched.iter().filter(|path| access_of(path) == access);
        let (directories, files): (Vec<&TouchedPath>, Vec<&TouchedPath>) =
            wanted.partition(|path| path.is_directory);
        let trees = directories.into_iter().map(|directory| {
            let path = PathBuf::from(&directory.path);
            // Of those only the name was shown.
            let is_wide = path.components().count() <= 2 || gate.holds_hidden(&path);
            if is_wide { Pattern::Exact(path) } else { Pattern::Tree(path) }
        });
        let files: Vec<PathBuf> = files.iter().map(|file| PathBuf::from(&file.path)).collect();
        let patterns: Vec<Pattern> = trees.chain(group(&files, &around)).collect();
        for pattern in patterns {
            if !rules.iter().any(|known| covers(known, &pattern, access)) {
                rules.push(rule(pattern, access));
            }
        }
    }
    let all = rules.clone();
    rules.retain(|rule| {
        let mut others = all.iter().filter(|other| *other != rule);
        !others.any(|other| covers(other, &rule.pattern, rule.access))
    });
    rules
}

/// A library is mapped to be executed, though it is only read.
fn access_of(touched: &TouchedPath) -> Access {
    let is_executed = touched.access == Access::Execute.to_string();
    if is_executed || is_library(Path::new(&touched.path)) { Access::Execute } else { Access::Read }
}

/// Whether a rule says what another would say of everything that one is about.
fn covers(known: &Rule, pattern: &Pattern, access: Access) -> bool {
    let top = match pattern {
        Pattern::Exact(path) | Pattern::Tree(path) => path,
        Pattern::Glob(_) => return false,
    };
    let reaches = match &known.pattern {
        Pattern::Tree(tree) => top.starts_with(tree),
        other => other == pattern,
    };
    reaches && known.access >= access
}

fn rule(pattern: Pattern, access: Access) -> Rule {
    Rule {
        effect: Effect::Allow,
        pattern,
        access,
        store: Store::User,
        until: None,
        origin: Origin {
            by: Some("sandbox learn".to_owned()),
            at: Some(Timestamp::now()),
            place: String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{covers, rule};
    use palisade_gate::{Access, Pattern};

    #[test]
    fn a_directory_covers_what_is_in_it_with_no_more_than_its_own_access() {
        let tree = rule(Pattern::Tree("/opt/sdk".into()), Access::Read);
        assert!(covers(&tree, &Pattern::Exact("/opt/sdk/a".into()), Access::Read));
        assert!(covers(&tree, &Pattern::Tree("/opt/sdk/lib".into()), Access::Read));
        assert!(!covers(&tree, &Pattern::Exact("/opt/sdk/a".into()), Access::Execute));
        assert!(!covers(&tree, &Pattern::Exact("/opt/sdk2".into()), Access::Read));
        let file = rule(Pattern::Exact("/opt/sdk".into()), Access::Execute);
        assert!(!covers(&file, &Pattern::Exact("/opt/sdk/a".into()), Access::Read));
    }
}
