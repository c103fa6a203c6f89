use super::*;
use crate::fake::FakeTree;

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.dir("/data/home/u/src").link("/people", "/data/home").link("/data/home/me", "u");
    tree.link("/loop", "loop").link("/data/up", "../usr/bin").file("/data/file", "");
    tree
}

#[test]
fn links_are_followed_and_remembered() {
    let tree = tree();
    let host = Host::new(&tree, None);
    let found = host.resolve(Path::new("/people/me/src")).unwrap();
    assert_eq!(found.path, Path::new("/data/home/u/src"));
    let places: Vec<_> = found.links.iter().map(|link| link.place.to_str().unwrap()).collect();
    assert_eq!(places, ["/people", "/data/home/me"]);
    for (path, real) in [
        ("/data/up", "/usr/bin"),
        ("/people/me/../u", "/data/home/u"),
        ("/../usr", "/usr"),
        ("/", "/"),
    ] {
        let found = host.resolve(Path::new(path)).map(|found| found.path);
        assert_eq!(found, Ok(PathBuf::from(real)), "{path}");
    }
    assert!(host.resolve(Path::new("/people/missing/../me")).is_err());
}

#[test]
fn what_is_missing_is_told_from_what_is_there() {
    let tree = tree();
    let host = Host::new(&tree, None);
    for (path, parent, rest) in [
        ("/people/me/a/b", "/data/home/u", "a/b"),
        ("/loop/x", "/", "loop/x"),
        ("/data/file/x", "/data/file", "x"),
    ] {
        let missing = host.resolve(Path::new(path)).unwrap_err();
        assert_eq!((missing.parent, missing.rest), (parent.into(), rest.into()), "{path}");
    }
}

#[test]
fn every_place_of_a_name_is_found() {
    let mut tree = tree();
    tree.link("/home/u/.ssh", "/home/u/keys").link("/home/u/keys", "../../srv/data/keys");
    let host = Host::new(&tree, Some(Path::new("/home/u")));
    let expected = ["/home/u/.ssh", "/home/u/keys", "/srv/data/keys"].map(PathBuf::from);
    assert_eq!(host.places(Path::new("/home/u/.ssh")), expected);
}

#[test]
fn missing_names_below_home_are_known_without_asking_for_each() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.config/git")
        .link("/home/u/.vim", "/srv/data")
        .dir("/home/u/.local/share/uv");
    let host = Host::new(&tree, Some(Path::new("/home/u")));
    for (path, missing_in) in [
        (".netrc", Some("")),
        (".config/gh", Some(".config")),
        (".config/git", None),
        (".config/git/credentials", Some(".config/git")),
        (".local/share/keyrings", Some(".local/share")),
        (".vim/undo", None),
    ] {
        assert_eq!(host.missing_in(path), missing_in, "{path}");
    }
}

#[test]
fn a_path_in_the_home_directory_is_the_same_however_it_is_written() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/a/b/c").dir("/home/user2").dir("/x").link("/home/u/link", "a/b");
    let host = Host::new(&tree, Some(Path::new("/home/u")));
    for (path, real) in [
        ("/home/u", "/home/u"),
        ("/home/u/", "/home/u"),
        ("/home/u//a", "/home/u/a"),
        ("/home/u///a//b/", "/home/u/a/b"),
        ("/home/u/./a/./b", "/home/u/a/b"),
        ("/home//u/a", "/home/u/a"),
        ("/home/u/../user2", "/home/user2"),
        ("/home/u/link/c", "/home/u/a/b/c"),
        ("/home/u/link/../../..", "/home"),
        ("/home/user2", "/home/user2"),
    ] {
        let found = host.resolve(Path::new(path)).map(|found| found.path);
        assert_eq!(found, Ok(PathBuf::from(real)), "{path}");
    }
    assert!(host.resolve(Path::new("/home/u//x")).is_err());
    for (path, kind) in [
        ("/home/u/link", Some(EntryKind::Symlink)),
        ("/home/u/link/", Some(EntryKind::Symlink)),
        ("/home/u//link", Some(EntryKind::Symlink)),
        ("/home/u/a/", Some(EntryKind::Dir)),
        ("/home/u/a//b", Some(EntryKind::Dir)),
        ("/home/u/missing", None),
        ("/", Some(EntryKind::Dir)),
    ] {
        assert_eq!(host.kind(Path::new(path)), kind, "{path}");
    }
    assert_eq!(host.links_in(Path::new("/home/u/")), [Path::new("/home/u/link")]);
}

#[test]
fn a_home_that_is_the_root_is_no_special_case() {
    let tree = tree();
    let host = Host::new(&tree, Some(Path::new("/")));
    for path in ["/data/home/u", "//data/home/u", "/people/u"] {
        let found = host.resolve(Path::new(path)).map(|found| found.path);
        assert_eq!(found, Ok(PathBuf::from("/data/home/u")), "{path}");
    }
}
