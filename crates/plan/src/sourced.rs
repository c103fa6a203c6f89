//! Files that an existing start-up file makes a shell, direnv or R run: they are guarded as well (FS-9).
//!
//! Reads a few small files when the run starts. Paths that are computed at run time (`source "$(…)"`) are not
//! found. This module names files and must not judge their content.

use crate::facts::EntryKind;
use crate::host::{Host, join};
use crate::indirect::Top;
use palisade_guard::GuardedPath;
use std::path::{Path, PathBuf};

/// Start-up files in a project, and in the directories directly below it.
const OF_PROJECT: [&str; 2] = [".envrc", ".Rprofile"];
/// Start-up files in a home directory.
const OF_HOME: [&str; 12] = [
    ".bashrc",
    ".bash_profile",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".config/fish/config.fish",
    ".config/direnv/direnvrc",
    ".direnvrc",
    ".Rprofile",
    ".xprofile",
];
const MAX_DIRECTORIES: usize = 64;
const MAX_FILES: usize = 32;
const MAX_DEPTH: usize = 3;
const MAX_FILE_BYTES: usize = 64 * 1024;

const WHY_SOURCED: &str = "a start-up file has it run";
const WHY_NIX: &str = "direnv evaluates it for the .envrc of the directory";

/// The guarded paths in the sandbox, as far as they are writable there.
pub(crate) fn guarded(
    root: &Path,
    cwd: &Path,
    top: &Top,
    host: &Host<'_>,
    inside: impl Fn(&Path) -> Option<PathBuf>,
) -> Vec<GuardedPath> {
    let mut search = Search { host, inside, found: Vec::new(), read: Vec::new() };
    if (search.inside)(root).is_some() {
        for name in OF_PROJECT {
            if top.iter().any(|(there, _)| there == name) {
                search.read(&root.join(name), root, 0);
            }
        }
        let dirs = top.iter().filter(|(_, kind)| *kind == EntryKind::Dir);
        let dirs = dirs.map(|(name, _)| root.join(name)).take(MAX_DIRECTORIES);
        for dir in dirs.chain((cwd != root).then(|| cwd.to_owned())) {
            for name in OF_PROJECT {
                search.read(&dir.join(name), &dir, 0);
            }
        }
    }
    if let Some(home) = host.home() {
        for name in OF_HOME.iter().filter(|name| host.missing_in(name).is_none()) {
            search.read(&home.join(name), home, 0);
        }
    }
    search.found
}

struct Search<'s, 'h, Inside> {
    host: &'s Host<'h>,
    inside: Inside,
    found: Vec<GuardedPath>,
    read: Vec<PathBuf>,
}

/// What a line runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sourced {
    File(String),
    /// A directory, or a file in it: direnv accepts both.
    Environment(String),
    /// The directory of a flake, or a file for `nix-shell`.
    Nix(String),
}

impl<Inside: Fn(&Path) -> Option<PathBuf>> Search<'_, '_, Inside> {
    /// `start` is the working directory of the program that reads the file.
    fn read(&mut self, file: &Path, start: &Path, depth: usize) {
        if self.read.len() >= MAX_FILES || self.read.iter().any(|known| known == file) {
            return;
        }
        let Ok(found) = self.host.resolve(file) else { return };
        let Some(text) = self.host.read_part(&found.path, 0, MAX_FILE_BYTES) else { return };
        self.read.push(file.to_owned());
        let text = String::from_utf8_lossy(&text);
        let base = file.parent().unwrap_or(Path::new("/"));
        let is_r = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("r"))
            || file.file_name().is_some_and(|name| name == ".Rprofile");
        let sourced = if is_r { sourced_by_r(&text) } else { sourced_by_shell(&text) };
        for sourced in sourced {
            self.follow(&sourced, base, start, depth);
            if base != start {
                self.follow(&sourced, start, start, depth);
            }
        }
    }

    fn follow(&mut self, sourced: &Sourced, base: &Path, start: &Path, depth: usize) {
        let (Sourced::File(text) | Sourced::Environment(text) | Sourced::Nix(text)) = sourced;
        let Some(path) = self.expanded(text, base) else { return };
        match sourced {
            Sourced::Nix(_) => {
                if path.extension().is_some_and(|end| end == "nix") {
                    return self.add(&path, WHY_NIX);
                }
                for name in ["flake.nix", "flake.lock", "shell.nix", "default.nix"] {
                    self.add(&path.join(name), WHY_NIX);
                }
            }
            Sourced::File(_) => self.go_on(&path, start, depth),
            Sourced::Environment(_) => {
                let is_dir =
                    self.host.resolve(&path).is_ok_and(|found| found.kind == EntryKind::Dir);
                let path = if is_dir { path.join(".envrc") } else { path };
                self.go_on(&path, start, depth);
            }
        }
    }

    fn go_on(&mut self, path: &Path, start: &Path, depth: usize) {
        self.add(path, WHY_SOURCED);
        if depth < MAX_DEPTH {
            self.read(path, start, depth + 1);
        }
    }

    fn add(&mut self, path: &Path, why: &'static str) {
        for path in self.host.way_to(path) {
            // The directory of a flake itself must stay writable.
            let is_dir = self.host.kind(&path) == Some(EntryKind::Dir);
            if let Some(path) = (self.inside)(&path)
                && !is_dir
                && !self.found.iter().any(|known| known.path == path)
            {
                self.found.push(GuardedPath { path, why });
            }
        }
    }

    /// Expands a shell word to a path; `None` if it contains an unknown variable.
    fn expanded(&self, word: &str, base: &Path) -> Option<PathBuf> {
        let home = || self.host.home().map(Path::to_owned);
        let starts = [("~/", home()), ("$HOME/", home()), ("${HOME}/", home())];
        let starts = starts
            .into_iter()
            .chain([("$PWD/", Some(base.to_owned())), ("${PWD}/", Some(base.to_owned()))]);
        for (start, dir) in starts {
            if let Some(rest) = word.strip_prefix(start) {
                return dir.filter(|_| is_plain(rest)).map(|dir| dir.join(rest));
            }
        }
        is_plain(word).then(|| join(base, Path::new(word)))
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.contains(['$', '`', '*', '<', '(', '{'])
}

