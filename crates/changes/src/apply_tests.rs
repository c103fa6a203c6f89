use super::apply;
use super::apply_with;
use super::faults::Faults;
use super::{
    ApplyRequest, BaseContents, Baseline, ConflictReason, Held, OnConflict, OnRefused, Outcome,
    RefusedReason, Source,
};
use crate::test_overlay::{TestOverlay, directory, snapshot};
use crate::{Applied, ChangesError, GuardJudge, Layers, NoJudge, Result, Selection, hunks, scan};
use palisade_guard::{MatchContext, Matcher};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A request with usual values, which tests change.
pub(crate) struct Setting {
    pub(super) layers: Layers,
    pub(super) state: OwnedFd,
    pub(super) baseline: Baseline,
    pub(super) selection: Selection,
}

impl Setting {
    pub(crate) fn new(overlay: &TestOverlay, baseline: Baseline) -> Self {
        Self::of(overlay, baseline, overlay.layers())
    }

    /// With layers of another kind.
    pub(crate) fn of(overlay: &TestOverlay, baseline: Baseline, layers: Layers) -> Self {
        let state = directory(&overlay.state());
        Self { layers, state, baseline, selection: Selection::all() }
    }

    pub(crate) fn request(&self) -> ApplyRequest<'_> {
        ApplyRequest {
            layers: &self.layers,
            state: self.state.as_fd(),
            baseline: &self.baseline,
            selection: &self.selection,
            hidden: &[],
            judge: &NoJudge,
            on_conflict: OnConflict::Refuse,
            on_refused: OnRefused::ApplyNothing,
            source: Source::Copy,
        }
    }
}

pub(crate) fn applied(outcome: Result<Outcome>) -> Applied {
    match outcome.unwrap() {
        Outcome::Applied(applied) => applied,
        Outcome::Held(held) => panic!("{held:?}"),
    }
}

fn held(outcome: Result<Outcome>) -> Held {
    match outcome.unwrap() {
        Outcome::Held(held) => held,
        Outcome::Applied(applied) => panic!("{applied:?}"),
    }
}

/// No staged copy and no record stays.
pub(super) fn assert_clean(overlay: &TestOverlay) {
    let left: Vec<_> = fs::read_dir(overlay.state()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let is_stage = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".palisade");
    assert!(!fs::read_dir(overlay.project()).unwrap().any(|e| is_stage(&e.unwrap().file_name())));
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn guard(overlay: &TestOverlay) -> GuardJudge {
    GuardJudge::new(Matcher::new(MatchContext::default()), overlay.project(), Vec::new())
}

/// F14, F16: privileges of files stay behind, whichever way they come.
#[test]
fn set_id_bits_and_attributes_of_overlays_do_not_reach_the_host() {
    for source in [Source::Copy, Source::Move] {
        let overlay = TestOverlay::new(|project| {
            fs::write(project.join("changed"), "old").unwrap();
            fs::write(project.join("only-mode"), "same").unwrap();
        });
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            fs::create_dir(root.join("tree")).unwrap();
            for name in ["new", "tree/new", "changed"] {
                fs::write(root.join(name), "program").unwrap();
                set_mode(&root.join(name), 0o6755);
            }
            set_mode(&root.join("only-mode"), 0o4755);
            let flags = rustix::fs::XattrFlags::empty();
            let tree = root.join("tree");
            rustix::fs::setxattr(&tree, "user.overlay.opaque", b"y", flags).unwrap();
            rustix::fs::setxattr(&tree, "user.own", b"kept", flags).unwrap();
        });
        let setting = Setting::new(&overlay, baseline);
        applied(apply(&ApplyRequest { source, ..setting.request() }));
        let project = overlay.project();
        for name in ["new", "tree/new", "changed", "only-mode"] {
            assert_eq!(mode_of(&project.join(name)), 0o755, "{name} {source:?}");
        }
        let mut names = vec![0; 1000];
        let length = rustix::fs::listxattr(project.join("tree"), names.as_mut_slice()).unwrap();
        let names = String::from_utf8_lossy(&names[..length]).into_owned();
        assert!(!names.contains("overlay") && names.contains("user.own"), "{names} {source:?}");
        assert_clean(&overlay);
    }
}

