//! `cargo xtask deny`: licences, sources, bans and advisories of the dependencies.
//! A database that cannot be fetched is said and passed over; anything it says is not.

use anyhow::{Context, Result, bail};

use crate::tree;

/// Runs the task, installing cargo-deny if the machine has none.
pub(crate) fn deny() -> Result<()> {
    let version = tree::cargo().args(["deny", "--version"]).output().context("cargo")?;
    if !version.status.success() {
        println!("installing cargo-deny, which takes a minute or two");
        // Unoptimized: it runs for seconds, and optimizing it takes minutes.
        let install = ["install", "--locked", "--quiet", "--debug", "cargo-deny"];
        tree::succeed(tree::cargo().args(install))?;
    }
    tree::succeed(tree::cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    let advisories =
        tree::cargo().args(["deny", "check", "advisories"]).output().context("cargo deny")?;
    let said = String::from_utf8_lossy(&advisories.stderr);
    if advisories.status.success() {
        return Ok(());
    }
    if said.contains("failed to fetch advisory database") {
        println!("notice: the advisory database cannot be reached from here; not checked");
        return Ok(());
    }
    eprint!("{said}");
    bail!("`cargo deny check advisories` ended with {}", advisories.status);
}
