use super::{Decider, Decision};
use crate::pattern::Pattern;
use crate::rule::{Access, Effect, Origin, Rule, Store};
use jiff::Timestamp;
use proptest::prelude::*;
use std::path::Path;
use std::time::{Duration, Instant};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn rule(store: Store, effect: Effect, pattern: &str) -> Rule {
    Rule {
        effect,
        pattern: Pattern::parse(pattern, None).unwrap(),
        access: Access::Read,
        store,
        until: None,
        origin: Origin::default(),
    }
}

fn allow(pattern: &str) -> Rule {
    rule(Store::User, Effect::Allow, pattern)
}

fn deny(pattern: &str) -> Rule {
    rule(Store::User, Effect::Deny, pattern)
}

fn word(decision: Decision<'_>) -> &'static str {
    match decision {
        Decision::Allowed(_) => "allowed",
        Decision::Denied(_) => "denied",
        Decision::Ask => "ask",
    }
}

fn decide(decider: &mut Decider, path: &str, access: Access) -> &'static str {
    word(decider.decide(Path::new(path), access, at(0)))
}

fn read(rules: Vec<Rule>, path: &str) -> &'static str {
    decide(&mut Decider::new(rules, 8), path, Access::Read)
}

/// Proves: GATE-4 no-rule-no-grant
#[test]
fn where_no_rule_speaks_somebody_is_asked() {
    assert_eq!(read(vec![], "/x"), "ask");
    assert_eq!(read(vec![allow("/x/y")], "/x"), "ask");
    assert_eq!(read(vec![allow("/x/y")], "/x/y/z"), "ask");
    assert_eq!(read(vec![allow("/x/**")], "/xy"), "ask");
    assert_eq!(read(vec![allow("/x/**")], "x/y"), "ask");
}

/// Proves: GATE-4 revoked
#[test]
fn what_was_allowed_before_it_was_taken_back_does_not_count() {
    let mut decider = Decider::new(vec![allow("/x/**"), deny("/x/secret")], 8);
    assert_eq!(decide(&mut decider, "/x/y/z", Access::Read), "allowed");
    decider.revoke(Path::new("/x/y"));
    assert_eq!(decide(&mut decider, "/x/y/z", Access::Read), "ask");
    assert_eq!(decide(&mut decider, "/x/y", Access::Read), "ask");
    assert_eq!(decide(&mut decider, "/x/yz", Access::Read), "allowed");
    assert_eq!(decide(&mut decider, "/x/secret", Access::Read), "denied");
    assert!(decider.is_revoked(Path::new("/x/y/z")) && !decider.is_revoked(Path::new("/x")));
    assert!(!decider.denies_within(Path::new("/x/y"), at(0)), "it can be granted again");
    decider.add(rule(Store::Session, Effect::Allow, "/x/y/z"));
    assert_eq!(decide(&mut decider, "/x/y/z", Access::Read), "allowed");
    assert_eq!(decide(&mut decider, "/x/y/a", Access::Read), "ask");
    decider.revoke(Path::new("/x"));
    assert_eq!(decide(&mut decider, "/x/y/z", Access::Read), "ask");
    decider.add(rule(Store::Session, Effect::Allow, "/x/**"));
    assert_eq!(decide(&mut decider, "/x/y/a", Access::Read), "allowed");
}

/// Proves: GATE-4 revoked
#[test]
fn reading_that_is_allowed_again_brings_no_older_rule_for_writing_back() {
    let writing = Rule { access: Access::Write, ..allow("/x/**") };
    let mut decider = Decider::new(vec![writing], 8);
    assert_eq!(decide(&mut decider, "/x/y", Access::Write), "allowed");
    decider.revoke(Path::new("/x"));
    decider.add(rule(Store::Session, Effect::Allow, "/x/**"));
    assert_eq!(decide(&mut decider, "/x/y", Access::Read), "allowed");
    assert_eq!(decide(&mut decider, "/x/y", Access::Write), "ask");
    assert!(!decider.denies_within(Path::new("/"), at(0)), "all of it was allowed again");
}

/// Proves: GATE-4 revoked
#[test]
fn a_directory_is_not_granted_around_what_was_taken_back() {
    let mut decider = Decider::new(vec![allow("/x/**")], 8);
    decider.revoke(Path::new("/x/y"));
    assert!(decider.denies_within(Path::new("/x"), at(0)));
    assert!(!decider.denies_within(Path::new("/x/z"), at(0)));
}

