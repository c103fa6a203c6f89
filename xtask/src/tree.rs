//! The source tree, the place for results, and running the tools that act on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

/// For the tasks whose output is committed.
#[derive(Args, Clone, Copy)]
pub(crate) struct CheckArguments {
    /// Change nothing, and fail if the committed files are not what would be written.
    #[arg(long)]
    pub(crate) check: bool,
}

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A file in the directory where tasks leave what other tasks read.
pub(crate) fn result_file(name: &str) -> Result<PathBuf> {
    let directory = root().join("target/palisade");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    Ok(directory.join(name))
}

/// Cargo, in the root of the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs to the end; anything but success is an error that shows the command.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs to the end and returns standard output as text.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&output_bytes_of(command)?).into_owned())
}

/// Runs to the end and returns standard output.
pub(crate) fn output_bytes_of(command: &mut Command) -> Result<Vec<u8>> {
    let shown = show(command);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    Ok(output.stdout)
}

pub(crate) fn show(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Writes the file, or in a check fails unless it already says this.
pub(crate) fn write_or_check(path: &Path, text: &str, arguments: CheckArguments) -> Result<()> {
    let shown = path.strip_prefix(root()).unwrap_or(path).display();
    if !arguments.check {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        return fs::write(path, text).with_context(|| format!("cannot write {shown}"));
    }
    let committed = fs::read_to_string(path)
        .with_context(|| format!("cannot read {shown}; write it with the same task, no --check"))?;
    if committed == text {
        return Ok(());
    }
    let difference = committed
        .lines()
        .zip(text.lines())
        .position(|(old, new)| old != new)
        .unwrap_or_else(|| committed.lines().count().min(text.lines().count()));
    let line = |content: &str| content.lines().nth(difference).unwrap_or("(end)").to_owned();
    bail!(
        "{shown} is not current: line {} says\n  {}\nand should say\n  {}\nrun the same task without --check and commit",
        difference + 1,
        line(&committed),
        line(text)
    );
}

/// All Rust files of the project, relative to its root, in order.
pub(crate) fn rust_files() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for part in ["crates", "tests", "xtask", "benches", "fuzz"] {
        let directory = root().join(part);
        if directory.is_dir() {
            collect(&directory, &mut found)?;
        }
    }
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.strip_prefix(root()).unwrap_or(&path).to_owned());
        }
    }
    Ok(())
}
