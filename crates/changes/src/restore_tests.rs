use super::Restoration;
use crate::test_edits::{Edit, edits, perform, prepare};
use crate::test_overlay::{
    Snapshot, TestOverlay, differences, directory, snapshot, statuses, without_links,
};
use crate::{ChangesError, CopyThreads, Layers, compare, copy_layer};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// A tree, with the times that [`snapshot`] leaves out.
#[derive(Clone, PartialEq, Eq)]
struct Tree {
    nodes: Snapshot,
    /// Names of files that have several, by the upper layer.
    links: BTreeSet<BTreeSet<PathBuf>>,
    /// Of directories and links.
    times: BTreeMap<PathBuf, (i64, i64)>,
}

fn tree(overlay: &TestOverlay, root: &Path) -> Tree {
    let nodes = without_links(&snapshot(root));
    let times = nodes.keys().filter_map(|path| {
        let found = fs::symlink_metadata(root.join(path)).unwrap();
        (!found.is_file()).then(|| (path.clone(), (found.mtime(), found.mtime_nsec())))
    });
    Tree { times: times.collect(), links: links(overlay, &nodes), nodes }
}

fn links(overlay: &TestOverlay, nodes: &Snapshot) -> BTreeSet<BTreeSet<PathBuf>> {
    let mut names: BTreeMap<u64, BTreeSet<PathBuf>> = BTreeMap::new();
    for path in nodes.keys() {
        if let Ok(found) = fs::symlink_metadata(overlay.upper().join(path))
            && found.is_file()
        {
            names.entry(found.ino()).or_default().insert(path.clone());
        }
    }
    names.into_values().filter(|names| names.len() > 1).collect()
}

#[track_caller]
fn assert_same(one: &Tree, other: &Tree) {
    assert_eq!(differences(&one.nodes, &other.nodes), [""; 0]);
    assert_eq!(one.times, other.times);
    assert_eq!(one.links, other.links);
}

/// Keeps the present state of a session under this number.
fn keep(overlay: &TestOverlay, number: usize) {
    let upper = directory(&overlay.upper());
    let images = directory(&overlay.beside(""));
    let name = format!("image{number}");
    copy_layer(upper.as_fd(), images.as_fd(), OsStr::new(&name), CopyThreads::Two).unwrap();
}

/// From the present state to the kept one.
fn to_kept(overlay: &TestOverlay, number: usize) -> Layers {
    to_kept_hiding(overlay, number, &[])
}

fn to_kept_hiding(overlay: &TestOverlay, number: usize, hidden: &[PathBuf]) -> Layers {
    let image = directory(&overlay.beside(&format!("image{number}")));
    Layers::states(directory(&overlay.project()), directory(&overlay.upper()), image, hidden)
}

fn roll_back(overlay: &TestOverlay, root: &Path, number: usize) -> u64 {
    let layers = to_kept(overlay, number);
    Restoration::plan(&layers).unwrap().perform(directory(root).as_fd()).unwrap()
}

#[test]
fn every_kind_of_entry_comes_back() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("d/deep")).unwrap();
        fs::write(project.join("d/deep/file"), "project").unwrap();
        fs::write(project.join("changed"), "project").unwrap();
        fs::write(project.join("deleted"), "project").unwrap();
    });
    overlay.session(|root| {
        keep(&overlay, 0);
        let start = tree(&overlay, root);
        fs::write(root.join("changed"), "first").unwrap();
        fs::remove_file(root.join("deleted")).unwrap();
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/one"), "one").unwrap();
        fs::hard_link(root.join("d/one"), root.join("two")).unwrap();
        symlink("nowhere", root.join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o640),
            0,
        )
        .unwrap();
        let closed = root.join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("inside"), "inside").unwrap();
        let sparse = fs::File::create(root.join("sparse")).unwrap();
        sparse.set_len(16 << 20).unwrap();
        std::os::unix::fs::FileExt::write_at(&sparse, b"middle", 8 << 20).unwrap();
        drop(sparse);
        keep(&overlay, 1);
        let first = tree(&overlay, root);
        let blocks = |path: &Path| fs::metadata(path).unwrap().blocks();
        assert!(blocks(&overlay.beside("image1/sparse")) < 1000, "holes were filled");

        fs::remove_file(root.join("two")).unwrap();
        fs::write(root.join("d/one"), "other").unwrap();
        fs::remove_dir_all(root.join("closed")).unwrap();
        fs::remove_file(root.join("fifo")).unwrap();
        fs::create_dir(root.join("fifo")).unwrap();
        fs::write(root.join("deleted"), "again").unwrap();
        fs::remove_file(root.join("link")).unwrap();
        fs::remove_file(root.join("sparse")).unwrap();
        fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o700)).unwrap();
        let shown = statuses(&compare(&to_kept(&overlay, 1)).unwrap());
        assert_eq!(
            shown,
            "A closed/inside\nM d/\nM d/one\nD deleted\nT fifo\nA link\nA sparse\nA two\n"
        );

        assert!(roll_back(&overlay, root, 1) > 5);
        assert_same(&tree(&overlay, root), &first);
        assert_eq!(fs::metadata(root.join("sparse")).unwrap().len(), 16 << 20);
        assert!(blocks(&root.join("sparse")) < 1000, "holes were filled");
        assert!(fs::symlink_metadata(root.join("fifo")).unwrap().file_type().is_fifo());
        let inode = |name: &str| fs::metadata(root.join(name)).unwrap().ino();
        assert_eq!(inode("d/one"), inode("two"));
        assert_eq!(roll_back(&overlay, root, 1), 0, "there is nothing left to do");

        roll_back(&overlay, root, 0);
        assert_same(&tree(&overlay, root), &start);
    });
    assert_eq!(overlay.statuses(), "");
}