/// The arguments of `source`, `.` and direnv's own commands.
fn sourced_by_shell(text: &str) -> Vec<Sourced> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with('#')) {
        for command in line.split([';', '&', '|', '(', ')']) {
            let mut words = command.split_whitespace().map(unquoted).skip_while(|word| {
                matches!(
                    *word,
                    "then" | "do" | "else" | "{" | "if" | "!" | "builtin" | "command" | "\\."
                )
            });
            let Some(first) = words.next() else { continue };
            let argument = words.next().filter(|word| !word.starts_with('#')).map(str::to_owned);
            let or = |otherwise: &str| argument.clone().unwrap_or_else(|| otherwise.to_owned());
            match first {
                "source" | "." | "load_prefix" => found.extend(argument.map(Sourced::File)),
                "source_env" | "source_env_if_exists" => {
                    found.extend(argument.map(Sourced::Environment));
                }
                "dotenv" | "dotenv_if_exists" => found.push(Sourced::File(or(".env"))),
                "use_flake" | "use_nix" => found.push(Sourced::Nix(or("."))),
                "use" if matches!(argument.as_deref(), Some("flake" | "nix")) => {
                    let place = words.next().filter(|word| !word.starts_with(['#', '-']));
                    let place = place.map(|place| place.split('#').next().unwrap_or(place));
                    found.push(Sourced::Nix(place.unwrap_or(".").to_owned()));
                }
                _ => {}
            }
        }
    }
    found
}

/// The quoted arguments of `source(` and similar calls.
fn sourced_by_r(text: &str) -> Vec<Sourced> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with('#')) {
        for call in ["source(", "load(", "readRenviron("] {
            for (at, _) in line.match_indices(call) {
                let rest = line[at + call.len()..].trim_start();
                let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
                    continue;
                };
                let name = rest[1..].split(quote).next().unwrap_or_default();
                found.push(Sourced::File(name.to_owned()));
            }
        }
    }
    found
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use crate::fake::{FakeTree, plan, policy, user};
    use std::path::Path;

    const PROJECT: &str = "/home/u/project";

    fn refused(tree: &FakeTree, paths: &[&str]) -> Vec<bool> {
        let guard = plan(&policy(), &user(), tree).unwrap().sandbox.guard.unwrap();
        let matcher = guard.matcher();
        let judge = |path: &&str| {
            let path = Path::new(PROJECT).join(path);
            matcher.judge(Path::new(PROJECT), &path, &mut |_| false).is_some()
        };
        paths.iter().map(judge).collect()
    }

    /// Proves: FS-9 sourced-files
    #[test]
    fn what_an_envrc_sources_is_guarded() {
        let mut tree = FakeTree::new();
        let envrc = "# source no\nsource_env ./env/common\n[ -f x.sh ] && . \"$PWD/x.sh\"\n\
                     if true; then source 'two.sh'; fi\ndotenv_if_exists\ndotenv .env.local\n\
                     use flake ./nix#shell\necho . five\nsource \"$(made)\"\nsource_env_if_exists sub\n";
        tree.file(format!("{PROJECT}/.envrc"), envrc);
        tree.file(format!("{PROJECT}/env/common"), "source deep.sh\n")
            .dir(format!("{PROJECT}/sub"));
        tree.file(format!("{PROJECT}/backend/.envrc"), "source vars\n");
        let guarded = [
            "env/common",
            "env/deep.sh",
            "x.sh",
            "two.sh",
            ".env",
            ".env.local",
            "nix/flake.nix",
            "sub/.envrc",
            "backend/vars",
        ];
        assert_eq!(refused(&tree, &guarded), [true; 9]);
        assert_eq!(refused(&tree, &["no", "five", "flake.nix", "nix/other", "vars"]), [false; 5]);
        assert_eq!(refused(&FakeTree::new(), &[".env", "x.sh"]), [false; 2]);
    }

    /// Proves: FS-9 sourced-files
    #[test]
    fn what_r_and_shells_source_is_guarded() {
        let mut tree = FakeTree::new();
        tree.file(
            format!("{PROJECT}/.Rprofile"),
            "source(\"renv/activate.R\")\n# source('no.R')\n",
        );
        tree.file(format!("{PROJECT}/renv/activate.R"), "sys.source('renv/more.R', envir = e)\n");
        tree.file(
            "/home/u/.bashrc",
            "[ -r ~/project/aliases ] && source ~/project/aliases\n. /etc/profile\n",
        );
        assert_eq!(refused(&tree, &["renv/activate.R", "renv/more.R", "aliases"]), [true; 3]);
        assert_eq!(refused(&tree, &["no.R", "renv/other.R"]), [false; 2]);
    }

    /// Proves: FS-9 sourced-files
    #[test]
    fn files_that_source_each_other_come_to_an_end() {
        let mut tree = FakeTree::new();
        tree.file(format!("{PROJECT}/.envrc"), "source a\n");
        tree.file(format!("{PROJECT}/a"), "source b\nsource a\n");
        tree.file(format!("{PROJECT}/b"), "source a\nsource .envrc\n");
        assert_eq!(refused(&tree, &["a", "b"]), [true; 2]);
    }
}
