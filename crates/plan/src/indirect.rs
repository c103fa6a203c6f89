//! Follows existing links and settings to files that programs of the host run: the targets are guarded as well
//! (FS-9).
//!
//! Reads a few listings and small files as they are when the run starts: no new ones that lead elsewhere can be
//! created later. Only follows; it must not judge the target.

use crate::facts::EntryKind;
use crate::git;
use crate::host::{Host, join};
use palisade_guard::{Below, GuardedPath, HomeName, MatchContext, Matcher, NamePattern, gitconfig};
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Git's limit is 10; in practice nobody nests includes that deeply.
const INCLUDE_DEPTH: usize = 4;
const MAX_INCLUDED: usize = 32;
/// As much as a command may write there: content at the beginning must not hide what follows.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// How many directories below the home directory are searched for links, in total and for one name.
const MAX_DIRECTORIES: usize = 256;
const MAX_OF_ONE_NAME: usize = 48;
/// Deep enough for `~/.config/systemd/user/default.target.wants`, counted from the listed name.
const MAX_DEPTH: usize = 2;

const WHY_HOOKS: &str = "core.hooksPath: git runs what is in it";
const WHY_HOOK: &str = "a link in git's hooks leads here";
const WHY_CONFIG: &str = "git reads settings from here, which can name programs";

/// All names directly in the project.
pub(crate) type Top = [(OsString, EntryKind)];