#[test]
fn devices_pipes_sockets_and_links_that_lead_out_are_refused_and_listed() {
    let overlay = TestOverlay::new(|_| {});
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        drop(UnixListener::bind(root.join("socket")).unwrap());
        symlink("/etc/passwd", root.join("absolute")).unwrap();
        symlink("../outside", root.join("climbing")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        symlink("../fine", root.join("d/link")).unwrap();
        symlink("../../climbing", root.join("d/bad")).unwrap();
        fs::write(root.join("fine"), "fine").unwrap();
        fs::create_dir(root.join(".palisade-apply-x")).unwrap();
        fs::write(root.join(".palisade-apply-x/journal"), "").unwrap();
    });
    let setting = Setting::new(&overlay, baseline);
    let refused: Vec<(PathBuf, RefusedReason)> = held(apply(&setting.request()))
        .refused
        .into_iter()
        .map(|refused| (refused.path, refused.reason))
        .collect();
    let expected = [
        (".palisade-apply-x", RefusedReason::ReservedName),
        ("absolute", RefusedReason::LinkLeavesProject),
        ("climbing", RefusedReason::LinkLeavesProject),
        ("d/bad", RefusedReason::LinkLeavesProject),
        ("pipe", RefusedReason::SpecialFile),
        ("socket", RefusedReason::SpecialFile),
    ];
    assert_eq!(refused, expected.map(|(path, reason)| (PathBuf::from(path), reason)));
    assert_eq!(snapshot(&overlay.project()).len(), 0, "nothing was applied");
    for source in [Source::Copy, Source::Move] {
        let rest = OnRefused::ApplyRest;
        applied(apply(&ApplyRequest { on_refused: rest, source, ..setting.request() }));
        let names: Vec<_> = snapshot(&overlay.project()).into_keys().collect();
        assert_eq!(names, ["d", "d/link", "fine"].map(PathBuf::from));
    }
    assert_clean(&overlay);
}

/// FS-9
#[test]
fn what_the_host_would_run_later_is_not_applied() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join(".git/hooks")).unwrap();
        fs::write(project.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
        fs::write(root.join(".git/config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        fs::write(root.join(".envrc"), "evil").unwrap();
        fs::write(root.join("main.c"), "int main;").unwrap();
    });
    let judge = guard(&overlay);
    let setting = Setting::new(&overlay, baseline);
    let request = ApplyRequest { judge: &judge, ..setting.request() };
    let paths = |held: Held| held.refused.into_iter().map(|one| one.path).collect::<Vec<_>>();
    let expected = [".envrc", ".git/config", ".git/hooks/pre-commit"].map(PathBuf::from);
    assert_eq!(paths(held(apply(&request))), expected);
    assert!(!overlay.project().join("main.c").exists());
    let request = ApplyRequest { on_refused: OnRefused::ApplyRest, ..request };
    assert_eq!(applied(apply(&request)).refused.len(), 3);
    assert!(overlay.project().join("main.c").exists());
    assert!(!overlay.project().join(".envrc").exists());
    // Harmless settings pass.
    overlay.session(|root| {
        let harmless = "[core]\n\tbare = false\n[user]\n\tname = me\n";
        fs::write(root.join(".git/config"), harmless).unwrap();
    });
    let setting = Setting::new(&overlay, setting.baseline.clone());
    let request = ApplyRequest { judge: &judge, ..setting.request() };
    applied(apply(&ApplyRequest { on_refused: OnRefused::ApplyRest, ..request }));
    let config = fs::read_to_string(overlay.project().join(".git/config")).unwrap();
    assert!(config.contains("name = me"));
}

