use super::*;
use std::fs;

fn look(top: &tempfile::TempDir, known: &Known<'_>) -> Option<DiscardedFiles> {
    let directory = OwnedFd::from(File::open(top.path()).unwrap());
    // The file system is not only ours here.
    list(&PrivateHome { directory, inodes_at_start: 0 }, known)
}

fn known(ours: &[(&str, Option<&'static str>)]) -> Known<'static> {
    let ours = ours.iter().map(|(path, content)| (Path::new("/home/u").join(path), *content));
    Known { home: "/home/u".into(), ours: ours.collect(), leftovers: vec![".cache".into()] }
}

/// Proves: FS-3 discarded-told
#[test]
fn files_are_counted_and_directories_and_what_we_made_are_not() {
    let top = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let path = top.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    fs::create_dir_all(top.path().join(".local/share/empty")).unwrap();
    write(".gitconfig", "");
    write(".npmrc", "registry");
    let ours = known(&[(".gitconfig", None), (".npmrc", Some("registry"))]);
    assert_eq!(look(&top, &ours), None);
    write(".cache/pip/x", "");
    write(".local/share/x/a", "content");
    // As long as it was.
    write(".npmrc", "REGISTRY");
    let found = look(&top, &ours).unwrap();
    assert_eq!((found.count, found.leftovers, found.is_complete), (3, 1, true));
    let mut paths = found.paths;
    paths.sort();
    assert_eq!(paths, ["/home/u/.local/share/x/a", "/home/u/.npmrc"]);
}

#[test]
fn links_and_pipes_are_neither_followed_nor_opened() {
    let top = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("of-the-host"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), top.path().join("link")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, top.path().join("pipe"), kind, mode, 0).unwrap();
    let found = look(&top, &known(&[])).unwrap();
    assert_eq!(found.count, 2);
    assert!(!found.paths.iter().any(|path| path.contains("of-the-host")), "{:?}", found.paths);
}

/// Proves: FS-3 discarded-told
#[test]
fn many_files_are_counted_and_some_of_them_named() {
    let top = tempfile::tempdir().unwrap();
    (0..300).for_each(|number| fs::write(top.path().join(number.to_string()), "").unwrap());
    let found = look(&top, &known(&[])).unwrap();
    assert_eq!((found.count, found.paths.len()), (300, MAX_LISTED));
}