/// The project's own file at a path that the session cannot see is in none of its states.
#[test]
fn what_is_hidden_is_never_taken_from_the_project() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("keys/deep")).unwrap();
        fs::write(project.join("keys/deep/key"), "hidden").unwrap();
        fs::write(project.join("secret"), "hidden").unwrap();
        fs::write(project.join("seen"), "seen").unwrap();
    });
    overlay.session(|root| {
        keep(&overlay, 0);
        fs::write(root.join("secret"), "own").unwrap();
        fs::write(root.join("seen"), "own").unwrap();
        fs::remove_dir_all(root.join("keys")).unwrap();
        fs::create_dir(root.join("keys")).unwrap();
        let hidden = [PathBuf::from("secret"), PathBuf::from("keys")];
        let layers = to_kept_hiding(&overlay, 0, &hidden);
        assert_eq!(statuses(&compare(&layers).unwrap()), "D keys/\nD secret\nM seen\n");
        Restoration::plan(&layers).unwrap().perform(directory(root).as_fd()).unwrap();
        assert!(!overlay.upper().join("keys/deep").exists());
        let upper = fs::read(overlay.upper().join("secret")).unwrap_or_default();
        assert_ne!(upper, b"hidden");
        assert_eq!(fs::read(root.join("seen")).unwrap(), b"seen");
    });
}

/// A restoration that was interrupted left something of its own.
#[test]
fn a_repeated_restoration_ends_with_the_same_tree() {
    let overlay = TestOverlay::new(prepare);
    overlay.session(|root| {
        fs::write(root.join("plain"), "kept").unwrap();
        keep(&overlay, 1);
        let kept = tree(&overlay, root);
        fs::write(root.join("plain"), "changed").unwrap();
        fs::write(root.join(".palisade-restoring-0"), "half").unwrap();
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        roll_back(&overlay, root, 1);
        assert_same(&tree(&overlay, root), &kept);
    });
}

/// What a command made must not be able to keep its state from being left.
#[test]
fn deep_directories_and_names_that_were_taken_are_no_obstacle() {
    let overlay = TestOverlay::new(prepare);
    overlay.session(|root| {
        keep(&overlay, 0);
        let start = tree(&overlay, root);
        fs::write(root.join("plain"), "changed").unwrap();
        let deep = root.join("made").join("d/".repeat(700));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "deep").unwrap();
        for number in 0..1000 {
            fs::write(root.join(format!(".palisade-restoring-{number}")), "").unwrap();
        }
        keep(&overlay, 1);
        roll_back(&overlay, root, 0);
        assert_same(&tree(&overlay, root), &start);
        // Such a state cannot be brought back to a session that lives.
        let layers = to_kept(&overlay, 1);
        assert!(matches!(Restoration::plan(&layers), Err(ChangesError::TooDeep { .. })));
    });
}

#[test]
fn a_file_with_many_names_takes_no_longer_for_each() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| {
        fs::write(root.join("0"), "content").unwrap();
        keep(&overlay, 0);
        for number in 1..3000 {
            fs::hard_link(root.join("0"), root.join(number.to_string())).unwrap();
        }
        keep(&overlay, 1);
        roll_back(&overlay, root, 0);
        assert_eq!(fs::read_dir(root).unwrap().count(), 1);
        roll_back(&overlay, root, 1);
        assert_eq!(fs::metadata(root.join("17")).unwrap().nlink(), 3000);
    });
}

fn shown_as(overlay: &TestOverlay, root: &Path) -> String {
    let Tree { nodes, links, .. } = tree(overlay, root);
    format!("{nodes:?} {links:?}")
}

fn check(rounds: &[Vec<Edit>], targets: &[usize]) {
    let overlay = TestOverlay::within(Path::new("/dev/shm"), prepare);
    overlay.session(|root| {
        let mut kept = Vec::new();
        for (number, edits) in rounds.iter().enumerate() {
            perform(root, edits, 1000 * number as u64);
            keep(&overlay, number);
            kept.push(tree(&overlay, root));
        }
        for target in targets.iter().map(|target| target % rounds.len()) {
            roll_back(&overlay, root, target);
            assert_same(&tree(&overlay, root), &kept[target]);
            assert_eq!(statuses(&compare(&to_kept(&overlay, target)).unwrap()), "");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: LIFE-5 rollback
    #[test]
    fn a_state_that_was_kept_comes_back_exactly(
        rounds in prop::collection::vec(edits(), 1..4),
        targets in prop::collection::vec(0..4_usize, 1..5),
    ) {
        check(&rounds, &targets);
    }

    /// An ended session gets the copy itself.
    #[test]
    fn a_copied_layer_shows_the_same_tree(edits in edits()) {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), prepare);
        let shown = overlay.beside("shown");
        overlay.session(|root| {
            perform(root, &edits, 100);
            // A child has no other way to say it.
            fs::write(&shown, shown_as(&overlay, root)).unwrap();
        });
        keep(&overlay, 1);
        fs::rename(overlay.upper(), overlay.beside("old")).unwrap();
        fs::rename(overlay.beside("image1"), overlay.upper()).unwrap();
        crate::discard(directory(&overlay.layer()).as_fd(), OsStr::new("work")).unwrap();
        fs::create_dir(overlay.layer().join("work")).unwrap();
        overlay.session(|root| {
            let before = fs::read_to_string(&shown).unwrap();
            assert_eq!(shown_as(&overlay, root), before);
        });
    }
}
