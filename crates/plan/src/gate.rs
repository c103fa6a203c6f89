//! Determines which paths that are missing in the view may be asked about (GATE-1), and which never are. In static mode
//! nobody is asked: the same paths are shown by rule (GATE-7).
//!
//! Answers only extend the view; they protect nothing. This module decides by name and location what is a
//! secret and what is never asked about. `palisade-gate` decides what may be granted.

use crate::aliases::Mounts;
use crate::denied::{Class, Denied, listed_paths};
use crate::dotenv::is_dotenv;
use crate::facts::HostFacts;
use crate::host::Host;
use crate::lists::{self, Listed};
use crate::model::{Answers, Gate, MountOp, Nature, Trigger};
use crate::paths::Scope;
use crate::see::Seen;
use crate::{locate, own};
use palisade_policy::model::{GateChoice, Mode, OnAsk, Policy, View};
use std::path::{Component, Path, PathBuf};

/// The maximum number of open questions. Nobody could answer more.
const MAX_OPEN_QUESTIONS: usize = 256;

/// What a trigger depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// Whether the broker judges names that are created.
    pub(crate) is_guarded: bool,
    /// Whether the command is in a pid namespace of its own.
    pub(crate) has_own_pids: bool,
}

/// Whether a run notices the use of paths that are missing in its view.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) gate: Option<Gate>,
    /// Why static mode cannot show what is used.
    pub(crate) why_none: Option<&'static str>,
}

pub(crate) fn choose(
    policy: &Policy,
    facts: &HostFacts,
    host: &Host<'_>,
    mounts: &[MountOp],
    Seen { denied, when_used, .. }: &Seen,
    Surroundings { is_guarded, has_own_pids }: Surroundings,
) -> Chosen {
    if policy.view != View::Host {
        return Chosen::default();
    }
    let hard = |class: Class| matches!(class, Class::Asked | Class::Own);
    let never = own::OWN_AREAS.into_iter().map(PathBuf::from);
    let (homes, secrets) = if policy.filesystem.hide_secrets {
        (homes(facts, host), secrets(denied, facts))
    } else {
        (Vec::new(), Vec::new())
    };
    let (trigger, trigger_reason) = match trigger(policy.gate, facts) {
        // Creations are asked about, and what is granted then has to be judged name by name.
        (Trigger::Fuse, _)
            if !is_guarded && policy.filesystem.protect_names && policy.mode == Mode::Dynamic =>
        {
            (
                Trigger::Notify,
                "fuse needs Landlock, to keep names protected in what is granted later",
            )
        }
        (Trigger::Fuse, _) if !has_own_pids => (
            Trigger::Notify,
            "fuse needs a pid namespace, to tell the command from our own processes",
        ),
        chosen => chosen,
    };
    let private_home = private_home(mounts, host);
    let answers = match (policy.mode, trigger) {
        (Mode::Dynamic, _) => Answers::OnAsk(policy.on_ask),
        // Notified calls would cost more than the rest of the view, and names could not be listed.
        (Mode::Static, Trigger::Notify) => {
            return Chosen { gate: None, why_none: Some(trigger_reason) };
        }
        // A home directory that was named is in the view as a whole.
        (Mode::Static, Trigger::Fuse) => {
            let shown = private_home.iter().chain(when_used);
            Answers::Readable(shown.cloned().collect())
        }
    };
    if matches!(&answers, Answers::Readable(shown) if shown.is_empty()) {
        return Chosen::default();
    }
    let other_homes = match &answers {
        Answers::OnAsk(_) => Vec::new(),
        Answers::Readable(shown) => homes_within(shown, private_home.as_deref(), facts, host),
    };
    let gate = Gate {
        trigger,
        trigger_reason,
        grounds: grounds(mounts, host),
        never: never.chain(denied.of(hard)).chain(other_homes).collect(),
        own: facts.own_paths.clone(),
        secrets,
        homes,
        mounted: mounts.iter().filter(|op| is_mounted(op)).map(|op| op.target().into()).collect(),
        above_project: above_project(facts, host),
        left_by_tools: left_by_tools(facts, host),
        private_home,
        directories: mounts
            .iter()
            .filter(|op| is_directory(op))
            .map(|op| op.target().into())
            .collect(),
        executes: executes(policy),
        executes_written: policy.filesystem.execute_written,
        answers,
        ask_timeout_ms: policy.ask_timeout,
        most_questions: MAX_OPEN_QUESTIONS,
        known_callers: true,
    };
    Chosen { gate: Some(gate), why_none: None }
}

