//! Packages of PyPI and npm that `cargo xtask setup` installs for tests, each set in a directory of its own, and the clients of `sdk`.

use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/usr/local/lib/palisade-tests";

/// For `PYTHONPATH`: what `tests/packages/SET/python.txt` lists.
#[must_use]
pub fn python_packages(set: &str) -> PathBuf {
    installed(set, "python")
}

/// For `NODE_PATH`: what `tests/packages/SET/package.json` lists.
#[must_use]
pub fn node_packages(set: &str) -> PathBuf {
    installed(set, "node/node_modules")
}

/// The directory `sdk`, where every user of the tests can read it.
#[must_use]
pub fn sdk_sources() -> PathBuf {
    let staged = std::env::var_os("PALISADE_SDK_SOURCES").map(PathBuf::from);
    staged.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk"))
}

fn installed(set: &str, what: &str) -> PathBuf {
    let directory = Path::new(DIRECTORY).join(set).join(what);
    assert!(
        directory.is_dir(),
        "{} is missing: run `cargo xtask setup` as root once",
        directory.display()
    );
    directory
}
