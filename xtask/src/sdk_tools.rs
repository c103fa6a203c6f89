//! What the tests of the clients in `sdk` use: packages of PyPI and npm, pinned by the lists in `tests/sdk-tools`, in a directory of their
//! own that every user can read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::setup::am_root;
use crate::tree;

/// `palisade_testkit::sdk_tools` looks for them there.
const DIRECTORY: &str = "/usr/local/lib/palisade-sdk-tools";
/// What is installed: the lists, one after the other.
const STAMP: &str = "installed";
const LISTS: [&str; 2] = ["python.txt", "package.json"];

/// Installs them, unless exactly these are there.
pub(crate) fn install() -> Result<()> {
    let lists = tree::root().join("tests/sdk-tools");
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
    eprintln!("installing tools for the tests of the clients in {DIRECTORY}");
    if directory.exists() {
        fs::remove_dir_all(directory).context(DIRECTORY)?;
    }
    let (python, node) = (directory.join("python"), directory.join("node"));
    fs::create_dir_all(&node).context(DIRECTORY)?;
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-input", "--target"])
        .arg(&python)
        .arg("--requirement")
        .arg(lists.join("python.txt"));
    tree::succeed(pip.env("PIP_ROOT_USER_ACTION", "ignore").stdout(Stdio::null()))?;
    fs::copy(lists.join("package.json"), node.join("package.json")).context("package.json")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]);
    npm.args(["--ignore-scripts"]).current_dir(&node);
    tree::succeed(npm.stdout(Stdio::null()))?;
    // Last: what was interrupted is done again.
    fs::write(directory.join(STAMP), wanted).context(DIRECTORY)
}