/// Whether a process of ours serves the root of the view.
pub(crate) fn serves_files(policy: &Policy, facts: &HostFacts) -> bool {
    policy.view == View::Host && trigger(policy.gate, facts).0 == Trigger::Fuse
}

/// Whether static mode can leave the host's directories to the gate, if that turns out to be the file system. Landlock, which restricts
/// programs to those that the policy lists, knows only what is there from the start.
pub(crate) fn may_show_when_used(policy: &Policy, facts: &HostFacts) -> bool {
    policy.mode == Mode::Static && serves_files(policy, facts) && executes(policy)
}

fn executes(policy: &Policy) -> bool {
    policy.process.allow_exec && policy.process.allowed_executables.is_empty()
}

/// What notices the first use of a path, and why that one.
fn trigger(chosen: GateChoice, facts: &HostFacts) -> (Trigger, &'static str) {
    match chosen {
        GateChoice::Auto if facts.serves_gate => (Trigger::Fuse, "auto: /dev/fuse can be opened"),
        GateChoice::Auto => {
            (Trigger::Notify, "auto: /dev/fuse cannot be opened, or /proc hides processes")
        }
        GateChoice::Fuse => (Trigger::Fuse, "the policy says so"),
        GateChoice::Notify => (Trigger::Notify, "the policy says so"),
    }
}

impl Gate {
    /// Whether a file system served outside is the root of the view.
    pub fn is_fuse(&self) -> bool {
        self.trigger == Trigger::Fuse
    }

    /// Whether something may become writable while the command runs, so that only the broker can tell a name that is created
    /// from one that the gate's file system shows.
    pub(crate) fn judges_creations(&self) -> bool {
        self.is_fuse() && matches!(self.answers, Answers::OnAsk(_))
    }

    /// Whether the user may be asked about paths that are not granted.
    pub fn asks_people(&self) -> bool {
        matches!(self.answers, Answers::OnAsk(OnAsk::Ask | OnAsk::Wait))
    }

    /// Whether the policy's `onAsk` has an effect on paths.
    pub fn uses_on_ask(&self) -> bool {
        matches!(self.answers, Answers::OnAsk(_))
    }

    /// Whether static mode shows nothing there, whatever is used.
    pub fn leaves_out(&self, path: &Path) -> bool {
        match &self.answers {
            Answers::OnAsk(_) => false,
            Answers::Readable(shown) => {
                !shown.iter().any(|top| path.starts_with(top) || top.starts_with(path))
            }
        }
    }

    /// Whether static mode may show all of a directory, and not only what is in it by name.
    pub fn shows_within(&self, directory: &Path) -> bool {
        matches!(&self.answers, Answers::Readable(shown) if shown.iter().any(|top| directory.starts_with(top)))
    }

    /// What static mode shows with its own owners: a map would reveal what only root may read.
    pub fn shown_unmapped(&self) -> impl Iterator<Item = &Path> {
        let shown = match &self.answers {
            Answers::OnAsk(_) => &[][..],
            Answers::Readable(shown) => shown,
        };
        let others = shown.iter().filter(|top| Some(*top) != self.private_home.as_ref());
        others.map(PathBuf::as_path)
    }

    /// Whether static mode tells, and lists, that this is there: everything that it would show.
    pub fn is_told_by_rule(&self, path: &Path) -> bool {
        matches!(self.answers, Answers::Readable(_))
            && !self.leaves_out(path)
            && !self.is_left_by_tools(path)
            && self.nature(path) == Nature::Ordinary
    }

    /// Whether tools leave it in every home: a run has its own.
    pub fn is_left_by_tools(&self, path: &Path) -> bool {
        self.left_by_tools.iter().any(|left| path.starts_with(left))
    }

