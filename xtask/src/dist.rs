//! `cargo xtask dist`: the static binary, and the man pages it generates of itself. Those are committed, so that a
//! package needs no build to have them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::elf;
use crate::tree::{self, CheckArguments};

/// What the binary generates, and where it is committed.
const GENERATED: [(&str, &str); 1] = [("man", "docs/man")];

/// The crate `getrandom` looks for the C library's function among the dynamic symbols, which a static binary
/// lacks, and then keeps /dev/urandom open under a number that our forked processes use for something else.
/// The command's crate refuses to be built statically without this.
const RANDOM_BY_SYSTEM_CALL: &str = "getrandom_backend=\"linux_getrandom\"";

/// Otherwise every start adjusts the addresses in its data, which is one page fault in ten.
/// SECURITY.md says what is given up: where our own code is, is no secret.
const FIXED_ADDRESSES: &str = "relocation-model=static";

/// Runs the task.
pub(crate) fn dist(arguments: CheckArguments) -> Result<()> {
    let binary = static_binary()?;
    for (kind, committed) in GENERATED {
        let fresh = tempfile::tempdir().context("cannot make a directory")?;
        tree::succeed(Command::new(&binary).args(["generate", kind]).arg(fresh.path()))?;
        let wanted = read_directory(fresh.path())?;
        let committed = tree::root().join(committed);
        for (name, text) in &wanted {
            tree::write_or_check(&committed.join(name), text, arguments)?;
        }
        for name in read_directory(&committed)?.keys().filter(|name| !wanted.contains_key(*name)) {
            let stale = committed.join(name);
            if arguments.check {
                bail!("{} is generated no more: delete it", stale.display());
            }
            fs::remove_file(&stale).with_context(|| stale.display().to_string())?;
        }
    }
    println!("{} ({} KiB, static)", binary.display(), fs::metadata(&binary)?.len() / 1024);
    Ok(())
}

/// Builds the binary that ships and makes sure that it needs no library of the host.
pub(crate) fn static_binary() -> Result<PathBuf> {
    println!("building the static binary");
    let built = build_static(&[])?;
    let directory = tree::root().join("target/dist");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let binary = directory.join("sandbox");
    // Renamed into place: tests that run beside this may run the one of before, or have a link to it.
    let new = tempfile::Builder::new().prefix("sandbox-").tempfile_in(&directory)?;
    fs::copy(&built, new.path()).with_context(|| new.path().display().to_string())?;
    new.persist(&binary).with_context(|| binary.display().to_string())?;
    Ok(binary)
}

/// Where cargo left a static build with these features; the next one replaces it.
pub(crate) fn build_static(features: &[&str]) -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // With a target named, the flags apply to the binary but not to build scripts and macros.
    let rustflags =
        format!("-C target-feature=+crt-static -C {FIXED_ADDRESSES} --cfg {RANDOM_BY_SYSTEM_CALL}");
    let mut cargo = tree::cargo();
    cargo
        .env("RUSTFLAGS", rustflags)
        .args(["build", "--profile", "dist", "--package", "palisade", "--bin", "sandbox"])
        .args(["--target", &target, "--features", &features.join(",")]);
    tree::succeed(&mut cargo)?;
    let targets = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| tree::root().join("target"), |directory| tree::root().join(directory));
    let built = targets.join(format!("{target}/dist/sandbox"));
    let image = fs::read(&built).with_context(|| built.display().to_string())?;
    elf::check_static(&image).with_context(|| built.display().to_string())?;
    Ok(built)
}

fn read_directory(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    if !directory.is_dir() {
        return Ok(files);
    }
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        files.insert(name, text);
    }
    Ok(files)
}
