use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn hosts(tool: Tool, home: &Path, project: &Path) -> Vec<String> {
    hosts_with(tool, home, project, &[])
}

fn hosts_with(tool: Tool, home: &Path, project: &Path, writable: &[PathBuf]) -> Vec<String> {
    let mut facts = crate::probe::facts().unwrap();
    facts.home = Some(home.to_owned());
    facts.env = BTreeMap::from([("PATH".into(), home.join("none/bin").into())]);
    let found = registries(&[tool], &facts, project, writable);
    found.hosts[&tool].iter().map(|entry| entry.pattern.to_string()).collect()
}

/// The user's settings count; a link from them into the project leads nowhere.
///
/// Proves: NET-3 default-hosts
#[test]
fn settings_are_the_users_own() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let project = home.join("project");
    fs::create_dir(&project).unwrap();
    fs::write(home.join(".npmrc"), "@x:registry=https://npm.corp.example/\n").unwrap();
    assert!(hosts(Tool::Npm, home, &project).contains(&"npm.corp.example".to_owned()));

    fs::write(project.join("theirs"), "@x:registry=https://evil.example/\n").unwrap();
    fs::remove_file(home.join(".npmrc")).unwrap();
    symlink(project.join("theirs"), home.join(".npmrc")).unwrap();
    assert!(!hosts(Tool::Npm, home, &project).contains(&"evil.example".to_owned()));
}

/// What an earlier run could write names no host for the next one, whatever leads there.
///
/// Proves: NET-3 default-hosts
#[test]
fn settings_in_a_writable_place_do_not_count() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let (project, shared) = (home.join("project"), home.join("shared"));
    fs::create_dir(&project).unwrap();
    fs::create_dir(&shared).unwrap();
    let found = |writable: &[PathBuf]| {
        hosts_with(Tool::Npm, &home, &project, writable).contains(&"npm.corp.example".to_owned())
    };
    let settings = "@x:registry=https://npm.corp.example/\n";
    fs::write(shared.join("npmrc"), settings).unwrap();
    symlink(shared.join("npmrc"), home.join(".npmrc")).unwrap();
    assert!(found(&[]));
    assert!(!found(std::slice::from_ref(&shared)), "a link leads there");
    fs::remove_file(home.join(".npmrc")).unwrap();
    fs::write(home.join(".npmrc"), settings).unwrap();
    assert!(found(std::slice::from_ref(&shared)));
    assert!(!found(&[home.join(".npmrc")]), "the file itself is granted");
    assert!(!found(std::slice::from_ref(&home)));
}

/// Proves: NET-3 default-hosts
#[test]
fn settings_that_somebody_else_can_write_do_not_count() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path();
    let (project, settings) = (home.join("project"), home.join(".npmrc"));
    fs::write(&settings, "@x:registry=https://npm.corp.example/\n").unwrap();
    let found = || hosts(Tool::Npm, home, &project).contains(&"npm.corp.example".to_owned());
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o664)).unwrap();
    assert!(found(), "the caller's own group");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(!found());
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o644)).unwrap();
    if std::os::unix::fs::chown(&settings, Some(65_534), None).is_ok() {
        assert!(!found(), "another owner");
    }
}

/// What settings include is under the rule that they are under themselves.
///
/// Proves: NET-3 default-hosts
#[test]
fn included_settings_are_the_users_own_too() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let (project, shared) = (home.join("project"), home.join("shared"));
    [&project, &shared].iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let found = |path: &Path| {
        fs::write(path, "[url \"https://git.corp.example/\"] insteadOf = x\n").unwrap();
        let include = format!("[include]\n path = {}\n", path.display());
        fs::write(home.join(".gitconfig"), include).unwrap();
        let writable = std::slice::from_ref(&shared);
        let hosts = hosts_with(Tool::Git, &home, &project, writable);
        hosts.contains(&"git.corp.example".to_owned())
    };
    assert!(found(&home.join("included")));
    assert!(!found(&project.join("included")));
    assert!(!found(&shared.join("included")));
    fs::set_permissions(home.join("included"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(!found(&home.join("included")), "others can write it");
    symlink(shared.join("included"), home.join("link")).unwrap();
    assert!(!found(&home.join("link")));
}

/// What is built into a program is found in the program.
///
/// Proves: NET-3 default-hosts
#[test]
fn a_default_is_read_from_what_is_installed() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    let bin = home.join(".rustup/toolchains/stable/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("cargo"), b"\x7fELF\0\xffsparse+https://index.built-in.example/\0").unwrap();
    assert_eq!(
        hosts(Tool::Cargo, &home, &place.path().join("project")),
        ["index.built-in.example"]
    );
}