/// Proves: GATE-4 store-order
#[test]
fn the_first_store_decides_and_denial_beats_permission_within_it() {
    use Effect::{Allow, Deny};
    use Store::{Organisation, Project, Session, User};
    let stores = [Organisation, Project, User, Session];
    for (index, first) in stores.into_iter().enumerate() {
        for second in &stores[index + 1..] {
            let permitted = vec![rule(*second, Deny, "/x"), rule(first, Allow, "/**")];
            assert_eq!(read(permitted, "/x"), "allowed", "{first} before {second}");
            let denied = vec![rule(*second, Allow, "/x"), rule(first, Deny, "/*")];
            assert_eq!(read(denied, "/x"), "denied", "{first} before {second}");
        }
        let both = vec![rule(first, Allow, "/x"), rule(first, Deny, "/**")];
        assert_eq!(read(both, "/x"), "denied", "{first}");
    }
}

/// Proves: GATE-4 access
#[test]
fn executing_includes_reading() {
    let executable = Rule { access: Access::Execute, ..allow("/x") };
    let not_executable = Rule { access: Access::Execute, ..deny("/x") };
    let cases = [
        (executable.clone(), "allowed", "allowed"),
        (allow("/x"), "allowed", "ask"),
        (not_executable.clone(), "ask", "denied"),
        (deny("/x"), "denied", "denied"),
    ];
    for (rule, reading, executing) in cases {
        let mut decider = Decider::new(vec![rule.clone()], 8);
        assert_eq!(decide(&mut decider, "/x", Access::Read), reading, "{rule:?}");
        assert_eq!(decide(&mut decider, "/x", Access::Execute), executing, "{rule:?}");
    }
    let mut both = Decider::new(vec![allow("/**"), not_executable], 8);
    assert_eq!(decide(&mut both, "/x", Access::Read), "allowed");
    assert_eq!(decide(&mut both, "/x", Access::Execute), "denied");
}

/// Proves: GATE-4 rule-until
#[test]
fn a_rule_ends_when_it_says_even_if_it_was_remembered() {
    let rules = vec![
        Rule { until: Some(at(10)), ..allow("/x") },
        Rule { until: Some(at(20)), ..deny("/x") },
    ];
    let mut decider = Decider::new(rules, 8);
    let x = Path::new("/x");
    assert_eq!(word(decider.decide(x, Access::Read, at(0))), "denied");
    assert_eq!(word(decider.decide(x, Access::Read, at(19))), "denied");
    assert_eq!(word(decider.decide(x, Access::Read, at(20))), "ask");
    decider.add(Rule { until: Some(at(30)), ..allow("/x") });
    assert_eq!(word(decider.decide(x, Access::Read, at(29))), "allowed");
    assert_eq!(word(decider.decide(x, Access::Read, at(30))), "ask");
}

/// Proves: GATE-4 session
#[test]
fn an_answer_counts_from_the_next_touch_on() {
    let mut decider = Decider::new(vec![], 8);
    assert_eq!(decide(&mut decider, "/x/y", Access::Read), "ask");
    decider.add(rule(Store::Session, Effect::Allow, "/x/**"));
    assert_eq!(decide(&mut decider, "/x/y", Access::Read), "allowed");
    decider.add(rule(Store::User, Effect::Deny, "/x/y"));
    assert_eq!(decide(&mut decider, "/x/y", Access::Read), "denied");
}

/// Proves: GATE-4 bounded-cache
#[test]
fn the_cache_does_not_grow_beyond_its_capacity() {
    for capacity in [0, 1, 2, 10] {
        let mut decider = Decider::new(vec![allow("/7")], capacity);
        for number in 0..100 {
            let expected = if number == 7 { "allowed" } else { "ask" };
            for access in [Access::Read, Access::Read, Access::Execute] {
                let expected = if access == Access::Execute { "ask" } else { expected };
                assert_eq!(decide(&mut decider, &format!("/{number}"), access), expected);
            }
            assert!(decider.cache.len() <= capacity.next_multiple_of(2), "{capacity}");
        }
    }
}

