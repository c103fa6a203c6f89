//! The programs of the machine: copies of this host's packages that the tests use, with all that
//! those depend on. Only files of packages go in; nothing of anybody's home or settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::image;
use crate::packages::{self, User};
use crate::{setup, tree};

/// What no program needs to run.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/bug/",
];
/// Directories whose links are made when packages are installed, and so are in no package's list.
const WITH_LINKS: [&str; 4] =
    ["/usr/bin", "/usr/sbin", "/etc/alternatives", "/usr/lib/x86_64-linux-gnu"];
/// What replaces parts of itself after it was installed, so that its package's list is not enough.
const WHOLE_TREES: [&str; 1] = ["/usr/lib/node_modules"];
/// What installing made, and programs need.
const MADE_FILES: [&str; 8] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/localtime",
    "/etc/profile",
    "/etc/hosts",
];
const EMPTY_DIRECTORIES: [&str; 12] = [
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "mnt",
    "opt",
    "srv",
    "home",
    "var/lib",
    "var/tmp",
    "usr/lib/modules",
];
/// What the machine runs beside the tests: a service manager of the user's.
const OF_THE_MACHINE: [&str; 2] = ["systemd", "dbus-user-session"];
/// Nobody can log in; a set-user-id program can tell that.
const SHADOW: &str = "root:*:20000:0:99999:7:::\npalisade-test:*:20000:0:99999:7:::\n";
/// What every host has, with nobody's secret in it.
const WRITTEN_FILES: [(&str, u32, &str); 4] = [
    ("etc/hostname", 0o644, "palisade-vm\n"),
    ("etc/shadow", 0o640, SHADOW),
    // Nobody is asked and nobody is trusted but those of the tests' own network, which puts its files here.
    ("etc/resolv.conf", 0o644, ""),
    ("etc/ssl/certs/ca-certificates.crt", 0o644, ""),
];
/// To be raised when the rest of this file puts something else into the image.
const RECIPE: u32 = 3;
/// Room for what the tests write.
const ROOM_MIB: u64 = 3072;
const USER_LINE: &str = "palisade-test:x:4242:4242:runs the tests:/home/palisade-test:/bin/bash\n";
const GROUP_LINE: &str = "palisade-test:x:4242:\n";

/// Makes the image, unless one of the same packages is there.
pub(crate) fn image(directory: &Path, work: &Path) -> Result<PathBuf> {
    let image = directory.join("userland.ext4");
    let list = directory.join("userland.packages");
    let of_the_tests = packages::needed_by(&[User::Tests]).map(|package| package.name);
    let wanted: Vec<&str> = of_the_tests.chain(OF_THE_MACHINE).collect();
    let packages = closure(&installed()?, &wanted);
    let versions: String =
        packages.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
    let content = format!("recipe {RECIPE}\n{versions}");
    if image.is_file() && fs::read_to_string(&list).is_ok_and(|found| found == content) {
        return Ok(image);
    }
    println!("copying {} packages into an image", packages.len());
    let work = tempfile::tempdir_in(work).context("cannot make a directory")?;
    let root = work.path().join("root");
    lay_out(&root)?;
    let names: Vec<&str> = packages.keys().map(String::as_str).collect();
    let files = tree::output_of(Command::new("dpkg-query").arg("-L").args(names))?;
    for file in files.lines().filter(|line| line.starts_with('/')) {
        if !LEFT_OUT.iter().any(|part| file.starts_with(part)) {
            copy(Path::new(file), &root)?;
        }
    }
    for directory in WITH_LINKS {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type()?.is_symlink() {
                copy(&entry.path(), &root)?;
            }
        }
    }
    for directory in WHOLE_TREES {
        copy_tree(Path::new(directory), &root)?;
    }
    for file in MADE_FILES {
        copy(Path::new(file), &root)?;
    }
    add_test_user(&root)?;
    for (file, mode, text) in WRITTEN_FILES {
        let path = root.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    image::ext4(&root, &image, ROOM_MIB)?;
    fs::write(&list, content).with_context(|| list.display().to_string())?;
    Ok(image)
}

/// An installed package, as far as others can need it.
#[derive(Debug, Default)]
struct Package {
    version: String,
    is_essential: bool,
    needs: Vec<String>,
    provides: Vec<String>,
}

