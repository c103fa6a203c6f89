//! What a session, or another sandbox on the same project, does while an apply runs.

use super::faults::Faults;
use super::tests::{Setting, applied, assert_clean};
use super::{ApplyRequest, Baseline, apply, apply_with};
use crate::test_overlay::{TestOverlay, directory};
use crate::{ChangesError, GuardJudge, Layers, NoJudge, Result, Selection};
use crate::{OnConflict, OnRefused, Source};
use palisade_guard::{MatchContext, Matcher};
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

/// Acts at one step.
struct At<F> {
    step: u32,
    wanted: u32,
    act: F,
}

impl<F: FnMut()> Faults for At<F> {
    fn step(&mut self) -> Result<()> {
        self.step += 1;
        if self.step == self.wanted {
            (self.act)();
        }
        Ok(())
    }
}

/// A session that still runs has its files open. What was applied is a copy.
#[test]
fn a_session_that_goes_on_cannot_write_to_what_was_applied() {
    let overlay = TestOverlay::new(|project| fs::write(project.join("old"), "old").unwrap());
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::create_dir(root.join("dir")).unwrap();
        let mut open = Vec::new();
        for name in ["old", "dir/new"] {
            fs::write(root.join(name), "applied").unwrap();
            open.push(fs::OpenOptions::new().append(true).open(root.join(name)).unwrap());
        }
        let pinned = directory(&root.join("dir"));
        let setting = Setting::new(&overlay, baseline);
        applied(apply(&setting.request()));
        for file in &mut open {
            file.write_all(b" and more").unwrap();
        }
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        rustix::fs::openat(&pinned, "later", flags, rustix::fs::Mode::RWXU).unwrap();
        fs::write(root.join("dir/new"), "again").unwrap();
    });
    let read = |name: &str| fs::read_to_string(overlay.project().join(name)).unwrap();
    assert_eq!((read("old"), read("dir/new")), ("applied".to_owned(), "applied".to_owned()));
    assert!(!overlay.project().join("dir/later").exists());
}

const HARMLESS: &str = "[user]\n\tname = somebody2\n";
const EVIL: &str = "[core]\n\tfsmonitor = evil\n";

/// In place, with the same length and the same time: nothing tells that it changed.
fn rewrite(path: &Path, content: &str) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!(found.len(), content.len() as u64);
    (&file).write_all(content.as_bytes()).unwrap();
    file.set_modified(found.modified().unwrap()).unwrap();
}

/// The session waits until its harmless settings were judged, and then writes others.
#[test]
fn what_was_judged_is_what_is_written() {
    let mut failed = 0;
    for wanted in 1.. {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
            fs::create_dir(project.join(".git")).unwrap();
        });
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            fs::write(root.join(".git/config"), HARMLESS).unwrap();
            for name in ["plain", "link"] {
                fs::write(root.join(name), "as reviewed").unwrap();
            }
        });
        let matcher = Matcher::new(MatchContext::default());
        let judge = GuardJudge::new(matcher, overlay.project(), Vec::new());
        let setting = Setting::new(&overlay, baseline);
        let mut has_come = false;
        let mut swap = At {
            step: 0,
            wanted,
            act: || {
                has_come = true;
                let upper = overlay.upper();
                rewrite(&upper.join(".git/config"), EVIL);
                // The rest is noticed, at the latest when it is copied.
                if wanted % 2 == 0 {
                    fs::write(upper.join("plain"), "not as reviewed").unwrap();
                    fs::remove_file(upper.join("link")).unwrap();
                    symlink("/etc/passwd", upper.join("link")).unwrap();
                }
            },
        };
        let outcome = apply_with(&ApplyRequest { judge: &judge, ..setting.request() }, &mut swap);
        if !has_come {
            break;
        }
        let read = |name: &str| fs::read_to_string(overlay.project().join(name)).ok();
        let (config, plain) = (read(".git/config"), read("plain"));
        match outcome {
            Ok(_) => {
                assert_eq!(config.as_deref(), Some(HARMLESS), "step {wanted}");
                assert_eq!(plain.as_deref(), Some("as reviewed"), "step {wanted}");
                assert!(!overlay.project().join("link").is_symlink(), "step {wanted}");
            }
            Err(_) => {
                assert_eq!((config, plain), (None, None), "step {wanted}");
                failed += 1;
            }
        }
        assert_clean(&overlay);
    }
    assert!(failed > 0);
}

