//! Stops an apply at every step, and the recovery after it at every step, too. What is on the host in the end is all of the
//! changes or none of them.

use super::faults::Faults;
use super::recovery::recover_with;
use super::tests::{Setting, applied, assert_clean};
use super::{ApplyRequest, Baseline, Recovery, Source, apply_with, recover};
use crate::test_overlay::{TestOverlay, directory, snapshot, without_times};
use crate::{ChangesError, Result};
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

struct StopAt {
    step: u32,
    last: u32,
}

impl StopAt {
    fn new(last: u32) -> Self {
        Self { step: 0, last }
    }
}

impl Faults for StopAt {
    fn step(&mut self) -> Result<()> {
        self.step += 1;
        if self.step == self.last {
            return Err(ChangesError::Stopped { step: self.step });
        }
        Ok(())
    }
}

/// All kinds of operations. In memory, where flushing costs nothing.
fn changed_project() -> (TestOverlay, Baseline) {
    let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
        for name in ["modified", "removed", "mode", "becomes-tree"] {
            fs::write(project.join(name), name).unwrap();
        }
        for name in ["gone/deep", "becomes-file/deep"] {
            fs::create_dir_all(project.join(name)).unwrap();
            fs::write(project.join(name).join("inner"), "inner").unwrap();
        }
        fs::set_permissions(project.join("gone"), fs::Permissions::from_mode(0o555)).unwrap();
    });
    let baseline = Baseline::started(overlay.now());
    overlay.session(|root| {
        fs::write(root.join("modified"), "other content").unwrap();
        fs::remove_file(root.join("removed")).unwrap();
        fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o711)).unwrap();
        fs::remove_dir_all(root.join("gone")).unwrap();
        fs::remove_dir_all(root.join("becomes-file")).unwrap();
        fs::write(root.join("becomes-file"), "a file").unwrap();
        fs::remove_file(root.join("becomes-tree")).unwrap();
        fs::create_dir(root.join("becomes-tree")).unwrap();
        fs::write(root.join("becomes-tree/inner"), "a tree").unwrap();
        fs::create_dir_all(root.join("new/tree")).unwrap();
        fs::write(root.join("new/tree/file"), "new").unwrap();
        symlink("file", root.join("new/tree/link")).unwrap();
        fs::set_permissions(root.join("new"), fs::Permissions::from_mode(0o555)).unwrap();
    });
    (overlay, baseline)
}

fn crash_everywhere(
    source: Source,
    recovery_steps: &[u32],
    changed_project: impl Fn() -> (TestOverlay, Baseline),
) {
    let (overlay, baseline) = changed_project();
    let before = snapshot(&overlay.project());
    let setting = Setting::new(&overlay, baseline);
    let mut count = StopAt::new(0);
    applied(apply_with(&ApplyRequest { source, ..setting.request() }, &mut count));
    let after = snapshot(&overlay.project());
    assert_ne!(before, after);
    let (mut undone, mut finished) = (0, 0);
    for step in 1..=count.step {
        // In the first recovery after each crash, stop at a different step, and then not at all.
        for &recovery_step in recovery_steps {
            let (overlay, baseline) = changed_project();
            let before = snapshot(&overlay.project());
            let setting = Setting::new(&overlay, baseline);
            let request = ApplyRequest { source, ..setting.request() };
            let crashed = apply_with(&request, &mut StopAt::new(step));
            assert!(matches!(crashed, Err(ChangesError::Stopped { .. })), "{crashed:?}");
            let state = directory(&overlay.state());
            let layers = overlay.layers();
            let first = recover_with(&layers, state.as_fd(), &mut StopAt::new(recovery_step)).ok();
            let second = recover(&layers, state.as_fd()).unwrap();
            let found = snapshot(&overlay.project());
            let name = format!("step {step}, then {recovery_step}: {first:?}, {second:?}");
            if found == before {
                undone += 1;
                assert!(![first, Some(second)].contains(&Some(Recovery::Finished)), "{name}");
            } else {
                assert_eq!(without_times(&found), without_times(&after), "{name}");
                finished += 1;
                assert!(![first, Some(second)].contains(&Some(Recovery::Undone)), "{name}");
                assert!(crate::scan(&overlay.layers()).unwrap().is_empty(), "{name}");
            }
            assert_eq!(recover(&layers, state.as_fd()).unwrap(), Recovery::Nothing, "{name}");
            assert_clean(&overlay);
        }
    }
    assert!(undone > 20 && finished > 20, "{undone} {finished}");
}

