//! Whatever is tried in whatever order, no directory comes to be in which git would run what the run put
//! there. A model of the broker's writing calls acts on real directories; git itself is asked at the end.

use super::*;
use crate::brokered_trees::BrokeredTrees;
use crate::place::{Found, Map, Start};
use crate::staging::tests::WORKING_DIRECTORY;
use crate::staging::{StagedConfigs, Writer};
use palisade_guard::MatchContext;
use palisade_plan::model::Guard;
use palisade_sys::Mode;
use proptest::prelude::*;
use rustix::fs::{FileType, RenameFlags, linkat, mkdirat, renameat_with, symlinkat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const EVIL: &str = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = evil-program\n";
const HARMLESS: &str = "[core]\n\trepositoryformatversion = 0\n";
const HEAD: &str = "ref: refs/heads/main\n";

/// One writing call, by paths below the tree.
#[derive(Clone, Debug)]
enum Step {
    Write(String, &'static str),
    MakeDirectory(String),
    Rename(String, String),
    Exchange(String, String),
    Link(String, String),
    SymbolicLink(String, String),
    Remove(String),
    /// Through a descriptor that was opened by an earlier `Write`, whatever the file is called by now.
    WriteHeld(usize, &'static str),
    /// Closes such a descriptor.
    CloseHeld(usize),
}

/// The broker without its notifications.
struct Fixture {
    directory: TempDir,
    judge: Judge,
    map: Map,
    held: Vec<fs::File>,
    staged: StagedConfigs,
}

impl Fixture {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let tree = directory.path().canonicalize().unwrap().join("tree");
        fs::create_dir(&tree).unwrap();
        let guard = Guard { trees: vec![tree], ..empty_guard() };
        let proc = openat(rustix::fs::CWD, "/proc", DIRECTORY, NO_MODE).unwrap();
        let map =
            Map::new(BrokeredTrees::of(Some(&guard), None, Vec::new()), Box::leak(Box::new(proc)))
                .unwrap();
        Self {
            directory,
            judge: Judge::new(Matcher::new(MatchContext::default()), guard.limited.clone()),
            map,
            held: Vec::new(),
            staged: StagedConfigs::default(),
        }
    }

    fn tree(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("tree")
    }

    fn place(&self, path: &str) -> Option<ResolvedParent> {
        let path = self.tree().join(path);
        let root = openat(rustix::fs::CWD, "/", DIRECTORY, NO_MODE).unwrap();
        match self.map.locate(Start::Directory(root.as_fd()), path.as_os_str().as_bytes()).ok()? {
            Found::Ours(place) => Some(place),
            Found::Descriptor(_) | Found::NoName | Found::Elsewhere => None,
        }
    }

    /// As `perform.rs` does it; whether it was done.
    fn take(&mut self, step: &Step) -> bool {
        self.attempt(step).is_some()
    }

    /// The configuration of a git directory: one open file is closed at once, another one is held.
    fn write_staged(&mut self, place: &ResolvedParent, content: &str) -> Option<()> {
        let alone = WORKING_DIRECTORY.lock().unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW;
        drop(openat(&place.parent, &place.name, flags, Mode::from_raw_mode(0o644)).ok()?);
        let name = (place.parent.as_fd(), place.name.as_os_str());
        let writer = || Writer { pid: 1, executable: Vec::new() };
        let mut open = |flags| self.staged.open(self.map.proc, name, flags, writer).ok();
        let (written, held) = (open(OFlags::WRONLY | OFlags::TRUNC)?, open(OFlags::RDWR)?);
        drop(alone);
        rustix::io::write(&written, content.as_bytes()).ok()?;
        self.held.push(held.into());
        drop(written);
        self.settle()
    }

    /// Whether nothing was refused.
    fn settle(&mut self) -> Option<()> {
        let mut refused = 0;
        if self.staged.hear() {
            for staged in self.staged.closed() {
                let git_dir = self.map.path_of(staged.dir.as_fd()).ok()?;
                let place = git::setting(&git_dir, &git_dir);
                refused += usize::from(staged.commit(&place).is_err());
            }
        }
        self.staged.forget_unwritten();
        (refused == 0).then_some(())
    }

    fn attempt(&mut self, step: &Step) -> Option<()> {
        match step {
            Step::Write(path, content) => {
                let place = self.place(path)?;
                let allowed = self.judge.may_come(&place, Coming::Written).ok()?;
                if allowed == Allowed::AsJudgedContent {
                    return self.write_staged(&place, content);
                }
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
                let mode = Mode::from_raw_mode(0o755);
                let file = openat(&place.parent, &place.name, flags, mode).ok()?;
                rustix::io::write(&file, content.as_bytes()).ok()?;
                self.held.push(file.into());
                self.note(&place, allowed);
            }
            Step::MakeDirectory(path) => {
                let place = self.place(path)?;
                let allowed = self.judge.may_come(&place, Coming::Directory).ok()?;
                mkdirat(&place.parent, &place.name, Mode::from_raw_mode(0o755)).ok()?;
                self.note(&place, allowed);
            }
            Step::SymbolicLink(target, path) => {
                let place = self.place(path)?;
                let allowed = self.judge.may_come(&place, Coming::SymbolicLink).ok()?;
                symlinkat(target.as_str(), &place.parent, &place.name).ok()?;
                self.note(&place, allowed);
            }
            Step::Link(from, to) => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                if self.judge.may_come(&to, Coming::Link).ok()? == Allowed::AsJudgedContent {
                    let source = (from.parent.as_fd(), from.name.as_os_str());
                    let place = setting(&to, to.directory());
                    let copied = git::copy_config(source, to.parent.as_fd(), &to.name, &place);
                    return copied.ok()?.ok();
                }
                self.judge.may_be_linked(&from).ok()?;
                linkat(&from.parent, &from.name, &to.parent, &to.name, AtFlags::empty()).ok()?;
            }
            Step::Rename(from, to) => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                if self.may_move(&from, &to)? == Allowed::AsJudgedContent {
                    let source = (from.parent.as_fd(), from.name.as_os_str());
                    let place = setting(&to, to.directory());
                    git::commit_config(source, to.parent.as_fd(), &to.name, &place).ok()?.ok()?;
                } else {
                    let flags = RenameFlags::empty();
                    renameat_with(&from.parent, &from.name, &to.parent, &to.name, flags).ok()?;
                }
            }
            Step::Exchange(one, other) => {
                let (one, other) = (self.place(one)?, self.place(other)?);
                let both = [self.may_move(&one, &other)?, self.may_move(&other, &one)?];
                if both.contains(&Allowed::AsJudgedContent) {
                    return None;
                }
                let flags = RenameFlags::EXCHANGE;
                renameat_with(&one.parent, &one.name, &other.parent, &other.name, flags).ok()?;
            }
            Step::Remove(path) => {
                let path = self.tree().join(path);
                let is_directory = fs::symlink_metadata(&path).ok()?.is_dir();
                if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }.ok()?;
            }
            Step::WriteHeld(index, content) => {
                use std::io::{Seek as _, Write as _};
                let count = self.held.len().max(1);
                let file = self.held.get_mut(index % count)?;
                file.rewind().ok()?;
                file.set_len(0).ok()?;
                file.write_all(content.as_bytes()).ok()?;
            }
            Step::CloseHeld(index) => {
                let count = self.held.len().max(1);
                if index % count < self.held.len() {
                    drop(self.held.remove(index % count));
                }
                return self.settle();
            }
        }
        Some(())
    }

    fn may_move(&self, from: &ResolvedParent, to: &ResolvedParent) -> Option<Allowed> {
        let found = statat(&from.parent, &from.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            let flags = DIRECTORY | OFlags::NOFOLLOW;
            let moved = openat(&from.parent, &from.name, flags, NO_MODE).ok()?;
            self.judge.may_come(to, Coming::MovedDirectory(moved.as_fd())).ok()
        } else {
            self.judge.may_come(to, Coming::Moved).ok()
        }
    }

    fn note(&mut self, place: &ResolvedParent, allowed: Allowed) {
        if allowed == Allowed::AsNewborn {
            let made = || Ok::<_, ()>(());
            self.judge.remember(place.parent.as_fd(), &place.name, made).unwrap();
        }
    }

    /// Directories in which git obeys what was put there, as git itself tells.
    fn harmed(&self) -> Vec<PathBuf> {
        let mut directories = vec![self.tree()];
        let mut next = 0;
        while next < directories.len() {
            let entries = fs::read_dir(&directories[next]).unwrap();
            let below = entries.map(|entry| entry.unwrap().path());
            let below: Vec<PathBuf> =
                below.filter(|path| fs::symlink_metadata(path).unwrap().is_dir()).collect();
            directories.extend(below);
            next += 1;
        }
        directories.into_iter().filter(|directory| self.obeys(directory)).collect()
    }

    fn obeys(&self, directory: &Path) -> bool {
        let Some(found) = self.git(directory, &["rev-parse", "--git-path", "hooks/post-checkout"])
        else {
            return false;
        };
        let hook = directory.join(found.trim_end());
        let is_set = |key| {
            self.git(directory, &["config", "--get", key]).is_some_and(|value| !value.is_empty())
        };
        fs::metadata(hook).is_ok_and(|hook| hook.is_file()) || is_set("core.fsmonitor")
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.directory.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.directory.path())
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn empty_guard() -> Guard {
    Guard {
        trees: Vec::new(),
        surroundings: Vec::new(),
        islands: Vec::new(),
        homes: Vec::new(),
        stores: Vec::new(),
        opened: Vec::new(),
        build_dirs: Vec::new(),
        more: Vec::new(),
        limited: Vec::new(),
        hooks: Vec::new(),
    }
}