struct Base(&'static str);

impl BaseContents for Base {
    fn base(&self, _: &Path) -> Option<Vec<u8>> {
        Some(self.0.as_bytes().to_vec())
    }
}

struct NoBase;

impl BaseContents for NoBase {
    fn base(&self, _: &Path) -> Option<Vec<u8>> {
        None
    }
}

const BASE: &str = "1\n2\n3\n4\n5\n";

/// Both sides change `both`, in different lines; the host deletes `deleted`, which the session changes.
fn with_conflicts() -> (TestOverlay, Baseline) {
    let overlay = TestOverlay::new(|project| {
        for name in ["both", "session", "host", "removed"] {
            fs::write(project.join(name), BASE).unwrap();
        }
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join("both"), "1\n2\n3\n4\nFIVE\n").unwrap();
        fs::write(root.join("session"), "by the session\n").unwrap();
        fs::remove_file(root.join("removed")).unwrap();
    });
    fs::write(overlay.project().join("both"), "ONE\n2\n3\n4\n5\n").unwrap();
    fs::write(overlay.project().join("host"), "by the host\n").unwrap();
    fs::write(overlay.project().join("removed"), "but changed\n").unwrap();
    (overlay, baseline)
}

#[test]
fn what_changed_on_the_host_meanwhile_is_a_conflict() {
    let (overlay, baseline) = with_conflicts();
    let setting = Setting::new(&overlay, baseline);
    let read = |name: &str| fs::read_to_string(overlay.project().join(name)).ok();
    let conflicts = held(apply(&setting.request())).conflicts;
    let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.clone()).collect();
    assert_eq!(paths, ["both", "removed"].map(PathBuf::from));
    assert_eq!(read("session").as_deref(), Some(BASE));

    let request = ApplyRequest { on_conflict: OnConflict::KeepHost, ..setting.request() };
    assert_eq!(applied(apply(&request)).kept.len(), 2);
    assert_eq!(read("session").as_deref(), Some("by the session\n"));
    assert_eq!(read("both").as_deref(), Some("ONE\n2\n3\n4\n5\n"));

    let request = ApplyRequest { on_conflict: OnConflict::Force, ..setting.request() };
    applied(apply(&request));
    assert_eq!(read("both").as_deref(), Some("1\n2\n3\n4\nFIVE\n"));
    assert_eq!(read("removed"), None);
    assert_eq!(read("host").as_deref(), Some("by the host\n"));
    assert_clean(&overlay);
}

#[test]
fn versions_that_fit_together_are_merged() {
    let (overlay, baseline) = with_conflicts();
    let mut setting = Setting::new(&overlay, baseline);
    setting.selection = Selection::paths(["both"]);
    let without = ApplyRequest { on_conflict: OnConflict::Merge(&NoBase), ..setting.request() };
    assert_eq!(held(apply(&without)).conflicts[0].reason, ConflictReason::NoBase);
    let apart = Base("completely\ndifferent\n");
    let apart = ApplyRequest { on_conflict: OnConflict::Merge(&apart), ..setting.request() };
    assert_eq!(held(apply(&apart)).conflicts[0].reason, ConflictReason::CannotMerge);
    let base = Base(BASE);
    let request = ApplyRequest { on_conflict: OnConflict::Merge(&base), ..setting.request() };
    assert_eq!(applied(apply(&request)).merged, [PathBuf::from("both")]);
    let merged = fs::read_to_string(overlay.project().join("both")).unwrap();
    assert_eq!(merged, "ONE\n2\n3\n4\nFIVE\n");
}

#[test]
fn a_file_that_the_host_deleted_is_a_conflict_and_one_that_the_session_moved_is_not() {
    let overlay = TestOverlay::new(|project| {
        fs::write(project.join("deleted"), "one\n").unwrap();
        fs::write(project.join("moved"), "something else\n").unwrap();
        fs::create_dir(project.join("d")).unwrap();
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join("deleted"), "changed\n").unwrap();
        fs::rename(root.join("moved"), root.join("d/moved")).unwrap();
        fs::write(root.join("d/moved"), "and rewritten completely").unwrap();
    });
    fs::remove_file(overlay.project().join("deleted")).unwrap();
    let setting = Setting::new(&overlay, baseline);
    let conflicts = held(apply(&setting.request())).conflicts;
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(conflicts[0].path, Path::new("deleted"));
    assert_eq!(conflicts[0].reason, ConflictReason::DeletedOnHost);
    applied(apply(&ApplyRequest { on_conflict: OnConflict::Force, ..setting.request() }));
    assert!(overlay.project().join("deleted").exists());
}

