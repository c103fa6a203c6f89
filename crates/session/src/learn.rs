//! Turns a recorded run into a policy: the rules that would have allowed everything it accessed.
//!
//! They are a proposal for a person to review. It must never contain secrets: a run in learning mode does not get them.

use crate::app_dirs::{read_document, replace_file};
use crate::caller::Caller;
use crate::config;
use crate::error::{Result, SessionError};
use crate::run::{Planned, RunRequest, plan};
use crate::trust::TrustStore;
use jiff::Timestamp;
use palisade_gate::{Access, Effect, Origin, PathContext, Pattern, Rule, Store, group};
use palisade_launch::probe::RealTree;
use palisade_plan::model::Gate;
use palisade_policy::{HostList, add_hosts, add_rules, add_writable_paths, with_proxy};
use palisade_record::{Digest, RunReport, TouchedPath};
use palisade_supervisor::gate::is_library;
use std::path::{Path, PathBuf};

/// The file for this project's learnt rules: in the user's directory, which is in no run's view.
pub fn usual_file(caller: &Caller) -> PathBuf {
    let project = palisade_plan::project_root(&caller.facts, &RealTree);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(64).collect();
    // Several projects may have the same name.
    let digest = Digest::of(project.as_os_str().as_encoded_bytes()).to_string();
    let digest: String = digest.chars().take(8).collect();
    caller.places.user.join("learned").join(format!("{name}-{digest}.yaml"))
}

/// The present content of the file. A file that a command could have written and that is not trusted is an error:
/// adding to it would bring planted rules into effect together with the learnt ones.
pub fn present_text(caller: &Caller, file: &Path) -> Result<String> {
    let Some(text) = read_document(file)? else { return Ok(String::new()) };
    let document = config::read(file)?;
    if config::could_be_written(caller, &document.named)
        && !TrustStore::load(&caller.places)?.is_trusted(&document.path, &text)
    {
        return Err(SessionError::PlantedPolicy { path: file.to_owned() });
    }
    Ok(text)
}

/// A policy's text including the learnt rules, and descriptions of those that were added.
#[derive(Debug)]
pub struct Learnt {
    pub text: String,
    pub added: Vec<String>,
    /// How many of those are paths that the run tried to write and could not.
    pub writable: usize,
}

/// Adds everything that the run needed and the file does not have: paths it accessed, paths it tried to write, and
/// hosts it reached. Secrets are not among them, nor are variables that look like secrets.
pub fn add(
    caller: &Caller,
    request: &RunRequest,
    report: &RunReport,
    file: &Path,
    before: &str,
) -> Result<Learnt> {
    let name = file.to_string_lossy();
    let saved = add_rules(before, &name, &rules(caller, request, report)?)?;
    let mut added: Vec<String> = saved.added.iter().map(ToString::to_string).collect();
    let written = add_writable_paths(&saved.text, &name, &written(report))?;
    added.extend(written.added.iter().map(|path| format!("write {path}")));
    let writable = written.added.len();
    let hosts = add_hosts(&written.text, &name, HostList::Allowed, &hosts(report))?;
    let mut text = hosts.text;
    if !hosts.added.is_empty() {
        text = with_proxy(&text, &name)?;
        added.extend(hosts.added.iter().map(|host| format!("allow host {host}")));
    }
    Ok(Learnt { text, added, writable })
}

/// What the run tried to write and could not: the path, or the nearest existing directory above it.
fn written(report: &RunReport) -> Vec<String> {
    let denied = report.denied_paths.iter();
    let wanted = denied.filter(|path| path.access == "write" && !path.is_secret);
    let mut paths: Vec<String> = Vec::new();
    for path in wanted.map(|touched| Path::new(&touched.path)) {
        let there = path.ancestors().find(|above| above.exists());
        // A directory this close to the root would grant too much.
        let is_narrow = |there: &&Path| there.components().count() > 3 || *there == path;
        if let Some(text) = there.filter(is_narrow).and_then(Path::to_str)
            && !paths.iter().any(|known| known == text)
        {
            paths.push(text.to_owned());
        }
    }
    paths
}

/// With the port, unless it is a usual one.
fn hosts(report: &RunReport) -> Vec<String> {
    let reached = report.network.iter().flat_map(|network| &network.hosts);
    let shown = reached.map(|reached| match reached.port {
        80 | 443 => reached.host.clone(),
        port => format!("{}:{port}", reached.host),
    });
    shown.collect()
}

/// Writes the learnt policy atomically and never through a link.
pub fn write(file: &Path, text: &str) -> Result<()> {
    replace_file(file, text.as_bytes())
}

/// As few rules as are justified: a directory where several of its files were accessed.
pub fn rules(caller: &Caller, request: &RunRequest, report: &RunReport) -> Result<Vec<Rule>> {
    let Planned { plan, .. } = plan(caller, request, &report.session_id)?;
    Ok(plan
        .sandbox
        .gate
        .map_or_else(Vec::new, |gate| of_touched(&gate, caller, &report.granted_paths)))
}

fn of_touched(gate: &Gate, caller: &Caller, touched: &[TouchedPath]) -> Vec<Rule> {
    let around = PathContext {
        home: caller.facts.home.as_deref(),
        mounted: &gate.mounted,
        never: &gate.never,
        secrets: &gate.secrets,
    };
    let mut rules = Vec::new();
    for access in [Access::Read, Access::Execute, Access::Write] {
        let wanted = touched.iter().filter(|path| access_of(path) == access);
        let (directories, files): (Vec<&TouchedPath>, Vec<&TouchedPath>) =
            wanted.partition(|path| path.is_directory);
        let trees = directories.into_iter().map(|directory| {
            let path = PathBuf::from(&directory.path);
            // For such directories only the name was shown.
            let is_wide = path.components().count() <= 2 || gate.holds_hidden(&path);
            if is_wide { Pattern::Exact(path) } else { Pattern::Tree(path) }
        });
        let files: Vec<PathBuf> = files.iter().map(|file| PathBuf::from(&file.path)).collect();
        // Written files are listed one by one: a directory would grant more than was allowed.
        let files = match access {
            Access::Write => files.into_iter().map(Pattern::Exact).collect(),
            Access::Read | Access::Execute => group(&files, &around),
        };
        let patterns: Vec<Pattern> = trees.chain(files).collect();
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

/// A library is mapped as executable, even if it was only reported as read.
fn access_of(touched: &TouchedPath) -> Access {
    if touched.access == Access::Write.to_string() {
        return Access::Write;
    }
    let is_executed = touched.access == Access::Execute.to_string();
    if is_executed || is_library(Path::new(&touched.path)) { Access::Execute } else { Access::Read }
}

/// Whether a rule already allows everything that another one would.
fn covers(known: &Rule, pattern: &Pattern, access: Access) -> bool {
    let top = match pattern {
        Pattern::Exact(path) | Pattern::Tree(path) => path,
        Pattern::Glob(_) => return false,
    };
    let reaches = match &known.pattern {
        Pattern::Tree(tree) => top.starts_with(tree),
        other => other == pattern,
    };
    reaches && known.access.includes(access)
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
