//! Source packages of Debian, downloaded and unpacked below `target/compat`. The lists of sources are this task's own:
//! nothing in /etc/apt and none of apt's lists is changed. The archive is the one this machine is set up to use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::suites::Source;
use crate::packages::{self, User};
use crate::{setup, tree};

const APT: &str = "/etc/apt";

/// The root of the unpacked source package.
pub(crate) fn source(source: &Source) -> Result<PathBuf> {
    let directory = work_directory()?;
    let apt = Apt::new(&directory)?;
    let version = match apt.version(&source.package) {
        Ok(version) => version,
        Err(_) => {
            apt.update()?;
            apt.version(&source.package)?
        }
    };
    let unpacked = directory.join(format!("{}-{version}-{}", source.package, recipe(source)));
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    eprintln!("downloading the source package {} {version}", source.package);
    let work = tempfile::tempdir_in(&directory).context("cannot make a directory")?;
    let downloaded = apt.download(&source.package, &version, work.path()).or_else(|_| {
        // An archive drops a version when the next one is there, which older lists do not tell.
        apt.update()?;
        apt.download(&source.package, &version, work.path())
    })?;
    let tree_directory = work.path().join("tree");
    fs::create_dir(&tree_directory)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&tree_directory).args(["--strip-components=1", "--no-same-owner"]);
    tar.args(["--wildcards", "-xf"]).arg(&downloaded);
    tar.args(source.parts.iter().map(|part| format!("*/{part}")));
    tree::succeed(&mut tar)?;
    if let Some(script) = &source.prepare {
        tree::succeed(Command::new("sh").args(["-euc", script]).current_dir(&tree_directory))?;
    }
    // Renamed when whole, so that an interrupted download is never taken for one.
    fs::rename(&tree_directory, &unpacked).with_context(|| unpacked.display().to_string())?;
    Ok(unpacked)
}

/// Packages that the workloads run from where they are unpacked, because installing them would start a service.
pub(crate) fn unpacked() -> Result<Vec<PathBuf>> {
    let directory = work_directory()?;
    let mut found = Vec::new();
    for package in packages::needed_by(&[User::CompatUnpacked]) {
        if package.is_present() {
            continue;
        }
        let unpacked = directory.join(package.name);
        if !unpacked.is_dir() {
            eprintln!("unpacking {}", package.name);
            unpack(package.name, &unpacked, &directory)?;
        }
        found.push(unpacked);
    }
    Ok(found)
}

/// The package that a name such as `postgresql` points at, and the libraries it needs, installed: those start nothing.
fn unpack(name: &str, unpacked: &Path, directory: &Path) -> Result<()> {
    let pointed = depends(name)?.into_iter().find(|needed| needed.starts_with(&format!("{name}-")));
    let package = pointed.unwrap_or_else(|| name.to_owned());
    let libraries: Vec<String> =
        depends(&package)?.into_iter().filter(|needed| needed.starts_with("lib")).collect();
    setup::install(&libraries.iter().map(String::as_str).collect::<Vec<_>>())?;
    let work = tempfile::tempdir_in(directory).context("cannot make a directory")?;
    let mut download = Command::new("apt-get");
    download.args(["download", "-q", "-o", "APT::Sandbox::User=root", &package]);
    tree::succeed(download.current_dir(work.path()).stdout(Stdio::null()))?;
    let archive = only_file(work.path(), ".deb")?;
    let tree_directory = work.path().join("tree");
    tree::succeed(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&tree_directory))?;
    fs::rename(&tree_directory, unpacked).with_context(|| unpacked.display().to_string())
}

fn depends(package: &str) -> Result<Vec<String>> {
    let text =
        tree::output_of(Command::new("apt-cache").args(["depends", "--important", package]))?;
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(named.filter(|name| !name.starts_with('<')).map(str::to_owned).collect())
}

fn work_directory() -> Result<PathBuf> {
    let directory = tree::root().join("target/compat");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    Ok(directory)
}

/// Changes when the rest of the definition would unpack something else.
fn recipe(source: &Source) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (&source.parts, &source.prepare).hash(&mut hasher);
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

