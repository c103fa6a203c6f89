use super::{StoreStatus, Stores};
use crate::config::tests::Corner;
use crate::config::{PolicyRequest, load};
use crate::error::SessionError;
use crate::trust::TrustStore;
use palisade_ask::Store;
use palisade_gate::{Access, Effect, Origin, Pattern, Rule};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

fn rule(pattern: &str) -> Rule {
    Rule {
        effect: Effect::Allow,
        pattern: Pattern::parse(pattern, None).unwrap(),
        access: Access::Read,
        store: palisade_gate::Store::Session,
        until: None,
        origin: Origin::default(),
    }
}

fn allowed(corner: &Corner) -> Vec<(palisade_gate::Store, String)> {
    let loaded = load(&corner.caller, &PolicyRequest::default()).unwrap();
    let rules = loaded.merged.policy.filesystem.rules.iter();
    rules.map(|rule| (rule.store, rule.pattern.clone())).collect()
}

/// Proves: GATE-4 stores, POL-5 save
#[test]
fn an_answer_is_saved_where_it_was_meant_to_be_and_counts_from_then_on() {
    let corner = Corner::new();
    let stores = Stores::new(&corner.caller);
    let file = corner.caller.places.user.join("policy.yaml");
    fs::write(&file, "# mine\nview: host\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let supposed = stores.change(&vec![rule("/a")].into(), Store::User).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), supposed.before);
    stores.save(&vec![rule("/a")].into(), Store::User).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), supposed.after);
    assert!(supposed.after.starts_with("# mine\nview: host\n"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let again = stores.save(&vec![rule("/a")].into(), Store::User).unwrap();
    assert!(again.added.is_empty());
    stores.save(&vec![rule("/b")].into(), Store::Organisation).unwrap();
    let mode = |path: &str| {
        let path = corner.caller.places.organisation.join(path);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("policy.yaml"), mode("")), (0o644, 0o755));
    let stored = |store, pattern: &str| (store, pattern.to_owned());
    let expected = [
        stored(palisade_gate::Store::Organisation, "/b"),
        stored(palisade_gate::Store::User, "/a"),
    ];
    assert_eq!(allowed(&corner), expected);
}

/// Proves: NET-7 summary
#[test]
fn the_file_that_denies_a_host_is_found() {
    let corner = Corner::new();
    let stores = Stores::new(&corner.caller);
    let file = corner.caller.places.user.join("policy.yaml");
    fs::write(&file, "network:\n  deniedHosts: ['a.example:80']\n").unwrap();
    assert_eq!(stores.file_that_denies("a.example:80"), Some(file));
    assert_eq!(stores.file_that_denies("a.example"), None);
    assert_eq!(stores.file_that_denies("answered by socket"), None);
}

/// Proves: POL-4 trust, POL-5 save
#[test]
fn a_trusted_project_stays_trusted_and_another_does_not_become_so() {
    let corner = Corner::new();
    let stores = Stores::new(&corner.caller);
    let first = stores.save(&vec![rule("/a")].into(), Store::Project).unwrap();
    assert_eq!(first.standing, StoreStatus::NotTrusted);
    assert_eq!(allowed(&corner), []);
    let mut trusted = TrustStore::load(&corner.caller.places).unwrap();
    trusted.trust(&first.path, &first.after);
    trusted.save(&corner.caller.places).unwrap();
    let second = stores.save(&vec![rule("/b")].into(), Store::Project).unwrap();
    assert_eq!(second.standing, StoreStatus::TrustRenewed);
    assert_eq!(allowed(&corner).len(), 2);
}

/// Proves: POL-4 lock
#[test]
fn an_answer_that_would_stop_the_next_run_is_not_saved() {
    let corner = Corner::new();
    let places = &corner.caller.places;
    fs::write(places.organisation.join("policy.yaml"), "locks: [filesystem.rules]\n").unwrap();
    let outcome = Stores::new(&corner.caller).save(&vec![rule("/a")].into(), Store::User);
    assert!(matches!(outcome, Err(SessionError::Policy(_))), "{outcome:?}");
    assert!(!places.user.join("policy.yaml").exists());
}

/// Proves: POL-4 untrusted-project
#[test]
fn a_linked_policy_directory_is_not_written_through() {
    let corner = Corner::new();
    let directory = corner.caller.facts.cwd.join(".palisade");
    fs::remove_dir(&directory).unwrap();
    symlink(&corner.caller.places.user, &directory).unwrap();
    let outcome = Stores::new(&corner.caller).save(&vec![rule("/a")].into(), Store::Project);
    assert!(matches!(outcome, Err(SessionError::LinkedPolicy { .. })), "{outcome:?}");
}
