//! The clients in other languages, and what their tests use. `cargo xtask setup` installs that.

use std::path::{Path, PathBuf};

const TOOLS: &str = "/usr/local/lib/palisade-sdk-tools";

/// The directory `sdk`, where every user of the tests can read it.
#[must_use]
pub fn sdk_sources() -> PathBuf {
    let staged = std::env::var_os("PALISADE_SDK_SOURCES").map(PathBuf::from);
    staged.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk"))
}

/// Packages for Python, pinned by `tests/sdk-tools/python.txt`.
#[must_use]
pub fn python_tools() -> PathBuf {
    installed("python")
}

/// Packages for Node.js, pinned by `tests/sdk-tools/package.json`.
#[must_use]
pub fn node_tools() -> PathBuf {
    installed("node/node_modules")
}

fn installed(what: &str) -> PathBuf {
    let directory = Path::new(TOOLS).join(what);
    assert!(
        directory.is_dir(),
        "{} is missing: run `cargo xtask setup` as root once",
        directory.display()
    );
    directory
}