fn write(path: impl Into<String>, content: &'static str) -> Step {
    Step::Write(path.into(), content)
}

fn make(path: impl Into<String>) -> Step {
    Step::MakeDirectory(path.into())
}

fn rename(from: impl Into<String>, to: impl Into<String>) -> Step {
    Step::Rename(from.into(), to.into())
}

fn orders<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    let Some((last, rest)) = things.split_last() else { return vec![Vec::new()] };
    let longer = |shorter: Vec<T>| {
        (0..=shorter.len()).map(move |at| {
            let mut order = shorter.clone();
            order.insert(at, last.clone());
            order
        })
    };
    orders(rest).into_iter().flat_map(longer).collect()
}

/// Without it, the rest would prove nothing: git takes for a repository what these steps build.
#[test]
fn git_would_obey_what_is_built_here() {
    for dir in ["sub", "sub/.git"] {
        let scene = Fixture::new();
        let top = scene.tree().join(dir);
        for part in ["objects", "refs", "hooks"] {
            fs::create_dir_all(top.join(part)).unwrap();
        }
        fs::write(top.join("HEAD"), HEAD).unwrap();
        assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from));
        fs::write(top.join("config"), EVIL).unwrap();
        assert!(!scene.harmed().is_empty(), "{dir}");
        fs::write(top.join("config"), HARMLESS).unwrap();
        fs::write(top.join("hooks/post-checkout"), "#!/bin/sh\n").unwrap();
        assert!(!scene.harmed().is_empty(), "{dir}");
    }
}

