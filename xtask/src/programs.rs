//! Builds what is tested: the shipped program, the one whose layers come off, the probe, the lab,
//! and the test executables. The two builds of `sandbox` must never be mistaken for each other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::{dist, tree};

/// Everything a test run needs, built.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) sandbox: PathBuf,
    pub(crate) sandbox_layers_off: PathBuf,
    pub(crate) probe: PathBuf,
    pub(crate) netlab: PathBuf,
    pub(crate) client: PathBuf,
    /// Of the Rust API, by their names.
    pub(crate) examples: Vec<PathBuf>,
    pub(crate) tests: Vec<TestExecutable>,
}

/// One executable of libtest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestExecutable {
    /// The package's directory, relative to the root: `crates/cli`.
    pub(crate) package: String,
    /// `functional`, `attacks`, or the crate's own name for its unit tests.
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

/// Which build of `sandbox` is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Quick to make.
    Debug,
    /// The static binary that people get.
    Shipped,
}

/// Builds all of it.
pub(crate) fn build() -> Result<Programs> {
    build_for(None, Build::Debug)
}

/// Builds all of it, or of the tests only those of one target, such as `attacks`.
pub(crate) fn build_for(target: Option<&str>, build: Build) -> Result<Programs> {
    eprintln!("building sandbox with layers that can be switched off");
    let layers_off = build_binary("sandbox", &["--features", "palisade/layers-off"])?;
    let sandbox_layers_off = keep(&layers_off, "sandbox-layers-off")?;
    eprintln!("building sandbox with its layers fixed, the probe and the tests");
    let sandbox = match build {
        Build::Debug => keep(&build_binary("sandbox", &[])?, "sandbox")?,
        Build::Shipped => dist::static_binary()?,
    };
    let probe = keep(&build_binary("palisade-probe", &[])?, "palisade-probe")?;
    let netlab = keep(&build_binary("palisade-netlab", &[])?, "palisade-netlab")?;
    let client = keep(&build_binary("palisade-client", &[])?, "palisade-client")?;
    let examples = build_examples()?;
    let tests = build_tests(target)?;
    Ok(Programs { sandbox, sandbox_layers_off, probe, netlab, client, examples, tests })
}

/// Builds one binary and returns where cargo left it.
///
/// With `--workspace`, so that the features of dependencies are the same for every build here
/// and each dependency is compiled once.
pub(crate) fn build_binary(name: &str, more: &[&str]) -> Result<PathBuf> {
    let artifacts = artifacts(&[&["build", "--workspace", "--bin", name], more].concat())?;
    artifacts
        .into_iter()
        .find(|artifact| artifact.target.name == name)
        .and_then(|artifact| artifact.executable)
        .with_context(|| format!("cargo built no binary `{name}`"))
}

/// Copies a binary out of cargo's way: the next build would replace it.
fn keep(built: &Path, name: &str) -> Result<PathBuf> {
    let kept = tree::result_file(name)?;
    std::fs::copy(built, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(kept)
}

/// The examples of the Rust API, which tests run.
fn build_examples() -> Result<Vec<PathBuf>> {
    let names = ["agent_tools", "answer_questions", "every_call", "review_and_apply"];
    let mut arguments = vec!["build", "--workspace"];
    arguments.extend(names.iter().flat_map(|name| ["--example", name]));
    let artifacts = artifacts(&arguments)?;
    let built = artifacts.into_iter().filter(|it| names.contains(&it.target.name.as_str()));
    let examples: Vec<PathBuf> = built.filter_map(|artifact| artifact.executable).collect();
    if examples.len() != names.len() {
        bail!("cargo built {} of {} examples", examples.len(), names.len());
    }
    Ok(examples)
}

fn build_tests(target: Option<&str>) -> Result<Vec<TestExecutable>> {
    let mut arguments = vec!["test", "--workspace", "--no-run"];
    arguments.extend(target.iter().flat_map(|target| ["--test", target]));
    let mut tests: Vec<TestExecutable> = artifacts(&arguments)?
        .into_iter()
        .filter(|artifact| artifact.profile.test)
        .filter_map(|artifact| {
            let directory = artifact.manifest_path.parent()?;
            Some(TestExecutable {
                package: directory.strip_prefix(tree::root()).ok()?.to_string_lossy().into_owned(),
                target: artifact.target.name,
                path: artifact.executable?,
            })
        })
        .collect();
    if tests.is_empty() {
        bail!("cargo built no tests");
    }
    tests.sort_by(|a, b| (&a.package, &a.target, &a.path).cmp(&(&b.package, &b.target, &b.path)));
    Ok(tests)
}

#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Runs cargo and reads its messages about what it made.
fn artifacts(arguments: &[&str]) -> Result<Vec<Artifact>> {
    let messages = tree::output_of(
        tree::cargo().args(arguments).arg("--message-format=json-render-diagnostics"),
    )?;
    messages
        .lines()
        .filter(|line| line.contains(r#""reason":"compiler-artifact""#))
        .map(|line| serde_json::from_str(line).with_context(|| format!("cargo said {line}")))
        .collect()
}