    /// Classifies something on the host by its real path.
    pub fn nature(&self, path: &Path) -> Nature {
        let is_never = self.never.iter().any(|never| path.starts_with(never));
        if is_never || self.is_listed(path, |listed| listed.has("unasked")) {
            Nature::Never
        } else if self.is_secret(path) {
            Nature::Secret
        } else {
            Nature::Ordinary
        }
    }

    /// Whether a directory contains, or could later contain, something that a grant of the whole tree must not
    /// show or cover.
    pub fn holds_hidden(&self, directory: &Path) -> bool {
        let listed = [&self.never, &self.secrets, &self.mounted];
        let mut hidden = listed.into_iter().flatten();
        let is_above_home = self.homes.iter().any(|home| home.starts_with(directory));
        // Called while a process waits: looks up each home once, not each name in each home.
        let below_homes = self.below_homes(directory);
        let is_above_name = |listed: &Listed| match listed.name.strip_prefix("~/") {
            Some(name) => {
                is_above_home || below_homes.iter().any(|rest| Path::new(name).starts_with(rest))
            }
            None => !self.homes.is_empty() && Path::new(listed.name).starts_with(directory),
        };
        hidden.any(|path| path.starts_with(directory)) || lists::SECRETS.iter().any(is_above_name)
    }

    /// Also recognizes secrets that appear later: the shipped names apply in every home directory.
    fn is_secret(&self, path: &Path) -> bool {
        if self.secrets.iter().any(|secret| path.starts_with(secret)) {
            return true;
        }
        !self.homes.is_empty()
            && (path.file_name().is_some_and(is_dotenv) || self.is_listed(path, |_| true))
    }

    fn is_listed(&self, path: &Path, is_meant: impl Fn(&Listed) -> bool) -> bool {
        if self.homes.is_empty() {
            return false;
        }
        let below_homes = self.below_homes(path);
        let mut meant = lists::SECRETS.iter().filter(|listed| is_meant(listed));
        meant.any(|listed| match listed.name.strip_prefix("~/") {
            Some(name) => below_homes.iter().any(|rest| is_named(name, rest)),
            None => is_named(listed.name, path),
        })
    }

    /// Whether tools look for this path on their own, above every project or among their files in every home.
    /// It is then reported as missing unless it is granted.
    pub fn is_probe(&self, path: &Path) -> bool {
        if self.is_left_by_tools(path)
            || lists::PROBES
                .iter()
                .any(|listed| listed.name.starts_with('/') && path.starts_with(listed.name))
        {
            return true;
        }
        let above =
            self.above_project.iter().filter_map(|dir| Some((dir, path.strip_prefix(dir).ok()?)));
        let Some((dir, rest)) = above.max_by_key(|(dir, _)| dir.as_os_str().len()) else {
            return false;
        };
        let Some(Component::Normal(name)) = rest.components().next() else { return false };
        let is_home = Some(dir) == self.private_home.as_ref();
        lists::PROBES.iter().any(|listed| {
            let name = name.as_encoded_bytes();
            let is_meant = match listed.name.strip_suffix('*') {
                Some(start) => name.starts_with(start.as_bytes()),
                None => name == listed.name.as_bytes(),
            };
            is_meant && !(is_home && listed.has("below-home"))
        })
    }

    /// Whether the command itself created this directory in its private home. What is missing there does not
    /// exist, whatever the host has. `granted` are the paths that were added to the view since.
    pub fn is_made_by_command<'g>(
        &self,
        directory: &Path,
        mut granted: impl Iterator<Item = &'g Path>,
    ) -> bool {
        let Some(home) = &self.private_home else { return false };
        let mut planned = self.mounted.iter().chain(&self.directories);
        // In a shared directory such as `~/.local`, a program may create only a part; the user is still asked
        // about the rest.
        directory.starts_with(home)
            && !self.holds_hidden(directory)
            && !planned.any(|path| path.starts_with(directory))
            && !granted.any(|path| path.starts_with(directory))
    }

    fn below_homes<'p>(&self, path: &'p Path) -> Vec<&'p Path> {
        self.homes.iter().filter_map(|home| path.strip_prefix(home).ok()).collect()
    }
}

