//! What was installed together with the command's program: its npm package, its Python environment. A user who
//! types a command means to run it, and without its own files the program would only ask for them one by one.
//!
//! Only a directory whose location or marker shows that it belongs to one program is granted, and never for
//! writing.

use crate::facts::EntryKind;
use crate::grant::{Grant, Granter, Origin};
use crate::host::{Host, Resolved};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Marks a directory as a Python environment.
const ENVIRONMENT: &str = "pyvenv.cfg";
const PACKAGES: &str = "node_modules";

/// `None` if a grant already shows it.
pub(crate) fn grant(
    command: &[OsString],
    granter: &Granter<'_>,
    grants: &[Grant],
) -> Option<Grant> {
    let program = find(command.first()?, granter)?;
    let directory = package(&program.path).or_else(|| environment(&program, granter.host))?;
    let host = granter.host;
    let is_shown = grants.iter().any(|grant| grant.exec && directory.starts_with(&grant.source));
    // A directory that contains the home or the working directory is more than one program.
    let is_wide = |held: &Path| held.starts_with(&directory);
    if is_shown || host.home().is_some_and(is_wide) || is_wide(&granter.facts.cwd) {
        return None;
    }
    let found = host.resolve(&directory).ok()?;
    let links = program.links;
    let granted = granter.shipped(found, true, Origin::Toolchain)?;
    Some(Grant { links: links.into_iter().chain(granted.links).collect(), ..granted })
}

/// Finds the program as a shell in the caller's directory would.
fn find(word: &OsStr, granter: &Granter<'_>) -> Option<Resolved> {
    let is_file = |path: PathBuf| {
        granter.host.resolve(&path).ok().filter(|found| found.kind == EntryKind::File)
    };
    if word.as_encoded_bytes().contains(&b'/') {
        return is_file(granter.facts.cwd.join(word));
    }
    let path = granter.facts.env.get(OsStr::new("PATH"))?;
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(word)).find_map(is_file)
}

/// `…/node_modules/NAME` or `…/node_modules/@SCOPE/NAME`, the outermost one: a package's dependencies are
/// installed in it.
fn package(program: &Path) -> Option<PathBuf> {
    let mut directory = PathBuf::new();
    let mut components = program.components();
    loop {
        let component = components.next()?;
        directory.push(component);
        if component == Component::Normal(OsStr::new(PACKAGES)) {
            break;
        }
    }
    let name = components.next()?;
    directory.push(name);
    if name.as_os_str().as_encoded_bytes().starts_with(b"@") {
        directory.push(components.next()?);
    }
    // The program must be in the directory, not be the directory itself.
    components.next()?;
    Some(directory)
}

/// The environment whose `bin` contains the program, or a link that leads to it.
fn environment(program: &Resolved, host: &Host<'_>) -> Option<PathBuf> {
    let names =
        program.links.iter().map(|link| link.place.as_path()).chain([program.path.as_path()]);
    let mut roots = names.filter_map(|name| {
        let bin = name.parent().filter(|bin| bin.file_name() == Some(OsStr::new("bin")))?;
        bin.parent()
    });
    let root = roots.find(|root| host.exists(&root.join(ENVIRONMENT)))?;
    Some(root.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::fake::{FakeTree, plan_of, policy, shows, user};

    fn shown(tree: &FakeTree, command: &str) -> [bool; 3] {
        let mut facts = user();
        facts.env.insert("PATH".into(), "/usr/bin:/srv/npm/bin:/srv/venv/bin".into());
        let plan = plan_of(&policy(), &facts, tree, command).unwrap();
        ["/srv/npm/lib/node_modules/@a/tool", "/srv/npm/lib/node_modules/other", "/srv/venv/lib"]
            .map(|path| shows(&plan, path))
    }

    /// Proves: FS-1 own-program
    #[test]
    fn a_program_is_shown_with_its_package_or_its_environment_and_nothing_beside_it() {
        let mut tree = FakeTree::new();
        tree.file("/srv/npm/lib/node_modules/@a/tool/cli.js", "")
            .dir("/srv/npm/lib/node_modules/other");
        tree.link("/srv/npm/bin/tool", "../lib/node_modules/@a/tool/cli.js");
        tree.file("/srv/venv/pyvenv.cfg", "").file("/srv/venv/bin/py", "").dir("/srv/venv/lib");
        assert_eq!(shown(&tree, "tool"), [true, false, false]);
        assert_eq!(shown(&tree, "/srv/venv/bin/py"), [false, false, true]);
        assert_eq!(shown(&tree, "py"), [false, false, true]);
        assert_eq!(shown(&tree, "sh"), [false, false, false]);
    }

    /// Proves: FS-1 own-program
    #[test]
    fn a_home_that_looks_like_an_environment_is_not_shown() {
        let mut tree = FakeTree::new();
        tree.file("/home/u/pyvenv.cfg", "").file("/home/u/bin/py", "").dir("/home/u/private");
        let plan = plan_of(&policy(), &user(), &tree, "/home/u/bin/py").unwrap();
        assert!(!shows(&plan, "/home/u/private"));
    }
}