/// F20: a directory of the project becomes a link that leads out, at any moment.
#[test]
fn nothing_is_written_through_a_link_that_comes_meanwhile() {
    let mut refused = 0;
    for wanted in 1.. {
        let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
            fs::create_dir(project.join("d")).unwrap();
            fs::write(project.join("d/changed"), "old").unwrap();
            fs::write(project.join("d/gone"), "old").unwrap();
        });
        let outside = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::write(outside.path().join("changed"), "outside").unwrap();
        fs::write(outside.path().join("gone"), "outside").unwrap();
        let baseline = Baseline::started(overlay.now());
        overlay.session(|root| {
            fs::write(root.join("d/changed"), "new").unwrap();
            fs::write(root.join("d/added"), "new").unwrap();
            fs::remove_file(root.join("d/gone")).unwrap();
        });
        let setting = Setting::new(&overlay, baseline);
        let mut has_come = false;
        let mut swap = At {
            step: 0,
            wanted,
            act: || {
                has_come = true;
                fs::rename(overlay.project().join("d"), overlay.project().join("e")).unwrap();
                symlink(outside.path(), overlay.project().join("d")).unwrap();
            },
        };
        let outcome = apply_with(&setting.request(), &mut swap);
        if !has_come {
            break;
        }
        refused += u32::from(outcome.is_err());
        let mut names: Vec<_> =
            fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["changed", "gone"], "step {wanted}");
        for name in names {
            let content = fs::read_to_string(outside.path().join(name)).unwrap();
            assert_eq!(content, "outside", "step {wanted}");
        }
    }
    assert!(refused > 3, "{refused}");
}

/// A second name of a guarded file would let a later sandbox write to it.
#[test]
fn a_guarded_file_gets_no_second_name() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir(project.join(".git")).unwrap();
        fs::write(project.join(".git/config"), HARMLESS).unwrap();
        fs::write(project.join(".git/config.worktree"), HARMLESS).unwrap();
        fs::write(project.join(".envrc"), "mine").unwrap();
        fs::write(project.join("plain"), "plain").unwrap();
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        for (old, new) in [
            (".git/config", "one"),
            (".git/config.worktree", "two"),
            (".envrc", "three"),
            ("plain", "four"),
        ] {
            fs::hard_link(root.join(old), root.join(new)).unwrap();
        }
        // Changed through its second name.
        fs::write(root.join("two"), "[user]\n\tname = other\n").unwrap();
    });
    let matcher = Matcher::new(MatchContext::default());
    let judge = GuardJudge::new(matcher, overlay.project(), Vec::new());
    let setting = Setting::new(&overlay, baseline);
    applied(apply(&ApplyRequest { judge: &judge, ..setting.request() }));
    let links = |name: &str| fs::metadata(overlay.project().join(name)).unwrap().nlink();
    let names = [".git/config", "one", ".git/config.worktree", "two", ".envrc", "three"];
    assert_eq!(names.map(links), [1; 6]);
    assert_eq!(["plain", "four"].map(links), [2; 2]);
}

/// The session made a file of the same contents where the host's was hidden, and linked to it.
#[test]
fn a_hidden_file_gets_no_second_name() {
    let overlay = TestOverlay::new(|project| fs::write(project.join("hidden"), "guessed").unwrap());
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::remove_file(root.join("hidden")).unwrap();
        fs::write(root.join("hidden"), "guessed").unwrap();
        fs::hard_link(root.join("hidden"), root.join("seen")).unwrap();
    });
    let setting = Setting::new(&overlay, baseline);
    let hidden = [PathBuf::from("hidden")];
    let on_refused = OnRefused::ApplyRest;
    applied(apply(&ApplyRequest { hidden: &hidden, on_refused, ..setting.request() }));
    assert_eq!(fs::read_to_string(overlay.project().join("seen")).unwrap(), "guessed");
    let inode = |name: &str| fs::metadata(overlay.project().join(name)).unwrap().ino();
    assert_ne!(inode("seen"), inode("hidden"));
}

#[test]
fn changes_between_checkpoints_cannot_be_applied() {
    let mut overlay = TestOverlay::new(|_| {});
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| fs::write(root.join("one"), "").unwrap());
    overlay.add_layer();
    overlay.session(|root| fs::write(root.join("two"), "").unwrap());
    let layers: Layers = overlay.layers_since(2);
    let state = directory(&overlay.state());
    let request = ApplyRequest {
        layers: &layers,
        state: state.as_fd(),
        baseline: &baseline,
        selection: &Selection::all(),
        hidden: &[],
        judge: &NoJudge,
        on_conflict: OnConflict::Refuse,
        on_refused: OnRefused::ApplyNothing,
        source: Source::Copy,
    };
    assert!(matches!(apply(&request), Err(ChangesError::NotWhole)));
}
