//! Which hosts a package manager or git is set up to use, by its own settings, or else by itself: the default
//! that is built into it is read from the installed program, so that none has to be named here.
//!
//! Only what the user, the administrator and the distribution wrote counts. Nothing below the project, and
//! nothing in a cache, is ever read: a command inside could write there what the next run would be allowed.

mod cargo;
mod defaults;
mod gem;
mod git;
mod go;
mod jvm;
mod node;
mod npm;
mod pip;
mod python;
mod url;

use crate::HostEntry;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// No settings file is longer, nor a source file that holds a default.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// Nor a program.
const MAX_PROGRAM_BYTES: usize = 256 * 1024 * 1024;

/// Whose hosts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    Npm,
    Yarn,
    Pnpm,
    Bun,
    /// And pipx, which asks it.
    Pip,
    Uv,
    Poetry,
    Cargo,
    Go,
    Maven,
    Gradle,
    /// And bundler.
    Gem,
    /// The public forges, and what git's settings replace them by.
    Git,
}

impl Tool {
    pub const ALL: [Self; 13] = [
        Self::Npm,
        Self::Yarn,
        Self::Pnpm,
        Self::Bun,
        Self::Pip,
        Self::Uv,
        Self::Poetry,
        Self::Cargo,
        Self::Go,
        Self::Maven,
        Self::Gradle,
        Self::Gem,
        Self::Git,
    ];
    /// The words that policies use, in the same order.
    pub const WORDS: [&str; 13] = [
        "npm", "yarn", "pnpm", "bun", "pip", "uv", "poetry", "cargo", "go", "maven", "gradle",
        "gem", "git",
    ];

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.word() == word)
    }

    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How files are read. Errors of any kind read as "not there".
pub trait Files {
    /// The whole of a file, unless it is longer than that.
    fn read(&self, path: &Path, longest: usize) -> Option<Vec<u8>>;
    /// Names in a directory, unsorted.
    fn children(&self, directory: &Path) -> Vec<OsString>;
}

/// Where and as whom the tools would run.
#[derive(Clone, Copy, Debug)]
pub struct ToolContext<'a> {
    pub home: Option<&'a Path>,
    /// Canonical. What is in it is not the user's own.
    pub project: &'a Path,
    pub env: &'a BTreeMap<OsString, OsString>,
}

/// What a tool is set up to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// None, if its settings name none and it is not installed.
    pub hosts: Vec<HostEntry>,
    /// Tell the tool the same where its settings files are hidden because passwords may be in them. Nothing
    /// secret is in these.
    pub variables: Vec<(String, String)>,
    /// What a person should know: settings that were seen and not followed.
    pub notes: Vec<String>,
}

pub fn find(tool: Tool, around: &ToolContext<'_>, files: &dyn Files) -> Setup {
    let look = Look { around, files };
    let mut setup = match tool {
        Tool::Npm => npm::setup(&look),
        Tool::Yarn => node::yarn(&look),
        Tool::Pnpm => node::pnpm(&look),
        Tool::Bun => node::bun(&look),
        Tool::Pip => pip::setup(&look),
        Tool::Uv => python::uv(&look),
        Tool::Poetry => python::poetry(&look),
        Tool::Cargo => Setup { hosts: cargo::hosts(&look), ..Setup::default() },
        Tool::Go => go::setup(&look),
        Tool::Maven => jvm::maven(&look),
        Tool::Gradle => jvm::gradle(&look),
        Tool::Gem => gem::setup(&look),
        Tool::Git => git::setup(&look),
    };
    let mut hosts: Vec<HostEntry> = Vec::new();
    for entry in setup.hosts {
        if !hosts.contains(&entry) {
            hosts.push(entry);
        }
    }
    setup.hosts = hosts;
    setup
}

/// One look at the settings of one tool.
struct Look<'a> {
    around: &'a ToolContext<'a>,
    files: &'a dyn Files,
}