/// Whether a path is what a line of a list names, or below it.
fn is_named(name: &str, path: &Path) -> bool {
    let Some(start) = name.strip_suffix('*') else { return path.starts_with(name) };
    let (dir, start) = start.rsplit_once('/').unwrap_or(("", start));
    let dir = if name.starts_with('/') && dir.is_empty() { "/" } else { dir };
    path.strip_prefix(dir).is_ok_and(|rest| {
        let first = rest.components().next().map(|part| part.as_os_str().as_encoded_bytes());
        first.is_some_and(|first| first.starts_with(start.as_bytes()))
    })
}

/// Directories that we created ourselves: what is missing in them was not granted.
fn grounds(mounts: &[MountOp], host: &Host<'_>) -> Vec<PathBuf> {
    let is_ground = |op: &&MountOp| match op {
        MountOp::Frame { target, .. } => {
            !own::FRAMED_AREAS.iter().any(|area| target == Path::new(area))
        }
        MountOp::Tmpfs { target, .. } => Some(target.as_path()) == host.home(),
        _ => false,
    };
    let on_root = mounts.iter().filter(is_ground).map(|op| op.target().to_owned());
    std::iter::once(PathBuf::from("/")).chain(on_root).collect()
}

/// The project itself is either in the view or not granted as a whole.
fn above_project(facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let root = locate::root_of(facts, host);
    root.ancestors().skip(1).map(Path::to_owned).collect()
}

fn left_by_tools(facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let scope = Scope::new(facts);
    lists::LEFTOVERS.iter().flat_map(|listed| listed_paths(listed, &scope, host)).collect()
}

pub(crate) fn private_home(mounts: &[MountOp], host: &Host<'_>) -> Option<PathBuf> {
    let is_home = |op: &&MountOp| matches!(op, MountOp::Tmpfs { target, .. } if Some(target.as_path()) == host.home());
    mounts.iter().find(is_home).map(|op| op.target().to_owned())
}

/// Directories, links and copies are not mounts of their own.
fn is_mounted(op: &MountOp) -> bool {
    !matches!(op, MountOp::Dir { .. } | MountOp::Symlink { .. } | MountOp::Copy { .. })
}

fn is_directory(op: &MountOp) -> bool {
    matches!(op, MountOp::Dir { .. })
}

fn homes(facts: &HostFacts, host: &Host<'_>) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = host.home().map(Path::to_owned).into_iter().collect();
    homes.extend(facts.homes.iter().filter(|home| Some(home.as_path()) != host.home()).cloned());
    homes
}

/// Home directories that are shown at a second place by a bind mount, and those of other accounts in the own one.
fn homes_within(
    shown: &[PathBuf],
    own: Option<&Path>,
    facts: &HostFacts,
    host: &Host<'_>,
) -> Vec<PathBuf> {
    let mounts = Mounts::new(&facts.mounts);
    let real = host.real_homes(&facts.homes).iter().map(PathBuf::as_path);
    let all = real.chain(host.home());
    let all = all.filter(|home| *home != Path::new("/"));
    let is_shown = |path: &Path| shown.iter().any(|top| path.starts_with(top));
    let holds_own = |path: &Path| own.is_some_and(|own| own.starts_with(path));
    let aliases = all.clone().flat_map(|home| mounts.aliases(home));
    let aliases = aliases.filter(|alias| is_shown(alias) && !holds_own(alias));
    let in_own = all.filter(|home| own.is_some_and(|own| *home != own && home.starts_with(own)));
    aliases.chain(in_own.map(Path::to_owned)).collect()
}

/// The secrets that exist now, at every path where they are visible, and those that a variable names.
fn secrets(denied: &Denied, facts: &HostFacts) -> Vec<PathBuf> {
    let scope = Scope::new(facts);
    let by_variable = lists::SECRETS.iter().filter(|listed| listed.name.starts_with('$'));
    let by_variable = by_variable.filter_map(|listed| scope.listed(listed.name));
    let known = denied.of(|class| matches!(class, Class::Secret | Class::RootOnly));
    known.chain(by_variable).collect()
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
