//! The programs that may be executed if the policy lists them (PROC-2), resolved in the view as the command
//! would resolve them, with the loaders and interpreters they need.
//!
//! Also reports how the list can be circumvented: it must never look stricter than it is.

use crate::error::{PlanError, Result};
use crate::facts::{EntryKind, HostFacts};
use crate::lists::INTERPRETERS;
use crate::model::{Command, Detour, DetourKind, Executables};
use crate::paths::Scope;
use crate::planted::PlantedPlaces;
use crate::program::{self, Needs};
use crate::reach::{Found, Reach};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// The same as `execvp` and the launcher use without a `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";
/// How many files of a listed directory are examined for loaders and interpreters.
const MAX_LOOKED_INTO: usize = 10_000;
/// In a path of the list.
const ANY_NAME: &str = "*";

/// The context in which names are resolved.
pub(crate) struct SearchContext<'a> {
    pub(crate) facts: &'a HostFacts,
    pub(crate) command: &'a Command,
    pub(crate) reach: Reach<'a>,
    pub(crate) planted: &'a PlantedPlaces,
}

/// What a name in `PATH` means on the list.
#[derive(Default)]
struct Named {
    program: Option<Found>,
    /// A file that the name does not mean, although it comes first.
    passed_over: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) executables: Executables,
    pub(crate) notes: Vec<String>,
}

/// `list` is not empty. `built` are directories for what the command builds and runs. Refuses a command that is in
/// neither.
pub(crate) fn choose(
    list: &[String],
    built: &[PathBuf],
    ground: &SearchContext<'_>,
) -> Result<Chosen> {
    let mut search = Search::new(ground);
    for text in list {
        let found = if is_name(text) {
            search.program(OsStr::new(text)).into_iter().collect()
        } else {
            ground.at_path(text)?
        };
        if found.is_empty() && !has_pattern(text) {
            search.notes.push(format!(
                "allowedExecutables: `{text}` is not visible in the sandbox, so this entry allows nothing"
            ));
        }
        for found in found {
            search.add_listed(found);
        }
    }
    for path in built {
        search.add_built(path);
    }
    search.refuse_unlisted_command()?;
    search.add_needs();
    Ok(search.finish())
}

impl SearchContext<'_> {
    /// Resolves the path of a file or directory. In it `*` stands for any one name, so that versions need not be
    /// listed.
    fn at_path(&self, text: &str) -> Result<Vec<Found>> {
        let path = if text.starts_with(['/', '~', '$']) {
            Scope::new(self.facts).typed(text)?
        } else {
            self.command.cwd.join(text)
        };
        let is_known = |found: &Found| found.kind.is_node();
        Ok(self.matching(&path).into_iter().filter(is_known).collect())
    }

    fn matching(&self, path: &Path) -> Vec<Found> {
        let mut places = vec![PathBuf::new()];
        for part in path.components() {
            if part != Component::Normal(OsStr::new(ANY_NAME)) {
                places.iter_mut().for_each(|place| place.push(part));
                continue;
            }
            let dirs = places.iter().filter_map(|place| self.reach.resolve(place));
            places = dirs.flat_map(|dir| self.reach.children(&dir)).collect();
        }
        places.iter().filter_map(|place| self.reach.resolve(place)).collect()
    }

    /// Every file that a command name could refer to, in the order in which they are tried.
    fn candidates(&self, word: &OsStr) -> Vec<Found> {
        if word.as_encoded_bytes().contains(&b'/') {
            return self.file(Path::new(word)).map(|(found, _)| found).into_iter().collect();
        }
        let files = self.search_path().filter_map(|dir| self.file(&dir.join(word)));
        files.map(|(found, _)| found).collect()
    }

    /// The program that a name means on the list: none in the project or where a command writes. Whoever wrote it there
    /// would choose the interpreter that may be started with it.
    fn program(&self, name: &OsStr) -> Named {
        let mut named = Named::default();
        for path in self.search_path().map(|dir| dir.join(name)) {
            let Some((found, links)) = self.file(&path) else { continue };
            let mut way = found.on_host.iter().chain(&links);
            if !way.any(|place| self.planted.hold(place)) {
                named.program = Some(found);
                break;
            }
            named.passed_over.get_or_insert_with(|| self.command.cwd.join(path));
        }
        named
    }

    fn search_path(&self) -> impl Iterator<Item = PathBuf> {
        let variable = self.command.env.iter().find(|(name, _)| name == "PATH");
        let path = variable.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value.as_os_str());
        std::env::split_paths(path)
    }

    fn file(&self, path: &Path) -> Option<(Found, Vec<PathBuf>)> {
        let (found, links) = self.reach.walk(&self.command.cwd.join(path))?;
        (found.kind == EntryKind::File).then_some((found, links))
    }
}