#[test]
fn a_transaction_goes_on_after_an_apply() {
    let overlay = TestOverlay::new(|project| fs::write(project.join("f"), "0").unwrap());
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| fs::write(root.join("f"), "one").unwrap());
    let setting = Setting::new(&overlay, baseline);
    let first = applied(apply(&setting.request()));
    assert!(scan(&setting.layers).unwrap().is_empty());
    overlay.session(|root| fs::write(root.join("f"), "second").unwrap());
    // Our own apply is no change of the host's; what somebody writes after it is.
    let again = Setting::new(&overlay, first.baseline.clone());
    let second = applied(apply(&again.request()));
    assert_eq!(fs::read_to_string(overlay.project().join("f")).unwrap(), "second");
    overlay.session(|root| fs::write(root.join("f"), "the third").unwrap());
    fs::write(overlay.project().join("f"), "by the host").unwrap();
    let third = Setting::new(&overlay, second.baseline);
    assert_eq!(held(apply(&third.request())).conflicts.len(), 1);
}

#[test]
fn paths_and_hunks_can_be_chosen() {
    let lines = |changed: &[usize]| -> String {
        (0..30)
            .map(|line| {
                let mark = if changed.contains(&line) { "new" } else { "old" };
                format!("{mark} {line}\n")
            })
            .collect()
    };
    let overlay = TestOverlay::new(|project| fs::write(project.join("f"), lines(&[])).unwrap());
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join("f"), lines(&[1, 28])).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/chosen"), "").unwrap();
        fs::write(root.join("a/b/other"), "").unwrap();
        fs::write(root.join("ab"), "").unwrap();
    });
    let mut setting = Setting::new(&overlay, baseline);
    let set = scan(&setting.layers).unwrap();
    let file = hunks(&setting.layers, set.get(Path::new("f")).unwrap()).unwrap().unwrap();
    let chosen = file.choose(&BTreeSet::from([1]));
    setting.selection = Selection::paths(["./a/b/chosen", "../f"]).with_hunks(chosen.clone());
    applied(apply(&setting.request()));
    let names: Vec<_> = snapshot(&overlay.project()).into_keys().collect();
    assert_eq!(names, ["a", "a/b", "a/b/chosen", "f"].map(PathBuf::from));
    assert_eq!(fs::read_to_string(overlay.project().join("f")).unwrap(), lines(&[28]));
    // The file is another one now: the same choice no longer fits.
    assert_eq!(held(apply(&setting.request())).conflicts.len(), 1);
}

/// Acts on the host in the middle of an apply.
struct Interference<F>(u32, F);

impl<F: FnMut(u32)> Faults for Interference<F> {
    fn step(&mut self) -> Result<()> {
        self.0 += 1;
        (self.1)(self.0);
        Ok(())
    }
}

/// Whenever the host changes a file, its change is either seen as a conflict, or comes after the apply: it is never lost.
#[test]
fn a_change_of_the_host_during_an_apply_is_never_lost() {
    let mut undone = 0;
    for at in 1.. {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
            for name in ["a", "b", "c"] {
                fs::write(project.join(name), name).unwrap();
            }
        });
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            fs::write(root.join("a"), "session").unwrap();
            fs::write(root.join("b"), "session").unwrap();
            fs::remove_file(root.join("c")).unwrap();
        });
        let before = snapshot(&overlay.project());
        let setting = Setting::new(&overlay, baseline);
        let file = overlay.project().join("b");
        let mut has_come = false;
        let mut interference = Interference(0, |step| {
            if step == at {
                fs::write(overlay.project().join("tmp"), "by the host").unwrap();
                fs::rename(overlay.project().join("tmp"), &file).unwrap();
                has_come = true;
            }
        });
        let outcome = apply_with(&setting.request(), &mut interference);
        if !has_come {
            break;
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "by the host", "step {at}");
        match outcome {
            Ok(_) => assert_eq!(fs::read(overlay.project().join("a")).unwrap(), b"session"),
            Err(ChangesError::ChangedOnHost { path }) => {
                assert_eq!(path, Path::new("b"));
                let mut after = snapshot(&overlay.project());
                after.insert(PathBuf::from("b"), before[Path::new("b")].clone());
                assert_eq!(after, before, "step {at}");
                undone += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert_clean(&overlay);
    }
    assert!(undone > 3, "{undone}");
}

