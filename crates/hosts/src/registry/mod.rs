//! The hosts that a package manager or git is configured to use. Without configuration, the tool's built-in
//! default is read from the installed program, so that it does not have to be listed here.
//!
//! Only settings of the user, the administrator and the distribution count. Files in the project or in a cache
//! are never read: a command inside could write there which hosts the next run is allowed to reach.

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

/// Limit for settings files, and for source files that contain a default.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// Limit for programs that contain a default.
const MAX_PROGRAM_BYTES: usize = 256 * 1024 * 1024;

/// A tool whose hosts can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    Npm,
    Yarn,
    Pnpm,
    Bun,
    /// Also pipx, which runs pip.
    Pip,
    Uv,
    Poetry,
    Cargo,
    Go,
    Maven,
    Gradle,
    /// Also bundler.
    Gem,
    /// The public forges, and the hosts that git's settings replace them with.
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
    /// The names that policies use, in the same order.
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

/// Access to files. Every error counts as "does not exist".
pub trait Files {
    /// The content of a file, or `None` if it is longer than `longest`.
    fn read(&self, path: &Path, longest: usize) -> Option<Vec<u8>>;
    /// The names in a directory, unsorted.
    fn children(&self, directory: &Path) -> Vec<OsString>;
}

/// The environment that the tools would run in.
#[derive(Clone, Copy, Debug)]
pub struct ToolContext<'a> {
    pub home: Option<&'a Path>,
    /// Canonical. Files in it are not trusted.
    pub project: &'a Path,
    pub env: &'a BTreeMap<OsString, OsString>,
}

/// What a tool is configured to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Empty if its settings name no host and it is not installed.
    pub hosts: Vec<HostEntry>,
    /// Pass the same settings to the tool where its settings files are hidden because they may contain
    /// passwords. They contain no secrets.
    pub variables: Vec<(String, String)>,
    /// Messages for the user about settings that were found but not applied.
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

/// Read access to the settings of one tool.
struct Look<'a> {
    around: &'a ToolContext<'a>,
    files: &'a dyn Files,
}

impl<'a> Look<'a> {
    /// An empty variable counts as unset.
    fn var(&self, name: &str) -> Option<&'a str> {
        let value = self.around.env.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    fn var_path(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// For tools that ignore the case of variable names.
    fn var_in_any_case(&self, name: &str) -> Option<&'a str> {
        let fits = |known: &OsStr| known.to_str().is_some_and(|it| it.eq_ignore_ascii_case(name));
        let mut found = self.around.env.iter().filter(|(known, _)| fits(known));
        found.find_map(|(_, value)| value.to_str().filter(|value| !value.is_empty()))
    }

    /// A file of this name in each ancestor of the project, the outermost first.
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

    /// `$XDG_CONFIG_HOME` or its default.
    fn user_config(&self) -> Option<PathBuf> {
        self.var_path("XDG_CONFIG_HOME").or_else(|| self.in_home(".config"))
    }

    /// Installation prefixes: the parents of the directories in `PATH`. A virtual environment is left out,
    /// because commands may install into it.
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

    /// Without the byte order mark that some editors write. The tools ignore it too.
    fn text(&self, path: &Path) -> Option<String> {
        let content = self.read(path, MAX_TEXT_BYTES)?;
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&content);
        String::from_utf8(content.to_vec()).ok()
    }

    fn texts(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
        paths.into_iter().filter_map(|path| self.text(&path)).collect()
    }

    /// The first result that `read` finds in these files. A `*` in a name matches any characters.
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
