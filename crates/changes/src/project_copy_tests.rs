use super::*;
use crate::apply::tests::{Setting, applied};
use crate::test_overlay::{TestOverlay, differences, directory, snapshot, statuses};
use crate::{ApplyRequest, Baseline, Layers, Outcome, apply, scan};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

const LIMITS: CopyLimits = CopyLimits { files: 1000, bytes: 1 << 30 };

fn copied(project: &TestOverlay, hidden: &[PathBuf], limits: CopyLimits) -> Result<CopyRecord> {
    let parent = directory(&project.layer());
    let wanted = ProjectCopy { hidden, limits, progress: &mut |_| {} };
    let at = (parent.as_fd(), OsStr::new("copy"));
    let (_, record) = copy_project(directory(&project.project()).as_fd(), at, wanted)?;
    // As it is written down and read again.
    CopyRecord::from_bytes(&record.to_bytes()?)
}

/// A project, its copy, and the time at which that was whole.
fn project(prepare: impl FnOnce(&Path)) -> (TestOverlay, CopyRecord) {
    let project = TestOverlay::within(&std::env::temp_dir(), prepare);
    let record = copied(&project, &[], LIMITS).unwrap();
    project.later_than(record.newest());
    (project, record)
}

fn copy_of(project: &TestOverlay) -> PathBuf {
    project.layer().join("copy")
}

fn layers(project: &TestOverlay, record: &CopyRecord) -> Layers {
    let dirs = (directory(&project.project()), directory(&copy_of(project)));
    Layers::of_copy(dirs.0, dirs.1, record.clone())
}

fn changes(project: &TestOverlay, record: &CopyRecord) -> String {
    statuses(&scan(&layers(project, record)).unwrap())
}

