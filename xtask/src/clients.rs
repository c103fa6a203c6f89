//! Clients that tests run as programs of others: packages of PyPI and npm, pinned by the lists in `tests/clients`, in a directory
//! of their own that every user can read. Nothing else in the project installs one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::setup::am_root;
use crate::tree;

/// `palisade_testkit::clients` looks for them there.
const DIRECTORY: &str = "/usr/local/lib/palisade-tests";
/// What is installed: the lists, one after the other.
const STAMP: &str = "installed";
const LISTS: [&str; 3] = ["python.txt", "package.json", "package-lock.json"];

/// Installs them, unless exactly these are there.
pub(crate) fn install() -> Result<()> {
    let lists = tree::root().join("tests/clients");
    let mut wanted = String::new();
    for list in LISTS {
        let path = lists.join(list);
        wanted += &fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    }
    let directory = Path::new(DIRECTORY);
    if fs::read_to_string(directory.join(STAMP)).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if !am_root() {
        bail!(
            "the tests need packages of PyPI and npm in {DIRECTORY}; run `cargo xtask setup` as root once"
        );
    }
    eprintln!("installing clients for tests in {DIRECTORY}");
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| DIRECTORY.to_owned())?;
    }
    let (python, node) = (directory.join("python"), directory.join("node"));
    fs::create_dir_all(&node).with_context(|| DIRECTORY.to_owned())?;
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-input", "--target"])
        .arg(&python)
        .arg("--requirement")
        .arg(lists.join("python.txt"));
    tree::succeed(pip.env("PIP_ROOT_USER_ACTION", "ignore").stdout(Stdio::null()))?;
    for list in &LISTS[1..] {
        fs::copy(lists.join(list), node.join(list)).with_context(|| (*list).to_owned())?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&node);
    tree::succeed(npm.stdout(Stdio::null()))?;
    // Last: what was interrupted is done again.
    fs::write(directory.join(STAMP), wanted).with_context(|| DIRECTORY.to_owned())
}