fn installed() -> Result<BTreeMap<String, Package>> {
    let format = "${db:Status-Abbrev}\t${Package}\t${Version}\t${Essential}\t\
                  ${Pre-Depends}, ${Depends}\t${Provides}\n";
    let text = tree::output_of(Command::new("dpkg-query").args(["-W", "-f", format]))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> BTreeMap<String, Package> {
    text.lines()
        .filter_map(|line| match line.split('\t').collect::<Vec<_>>().as_slice() {
            [status, name, version, essential, needs, provides] if status.starts_with("ii") => {
                let package = Package {
                    version: (*version).to_owned(),
                    is_essential: *essential == "yes",
                    needs: names_in(needs),
                    provides: names_in(provides),
                };
                Some(((*name).to_owned(), package))
            }
            _ => None,
        })
        .collect()
}

/// The names in a list such as `libc6 (>= 2.36), python3:any | python3-minimal`.
fn names_in(relations: &str) -> Vec<String> {
    relations
        .split([',', '|'])
        .filter_map(|relation| relation.split_whitespace().next())
        .map(|name| name.split(':').next().unwrap_or(name).to_owned())
        .collect()
}

/// These packages, the essential ones, and everything they depend on, with versions.
fn closure(installed: &BTreeMap<String, Package>, wanted: &[&str]) -> BTreeMap<String, String> {
    let mut open: Vec<&str> = wanted.to_vec();
    open.extend(
        installed.iter().filter(|(_, package)| package.is_essential).map(|(name, _)| &**name),
    );
    let mut seen = BTreeSet::new();
    let mut found = BTreeMap::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        if let Some(package) = installed.get(name) {
            found.insert(name.to_owned(), package.version.clone());
            open.extend(package.needs.iter().map(String::as_str));
        } else {
            let providers = installed
                .iter()
                .filter(|(_, package)| package.provides.iter().any(|provided| provided == name));
            open.extend(providers.map(|(provider, _)| provider.as_str()));
        }
    }
    found
}

/// Directories, and the links of a merged `/usr` as this host has them.
fn lay_out(root: &Path) -> Result<()> {
    for directory in EMPTY_DIRECTORIES {
        fs::create_dir_all(root.join(directory))?;
    }
    for link in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        if let Ok(target) = fs::read_link(Path::new("/").join(link)) {
            fs::create_dir_all(root.join(&target))?;
            symlink(target, root.join(link))?;
        }
    }
    // As on a real host, where nobody else may pass through root's home.
    let home = root.join("root");
    fs::create_dir(&home)?;
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

/// Copies one file of the host, with its mode. What this user may not read, and what is not there
/// although a package lists it, is left out.
fn copy(file: &Path, root: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(file) else { return Ok(()) };
    let placed = root.join(file.strip_prefix("/").unwrap_or(file));
    if metadata.is_dir() {
        fs::create_dir_all(&placed).with_context(|| placed.display().to_string())?;
        return Ok(());
    }
    if let Some(parent) = placed.parent() {
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    if fs::symlink_metadata(&placed).is_ok() {
        return Ok(());
    }
    if metadata.is_symlink() {
        symlink(fs::read_link(file)?, &placed).with_context(|| placed.display().to_string())?;
    } else if metadata.is_file() && fs::File::open(file).is_ok() {
        fs::copy(file, &placed).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn copy_tree(directory: &Path, root: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        copy(&entry.path(), root)?;
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), root)?;
        }
    }
    Ok(())
}

/// The ordinary user, where this host has none of that name.
fn add_test_user(root: &Path) -> Result<()> {
    if setup::find_test_user()?.is_some() {
        return Ok(());
    }
    for (file, line) in [("etc/passwd", USER_LINE), ("etc/group", GROUP_LINE)] {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, text + line).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{closure, parse};

    const STATUS: &str = "ii \tbase\t1\tyes\t, libx (>= 2)\t\n\
        ii \tlibx\t2\tno\t, \t\n\
        ii \ttool\t3\tno\tmissing, awk:any | other\t\n\
        ii \tmawk\t4\tno\t, \tawk\n\
        rc \tother\t5\tno\t, \t\n\
        ii \tunrelated\t6\tno\t, \t\n";

    #[test]
    fn the_closure_has_dependencies_providers_and_essentials_and_no_more() {
        let found = closure(&parse(STATUS), &["tool"]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["base", "libx", "mawk", "tool"]);
        assert_eq!(found["libx"], "2");
    }
}
