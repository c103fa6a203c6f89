//! What the plan of a sandbox was made from, as far as it is in files: the layers of policy, who trusts them, the settings of git, what
//! links and settings lead to, and which directory the project is. The service looks at them again before it gives a prepared sandbox
//! to a request.
//!
//! Must be looked at before the files are read: what changes in between counts as a change then.

use crate::caller::Caller;
use crate::config::{NAMES, PROJECT_DIRECTORY, PolicyRequest};
use palisade_launch::probe::RealTree;
use palisade_plan::GuardPlaces;
use palisade_record::Digest;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files and directories, and which they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The working directory, which is one of the paths. Without links: a request may name it by one.
    directory: PathBuf,
    paths: Vec<Input>,
    followed: Followed,
}

/// What the guard of names takes in because links, settings and start-up files lead there. The result is compared and not the files:
/// most changes in them, and in the directories that hold the links, lead nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Followed {
    project: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
    virtualenv: Option<PathBuf>,
    /// Of the paths: there may be thousands.
    digest: Digest,
}

impl Followed {
    fn look(caller: &Caller, project: &Path) -> Self {
        let facts = &caller.facts;
        let places = GuardPlaces {
            project,
            cwd: &facts.cwd,
            home: facts.home.as_deref(),
            virtualenv: palisade_plan::active_virtualenv(facts),
        };
        Self::at(&places)
    }

