use crate::decode::parse::parse;
use crate::diagnostic::{Diagnostic, Problem};
use crate::merge::{LayerKind, Merged, PolicyLayer, Subject, Trust, merge};
use crate::model::rule::StoredRule;
use crate::settings::joined;
use crate::syntax::tree::Format;
use crate::{Direction, diff, export, show_lines};
use LayerKind::{Organisation, Project, User};
use palisade_gate::{Access, Effect, Pattern, Store};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;

fn layer(kind: LayerKind, text: &str) -> PolicyLayer {
    let file = format!("{}.yaml", kind.name());
    let document = parse(text, &file, Format::Yaml).unwrap_or_else(|p| panic!("{text}: {p:?}"));
    PolicyLayer { kind, document }
}

fn merged(layers: Vec<PolicyLayer>) -> Merged {
    merge(&Subject::Run, layers).unwrap()
}

fn rules(text: &str) -> Vec<StoredRule> {
    merged(vec![layer(User, text)]).policy.filesystem.rules
}

fn complaints(text: &str) -> Vec<Diagnostic> {
    parse(text, "p.yaml", Format::Yaml).unwrap_err()
}

/// Proves: GATE-4 rules-in-policy
#[test]
fn a_rule_has_an_effect_a_pattern_an_access_a_time_and_an_author() {
    let text = "filesystem:\n  rules:\n    - allow: /opt/sdk/**\n      access: execute\n      until: \
                2027-01-31\n      by: ann\n      at: 2026-02-03T04:05:06Z\n      note: the SDK\n    \
                - deny: ~/diary\n";
    let found = rules(text);
    let [sdk, diary] = &found[..] else { panic!("{found:?}") };
    assert_eq!((sdk.effect, sdk.access), (Effect::Allow, Access::Execute));
    assert_eq!(sdk.until.unwrap().to_string(), "2027-02-01T00:00:00Z");
    assert_eq!(sdk.at.unwrap().to_string(), "2026-02-03T04:05:06Z");
    assert_eq!((sdk.by.as_deref(), sdk.note.as_deref()), (Some("ann"), Some("the SDK")));
    assert_eq!(sdk.place(), "user.yaml:3");
    assert_eq!((diary.effect, diary.access, diary.until), (Effect::Deny, Access::Read, None));
    let rule = diary.rule(Some(Path::new("/home/u"))).unwrap();
    assert_eq!(rule.pattern, Pattern::Exact("/home/u/diary".into()));
    assert_eq!(rule.origin.place, "user.yaml:9");
}

/// Proves: POL-2 wrong-type
#[test]
fn mistakes_in_a_rule_are_told_where_they_are() {
    let cases = [
        ("rules: /x", 1, "a list"),
        ("rules:\n  - /x", 2, "`allow` or `deny`"),
        ("rules:\n  - access: read", 2, "exactly one of"),
        ("rules:\n  - allow: /x\n    deny: /y", 2, "exactly one of"),
        ("rules:\n  - allow: x", 2, "begins with / or ~/"),
        ("rules:\n  - allow: /x/a**", 2, "`**` stands alone"),
        ("rules:\n  - allow: /x\n    acces: read", 3, "(nearest: access)"),
        ("rules:\n  - allow: /x\n    access: append", 3, "read, execute or write"),
        ("rules:\n  - allow: /x\n    until: soon", 3, "a date"),
        ("rules:\n  - allow: /x\n    note: [1]", 3, "`note` is text"),
        ("rules:\n  - allow: /x\n    note: a\n    note: b", 4, "once"),
    ];
    for (text, line, words) in cases {
        let document = format!("filesystem:\n  {}", text.replace('\n', "\n  "));
        let found = complaints(&document);
        let [only] = &found[..] else { panic!("{document}: {found:?}") };
        assert_eq!(only.line, line + 1, "{document}: {only}");
        assert!(only.message.contains(words), "{document}: {only}");
    }
}

/// Proves: POL-4 untrusted-project, GATE-4 untrusted-rules
#[test]
fn a_project_that_is_not_trusted_only_denies() {
    let text = "filesystem:\n  rules:\n    - allow: /a\n    - deny: /b\n    - allow: /c\n";
    let project = |trust| layer(Project(trust), text);
    let untrusted = merged(vec![project(Trust::Untrusted)]);
    let shown: Vec<String> =
        untrusted.policy.filesystem.rules.iter().map(StoredRule::to_string).collect();
    assert_eq!(shown, ["deny /b"]);
    let notes: Vec<_> = untrusted.notes.iter().map(|note| (note.problem, note.line)).collect();
    assert_eq!(notes, [(Problem::Untrusted, 3), (Problem::Untrusted, 5)]);
    assert_eq!(merged(vec![project(Trust::Trusted)]).policy.filesystem.rules.len(), 3);
}

