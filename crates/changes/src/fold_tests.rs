use crate::test_overlay::TestOverlay;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// Folds the changes of two sessions, and compares what a third one sees.
fn check(first: impl FnOnce(&Path), second: impl FnOnce(&Path)) -> String {
    let mut overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("cache/index")).unwrap();
        fs::write(project.join("cache/index/old"), "of the host").unwrap();
    });
    overlay.session(first);
    overlay.add_layer();
    overlay.session(second);
    let shown = overlay.shown();
    overlay.fold_newest();
    assert_eq!(overlay.shown(), shown);
    shown
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Proves: FS-10 layers
#[test]
fn directories_that_are_closed_to_writing_are_folded_and_stay_closed() {
    let make = |root: &Path, name: &str| {
        let module = root.join("cache/module");
        if module.exists() {
            mode(&module, 0o755);
        }
        fs::create_dir_all(module.join(name)).unwrap();
        fs::write(module.join(name).join("file"), name).unwrap();
        mode(&module.join(name), 0o555);
        mode(&module, 0o555);
    };
    let shown = check(|root| make(root, "one"), |root| make(root, "two"));
    assert!(shown.contains("module/one/file") && shown.contains("module/two/file"), "{shown}");
}

/// Proves: FS-10 layers
#[test]
fn what_was_removed_stays_removed_and_what_was_replaced_stays_replaced() {
    let shown = check(
        |root| {
            fs::remove_file(root.join("cache/index/old")).unwrap();
            fs::write(root.join("cache/entry"), "file").unwrap();
            fs::create_dir(root.join("cache/tree")).unwrap();
            fs::write(root.join("cache/tree/lost"), "lost").unwrap();
        },
        |root| {
            fs::remove_dir_all(root.join("cache/tree")).unwrap();
            fs::create_dir(root.join("cache/tree")).unwrap();
            fs::remove_file(root.join("cache/entry")).unwrap();
            fs::create_dir(root.join("cache/entry")).unwrap();
            fs::remove_dir(root.join("cache/index")).unwrap();
            symlink("/", root.join("cache/index")).unwrap();
        },
    );
    assert!(!shown.contains("old") && !shown.contains("lost"), "{shown}");
}
