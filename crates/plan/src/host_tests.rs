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
