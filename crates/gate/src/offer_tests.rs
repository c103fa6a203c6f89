use super::{FileKind, PathContext, offer};
use std::path::{Path, PathBuf};

fn offered(path: &str, kind: FileKind) -> Option<PathBuf> {
    let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
    let around = PathContext {
        home: Some(Path::new("/home/u")),
        mounted: &paths(&["/home/u/project", "/var/cache/tool/inner"]),
        never: &paths(&["/proc", "/srv/denied/here"]),
        secrets: &paths(&["/home/u/.ssh", "/home/u/.config/gh"]),
    };
    offer(Path::new(path), kind, &around)
}

fn for_file(path: &str) -> Option<PathBuf> {
    offered(path, FileKind::File)
}

/// Proves: GATE-4 directory-offered
#[test]
fn the_directory_of_a_file_or_its_package() {
    assert_eq!(for_file("/srv/data/a/b.txt"), Some("/srv/data/a".into()));
    assert_eq!(for_file("/opt/sdk/include/sys/a.h"), Some("/opt/sdk".into()));
    assert_eq!(for_file("/home/u/notes/a.txt"), Some("/home/u/notes".into()));
    assert_eq!(for_file("/home/u/.config/editor/rc"), Some("/home/u/.config/editor".into()));
    assert_eq!(offered("/srv/data/a", FileKind::Directory), Some("/srv/data/a".into()));
    assert_eq!(offered("/opt/sdk", FileKind::Directory), Some("/opt/sdk".into()));
}

/// Proves: GATE-4 directory-offered
#[test]
fn nothing_that_gives_too_much_away() {
    for path in [
        "/file",
        "/srv/file",
        "/opt/file",
        "/home/u/file",
        "/home/other",
        "/home/u/.config/file",
        "/home/u/.ssh/config",
        "/home/u/.ssh/sub/config",
        "/srv/denied/file",
        "/srv/denied/here/sub/file",
        "/var/cache/tool/file",
        "/nix/store/file",
    ] {
        assert_eq!(for_file(path), None, "{path}");
    }
    for path in ["/", "/srv", "/home", "/home/u", "/opt", "/home/u/.ssh"] {
        assert_eq!(offered(path, FileKind::Directory), None, "{path}");
    }
}