struct Search<'a> {
    ground: &'a SearchContext<'a>,
    listed: Vec<Found>,
    built: Vec<PathBuf>,
    needed: BTreeSet<PathBuf>,
    detours: BTreeSet<Detour>,
    /// Not examined yet.
    waiting: Vec<Found>,
    known: BTreeSet<PathBuf>,
    notes: Vec<String>,
}

impl<'a> Search<'a> {
    fn new(ground: &'a SearchContext<'a>) -> Self {
        Self {
            ground,
            listed: Vec::new(),
            built: Vec::new(),
            needed: BTreeSet::new(),
            detours: BTreeSet::new(),
            waiting: Vec::new(),
            known: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// What a name means on the list, with a note if it means another file to the command.
    fn program(&mut self, name: &OsStr) -> Option<Found> {
        let Named { program, passed_over } = self.ground.program(name);
        if let Some(path) = passed_over {
            let note = format!(
                "allowedExecutables: `{}` does not mean {}, which a command in a sandbox or whoever wrote the project \
                 could have put there; list its path if you mean it",
                name.display(),
                path.display()
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        program
    }

    fn add_listed(&mut self, found: Found) {
        if self.ground.reach.is_writable(&found) {
            self.add_detour(&found.path, DetourKind::Writable);
        }
        match found.kind {
            EntryKind::Dir => self.add_directory(&found),
            _ => self.wait(found.clone()),
        }
        self.listed.push(found);
    }

    /// What will be there is not there yet, so nothing is looked into.
    fn add_built(&mut self, path: &Path) {
        self.add_detour(path, DetourKind::Writable);
        self.built.push(path.to_owned());
    }

    /// Adds everything below, and the real files that links in it lead to.
    fn add_directory(&mut self, dir: &Found) {
        let mut dirs = vec![dir.clone()];
        let mut looked_into = 0;
        while let Some(dir) = dirs.pop() {
            for path in self.ground.reach.children(&dir) {
                let Some(found) = self.ground.reach.resolve(&path) else { continue };
                let is_link = found.path != path;
                match found.kind {
                    EntryKind::Dir if !is_link => dirs.push(found),
                    EntryKind::File => {
                        if is_link {
                            self.listed.push(found.clone());
                        }
                        self.wait(found);
                        looked_into += 1;
                    }
                    _ => {}
                }
            }
            if looked_into > MAX_LOOKED_INTO {
                self.notes.push(format!(
                    "allowedExecutables: {} holds too many files to look into each; list the \
                     interpreters they need as well",
                    dir.path.display()
                ));
                return;
            }
        }
    }

    fn wait(&mut self, found: Found) {
        if self.known.insert(found.path.clone()) {
            self.waiting.push(found);
        }
    }

    fn is_listed(&self, found: &Found) -> bool {
        let is_built = || self.built.iter().any(|built| found.path.starts_with(built));
        is_built()
            || self.listed.iter().any(|listed| {
                found.path == listed.path
                    || listed.kind == EntryKind::Dir && found.path.starts_with(&listed.path)
                    || self.ground.reach.is_same_file(found, listed)
            })
    }

    /// A command that does not exist is not refused here; the launcher reports that it is not found.
    fn refuse_unlisted_command(&self) -> Result<()> {
        let word = self.ground.command.argv.first().map(OsString::as_os_str).unwrap_or_default();
        let candidates = self.ground.candidates(word);
        match candidates.first() {
            Some(first) if !candidates.iter().any(|found| self.is_listed(found)) => {
                Err(PlanError::NotAllowed { path: first.path.clone() })
            }
            _ => Ok(()),
        }
    }

    fn add_needs(&mut self) {
        while let Some(program) = self.waiting.pop() {
            let reach = &self.ground.reach;
            if is_interpreter(&program.path) {
                self.add_detour(&program.path, DetourKind::Interpreter);
            }
            match program::needs(&|offset, length| reach.read(&program, offset, length)) {
                Needs::Nothing => {}
                Needs::Loader(path) => self.need(&path, Some(DetourKind::Loader)),
                Needs::Interpreter { path, named: None } => {
                    self.need(&path, Some(DetourKind::Interpreter));
                }
                Needs::Interpreter { path, named: Some(name) } => {
                    self.need(&path, None);
                    if let Some(found) = self.program(name.as_os_str()) {
                        self.need(&found.path, Some(DetourKind::Interpreter));
                    }
                }
            }
        }
    }

    /// A file that is not in the view cannot be started, and neither can the program that needs it.
    fn need(&mut self, path: &Path, detour: Option<DetourKind>) {
        let path = self.ground.command.cwd.join(path);
        let Some(found) = self.ground.reach.resolve(&path) else { return };
        if found.kind != EntryKind::File {
            return;
        }
        if let Some(kind) = detour {
            self.add_detour(&found.path, kind);
        }
        if self.ground.reach.is_writable(&found) {
            self.add_detour(&found.path, DetourKind::Writable);
        }
        self.needed.insert(found.path.clone());
        self.wait(found);
    }

    fn add_detour(&mut self, path: &Path, kind: DetourKind) {
        self.detours.insert(Detour { kind, path: path.to_owned() });
    }

    fn finish(self) -> Chosen {
        let listed: BTreeSet<PathBuf> = self.listed.into_iter().map(|found| found.path).collect();
        let is_covered = |path: &Path| {
            path.ancestors().skip(1).any(|above| listed.contains(above))
                || self.built.iter().any(|built| path.starts_with(built))
        };
        let needed: Vec<PathBuf> = self
            .needed
            .into_iter()
            .filter(|path| !listed.contains(path) && !is_covered(path))
            .collect();
        let listed_once = listed.iter().filter(|path| !is_covered(path)).cloned().collect();
        let detours = self.detours.into_iter().collect();
        Chosen {
            executables: Executables { listed: listed_once, built: self.built, needed, detours },
            notes: self.notes,
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.contains('/') && text != "~"
}

fn has_pattern(text: &str) -> bool {
    text.split('/').any(|name| name == ANY_NAME)
}

fn is_interpreter(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let name =
        name.trim_end_matches(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'));
    INTERPRETERS.iter().any(|listed| listed.name == name)
}

impl Executables {
    /// How the list can be circumvented, for display; `None` if it cannot.
    pub(crate) fn detours_told(&self) -> Option<String> {
        let of = |kind: DetourKind| -> Vec<String> {
            let those = self.detours.iter().filter(|detour| detour.kind == kind);
            those.map(|detour| detour.path.display().to_string()).collect()
        };
        let ways = [
            (of(DetourKind::Loader), "any program can be started by"),
            (of(DetourKind::Interpreter), "any script can be run by"),
            (of(DetourKind::Writable), "any program can be written to"),
        ];
        let told: Vec<String> = ways
            .into_iter()
            .filter(|(paths, _)| !paths.is_empty())
            .map(|(paths, what)| format!("{what} {}", a_few(&paths)))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn a_few(paths: &[String]) -> String {
    const SHOWN: usize = 3;
    match paths.len().checked_sub(SHOWN) {
        None | Some(0) => paths.join(", "),
        Some(more) => format!("{} and {more} more", paths[..SHOWN].join(", ")),
    }
}

#[cfg(test)]
#[path = "executables_tests.rs"]
mod tests;