/// Every order of the parts, each made in place or made aside and moved in.
///
/// Proves: FS-9 git-structure, FS-9 git-config
#[test]
fn no_order_of_building_plants_a_configuration() {
    for (index, mut steps) in parts_in_every_order(write("$config", EVIL)).into_iter().enumerate() {
        let scene = built(&mut steps);
        assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from), "{index}: {steps:?}");
    }
}

/// Proves: FS-9 git-structure, FS-9 git-hooks
#[test]
fn no_order_of_building_plants_a_hook() {
    let hook = Step::Write("$hooks/post-checkout".into(), "#!/bin/sh\n");
    for (index, mut steps) in parts_in_every_order(hook).into_iter().enumerate() {
        steps.insert(0, make("$hooks"));
        let scene = built(&mut steps);
        assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from), "{index}: {steps:?}");
    }
}

fn parts_in_every_order(evil: Step) -> Vec<Vec<Step>> {
    orders(&[write("$HEAD", HEAD), make("$objects"), make("$refs"), evil])
}

/// In `sub/`, and in `aside/`, which then becomes `sub/.git`.
fn built(steps: &mut [Step]) -> Fixture {
    let mut scene = Fixture::new();
    for top in ["sub", "aside", "moved"] {
        assert!(scene.take(&make(top)));
        for step in steps.iter() {
            let below = |path: &str| path.replace('$', &format!("{top}/"));
            scene.take(&match step {
                Step::Write(path, content) => Step::Write(below(path), content),
                Step::MakeDirectory(path) => make(below(path)),
                other => other.clone(),
            });
        }
    }
    scene.take(&rename("aside", "sub/.git"));
    for part in ["hooks", "config", "HEAD", "refs", "objects"] {
        assert!(scene.take(&make(format!("last-{part}"))));
        scene.take(&rename(format!("moved/{part}"), format!("last-{part}/{part}")));
        for other in ["config", "hooks", "HEAD", "objects", "refs"] {
            scene.take(&rename(format!("moved/{other}"), format!("last-{part}/{other}")));
        }
    }
    scene
}