/// apt with lists of sources of its own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(directory: &Path) -> Result<Self> {
        let apt = directory.join("apt");
        for part in ["lists/partial", "cache/archives/partial", "sources"] {
            fs::create_dir_all(apt.join(part)).with_context(|| apt.display().to_string())?;
        }
        write_sources(&apt.join("sources"))?;
        let option = |key: &str, value: &str| format!("{key}={}/{value}", apt.display());
        let options = vec![
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            option("Dir::Etc::sourceparts", "sources"),
            option("Dir::State::Lists", "lists"),
            option("Dir::Cache", "cache"),
            // Apt's own user may not be able to write here, which it would warn of.
            "APT::Sandbox::User=root".to_owned(),
        ];
        Ok(Self { options })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(self.options.iter().flat_map(|option| ["-o", option]));
        command
    }

    /// An archive without sources, as other vendors have them, fails this and does no harm: what is looked for is then
    /// found elsewhere, or said to be missing.
    fn update(&self) -> Result<()> {
        let mut update = self.command("apt-get");
        update.args(["update", "-q"]).stdout(Stdio::null());
        update.status().map(drop).context("cannot start apt-get")
    }

    /// The newest version the lists have.
    fn version(&self, package: &str) -> Result<String> {
        let mut show = self.command("apt-cache");
        show.args(["showsrc", "--only-source", package]).stderr(Stdio::null());
        let output = show.output().context("apt-cache")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut versions: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("Version: ")).collect();
        versions.sort_unstable_by(|one, other| {
            let is_older = Command::new("dpkg")
                .args(["--compare-versions", one, "lt", other])
                .status()
                .is_ok_and(|status| status.success());
            if is_older { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        let newest = versions.last().with_context(|| {
            format!("apt knows no source package {package}: this machine's archive has no sources")
        })?;
        Ok((*newest).to_owned())
    }

    /// The archive of the original source, without the packaging.
    fn download(&self, package: &str, version: &str, into: &Path) -> Result<PathBuf> {
        let mut get = self.command("apt-get");
        get.args(["source", "-q", "--download-only", "--tar-only"]);
        get.arg(format!("{package}={version}")).current_dir(into).stdout(Stdio::null());
        tree::succeed(&mut get).with_context(|| format!("downloading the source of {package}"))?;
        only_file(into, ".orig.tar")
    }
}

/// The one file with this in its name.
fn only_file(directory: &Path, part: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.is_file() && path.to_string_lossy().contains(part));
    match found.as_slice() {
        [only] => Ok(only.clone()),
        _ => bail!("{} does not hold one file `{part}`", directory.display()),
    }
}

/// This machine's archives, asked for sources in place of packages.
fn write_sources(directory: &Path) -> Result<()> {
    let mut files = vec![PathBuf::from(APT).join("sources.list")];
    let parts = fs::read_dir(Path::new(APT).join("sources.list.d"));
    files.extend(parts.into_iter().flatten().flatten().map(|entry| entry.path()));
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let text = match file.extension().and_then(|ending| ending.to_str()) {
            Some("list") => of_lines(&text),
            Some("sources") => of_stanzas(&text),
            _ => continue,
        };
        let name = file.file_name().context("a file has a name")?;
        fs::write(directory.join(name), text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// sources.list(5), one line a source.
fn of_lines(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("deb "));
    lines.map(|rest| format!("deb-src {rest}\n")).collect()
}

/// sources.list(5) in deb822 form.
fn of_stanzas(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("Types:") { "Types: deb-src\n".to_owned() } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_lines, of_stanzas};

    #[test]
    fn a_machines_archives_are_asked_for_sources() {
        let lines = "# comment\ndeb [signed-by=/k] http://archive.example/debian stable main\ndeb-src x y z\n";
        assert_eq!(
            of_lines(lines),
            "deb-src [signed-by=/k] http://archive.example/debian stable main\n"
        );
        let stanza = "Types: deb deb-src\nURIs: http://archive.example/debian\nSuites: stable\n";
        assert_eq!(
            of_stanzas(stanza),
            "Types: deb-src\nURIs: http://archive.example/debian\nSuites: stable\n"
        );
    }
}
