use super::discard;
use crate::test_overlay::{TestOverlay, directory, snapshot};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

#[test]
fn a_discarded_layer_leaves_nothing_and_the_project_as_it_was() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir(project.join("d")).unwrap();
        fs::write(project.join("d/f"), "f").unwrap();
    });
    let before = snapshot(&overlay.project());
    overlay.session(|root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        symlink("/", root.join("root")).unwrap();
        symlink("../project", root.join("d")).unwrap();
        fs::create_dir_all(root.join("x/y")).unwrap();
        fs::write(root.join("x/y/z"), "z").unwrap();
        fs::set_permissions(root.join("x/y"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(root.join("x"), fs::Permissions::from_mode(0o000)).unwrap();
    });
    let layer = directory(&overlay.layer());
    for name in ["upper", "work"] {
        assert!(discard(layer.as_fd(), OsStr::new(name)).unwrap() > 0);
        assert_eq!(discard(layer.as_fd(), OsStr::new(name)).unwrap(), 0, "nothing is left");
    }
    assert_eq!(fs::read_dir(overlay.layer()).unwrap().count(), 0);
    assert_eq!(snapshot(&overlay.project()), before);
}

#[test]
fn a_tree_deeper_than_descriptors_last_is_removed() {
    let top = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut dir = directory(top.path());
    for _ in 0..3000 {
        rustix::fs::mkdirat(&dir, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        dir = rustix::fs::openat(&dir, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    assert_eq!(discard(directory(top.path()).as_fd(), OsStr::new("d")).unwrap(), 3000);
    assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
}

#[test]
fn a_link_is_removed_and_not_what_it_leads_to() {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("kept")).unwrap();
    fs::write(top.path().join("kept/file"), "kept").unwrap();
    symlink("kept", top.path().join("link")).unwrap();
    assert_eq!(discard(directory(top.path()).as_fd(), OsStr::new("link")).unwrap(), 1);
    assert!(top.path().join("kept/file").exists());
}