/// An old repository moved away and back, with something put in meanwhile.
///
/// Proves: FS-9 git-structure
#[test]
fn a_repository_under_another_name_is_still_one() {
    let mut scene = Fixture::new();
    let git = scene.tree().join(".git");
    for part in ["objects", "refs", "hooks"] {
        fs::create_dir_all(git.join(part)).unwrap();
    }
    fs::write(git.join("HEAD"), HEAD).unwrap();
    fs::write(git.join("config"), HARMLESS).unwrap();
    assert!(scene.take(&rename(".git", "away")));
    assert!(!scene.take(&write("away/hooks/post-checkout", "#!/bin/sh\n")));
    assert!(!scene.take(&write("away/config", EVIL)));
    assert!(scene.take(&write("away/config.lock", EVIL)));
    assert!(!scene.take(&rename("away/config.lock", "away/config")));
    assert!(!scene.take(&Step::Link("away/config".into(), "second".into())));
    assert!(scene.take(&rename("away", ".git")));
    assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from));
}

/// A directory that is nothing yet brings what it holds, and its name makes a repository of it.
///
/// Proves: FS-9 git-structure, FS-9 created-names
#[test]
fn what_becomes_dot_git_is_judged_first() {
    for evil in [write("aside/config", EVIL), write("aside/hooks/post-checkout", "#!/bin/sh\n")] {
        let mut scene = Fixture::new();
        for step in [make("sub"), make("aside"), make("aside/hooks"), evil.clone()] {
            assert!(scene.take(&step), "{step:?}");
        }
        assert!(!scene.take(&rename("aside", "sub/.git")), "{evil:?}");
        assert!(!scene.take(&Step::Exchange("aside".into(), "sub/.git".into())));
    }
}

/// Written before it counted, and held open.
///
/// Proves: FS-9 git-structure
#[test]
fn a_held_configuration_is_not_the_one_that_counts() {
    for last in ["objects", "refs"] {
        let mut scene = Fixture::new();
        for step in [make("sub"), write("sub/config", HARMLESS), write("sub/HEAD", HEAD)] {
            assert!(scene.take(&step), "{step:?}");
        }
        for part in ["objects", "refs"].into_iter().filter(|part| *part != last).chain([last]) {
            assert!(scene.take(&make(format!("sub/{part}"))));
        }
        assert!(scene.take(&Step::WriteHeld(0, EVIL)));
        assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from));
    }
}

