//! A directory the ordinary test user can read, with copies of everything built: the checkout
//! may lie where only its owner can look. Removed with its content when dropped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::programs::{Programs, TestExecutable};
use crate::setup::TestUser;
use crate::tree;

const EXAMPLES: &str = "examples";

/// The copies.
#[derive(Debug)]
pub(crate) struct StagedFiles {
    directory: PathBuf,
    /// Removes the directory in the end, if it was made for this.
    _own: Option<TempDir>,
    pub(crate) sandbox: PathBuf,
    pub(crate) sandbox_layers_off: PathBuf,
    pub(crate) probe: PathBuf,
    pub(crate) netlab: PathBuf,
    pub(crate) client: PathBuf,
    pub(crate) tests: Vec<TestExecutable>,
    pub(crate) toolchain: PathBuf,
    /// The clients in other languages.
    pub(crate) sdk: PathBuf,
    /// The directory with the examples of the Rust API.
    pub(crate) examples: PathBuf,
}

impl StagedFiles {
    /// Copies the programs, the tests and, where it is out of the user's reach, the toolchain.
    pub(crate) fn new(programs: &Programs) -> Result<Self> {
        let directory = public_directory()?;
        let place = |built: &Path| link_or_copy_into(built, directory.path());
        let tests = programs
            .tests
            .iter()
            .map(|test| Ok(TestExecutable { path: place(&test.path)?, ..test.clone() }))
            .collect::<Result<Vec<_>>>()?;
        let sdk = directory.path().join("sdk");
        link_tree(&tree::root().join("sdk"), &sdk)?;
        Ok(Self {
            sdk,
            examples: examples_in(directory.path(), programs)?,
            sandbox: place(&programs.sandbox)?,
            sandbox_layers_off: place(&programs.sandbox_layers_off)?,
            probe: place(&programs.probe)?,
            netlab: place(&programs.netlab)?,
            client: place(&programs.client)?,
            toolchain: reachable_toolchain(directory.path())?,
            tests,
            directory: directory.path().to_owned(),
            _own: Some(directory),
        })
    }

    /// A directory that already holds everything but a toolchain, with tests by their file's name.
    pub(crate) fn existing(directory: PathBuf, tests: &[TestExecutable]) -> Self {
        let place = |test: &TestExecutable| directory.join(&test.path);
        Self {
            sandbox: directory.join("sandbox"),
            sandbox_layers_off: directory.join("sandbox-layers-off"),
            probe: directory.join("palisade-probe"),
            netlab: directory.join("palisade-netlab"),
            client: directory.join("palisade-client"),
            toolchain: directory.join("toolchain"),
            sdk: directory.join("sdk"),
            examples: directory.join(EXAMPLES),
            tests: tests
                .iter()
                .map(|test| TestExecutable { path: place(test), ..test.clone() })
                .collect(),
            directory,
            _own: None,
        }
    }

    /// Where the proofs of one run are collected, in a file its user can append to.
    pub(crate) fn proofs(&self, owner: Option<&TestUser>) -> Result<PathBuf> {
        let name = owner.map_or("proofs", |user| &user.name);
        let path = self.directory.join(format!("{name}.jsonl"));
        fs::write(&path, "").with_context(|| path.display().to_string())?;
        give_to(&path, owner)?;
        Ok(path)
    }
}

/// Puts the examples of the Rust API into a directory of their own in this one.
pub(crate) fn examples_in(stage: &Path, programs: &Programs) -> Result<PathBuf> {
    let examples = stage.join(EXAMPLES);
    fs::create_dir(&examples).with_context(|| examples.display().to_string())?;
    for example in &programs.examples {
        link_or_copy_into(example, &examples)?;
    }
    Ok(examples)
}

/// A directory everyone may look into, removed when dropped.
pub(crate) fn public_directory() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("palisade-stage-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in("/var/tmp")
        .context("cannot make a directory in /var/tmp")
}

/// A private directory for the files of tests, in the home of the user who runs them: that is
/// where people keep projects, while `/tmp` and `/var/tmp` are private inside a sandbox.
pub(crate) fn test_directory(home: &Path, owner: Option<&TestUser>) -> Result<TempDir> {
    let directory = tempfile::Builder::new()
        .prefix("palisade-test-")
        .tempdir_in(home)
        .with_context(|| format!("cannot make a directory in {}", home.display()))?;
    give_to(directory.path(), owner)?;
    Ok(directory)
}

fn give_to(path: &Path, owner: Option<&TestUser>) -> Result<()> {
    match owner {
        Some(user) => chown(path, Some(user.uid), Some(user.gid))
            .with_context(|| format!("cannot give {} to {}", path.display(), user.name)),
        None => Ok(()),
    }
}

/// A hard link where the file system allows one: test executables are large and many.
pub(crate) fn link_or_copy_into(file: &Path, directory: &Path) -> Result<PathBuf> {
    let name = file.file_name().with_context(|| file.display().to_string())?;
    let placed = directory.join(name);
    if fs::hard_link(file, &placed).is_err() {
        fs::copy(file, &placed).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(placed)
}

/// The Rust toolchain, for building a crate inside.
pub(crate) fn reachable_toolchain(stage: &Path) -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    let printed = tree::output_of(rustc.args(["--print", "sysroot"]).current_dir(tree::root()))?;
    let sysroot = PathBuf::from(printed.trim());
    let everyone_may_pass = sysroot.ancestors().all(|directory| {
        fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & 0o005 == 0o005)
    });
    if everyone_may_pass {
        return Ok(sysroot);
    }
    let copy = stage.join("toolchain");
    for part in ["bin", "lib"] {
        link_tree(&sysroot.join(part), &copy.join(part))?;
    }
    Ok(copy)
}

fn link_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            link_tree(&path, &to.join(name))?;
        } else {
            link_or_copy_into(&path, to)?;
        }
    }
    Ok(())
}