#[test]
fn after_a_crash_at_any_step_all_copies_are_applied_or_none() {
    crash_everywhere(Source::Copy, &[0, 1, 2, 3, 5, 8, 13, 21], changed_project);
}

/// The copies are then in the project's root.
#[test]
fn after_a_crash_at_any_step_a_journal_on_another_file_system_serves_as_well() {
    crash_everywhere(Source::Copy, &[0, 3], || {
        let (overlay, baseline) = changed_project();
        (overlay.with_state_elsewhere(), baseline)
    });
}

#[test]
fn after_a_crash_at_any_step_everything_was_moved_or_nothing() {
    crash_everywhere(Source::Move, &[0, 1, 2, 3, 5, 8, 13, 21], changed_project);
}

/// An operation fails, and while it is undone, the power goes.
#[test]
fn an_apply_that_failed_is_undone_even_if_that_is_interrupted() {
    struct Sabotage<'s> {
        overlay: &'s TestOverlay,
        stop: StopAt,
    }
    impl Faults for Sabotage<'_> {
        fn step(&mut self) -> Result<()> {
            // The last of the operations that install something finds another file.
            if self.overlay.state().join("apply-journal").exists() {
                let file = self.overlay.project().join("new");
                let _ = fs::write(file, "by the host");
            }
            self.stop.step()
        }
    }
    let mut stopped = 0;
    for last in 1.. {
        let (overlay, baseline) = changed_project();
        let mut before = snapshot(&overlay.project());
        let setting = Setting::new(&overlay, baseline);
        let mut sabotage = Sabotage { overlay: &overlay, stop: StopAt::new(last) };
        let failed = apply_with(&setting.request(), &mut sabotage);
        let is_stopped = matches!(failed, Err(ChangesError::Stopped { .. }));
        let state = directory(&overlay.state());
        let recovery = recover(&overlay.layers(), state.as_fd()).unwrap();
        let mut found = snapshot(&overlay.project());
        if found.remove(Path::new("new")).is_none() {
            // Stopped before the operations.
            assert_ne!(recovery, Recovery::Finished);
        }
        before.remove(Path::new("new"));
        assert_eq!(found, before, "step {last}: {failed:?}");
        assert_clean(&overlay);
        if !is_stopped {
            assert!(matches!(failed, Err(ChangesError::ChangedOnHost { .. })), "{failed:?}");
            break;
        }
        stopped += 1;
    }
    assert!(stopped > 30, "{stopped}");
}

/// Records that are not ours, or damaged, change nothing.
#[test]
fn a_damaged_journal_is_not_carried_out() {
    let (overlay, baseline) = changed_project();
    let setting = Setting::new(&overlay, baseline);
    for last in 1.. {
        let crashed = apply_with(&setting.request(), &mut StopAt::new(last));
        assert!(crashed.is_err());
        if overlay.state().join("apply-journal").exists() {
            break;
        }
        recover(&setting.layers, setting.state.as_fd()).unwrap();
    }
    let before = snapshot(&overlay.project());
    let journal = overlay.state().join("apply-journal");
    let mut bytes = fs::read(&journal).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let recovered = recover(&setting.layers, setting.state.as_fd());
    assert!(matches!(recovered, Err(ChangesError::Journal { .. })), "{recovered:?}");
    assert!(matches!(
        apply_with(&setting.request(), &mut StopAt::new(0)),
        Err(ChangesError::Interrupted)
    ));
    assert_eq!(snapshot(&overlay.project()), before);
}