    fn at(places: &GuardPlaces<'_>) -> Self {
        let paths = palisade_plan::followed_paths(places, &RealTree);
        // No path has a zero byte in it.
        let text = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), &[0]]);
        Self {
            project: places.project.to_owned(),
            cwd: places.cwd.to_owned(),
            home: places.home.map(Path::to_owned),
            virtualenv: places.virtualenv.map(Path::to_owned),
            digest: Digest::of(&text.collect::<Vec<_>>().concat()),
        }
    }

    fn is_unchanged(&self) -> bool {
        let Self { project, cwd, home, virtualenv, digest } = self;
        let (home, virtualenv) = (home.as_deref(), virtualenv.as_deref());
        Self::at(&GuardPlaces { project, cwd, home, virtualenv }).digest == *digest
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Input {
    path: PathBuf,
    /// None: there is nothing.
    identity: Option<Identity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Identity {
    /// What is in it changes all the time.
    Directory { device: u64, inode: u64 },
    /// Size, modification and change: no content is replaced without one of them.
    File { device: u64, inode: u64, size: u64, modified: (i64, i64), changed: (i64, i64) },
}

impl Identity {
    fn of(found: &Metadata) -> Self {
        let (device, inode) = (found.dev(), found.ino());
        match found.is_dir() {
            true => Self::Directory { device, inode },
            false => Self::File {
                device,
                inode,
                size: found.len(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            },
        }
    }
}

impl Input {
    fn look(path: PathBuf) -> Self {
        // What cannot be looked at is as good as missing: a start says why it cannot be read.
        let identity = path.metadata().ok().as_ref().map(Identity::of);
        Self { path, identity }
    }
}

impl Inputs {
    /// Those of a sandbox that this caller would make now.
    pub fn look(caller: &Caller, request: &PolicyRequest) -> Self {
        let project = palisade_plan::project_root(&caller.facts, &RealTree);
        let places = &caller.places;
        let policies = [places.organisation.clone(), places.user.clone()];
        let own = project.join(PROJECT_DIRECTORY);
        let policies = policies.iter().chain([&own]);
        let mut paths: Vec<PathBuf> = policies
            .flat_map(|directory| NAMES.iter().map(move |name| directory.join(name)))
            .collect();
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        paths.extend(request.files.iter().map(absolute));
        paths.push(places.trust_store());
        // Programs that git runs by its settings are kept from being replaced.
        paths.push(project.join(".git/config"));
        // Which directory is the project, and where its git directory is.
        let home_or_root =
            |path: &Path| Some(path) == caller.facts.home.as_deref() || path == Path::new("/");
        let upwards = caller.facts.cwd.ancestors().take_while(|path| !home_or_root(path));
        paths.extend(upwards.map(|path| path.join(".git")));
        let home = caller.facts.home.as_deref();
        let of_git = |home: &Path| [".gitconfig", ".config/git/config"].map(|name| home.join(name));
        paths.extend(home.into_iter().flat_map(of_git));
        paths.push(caller.facts.cwd.clone());
        paths.push(project.clone());
        let paths = paths.into_iter().map(Input::look).collect();
        let followed = Followed::look(caller, &project);
        Self { directory: caller.facts.cwd.clone(), paths, followed }
    }

    /// Whether a sandbox that is made now would be made from the same.
    pub fn are_unchanged(&self) -> bool {
        let is_same = |input: &Input| *input == Input::look(input.path.clone());
        self.paths.iter().all(is_same) && self.followed.is_unchanged()
    }

    /// Whether the sandbox works in the directory that this path leads to now. A link may have been changed since.
    pub fn is_directory(&self, path: &Path) -> bool {
        let known = self.paths.iter().find(|input| input.path == self.directory);
        let identity = Input::look(path.to_owned()).identity;
        identity.is_some() && known.is_some_and(|known| known.identity == identity)
    }
}

#[cfg(test)]
mod tests {
    use super::{Followed, GuardPlaces, Input, Inputs};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn inputs(project: &Path, paths: &[PathBuf]) -> Inputs {
        let places = GuardPlaces { project, cwd: project, home: None, virtualenv: None };
        Inputs {
            directory: project.to_owned(),
            paths: paths.iter().cloned().map(Input::look).collect(),
            followed: Followed::at(&places),
        }
    }

    /// Proves: FS-9 more-paths
    #[test]
    fn a_link_in_gits_hooks_and_a_file_that_its_settings_include_are_changes() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let file = project.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(".git/config", "[include]\n\tpath = ../team\n");
        write("team", "");
        write(".git/hooks/pre-push.sample", "");
        write("ci/pre-commit", "");
        let look = || inputs(&project, &[]);
        let before = look();
        write("src/new", "");
        write(".git/hooks/pre-commit.sample", "");
        assert!(before.are_unchanged(), "nothing leads elsewhere");
        symlink("../../ci/pre-commit", project.join(".git/hooks/pre-commit")).unwrap();
        assert!(!before.are_unchanged());
        let with_link = look();
        write("team", "[core]\n\thooksPath = h\n");
        assert!(!with_link.are_unchanged());
        let with_hooks = look();
        write(".git/config.worktree", "[include]\n\tpath = ../more\n");
        assert!(!with_hooks.are_unchanged());
    }

    #[test]
    fn a_link_that_leads_elsewhere_names_another_directory() {
        let place = tempfile::tempdir().unwrap();
        let [one, two, link] = ["one", "two", "link"].map(|name| place.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        symlink(&one, &link).unwrap();
        let inputs = inputs(&one, std::slice::from_ref(&one));
        assert!(inputs.is_directory(&link) && inputs.is_directory(&one));
        fs::remove_file(&link).unwrap();
        assert!(!inputs.is_directory(&link), "nothing is no directory");
        symlink(&two, &link).unwrap();
        assert!(inputs.are_unchanged() && !inputs.is_directory(&link));
        fs::remove_dir(&one).unwrap();
        assert!(!inputs.is_directory(&one));
    }

    #[test]
    fn a_file_that_appears_is_replaced_or_goes_and_another_directory_are_changes() {
        let place = tempfile::tempdir().unwrap();
        let (file, directory) = (place.path().join("policy.yaml"), place.path().join("project"));
        fs::create_dir(&directory).unwrap();
        let look = || inputs(&directory, &[file.clone(), directory.clone()]);
        let before = look();
        assert!(before.are_unchanged());
        fs::write(directory.join("new"), "").unwrap();
        assert!(before.are_unchanged(), "work in the project is none");
        fs::write(&file, "one").unwrap();
        assert!(!before.are_unchanged());
        let with_file = look();
        // Of the same length; its inode tells them apart, whatever the clock says.
        fs::write(place.path().join("other"), "two").unwrap();
        fs::rename(place.path().join("other"), &file).unwrap();
        assert!(!with_file.are_unchanged());
        let with_other = look();
        fs::rename(&directory, place.path().join("moved")).unwrap();
        fs::create_dir(&directory).unwrap();
        assert!(!with_other.are_unchanged());
        let text = serde_json::to_string(&look()).unwrap();
        assert_eq!(serde_json::from_str::<Inputs>(&text).unwrap(), look());
    }
}