/// Proves: FS-9 git-works
#[test]
fn what_git_does_itself_is_done() {
    let mut scene = Fixture::new();
    for step in [
        make("new"),
        make("new/.git"),
        make("new/.git/hooks"),
        write("new/.git/hooks/pre-commit.sample", "x"),
        write("new/.git/config.lock", HARMLESS),
        rename("new/.git/config.lock", "new/.git/config"),
        make("new/.git/refs"),
        make("new/.git/objects"),
        write("new/.git/HEAD.lock", HEAD),
        rename("new/.git/HEAD.lock", "new/.git/HEAD"),
        write("file", "x"),
        write("new/.git/index.lock", "x"),
        rename("new/.git/index.lock", "new/.git/index"),
    ] {
        assert!(scene.take(&step), "{step:?}");
    }
}

/// A link into the tree does not lead around the judge: its target is judged.
#[test]
fn a_place_is_judged_by_its_real_path() {
    let scene = Fixture::new();
    fs::create_dir_all(scene.tree().join("real/.git/hooks")).unwrap();
    symlink("real/.git/hooks", scene.tree().join("innocent")).unwrap();
    let place = scene.place("innocent/pre-commit").unwrap();
    assert!(place.path.ends_with("real/.git/hooks/pre-commit"));
    assert_eq!(scene.judge.may_come(&place, Coming::Written), Err(git::hook_denied()));
}

/// Few names, so that steps meet each other.
fn any_path() -> impl Strategy<Value = String> {
    let top = prop::sample::select(vec!["a", "a", "a", "a/.git", "b"]);
    let part = prop::sample::select(vec![
        "config",
        "config",
        "config.worktree",
        "hooks",
        "hooks/post-checkout",
        "HEAD",
        "objects",
        "refs",
        "commondir",
        "x",
        "",
        ".git",
    ]);
    (top, part).prop_map(|(top, part)| match part {
        "" => top.to_owned(),
        part => format!("{top}/{part}"),
    })
}

fn any_content() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![EVIL, EVIL, HEAD, HEAD, HARMLESS, "gitdir: ../a\n", "../b\n"])
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any_path(), any_content()).prop_map(|(path, content)| Step::Write(path, content)),
        4 => any_path().prop_map(Step::MakeDirectory),
        4 => (any_path(), any_path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (any_path(), any_path()).prop_map(|(from, to)| Step::Exchange(from, to)),
        1 => (any_path(), any_path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (any_path(), any_path()).prop_map(|(from, to)| Step::SymbolicLink(format!("../{from}"), to)),
        2 => any_path().prop_map(Step::Remove),
        2 => (any::<usize>(), any_content()).prop_map(|(index, content)| Step::WriteHeld(index, content)),
        1 => any::<usize>().prop_map(Step::CloseHeld),
    ]
}

/// The parts of a repository that would run something, in any order, with anything in between.
fn any_sequence() -> impl Strategy<Value = Vec<Step>> {
    let parts = vec![
        make("a/objects"),
        make("a/refs"),
        write("a/HEAD", HEAD),
        write("a/config", EVIL),
        write("b/config", EVIL),
        rename("b/config", "a/config"),
        make("b/hooks"),
        write("b/hooks/post-checkout", "#!/bin/sh\n"),
        rename("b/hooks", "a/hooks"),
    ];
    let noise = prop::collection::vec((any::<prop::sample::Index>(), any_step()), 0..16);
    (Just(parts).prop_shuffle(), noise).prop_map(|(mut steps, noise)| {
        for (place, step) in noise {
            steps.insert(place.index(steps.len() + 1), step);
        }
        steps
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 120,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever is tried in whatever order.
    ///
    /// Proves: FS-9 git-structure, FS-9 created-names
    #[test]
    fn no_sequence_of_calls_plants_anything(steps in any_sequence()) {
        let mut scene = Fixture::new();
        for step in [make("a"), make("b")].iter().chain(&steps) {
            scene.take(step);
        }
        prop_assert_eq!(scene.harmed(), [""; 0].map(PathBuf::from));
    }
}
