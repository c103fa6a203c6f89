//! Tests of keys that are carried out once.

use super::{Claim, FORGET_EACH, FirstRequest, IdempotencyKeys, MAX_KEPT, MadeAnswer};
use axum::http::StatusCode;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn answer() -> MadeAnswer {
    MadeAnswer::json(StatusCode::CREATED, &"made").unwrap()
}

fn first(keys: &IdempotencyKeys, key: &str) -> FirstRequest {
    match keys.claim("s", Some(key), &1).unwrap() {
        Claim::CarryOut(first) => first,
        Claim::Repeat(_) => panic!("{key} was there"),
    }
}

fn refusal(keys: &IdempotencyKeys, key: &str, request: u8) -> (String, String) {
    let Err(problem) = keys.claim("s", Some(key), &request) else { panic!("{key} was free") };
    let problem = serde_json::to_value(problem).unwrap();
    let word = |name: &str| problem[name].as_str().unwrap().to_owned();
    (word("type"), word("detail"))
}

#[test]
fn a_key_is_carried_out_once() {
    let directory = tempfile::tempdir().unwrap();
    let keys = IdempotencyKeys::open(directory.path().join("keys")).unwrap();
    let running = first(&keys, "k");
    assert!(refusal(&keys, "k", 1).1.contains("being carried out"));
    assert!(matches!(keys.claim("t", Some("k"), &1), Ok(Claim::CarryOut(_))), "elsewhere");
    running.answered(&answer());
    assert!(refusal(&keys, "k", 2).1.contains("another request"));
    let Ok(Claim::Repeat(repeated)) = keys.claim("s", Some("k"), &1) else { panic!() };
    assert_eq!(repeated.status(), StatusCode::CREATED);
    assert_eq!(repeated.headers()["idempotent-replayed"], "true");
    drop(first(&keys, "failed"));
    drop(first(&keys, "failed"));
}

#[test]
fn keys_are_known_to_the_next_server_and_to_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let keys = IdempotencyKeys::open(path.clone()).unwrap();
    first(&keys, "done").answered(&answer());
    let running = first(&keys, "running");
    let next = IdempotencyKeys::open(path.clone()).unwrap();
    assert!(matches!(next.claim("s", Some("done"), &1), Ok(Claim::Repeat(_))));
    assert!(
        refusal(&next, "running", 1).1.contains("being carried out"),
        "by the server beside it"
    );
    for entry in fs::read_dir(&path).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    // As if the server had been killed: nothing is removed, and the lock is gone.
    let mut running = running;
    drop(running.0.take());
    let (kind, detail) = refusal(&next, "running", 1);
    assert_eq!(kind, "urn:palisade:problem:interrupted");
    assert!(detail.contains("may have been carried out"), "{detail}");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn keys_do_not_pile_up() {
    let directory = tempfile::tempdir().unwrap();
    let keys = IdempotencyKeys::open(directory.path().join("keys")).unwrap();
    for number in 0..MAX_KEPT + 100 {
        first(&keys, &number.to_string()).answered(&answer());
    }
    let count = fs::read_dir(directory.path().join("keys")).unwrap().count();
    assert!(count <= MAX_KEPT + usize::try_from(FORGET_EACH).unwrap(), "{count}");
    assert!(matches!(keys.claim("s", Some("0"), &1), Ok(Claim::CarryOut(_))), "the oldest");
}
