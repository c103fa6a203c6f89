use super::{choose, fitting, normal};
use crate::error::SessionError;
use crate::stores::SavedRule;
use palisade_ask::Store;
use palisade_policy::entries;
use std::path::Path;

fn home() -> Option<&'static Path> {
    Some(Path::new("/home/u"))
}

fn rules(text: &str) -> Vec<SavedRule> {
    let entries = entries(text, "policy.yaml").unwrap().into_iter().enumerate();
    let saved = entries.map(|(index, entry)| SavedRule {
        number: index + 1,
        layer: Store::User,
        file: "/h/policy.yaml".into(),
        entry,
        counts: true,
    });
    saved.collect()
}

#[track_caller]
fn assert_number(all: &[SavedRule], name: &str, number: usize) {
    assert_eq!(choose(name, all, home()).unwrap().number, number, "{name}");
}

/// Proves: POL-5 forget
#[test]
fn a_rule_is_known_by_its_number_its_path_its_host_and_the_words_it_is_shown_in() {
    let all = rules(
        "filesystem:\n  rules:\n    - allow: /home/u/data/x\n    - allow: ~/tool/\n    - allow: \"/srv/a\\\\*b\"\n    - deny: \"/srv/new\\nline\"\nnetwork:\n  allowedHosts: [example.org:443]\n",
    );
    for name in ["1", "/home/u/data/x", "~/data/x", "allow /home/u/data/x"] {
        assert_number(&all, name, 1);
    }
    for name in ["~/tool/", "~/tool/**", "/home/u/tool/", "/home/u/tool/**"] {
        assert_number(&all, name, 2);
    }
    // A pattern that means a star, as it is written, as the file is called, and as it is printed.
    for name in ["/srv/a\\*b", "/srv/a*b", "/srv/a\\\\*b"] {
        assert_number(&all, name, 3);
    }
    assert_number(&all, "/srv/new\\nline", 4);
    assert_number(&all, "example.org:443", 5);
    assert!(fitting("~/data", &all, home()).is_empty());
    assert!(fitting("example.org", &all, home()).is_empty());
}

/// Proves: POL-5 forget
#[test]
fn what_fits_none_or_several_is_refused_with_the_rules_that_may_be_meant() {
    let all =
        rules("filesystem:\n  rules:\n    - allow: /srv/x\n    - deny: /srv/x\n    - deny: /opt\n");
    let several = choose("/srv/x", &all, home()).unwrap_err();
    assert!(
        matches!(&several, SessionError::SeveralRulesNamed { rules, .. }
        if rules == "1 allow /srv/x (user), 2 deny /srv/x (user)"),
        "{several}"
    );
    assert_number(&all, "deny /srv/x", 2);
    let none = choose("/srv", &all, home()).unwrap_err();
    assert!(
        matches!(&none, SessionError::NoRuleNamed { rules, .. }
        if rules == "1 allow /srv/x (user), 2 deny /srv/x (user)"),
        "{none}"
    );
    let unlike = choose("elsewhere", &all, home()).unwrap_err().to_string();
    assert!(unlike.contains("3 deny /opt (user)"), "{unlike}");
    let empty = choose("elsewhere", &[], home()).unwrap_err().to_string();
    assert!(empty.ends_with("saved: none"), "{empty}");
    assert!(matches!(choose("4", &all, home()), Err(SessionError::NoSuchRule { last: 3, .. })));
}

#[test]
fn without_a_home_directory_the_tilde_stays() {
    assert_eq!(normal("~/x/", None), "~/x/**");
    assert_eq!(normal("~/x", home()), "/home/u/x");
}