/// The session deletes a directory, and the host puts a file into it.
#[test]
fn a_new_file_of_the_host_in_a_deleted_directory_is_never_lost() {
    let mut undone = 0;
    for at in 1.. {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
            fs::create_dir_all(project.join("gone/deep")).unwrap();
            fs::create_dir_all(project.join("file/deep")).unwrap();
        });
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            fs::remove_dir_all(root.join("gone")).unwrap();
            fs::remove_dir_all(root.join("file")).unwrap();
            fs::write(root.join("file"), "file").unwrap();
        });
        let setting = Setting::new(&overlay, baseline);
        let (mut has_come, mut is_written) = (false, false);
        let mut interference = Interference(0, |step| {
            if step == at {
                has_come = true;
                for name in ["gone/deep/new", "file/deep/new"] {
                    is_written |= fs::write(overlay.project().join(name), "by the host").is_ok();
                }
            }
        });
        let outcome = apply_with(&setting.request(), &mut interference);
        if !has_come {
            break;
        }
        match outcome {
            Ok(_) => assert!(!is_written, "step {at}"),
            Err(ChangesError::ChangedOnHost { .. }) => undone += 1,
            Err(error) => panic!("{error}"),
        }
        let found = snapshot(&overlay.project());
        assert_eq!(is_written, found.keys().any(|path| path.ends_with("new")), "step {at}");
        assert_clean(&overlay);
    }
    assert!(undone > 3, "{undone}");
}

#[test]
fn only_one_apply_works_on_a_project() {
    let overlay = TestOverlay::new(|_| {});
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| fs::write(root.join("f"), "").unwrap());
    let setting = Setting::new(&overlay, baseline);
    let lock = fs::File::open(overlay.project()).unwrap();
    lock.lock().unwrap();
    assert!(matches!(apply(&setting.request()), Err(ChangesError::Busy)));
    drop(lock);
    applied(apply(&setting.request()));
}

/// The host's directory is closed to writing; the session opened it, wrote, and closed it again.
#[test]
fn a_directory_that_is_closed_to_writing_gets_its_changes_and_stays_closed() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("closed/gone/deep")).unwrap();
        fs::write(project.join("closed/f"), "old").unwrap();
        fs::write(project.join("closed/gone/deep/x"), "x").unwrap();
        set_mode(&project.join("closed/gone/deep"), 0o555);
        set_mode(&project.join("closed/gone"), 0o555);
        set_mode(&project.join("closed"), 0o555);
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join("closed/f"), "new").unwrap();
        fs::create_dir(root.join("closed/tree")).unwrap();
        fs::write(root.join("closed/tree/y"), "y").unwrap();
        set_mode(&root.join("closed/tree"), 0o500);
        fs::remove_dir_all(root.join("closed/gone")).unwrap();
    });
    let setting = Setting::new(&overlay, baseline);
    applied(apply(&setting.request()));
    let closed = overlay.project().join("closed");
    assert_eq!(mode_of(&closed), 0o555);
    assert_eq!(mode_of(&closed.join("tree")), 0o500);
    assert_eq!(fs::read_to_string(closed.join("f")).unwrap(), "new");
    assert!(!closed.join("gone").exists());
    assert_clean(&overlay);
}

/// An empty directory has nothing below it to stage.
#[test]
fn an_empty_directory_is_applied_while_the_session_goes_on() {
    for source in [Source::Copy, Source::Move] {
        let overlay = TestOverlay::new(|project| fs::write(project.join("file"), "").unwrap());
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            for name in ["a", "m", "z"] {
                fs::create_dir(root.join(name)).unwrap();
            }
            fs::write(root.join("m/in-it"), "").unwrap();
        });
        let setting = Setting::new(&overlay, baseline);
        let done = applied(apply(&ApplyRequest { source, ..setting.request() }));
        assert_eq!(done.paths.len(), 4, "{done:?}");
        for name in ["a", "m", "z"] {
            assert!(overlay.project().join(name).is_dir(), "{name}");
        }
        assert_clean(&overlay);
    }
}
