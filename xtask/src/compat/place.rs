//! Where tests run: for each worker and each side a home, and in it a project with the suite, its data and an empty
//! directory to work in. Both sides have the same layout, with names of the same length.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::suites::{Home, Suite};
use super::{Inside, Tools};
use crate::setup::TestUser;
use crate::tree;

/// Which side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Bare,
    Inside,
}

/// What places are made of.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) user: Option<&'a TestUser>,
    pub(crate) source: Option<&'a Path>,
    pub(super) tools: &'a Tools,
    pub(super) inside: Inside,
}

/// The places of one suite and one user; removed when dropped.
#[derive(Debug)]
pub(crate) struct WorkerDirectories<'a> {
    directory: TempDir,
    pub(crate) needs: Needs<'a>,
    machine_home: PathBuf,
}

/// The place of one worker on one side.
#[derive(Debug)]
pub(crate) struct WorkerDirectory {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) source: PathBuf,
    pub(crate) records: PathBuf,
    pub(crate) worker: usize,
}

impl<'a> WorkerDirectories<'a> {
    pub(crate) fn new(needs: Needs<'a>, keep: bool) -> Result<Self> {
        let caller = std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set")?;
        let machine_home = needs.user.map_or(caller, |user| user.home.clone());
        // Short: names of sockets have little room.
        let mut directory = tempfile::Builder::new()
            .prefix("pc-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(&machine_home)
            .with_context(|| format!("cannot make a directory in {}", machine_home.display()))?;
        if keep {
            directory.disable_cleanup(true);
            eprintln!("kept: {}", directory.path().display());
        }
        let directories = Self { directory, needs, machine_home };
        directories.give(directories.directory.path())?;
        Ok(directories)
    }

    /// A new place.
    pub(crate) fn place(&self, side: Side, worker: usize) -> Result<WorkerDirectory> {
        let letter = match side {
            Side::Bare => 'b',
            Side::Inside => 'i',
        };
        let own = self.directory.path().join(format!("{letter}{worker}"));
        let project = own.join("p");
        let place = WorkerDirectory {
            work: project.join("w"),
            data: project.join("data"),
            source: project.join("source"),
            records: project.join("records"),
            home: match self.needs.suite.home {
                Home::Own => own.clone(),
                Home::Machine => self.machine_home.clone(),
            },
            project,
            worker,
        };
        fs::create_dir_all(&place.project).with_context(|| place.project.display().to_string())?;
        copy_tree(&super::data_directory(), &place.data)?;
        if let Some(source) = self.needs.source {
            copy_tree(source, &place.source)?;
        }
        let programs = place.project.join("bin");
        fs::create_dir_all(&programs)?;
        // One program under two names, and the package of the server would start it.
        symlink("/usr/bin/redis-check-rdb", programs.join("redis-server"))?;
        // Only its own: tests of the other workers may be running by now.
        self.give(&own)?;
        Ok(place)
    }

    fn give(&self, path: &Path) -> Result<()> {
        let Some(user) = self.needs.user else { return Ok(()) };
        let mut chown = Command::new("chown");
        chown.arg("-R").arg("-h").arg(format!("{}:{}", user.uid, user.gid)).arg(path);
        tree::succeed(&mut chown)
    }

    /// Empties the directory to work in.
    pub(crate) fn clear(&self, place: &WorkerDirectory) -> Result<()> {
        remove(&place.work)?;
        remove(&place.records)?;
        for directory in [&place.work, &place.work.join("t")] {
            fs::create_dir(directory).with_context(|| directory.display().to_string())?;
            if let Some(user) = self.needs.user {
                std::os::unix::fs::chown(directory, Some(user.uid), Some(user.gid))?;
            }
        }
        Ok(())
    }
}

/// Tests leave directories that forbid to be emptied.
fn remove(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    if path.is_file() {
        return fs::remove_file(path).with_context(|| path.display().to_string());
    }
    let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(path).output();
    tree::succeed(Command::new("rm").arg("-rf").arg(path))
}

/// Copies a tree with its modes and links; it belongs to the caller then.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    tree::succeed(
        copy.args(["-R", "--preserve=mode,links", "--no-target-directory"]).arg(from).arg(to),
    )
}