/// Proves: GATE-4 tree
#[test]
fn a_tree_that_holds_something_denied_is_known_as_such() {
    let decider = |pattern| Decider::new(vec![allow("/x/**"), deny(pattern)], 0);
    for pattern in ["/x/y/key", "/x/y", "/x/y/z/**", "/x/**", "/x/y/*.pem", "/x/*/key", "/**/key"] {
        assert!(decider(pattern).denies_within(Path::new("/x/y"), at(0)), "{pattern}");
    }
    for pattern in ["/x/z", "/x/yy/**", "/x/z/*.pem", "/x"] {
        assert!(!decider(pattern).denies_within(Path::new("/x/y"), at(0)), "{pattern}");
    }
    let over = Rule { until: Some(at(1)), ..deny("/x/y/key") };
    assert!(!Decider::new(vec![over], 0).denies_within(Path::new("/x/y"), at(1)));
}

/// The slowest a scan could be: every rule is looked at.
fn naive<'a>(rules: &'a [Rule], path: &Path, access: Access, now: Timestamp) -> Decision<'a> {
    let matching = rules
        .iter()
        .filter(|rule| rule.pattern.matches(path) && rule.covers(access) && rule.holds_at(now));
    match matching.min_by_key(|rule| (rule.store, rule.effect)) {
        None => Decision::Ask,
        Some(rule) if rule.effect == Effect::Deny => Decision::Denied(rule),
        Some(rule) => Decision::Allowed(rule),
    }
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let name =
        prop::sample::select(vec!["a", "b", "ab", "*", "*b", "**", "?", "longer-than-eight"]);
    let pattern = prop::collection::vec(name, 0..4);
    let store = prop::sample::select(vec![
        Store::Organisation,
        Store::Project,
        Store::User,
        Store::Session,
    ]);
    let until = prop::option::of(0i64..4);
    (pattern, store, any::<bool>(), any::<bool>(), until).prop_map(
        |(names, store, allows, executes, until)| Rule {
            access: if executes { Access::Execute } else { Access::Read },
            until: until.map(at),
            ..rule(
                store,
                if allows { Effect::Allow } else { Effect::Deny },
                &format!("/{}", names.join("/")),
            )
        },
    )
}

fn any_path() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(vec!["a", "b", "ab", "bb", "longer-than-eight", "xlonger-than-eight"]);
    prop::collection::vec(name, 0..5).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Proves: GATE-4 store-order, GATE-4 bounded-cache
    #[test]
    fn index_and_cache_agree_with_a_scan_of_all_rules(
        given in prop::collection::vec(any_rule(), 0..12),
        added in prop::collection::vec(any_rule(), 0..3),
        asked in prop::collection::vec((any_path(), any::<bool>()), 1..20),
    ) {
        let mut decider = Decider::new(given.clone(), 4);
        let mut rules = given;
        let mut added = added.into_iter();
        for (step, (path, executes)) in asked.iter().enumerate() {
            let access = if *executes { Access::Execute } else { Access::Read };
            let now = at(i64::try_from(step / 4).unwrap());
            let path = Path::new(path);
            prop_assert_eq!(decider.decide(path, access, now), naive(&rules, path, access, now));
            if step % 5 == 4 && let Some(rule) = added.next() {
                decider.add(rule.clone());
                rules.push(rule);
            }
        }
    }
}

/// Ten thousand rules of all sorts, without the cache: generous, since tests are not optimised and
/// the machine may be busy; a scan of all rules takes many times as long.
///
/// Proves: GATE-4 fast-decision
#[test]
fn ten_thousand_rules_are_not_all_looked_at() {
    let rules: Vec<Rule> = (0..10_000)
        .map(|number| match number % 4 {
            0 => allow(&format!("/srv/exact/{number}/file")),
            1 => allow(&format!("/srv/tree/{number}/**")),
            2 => deny(&format!("/srv/globs/{number}/*.h")),
            _ => deny(&format!("/srv/**/*.{number}")),
        })
        .collect();
    let paths: Vec<String> =
        (0..100).map(|n| format!("/srv/tree/{}/a/b/c/file.c", n * 7)).collect();
    let mut decider = Decider::new(rules.clone(), 0);
    let ours = quickest(|| {
        for path in &paths {
            std::hint::black_box(decider.decide(Path::new(path), Access::Read, at(0)));
        }
    });
    let scan = quickest(|| {
        for path in &paths[..10] {
            std::hint::black_box(naive(&rules, Path::new(path), Access::Read, at(0)));
        }
    });
    assert!(ours < scan, "{ours:?} for 100 decisions, {scan:?} for 10 by looking at all rules");
}

fn quickest(mut work: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.min().unwrap()
}