/// Proves: POL-4 order, GATE-4 store-order
#[test]
fn rules_of_several_layers_stay_apart() {
    let one = "filesystem: { rules: [{ allow: /x }] }";
    let layers = vec![
        layer(User, one),
        layer(Project(Trust::Trusted), one),
        layer(Organisation, "filesystem: { rules: [{ deny: /x }] }"),
        layer(User, "filesystem: { rules: [] }"),
    ];
    let merged = merged(layers);
    let found: Vec<_> = merged
        .policy
        .filesystem
        .rules
        .iter()
        .map(|rule| (rule.store, rule.effect, rule.place()))
        .collect();
    assert_eq!(
        found,
        [
            (Store::Organisation, Effect::Deny, "organisation.yaml:1".to_owned()),
            (Store::Project, Effect::Allow, "project.yaml:1".to_owned()),
            (Store::User, Effect::Allow, "user.yaml:1".to_owned()),
        ]
    );
    let shown = show_lines(&merged).join("\n");
    assert!(shown.contains("filesystem.rules: deny /x"), "{shown}");
    assert!(shown.contains("# project, project.yaml:1"), "{shown}");
}

/// Proves: POL-4 lock
#[test]
fn a_lock_lets_denials_through_and_no_permission() {
    let lock = || layer(Organisation, "locks: [filesystem.rules]");
    let deny = layer(User, "filesystem: { rules: [{ deny: /x }] }");
    assert_eq!(merged(vec![lock(), deny]).policy.filesystem.rules.len(), 1);
    let allow = layer(User, "filesystem: { rules: [{ allow: /x }] }");
    let problems = merge(&Subject::Run, vec![lock(), allow]).unwrap_err();
    assert_eq!(problems[0].problem, Problem::Locked);
    assert_eq!(problems[0].line, 1);
}

/// Proves: POL-5 dry-run
#[test]
fn a_permission_loosens_and_a_denial_tightens() {
    let with =
        |rules: &str| merged(vec![layer(User, &format!("filesystem: {{ rules: [{rules}] }}"))]);
    let step = |from: &str, to: &str| {
        diff(&with(from), &with(to)).into_iter().map(|change| change.direction).next()
    };
    assert_eq!(step("", "{ allow: /x }"), Some(Direction::Loosens));
    assert_eq!(step("", "{ deny: /x }"), Some(Direction::Tightens));
    assert_eq!(step("{ allow: /x }", ""), Some(Direction::Tightens));
    assert_eq!(step("{ deny: /x }", ""), Some(Direction::Loosens));
    assert_eq!(step("{ allow: /x }", "{ allow: /y }"), Some(Direction::Neutral));
    assert_eq!(step("{ allow: /x }", "{ allow: /x, note: why }"), None);
}

/// Proves: POL-5 export
#[test]
fn what_is_exported_says_the_same_again() {
    let text = "filesystem:\n  rules:\n    - { allow: /a*, access: execute, until: 2027-01-01, by: me }\n    \
                - { deny: /b/, note: no }\n";
    let before = merged(vec![layer(User, text)]);
    let again = layer(User, &export(&before).to_string());
    assert_eq!(diff(&before, &merged(vec![again])), []);
}

/// Proves: GATE-5 timeout
#[test]
fn a_question_waits_five_minutes_or_as_long_as_the_policy_says() {
    assert_eq!(merged(vec![]).policy.ask_timeout, 300_000);
    assert_eq!(merged(vec![layer(User, "askTimeout: 90s")]).policy.ask_timeout, 90_000);
    assert_eq!(complaints("askTimeout: 0")[0].problem, Problem::WrongType);
}

/// Proves: GATE-11 look-below
#[test]
fn the_key_of_a_question_is_for_people_to_choose_and_not_for_a_project() {
    let key = |layers| merged(layers).policy.ask_key.to_string();
    assert_eq!(key(vec![]), "ctrl-g");
    assert_eq!(key(vec![layer(User, "askKey: ctrl-]")]), "ctrl-]");
    assert_eq!(key(vec![layer(Project(Trust::Untrusted), "askKey: ctrl-o")]), "ctrl-g");
    for wrong in ["g", "ctrl-", "ctrl-c", "ctrl-m", "alt-x", "ctrl-gg", "ctrl-1"] {
        assert_eq!(
            complaints(&format!("askKey: {wrong}"))[0].problem,
            Problem::WrongType,
            "{wrong}"
        );
    }
}

/// An entry that tells how often it was compared with another.
#[derive(Clone, Debug)]
struct Counted<'a>(usize, &'a Cell<usize>);

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.1.set(self.1.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Counted<'_> {}

impl Hash for Counted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Proves: GATE-4 rules-in-policy
#[test]
fn many_rules_are_put_together_without_comparing_each_with_each() {
    let compared = Cell::new(0);
    let some = |numbers: Range<usize>| -> Vec<Counted<'_>> {
        numbers.map(|number| Counted(number, &compared)).collect()
    };
    let all = joined(&some(0..2000), &some(1000..20_000));
    let numbers: Vec<usize> = all.iter().map(|entry| entry.0).collect();
    assert_eq!(numbers, Vec::from_iter(0..20_000));
    assert!(compared.get() < 10 * numbers.len(), "{} comparisons", compared.get());
}