impl<'a> Look<'a> {
    /// An empty variable is none.
    fn var(&self, name: &str) -> Option<&'a str> {
        let value = self.around.env.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    fn var_path(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// For tools that do not look at the case of a name.
    fn var_in_any_case(&self, name: &str) -> Option<&'a str> {
        let fits = |known: &OsStr| known.to_str().is_some_and(|it| it.eq_ignore_ascii_case(name));
        let mut found = self.around.env.iter().filter(|(known, _)| fits(known));
        found.find_map(|(_, value)| value.to_str().filter(|value| !value.is_empty()))
    }

    /// A file of this name in each directory that the project is in, the outermost first.
    fn above_project(&self, name: &str) -> Vec<PathBuf> {
        let home = self.around.home;
        let above = self.around.project.ancestors().skip(1).filter(|parent| Some(*parent) != home);
        let mut files: Vec<PathBuf> = above.map(|parent| parent.join(name)).collect();
        files.reverse();
        files
    }

    fn in_home(&self, below: &str) -> Option<PathBuf> {
        self.around.home.map(|home| home.join(below))
    }

    /// `$XDG_CONFIG_HOME` and what it is by default.
    fn user_config(&self) -> Option<PathBuf> {
        self.var_path("XDG_CONFIG_HOME").or_else(|| self.in_home(".config"))
    }

    /// Where programs are installed: what `bin` directories of the search path are in. A virtual environment
    /// is none: commands may install into it.
    fn prefixes(&self) -> Vec<PathBuf> {
        let environment = self.var_path("VIRTUAL_ENV");
        let path = self.var("PATH").unwrap_or("/usr/local/bin:/usr/bin");
        let directories =
            path.split(':').map(Path::new).filter(|directory| directory.is_absolute());
        let mut prefixes: Vec<PathBuf> = Vec::new();
        for prefix in directories.filter_map(Path::parent).map(Path::to_owned) {
            if !prefixes.contains(&prefix) && Some(&prefix) != environment.as_ref() {
                prefixes.push(prefix);
            }
        }
        prefixes
    }

    fn read(&self, path: &Path, longest: usize) -> Option<Vec<u8>> {
        let is_the_projects = path.starts_with(self.around.project);
        if is_the_projects { None } else { self.files.read(path, longest) }
    }

    /// Without the mark that editors of other systems put first: the tools do not mind it either.
    fn text(&self, path: &Path) -> Option<String> {
        let content = self.read(path, MAX_TEXT_BYTES)?;
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&content);
        String::from_utf8(content.to_vec()).ok()
    }

    fn texts(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
        paths.into_iter().filter_map(|path| self.text(&path)).collect()
    }

    /// What the first of these files that says something says. A `*` in a name stands for any characters.
    fn first<T>(
        &self,
        patterns: impl IntoIterator<Item = PathBuf>,
        longest: usize,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
        patterns
            .into_iter()
            .flat_map(|pattern| self.expand(&pattern))
            .find_map(|path| read(&self.read(&path, longest)?))
    }

    fn expand(&self, pattern: &Path) -> Vec<PathBuf> {
        let mut paths = vec![PathBuf::new()];
        for part in pattern.components() {
            let star = match part {
                Component::Normal(name) => name.to_str().and_then(|name| name.split_once('*')),
                _ => None,
            };
            let Some((start, end)) = star else {
                paths.iter_mut().for_each(|path| path.push(part));
                continue;
            };
            paths = paths.iter().flat_map(|path| self.children_like(path, start, end)).collect();
        }
        paths
    }

    fn children_like(&self, directory: &Path, start: &str, end: &str) -> Vec<PathBuf> {
        let fits = |name: &OsString| {
            let rest = name.to_str().and_then(|name| name.strip_prefix(start));
            rest.is_some_and(|rest| rest.ends_with(end))
        };
        let mut names = self.files.children(directory);
        names.retain(fits);
        names.sort();
        names.into_iter().map(|name| directory.join(name)).collect()
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
