use crate::fake::{FakeTree, plan, policy, user};
use palisade_policy::model::{Mode, OnAsk};

fn summary(change: impl FnOnce(&mut palisade_policy::model::Policy)) -> String {
    let mut policy = policy();
    change(&mut policy);
    plan(&policy, &user(), &FakeTree::new()).unwrap().summary().join("\n")
}

/// Proves: LIFE-3 plan-summary
#[test]
fn a_plan_is_told_in_ten_lines() {
    let names = format!("{} names", palisade_guard::count());
    insta::assert_snapshot!(summary(|_| {}).replace(&names, "N names"), @r"
    command    true, in /home/u/project
    project    /home/u/project (git root), writable
    isolation  full (LEVEL_2), own namespaces, uid 1000, Landlock ABI 6, system call filter
    files      readable: system; writable: project; the home directory is private
    protected  N names that the host would run later, and git's hooks and settings
    variables  5; not passed on: GH_TOKEN
    network    none
    questions  about what is not granted; denied after 300 s without an answer
    limits     none
    promises   19 enforced, 1 advisory (PROC-8); details: sandbox plan --full
    ");
}

/// Proves: LIFE-3 plan-summary
#[test]
fn what_was_chosen_shows_in_its_line() {
    let chosen = summary(|policy| {
        policy.process.env.insert("MODE".to_owned(), "quick".to_owned());
        policy.process.env.insert("API_KEY".to_owned(), "hunter2".to_owned());
        policy.resources.timeout = Some(90_000);
        policy.on_ask = OnAsk::Deny;
    });
    assert_eq!(chosen.lines().count(), 10, "{chosen}");
    assert!(chosen.contains("set: API_KEY, MODE=quick"), "{chosen}");
    assert!(!chosen.contains("hunter2"), "{chosen}");
    assert!(chosen.contains("limits     timeout 90s"), "{chosen}");
    assert!(chosen.contains("questions  none; what is not granted is denied"), "{chosen}");
    let fixed = summary(|policy| policy.mode = Mode::Static);
    assert!(fixed.contains("questions  none; what is not granted is hidden"), "{fixed}");
}