/// The guarded paths in the sandbox, as far as they are writable there.
pub(crate) fn guarded(
    root: &Path,
    top: &Top,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Indirect {
    let (found, included, hooks) = (Vec::new(), Vec::new(), Vec::new());
    let known = HashSet::new();
    let mut search = Search { root, host, inside, found, known, included, hooks };
    search.settings();
    search.listed_names(top);
    Indirect { guarded: search.found, hooks: search.hooks }
}

/// What links and settings lead to.
#[derive(Debug, Default)]
pub(crate) struct Indirect {
    pub(crate) guarded: Vec<GuardedPath>,
    /// Relative values of `core.hooksPath`, without `.` and `..`.
    pub(crate) hooks: Vec<PathBuf>,
}

struct Search<'s, 'h, Inside> {
    root: &'s Path,
    host: &'s Host<'h>,
    inside: Inside,
    found: Vec<GuardedPath>,
    /// Their paths: a home directory may have thousands of links.
    known: HashSet<PathBuf>,
    included: Vec<PathBuf>,
    hooks: Vec<PathBuf>,
}

impl<Inside: Fn(&Path) -> Option<PathBuf>> Search<'_, '_, Inside> {
    /// Adds the target of a path, and every link on the way that could be changed to lead elsewhere.
    fn add(&mut self, path: &Path, why: &'static str) {
        for path in self.host.way_to(path) {
            if let Some(path) = (self.inside)(&path)
                && self.known.insert(path.clone())
            {
                self.found.push(GuardedPath { path, why });
            }
        }
    }

    /// Adds the links in a directory, and their targets.
    fn add_links_in(&mut self, dir: &Path, why: &'static str) {
        for (name, kind) in self.host.children(dir).iter() {
            if *kind == EntryKind::Symlink {
                self.add(&dir.join(name), why);
            }
        }
    }

    /// Reads git's settings with everything they include, and adds the hooks they name.
    fn settings(&mut self) {
        if let Some(git_dir) = self.git_dir() {
            for name in ["config", "config.worktree"] {
                let file = git_dir.join(name);
                self.add_if_link(&file, WHY_CONFIG);
                self.read_settings(&file, 0);
            }
            let hooks = git_dir.join("hooks");
            self.add_if_link(&hooks, WHY_HOOK);
            self.add_links_in(&hooks, WHY_HOOK);
        }
        if let Some(home) = self.host.home() {
            for name in [".gitconfig", ".config/git/config"] {
                let file = home.join(name);
                if self.host.kind(&file).is_some() {
                    self.add_if_link(&file, WHY_CONFIG);
                    self.read_settings(&file, 0);
                }
            }
        }
    }

    /// With links resolved: the structure of the directory shows that it is a git directory.
    fn git_dir(&self) -> Option<PathBuf> {
        let config = git::config_of(self.root, self.host)?;
        Some(self.host.resolve(config.parent()?).ok()?.path)
    }

    fn add_if_link(&mut self, path: &Path, why: &'static str) {
        if self.host.kind(path) == Some(EntryKind::Symlink) {
            self.add(path, why);
        }
    }

    fn read_settings(&mut self, file: &Path, depth: usize) {
        let Ok(found) = self.host.resolve(file) else { return };
        let Some(text) = self.host.read_part(&found.path, 0, MAX_CONFIG_BYTES) else { return };
        for hooks in gitconfig::values(&text, "core.hookspath") {
            self.remember_relative(&hooks);
            let hooks = self.named(&hooks, self.root);
            self.add(&hooks, WHY_HOOKS);
            self.add_links_in(&hooks, WHY_HOOK);
        }
        let includes = ["include.path", "includeif.*.path"];
        for include in includes.iter().flat_map(|key| gitconfig::values(&text, key)) {
            let include = self.named(&include, file.parent().unwrap_or(self.root));
            if self.included.len() < MAX_INCLUDED && !self.included.contains(&include) {
                self.included.push(include.clone());
                self.add(&include, WHY_CONFIG);
                if depth < INCLUDE_DEPTH {
                    self.read_settings(&include, depth + 1);
                }
            }
        }
    }

    fn remember_relative(&mut self, hooks: &[u8]) {
        let mut plain = PathBuf::new();
        for part in Path::new(OsStr::from_bytes(hooks)).components() {
            match part {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                _ => return,
            }
        }
        if gitconfig::is_relative(hooks)
            && !plain.as_os_str().is_empty()
            && !self.hooks.contains(&plain)
        {
            self.hooks.push(plain);
        }
    }

    fn named(&self, value: &[u8], base: &Path) -> PathBuf {
        match (value.strip_prefix(b"~/"), self.host.home()) {
            (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
            _ => base.join(OsStr::from_bytes(value)),
        }
    }

    /// Adds links with listed names, directly in the project and in the home directory.
    fn listed_names(&mut self, top: &Top) {
        let homes = self.host.home().map(Path::to_owned).into_iter().collect::<Vec<_>>();
        let matcher =
            Matcher::new(MatchContext { homes: homes.clone(), ..MatchContext::default() });
        let root = self.root;
        if (self.inside)(root).is_some() {
            for (name, kind) in top {
                self.listed_name(&matcher, root, &root.join(name), *kind);
            }
        }
        for home in homes {
            self.names_of_home(&home);
        }
    }

    /// Adds the targets of the listed names in a home directory, and of the links in listed directories: users
    /// may keep `~/.ssh/config` or a program of `~/.local/bin` in a project directory. Most names do not exist,
    /// which costs nothing.
    fn names_of_home(&mut self, home: &Path) {
        let mut directories = MAX_DIRECTORIES;
        for name in palisade_guard::home_names() {
            let (dir, last) = name.split();
            let found = match &last {
                NamePattern::Exact(_) if self.host.missing_in(name.name).is_some() => continue,
                NamePattern::Exact(_) => vec![home.join(name.name)],
                NamePattern::Around(..)
                    if !dir.is_empty() && self.host.missing_in(dir).is_some() =>
                {
                    continue;
                }
                NamePattern::Around(..) => {
                    let ways = self.host.ways_in(&join(home, Path::new(dir))).into_iter();
                    let is_meant = |path: &PathBuf| {
                        path.file_name().is_some_and(|name| last.matches(name.as_bytes()))
                    };
                    ways.map(|(path, _)| path).filter(is_meant).collect()
                }
            };
            for path in found {
                self.name_of_home(&path, &name, &mut directories);
            }
        }
    }

    fn name_of_home(&mut self, path: &Path, name: &HomeName, directories: &mut usize) {
        match self.host.resolve(path) {
            Ok(found) => {
                if !found.links.is_empty() {
                    self.add(path, name.why);
                }
                if found.kind == EntryKind::Dir {
                    self.links_below(found.path, name, directories);
                }
            }
            // The end of a dangling link could be created later.
            Err(missing) if !missing.links.is_empty() => self.add(path, name.why),
            Err(_) => {}
        }
    }

    /// Adds the links in a directory, nearest first. Targets in a guarded tree are searched as well, because
    /// they may contain further links.
    fn links_below(&mut self, top: PathBuf, name: &HomeName, directories: &mut usize) {
        let mut waiting = VecDeque::from([(top, 0)]);
        let mut of_this_name = MAX_OF_ONE_NAME.min(*directories);
        while let Some((dir, depth)) = waiting.pop_front() {
            if of_this_name == 0 {
                return;
            }
            of_this_name -= 1;
            *directories -= 1;
            for (path, kind) in self.host.ways_in(&dir) {
                let below = match kind {
                    EntryKind::Symlink => {
                        self.add(&path, name.why);
                        let end = self.host.resolve(&path).ok();
                        let end = end.filter(|end| end.kind == EntryKind::Dir).map(|end| end.path);
                        end.filter(|end| (self.inside)(end).is_some())
                    }
                    _ => Some(path).filter(|_| name.is_deep),
                };
                if let Some(below) = below.filter(|_| depth < MAX_DEPTH) {
                    waiting.push_back((below, depth + 1));
                }
            }
        }
    }

    fn listed_name(&mut self, matcher: &Matcher, tree: &Path, path: &Path, kind: EntryKind) {
        let mut is_old = |_: &Path| false;
        match (kind, matcher.judge(tree, path, &mut is_old)) {
            (EntryKind::Symlink, Some(hit)) => self.add(path, hit.why),
            (EntryKind::Dir, Some(hit)) => self.add_links_in(path, hit.why),
            (EntryKind::Symlink | EntryKind::Dir, None) => {
                for Below { dir, name, hit } in matcher.below(tree, path, &mut is_old) {
                    self.listed_below(&path.join(dir), &name, kind, hit.why);
                }
            }
            (EntryKind::File | EntryKind::Other, _) => {}
        }
    }

    /// Adds what is guarded further down: everything behind a link, and only links in a directory.
    fn listed_below(
        &mut self,
        dir: &Path,
        name: &NamePattern,
        above: EntryKind,
        why: &'static str,
    ) {
        let names = match name {
            NamePattern::Exact(name) => vec![dir.join(OsStr::from_bytes(name))],
            NamePattern::Around(..) => {
                let children = self.host.children(dir);
                let meant = children.iter().filter(|(child, _)| name.matches(child.as_bytes()));
                meant.map(|(child, _)| dir.join(child)).collect()
            }
        };
        for path in names {
            match above {
                EntryKind::Symlink => self.add(&path, why),
                _ => self.add_if_link(&path, why),
            }
        }
    }
}

#[cfg(test)]
#[path = "indirect_tests.rs"]
mod tests;
