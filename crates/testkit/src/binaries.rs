//! Where the programs under test are. `cargo xtask test` names them in the environment; under
//! a plain `cargo test` they lie one directory above the test executable.
//! Must never fall back to a `sandbox` found in `PATH`: that one was not built from this tree.

use std::path::PathBuf;
use std::process::Command;

use crate::must;

/// The build that ships; what is typed into a terminal needs its path.
#[must_use]
pub fn sandbox() -> PathBuf {
    locate("PALISADE_BIN", "sandbox")
}

/// The build whose layers can be switched off (cargo feature `layers-off`).
pub(crate) fn sandbox_with_layers_off() -> PathBuf {
    locate("PALISADE_BIN_LAYERS_OFF", "sandbox-layers-off")
}

/// The program that attempts attacks and says how they went.
pub(crate) fn probe() -> PathBuf {
    locate("PALISADE_PROBE", "palisade-probe")
}

/// The program that runs a command as a further one of a sandbox.
#[must_use]
pub fn client() -> PathBuf {
    locate("PALISADE_CLIENT", "palisade-client")
}

/// An example of the Rust API.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    match std::env::var_os("PALISADE_EXAMPLES") {
        Some(directory) => PathBuf::from(directory).join(name),
        None => locate("PALISADE_EXAMPLE", &format!("examples/{name}")),
    }
}

/// The program that makes a small internet in a namespace.
pub(crate) fn netlab() -> PathBuf {
    locate("PALISADE_NETLAB", "palisade-netlab")
}

/// A Rust toolchain (`bin/cargo`, `bin/rustc`, `lib`) that the user of the tests can read.
#[must_use]
pub fn rust_toolchain() -> PathBuf {
    if let Some(named) = std::env::var_os("PALISADE_TOOLCHAIN") {
        return PathBuf::from(named);
    }
    let printed = must(Command::new("rustc").args(["--print", "sysroot"]).output(), "rustc");
    PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim())
}

fn locate(variable: &str, file_name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return PathBuf::from(named);
    }
    let test_executable = must(std::env::current_exe(), "cannot find the test executable");
    let beside = test_executable
        .ancestors()
        .nth(2)
        .map(|profile_directory| profile_directory.join(file_name))
        .filter(|path| path.is_file());
    match beside {
        Some(path) => path,
        None => panic!(
            "{variable} is not set and no `{file_name}` was built beside the tests; \
             run `cargo xtask test`, which builds and names every program the tests need"
        ),
    }
}
