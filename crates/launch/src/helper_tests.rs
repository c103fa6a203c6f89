use super::*;
use palisade_sys::proc::exit_now;
use palisade_sys::test_child::in_child;

/// A helper that does nothing until it is ended.
fn idle(helpers: &Helpers, kind: HelperKind) -> Helper {
    helpers
        .start(kind, "testing", Vec::new(), |_| {
            loop {
                std::thread::park();
            }
        })
        .unwrap()
}

fn leaving(helpers: &Helpers, kind: HelperKind, code: i32) -> Helper {
    let helper = helpers.start(kind, "testing", Vec::new(), |_| exit_now(code)).unwrap();
    assert!(helper.0.ends_within(Duration::from_secs(20)));
    helper
}

fn killed(helper: &Helper) {
    proc::pidfd_send_signal(&helper.0.pidfd, sig::SIGKILL).unwrap();
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_helper_that_was_dismissed_did_not_die() {
    in_child(|| {
        let helpers = Helpers::default();
        let helper = idle(&helpers, HelperKind::Broker);
        assert_eq!(helpers.serving().len(), 1);
        assert_eq!(helpers.death(), None);
        helper.dismiss();
        assert!(helpers.serving().is_empty());
        assert_eq!(helpers.collect(), None);
        drop(helper);
        assert_eq!(helpers.death(), None);
    });
}

/// Killed first and dismissed then, with no time between to see it.
///
/// Proves: LIFE-4 helper-death
#[test]
fn a_helper_that_was_killed_before_it_was_dismissed_died() {
    in_child(|| {
        for kind in [
            HelperKind::Broker,
            HelperKind::Keeper,
            HelperKind::Egress,
            HelperKind::PublishedPorts,
            HelperKind::Nat,
        ] {
            let helpers = Helpers::default();
            let helper = idle(&helpers, kind);
            killed(&helper);
            helper.dismiss();
            let death = helpers.collect().unwrap();
            assert_eq!(death.helper, kind);
            assert!(death.to_string().contains("went away (killed by SIGKILL)"), "{death}");
        }
    });
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_death_that_only_its_owner_saw_is_remembered() {
    in_child(|| {
        let helpers = Helpers::default();
        let helper = idle(&helpers, HelperKind::Keeper);
        killed(&helper);
        drop(helper);
        assert_eq!(helpers.death().unwrap().helper, HelperKind::Keeper);
        // A later one, started in its place, changes nothing about that.
        drop(idle(&helpers, HelperKind::Keeper));
        assert!(helpers.collect().is_some());
    });
}

/// Proves: LIFE-4 helper-death
#[test]
fn only_who_says_so_may_leave_by_itself() {
    in_child(|| {
        for (kind, code, died) in [
            (HelperKind::Broker, 0, false),
            (HelperKind::Broker, 1, true),
            (HelperKind::Keeper, 1, false),
            (HelperKind::Egress, 0, true),
            (HelperKind::PublishedPorts, 0, true),
            (HelperKind::Nat, 0, true),
        ] {
            let helpers = Helpers::default();
            let _helper = leaving(&helpers, kind, code);
            assert_eq!(helpers.death().is_some(), died, "{kind:?} {code}");
        }
        let helpers = Helpers::default();
        let egress = idle(&helpers, HelperKind::Egress);
        egress.expect_end();
        killed(&egress);
        assert!(helpers.collect().is_some(), "killed before it left");
    });
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_run_goes_on_without_a_worker() {
    in_child(|| {
        let helpers = Helpers::default();
        let worker = idle(&helpers, HelperKind::Worker);
        killed(&worker);
        assert!(worker.0.ends_within(Duration::from_secs(20)));
        assert_eq!(helpers.death(), None);
        drop(leaving(&helpers, HelperKind::Worker, 1));
        assert_eq!(helpers.collect(), None);
    });
}
