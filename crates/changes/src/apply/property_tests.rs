//! Random edits, made in an overlay and applied, and made in a copy of the project directly: both trees are the same.

use super::tests::{Setting, applied, assert_clean};
use super::{ApplyRequest, Baseline, Source, apply};
use crate::test_edits::{Edit, edits, perform, prepare};
use crate::test_overlay::{TestOverlay, differences, directory, snapshot};
use crate::{CopyLimits, Layers, ProjectCopy, copy_project, discard};
use palisade_sys::clone::CloneFlags;
use palisade_sys::test_child::{become_namespace_root, in_child};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;

fn check(before: &[Edit], after: &[Edit], source: Source, is_layered: bool) {
    let root = Path::new("/dev/shm");
    let bare = TestOverlay::within(root, prepare);
    in_child(|| {
        // With the rights that a session has over its files.
        become_namespace_root(CloneFlags::NEWNS);
        perform(&bare.project(), before, 100);
        perform(&bare.project(), after, 1000);
    });
    let mut overlay = TestOverlay::within(root, prepare);
    let baseline = Baseline::started(overlay.now());
    let original = snapshot(&overlay.project());
    overlay.session(|root| perform(root, before, 100));
    if is_layered {
        overlay.add_layer();
    }
    overlay.session(|root| perform(root, after, 1000));
    assert_eq!(snapshot(&overlay.project()), original, "before the apply");
    let setting = Setting::new(&overlay, baseline);
    applied(apply(&ApplyRequest { source, ..setting.request() }));
    assert_eq!(differences(&snapshot(&overlay.project()), &snapshot(&bare.project())), [""; 0]);
    assert_clean(&overlay);
    drop(setting);
    if source == Source::Copy {
        let left = crate::scan(&overlay.layers()).unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The same in a copy of the project, which the session writes to directly.
fn check_copy(root: &Path, before: &[Edit], after: &[Edit]) {
    let bare = TestOverlay::within(root, prepare);
    let project = TestOverlay::within(root, prepare);
    let original = snapshot(&project.project());
    let parent = directory(&project.layer());
    let limits = CopyLimits { files: 1000, bytes: 1 << 20 };
    let wanted = ProjectCopy { hidden: &[], limits, progress: &mut |_| {} };
    let from = directory(&project.project());
    let (_, record) =
        copy_project(from.as_fd(), (parent.as_fd(), OsStr::new("copy")), wanted).unwrap();
    let copy = project.layer().join("copy");
    assert_eq!(snapshot(&copy), original);
    project.later_than(record.newest());
    let baseline = Baseline::started(project.now());
    for root in [&bare.project(), &copy] {
        in_child(|| {
            become_namespace_root(CloneFlags::NEWNS);
            perform(root, before, 100);
            perform(root, after, 1000);
        });
    }
    assert_eq!(snapshot(&project.project()), original, "before the apply");
    let layers =
        || Layers::of_copy(directory(&project.project()), directory(&copy), record.clone());
    let setting = Setting::of(&project, baseline, layers());
    applied(apply(&setting.request()));
    assert_eq!(differences(&snapshot(&project.project()), &snapshot(&bare.project())), [""; 0]);
    assert_clean(&project);
    drop(setting);
    let left = crate::scan(&layers()).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_applied_session_is_what_a_bare_run_would_have_been(
        before in edits(),
        after in edits(),
        is_moved in any::<bool>(),
        is_layered in any::<bool>(),
    ) {
        let source = if is_moved { Source::Move } else { Source::Copy };
        // A later layer breaks the hard links of an earlier one, in the session's own view already.
        let is_kept = |edit: &&Edit| !is_layered || !matches!(edit, Edit::HardLink(..));
        let before: Vec<Edit> = before.iter().filter(is_kept).cloned().collect();
        check(&before, &after, source, is_layered);
    }

    #[test]
    fn an_applied_copy_is_what_a_bare_run_would_have_been(
        before in edits(),
        after in edits(),
        is_in_memory in any::<bool>(),
    ) {
        let root = if is_in_memory { Path::new("/dev/shm") } else { Path::new("/var/tmp") };
        check_copy(root, &before, &after);
    }

    #[test]
    fn two_layers_folded_into_one_show_what_they_showed(before in edits(), after in edits()) {
        let mut overlay = TestOverlay::within(Path::new("/dev/shm"), prepare);
        overlay.session(|root| perform(root, &before, 100));
        overlay.add_layer();
        overlay.session(|root| perform(root, &after, 200));
        let shown = overlay.shown();
        overlay.fold_newest();
        prop_assert_eq!(overlay.shown(), shown);
    }

    #[test]
    fn a_discarded_session_leaves_the_project_as_it_was(edits in edits()) {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), prepare);
        let before = snapshot(&overlay.project());
        overlay.session(|root| perform(root, &edits, 100));
        let layer = directory(&overlay.layer());
        for name in ["upper", "work"] {
            discard(layer.as_fd(), OsStr::new(name)).unwrap();
        }
        prop_assert_eq!(fs::read_dir(overlay.layer()).unwrap().count(), 0);
        prop_assert_eq!(snapshot(&overlay.project()), before);
    }
}
