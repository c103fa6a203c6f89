//! Programs and clients of others that tests use: packages of PyPI and npm, pinned by the lists in `tests/packages`. Each set has a directory of its own
//! that every user can read. Nothing else in the project installs one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::setup::am_root;
use crate::tree;

/// `palisade_testkit::packages` looks for them there.
const DIRECTORY: &str = "/usr/local/lib/palisade-tests";
/// In each set, what is installed: its lists, one after the other.
const STAMP: &str = "installed";
const PYTHON: &str = "python.txt";
const NODE: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs every set, unless exactly that is there.
pub(crate) fn install() -> Result<()> {
    let lists = tree::root().join("tests/packages");
    let mut sets = fs::read_dir(&lists)
        .and_then(|sets| sets.map(|set| Ok(set?.path())).collect::<std::io::Result<Vec<_>>>())
        .with_context(|| lists.display().to_string())?;
    sets.sort();
    for set in sets {
        let name = set.file_name().context("a set has a name")?;
        install_set(&set, &Path::new(DIRECTORY).join(name))?;
    }
    Ok(())
}

fn install_set(lists: &Path, directory: &Path) -> Result<()> {
    let mut wanted = String::new();
    for list in [PYTHON].iter().chain(&NODE) {
        // A set has packages for one of the two, or for both.
        wanted += &fs::read_to_string(lists.join(list)).unwrap_or_default();
    }
    if fs::read_to_string(directory.join(STAMP)).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let shown = directory.display();
    if !am_root() {
        bail!("the tests need packages in {shown}; run `cargo xtask setup` as root once");
    }
    eprintln!("installing packages for tests in {shown}");
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| shown.to_string())?;
    }
    fs::create_dir_all(directory).with_context(|| shown.to_string())?;
    if lists.join(PYTHON).exists() {
        let mut pip = Command::new("/usr/bin/python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-input", "--target"])
            .arg(directory.join("python"))
            .arg("--requirement")
            .arg(lists.join(PYTHON));
        tree::succeed(pip.env("PIP_ROOT_USER_ACTION", "ignore").stdout(Stdio::null()))?;
    }
    if lists.join(NODE[0]).exists() {
        let node = directory.join("node");
        fs::create_dir(&node).with_context(|| shown.to_string())?;
        for list in NODE {
            fs::copy(lists.join(list), node.join(list)).with_context(|| list.to_owned())?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]);
        tree::succeed(npm.current_dir(&node).stdout(Stdio::null()))?;
    }
    // Last: what was interrupted is done again.
    fs::write(directory.join(STAMP), wanted).with_context(|| shown.to_string())
}
