//! Where `cargo xtask setup` installs packages that tests use as clients.

use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/usr/local/lib/palisade-tests";

fn existing(name: &str) -> Option<PathBuf> {
    Some(Path::new(DIRECTORY).join(name)).filter(|path| path.exists())
}

/// For `PYTHONPATH`. None: they are not installed, as in the emulated machine.
#[must_use]
pub fn python_packages() -> Option<PathBuf> {
    existing("python")
}

/// For `NODE_PATH`.
#[must_use]
pub fn node_packages() -> Option<PathBuf> {
    existing("node/node_modules")
}
