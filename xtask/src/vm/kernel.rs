//! Kernels as Debian packages them: found by name, downloaded, unpacked below `target/vm`.
//! Never installed: this machine goes on booting what it booted before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{setup, tree};

/// What the first stage of booting needs: disks, the port for results, and randomness.
const FIRST_MODULES: [&str; 4] = ["virtio_pci", "virtio_blk", "virtio_console", "virtio-rng"];
const MODULE_ENDINGS: [&str; 3] = ["", ".xz", ".zst"];

/// An unpacked kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// What `uname -r` will say.
    pub(crate) release: String,
    pub(crate) image: PathBuf,
    /// `lib/modules` of the package, with its dependencies listed.
    pub(crate) modules: PathBuf,
}

/// The kernel of this name: `cloud`, `generic`, a version such as `6.12`, or a package.
pub(crate) fn fetch(name: &str, directory: &Path, work: &Path) -> Result<Kernel> {
    let unpacked = match obtain(name, directory, work) {
        // A fresh machine knows no package yet; and an archive drops a kernel when the next one
        // is there, which older lists do not tell.
        Err(error) if setup::am_root() => {
            println!("{error:#}; updating apt's lists");
            tree::succeed(Command::new("apt-get").args(["update", "-q"]).stdout(Stdio::null()))?;
            obtain(name, directory, work)?
        }
        obtained => obtained?,
    };
    let modules = unpacked.join("lib/modules");
    let release = only_entry(&modules)?;
    let image = unpacked.join("boot").join(format!("vmlinuz-{release}"));
    Ok(Kernel { release, image, modules })
}

/// The directory of the unpacked package.
fn obtain(name: &str, directory: &Path, work: &Path) -> Result<PathBuf> {
    let package = resolve(name)?;
    let unpacked = directory.join(&package);
    if !unpacked.is_dir() {
        println!("downloading {package}");
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        unpack(&package, work, &unpacked)?;
    }
    Ok(unpacked)
}

/// The names of packages that may be meant.
fn candidates(name: &str) -> Vec<String> {
    match name {
        "cloud" => vec!["linux-image-cloud-amd64".to_owned()],
        "generic" => vec!["linux-image-amd64".to_owned()],
        package if package.starts_with("linux-image-") => vec![package.to_owned()],
        version => ["cloud-amd64", "amd64"]
            .map(|flavour| format!("linux-image-{version}-{flavour}"))
            .to_vec(),
    }
}

/// The package that holds the kernel itself; most names are of packages that only point at it.
fn resolve(name: &str) -> Result<String> {
    let names = candidates(name);
    names.iter().find_map(|package| pointed_at(package)).with_context(|| {
        format!(
            "apt knows none of {}; run `apt-get update`, or choose from `apt-cache search linux-image`",
            names.join(", ")
        )
    })
}

fn pointed_at(package: &str) -> Option<String> {
    let output = Command::new("apt-cache")
        .args(["depends", "--important", package])
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success() && !output.stdout.is_empty())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kernel = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|dependency| dependency.starts_with("linux-image-"));
    Some(kernel.unwrap_or(package).to_owned())
}

fn unpack(package: &str, work: &Path, unpacked: &Path) -> Result<()> {
    // Renamed when whole, so that an interrupted download is never taken for a kernel.
    let work = tempfile::tempdir_in(work).context("cannot make a directory")?;
    let mut download = Command::new("apt-get");
    // Apt's own user may not be able to write here, which it would warn of.
    download.args(["download", "-q", "-o", "APT::Sandbox::User=root", package]);
    tree::succeed(download.current_dir(work.path()).stdout(Stdio::null()))
        .with_context(|| format!("downloading {package}"))?;
    let archive = work.path().join(only_entry(work.path())?);
    let tree_directory = work.path().join("tree");
    tree::succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&tree_directory))?;
    // Packages from Debian 13 on keep modules below /usr.
    let elsewhere = tree_directory.join("usr/lib/modules");
    if elsewhere.is_dir() {
        fs::create_dir_all(tree_directory.join("lib"))?;
        fs::rename(&elsewhere, tree_directory.join("lib/modules"))?;
    }
    let release = only_entry(&tree_directory.join("lib/modules"))?;
    let mut depmod = Command::new("busybox");
    tree::succeed(depmod.args(["depmod", "-b"]).arg(&tree_directory).arg(&release))?;
    fs::rename(&tree_directory, unpacked).with_context(|| unpacked.display().to_string())
}

fn only_entry(directory: &Path) -> Result<String> {
    let mut entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    match (entries.next().transpose()?, entries.next()) {
        (Some(entry), None) => Ok(entry.file_name().to_string_lossy().into_owned()),
        _ => bail!("{} does not hold exactly one thing", directory.display()),
    }
}

impl Kernel {
    /// The modules of the first stage and what they need, relative to the directory of modules.
    pub(crate) fn first_modules(&self) -> Result<Vec<String>> {
        let list = self.modules.join(&self.release).join("modules.dep");
        let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        Ok(with_dependencies(&text, &FIRST_MODULES))
    }
}

/// Files by `modules.dep(5)`: those of these modules and of all they depend on. A module that is
/// not there is built in.
fn with_dependencies(modules_dep: &str, names: &[&str]) -> Vec<String> {
    let is_wanted = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        names
            .iter()
            .any(|name| MODULE_ENDINGS.iter().any(|ending| file == format!("{name}.ko{ending}")))
    };
    let mut found: Vec<String> = modules_dep
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(module, _)| is_wanted(module))
        .flat_map(|(module, needed)| std::iter::once(module).chain(needed.split_whitespace()))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::{candidates, with_dependencies};

    #[test]
    fn a_version_is_looked_for_in_both_flavours() {
        assert_eq!(candidates("6.12"), ["linux-image-6.12-cloud-amd64", "linux-image-6.12-amd64"]);
        assert_eq!(candidates("cloud"), ["linux-image-cloud-amd64"]);
        assert_eq!(candidates("linux-image-rt-amd64"), ["linux-image-rt-amd64"]);
    }

    #[test]
    fn a_module_brings_what_it_depends_on_once() {
        let list = "k/a.ko.xz: k/b.ko.xz k/c.ko.xz\nk/b.ko.xz: k/c.ko.xz\nk/d.ko.xz:\n";
        assert_eq!(with_dependencies(list, &["a", "b"]), ["k/a.ko.xz", "k/b.ko.xz", "k/c.ko.xz"]);
        assert!(with_dependencies(list, &["built-in"]).is_empty());
    }
}