#[test]
fn a_copy_is_the_project_with_modes_times_links_holes_and_attributes() {
    let (project, record) = project(|at| {
        fs::create_dir_all(at.join("d/e")).unwrap();
        fs::write(at.join("d/file"), "content").unwrap();
        fs::set_permissions(at.join("d/file"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(at.join("d/file"), at.join("second")).unwrap();
        symlink("nowhere", at.join("link")).unwrap();
        let sparse = fs::File::create(at.join("sparse")).unwrap();
        sparse.set_len(64 << 20).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(at.join("d/file"), "user.test", b"value", flags).unwrap();
        fs::set_permissions(at.join("d/e"), fs::Permissions::from_mode(0o700)).unwrap();
    });
    let (one, other) = (snapshot(&project.project()), snapshot(&copy_of(&project)));
    assert_eq!(differences(&one, &other), [""; 0]);
    assert!(fs::metadata(copy_of(&project).join("sparse")).unwrap().blocks() < 1000);
    assert_eq!(changes(&project, &record), "");
}

#[test]
fn what_is_hidden_is_not_copied_and_does_not_look_deleted() {
    let project = TestOverlay::new(|at| {
        fs::create_dir_all(at.join("keys")).unwrap();
        fs::write(at.join("keys/private"), "secret").unwrap();
        fs::write(at.join(".env"), "secret").unwrap();
        fs::write(at.join("seen"), "seen").unwrap();
    });
    let record = copied(&project, &["keys".into(), ".env".into()], LIMITS).unwrap();
    let names: Vec<_> = snapshot(&copy_of(&project)).into_keys().collect();
    assert_eq!(names, [PathBuf::from("seen")]);
    assert_eq!(changes(&project, &record), "");
}

#[test]
fn a_project_above_the_limit_is_not_copied() {
    let large = |limits| {
        let project = TestOverlay::new(|at| {
            fs::write(at.join("one"), "1234").unwrap();
            fs::write(at.join("two"), "1234").unwrap();
        });
        copied(&project, &[], limits)
    };
    let too_large = |limits| matches!(large(limits), Err(ChangesError::TooLargeToCopy { .. }));
    assert!(too_large(CopyLimits { files: 1, bytes: 100 }));
    assert!(too_large(CopyLimits { files: 2, bytes: 7 }));
    assert!(!too_large(CopyLimits { files: 2, bytes: 8 }));
}

#[test]
fn what_the_host_changed_meanwhile_is_not_a_change_of_the_session() {
    let (project, record) = project(|at| {
        for name in ["ours", "theirs", "both", "removed-there", "removed-here"] {
            fs::write(at.join(name), "old").unwrap();
        }
        fs::create_dir_all(at.join("gone/deep")).unwrap();
        fs::write(at.join("gone/deep/file"), "old").unwrap();
    });
    let (host, copy) = (project.project(), copy_of(&project));
    fs::write(host.join("theirs"), "new").unwrap();
    fs::write(host.join("made-there"), "new").unwrap();
    fs::create_dir(host.join("directory-made-there")).unwrap();
    fs::remove_file(host.join("removed-there")).unwrap();
    fs::remove_dir_all(host.join("gone")).unwrap();
    fs::write(host.join("both"), "their new one").unwrap();
    fs::write(copy.join("ours"), "our new one").unwrap();
    fs::write(copy.join("both"), "our new one").unwrap();
    fs::remove_file(copy.join("removed-here")).unwrap();
    assert_eq!(changes(&project, &record), "M both\nM ours\nD removed-here\n");
}

#[test]
fn a_directory_that_was_replaced_is_seen_as_a_whole() {
    let (project, record) = project(|at| {
        for name in ["one", "other"] {
            fs::create_dir_all(at.join(name).join("sub")).unwrap();
            fs::write(at.join(name).join("sub/file"), name).unwrap();
        }
    });
    let copy = copy_of(&project);
    // Of the files within, neither inode nor time tells.
    fs::rename(copy.join("one"), copy.join("aside")).unwrap();
    fs::rename(copy.join("other"), copy.join("one")).unwrap();
    fs::rename(copy.join("aside"), copy.join("other")).unwrap();
    assert_eq!(changes(&project, &record), "M one/sub/file\nM other/sub/file\n");
}

/// A file that the host made in a directory which the session removed must not go with it.
#[test]
fn what_the_host_made_in_a_removed_directory_is_a_conflict() {
    let (project, record) = project(|at| {
        fs::create_dir(at.join("d")).unwrap();
        fs::write(at.join("d/file"), "old").unwrap();
    });
    let baseline = Baseline::started(project.now());
    fs::write(project.project().join("d/made-there"), "new").unwrap();
    fs::remove_dir_all(copy_of(&project).join("d")).unwrap();
    let setting = Setting::of(&project, baseline, layers(&project, &record));
    let outcome = apply(&setting.request()).unwrap();
    let Outcome::Held(held) = outcome else { panic!("{outcome:?}") };
    assert_eq!(held.conflicts[0].path, Path::new("d/made-there"));
    assert_eq!(fs::read_to_string(project.project().join("d/made-there")).unwrap(), "new");
}

#[test]
fn applied_changes_of_a_copy_are_no_changes_any_more() {
    let (project, record) = project(|at| {
        fs::create_dir(at.join("d")).unwrap();
        fs::write(at.join("d/file"), "old").unwrap();
    });
    let baseline = Baseline::started(project.now());
    let copy = copy_of(&project);
    fs::rename(copy.join("d"), copy.join("e")).unwrap();
    fs::write(copy.join("e/new"), "new").unwrap();
    let setting = Setting::of(&project, baseline, layers(&project, &record));
    applied(apply(&ApplyRequest { ..setting.request() }));
    assert_eq!(differences(&snapshot(&project.project()), &snapshot(&copy)), [""; 0]);
    assert_eq!(changes(&project, &record), "");
}

/// What only looks like a mark of an overlay is a file like any other.
#[test]
fn marks_of_overlays_mean_nothing_in_a_copy() {
    let (project, record) = project(|at| {
        fs::create_dir(at.join("d")).unwrap();
        fs::write(at.join("d/file"), "old").unwrap();
    });
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(copy_of(&project).join("d"), "user.overlay.opaque", b"y", flags).unwrap();
    assert_eq!(changes(&project, &record), "");
}
