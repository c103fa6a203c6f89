use super::{Answers, HostAnswer, MAX_KEPT, RecordedAnswer, directory, last_session, read, write};
use crate::config::tests::Corner;
use crate::error::SessionError;
use palisade_gate::{Access, Effect, Pattern};

fn answer(path: &str, tree: bool) -> RecordedAnswer {
    RecordedAnswer {
        effect: Effect::Allow,
        path: path.to_owned(),
        tree,
        access: Access::Execute,
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        by: "terminal".to_owned(),
    }
}

/// Proves: POL-5 save
#[test]
fn answers_are_read_as_they_were_written() {
    let corner = Corner::new();
    let places = &corner.caller.places;
    assert!(matches!(last_session(places), Err(SessionError::NoSessions)));
    let given = [answer("/opt/sdk", true), answer("/srv/a*b", false)];
    let rules: Vec<_> = given.iter().map(RecordedAnswer::rule).collect();
    assert_eq!(rules[0].pattern, Pattern::Tree("/opt/sdk".into()));
    assert_eq!(rules[1].pattern, Pattern::Exact("/srv/a*b".into()));
    let host = HostAnswer {
        effect: Effect::Deny,
        host: "registry.example:443".to_owned(),
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        by: "terminal".to_owned(),
    };
    let all = Answers { rules: rules.clone(), hosts: vec![host.clone()] };
    write(places, "0190-older", &rules[..1].to_vec().into()).unwrap();
    write(places, "0191-newer", &all).unwrap();
    write(places, "0192-silent", &Answers::default()).unwrap();
    assert_eq!(last_session(places).unwrap(), "0191-newer");
    let found = read(places, "0191-newer").unwrap();
    assert_eq!((found.rules, found.hosts), (rules, vec![host]));
    assert!(matches!(read(places, "0192-silent"), Err(SessionError::NoAnswers { .. })));
}

/// Proves: POL-5 bounded-answers
#[test]
fn the_oldest_answers_go_and_nothing_else() {
    let corner = Corner::new();
    let places = &corner.caller.places;
    let rules: Answers = vec![answer("/opt/sdk", true).rule()].into();
    let name = |number: usize| format!("0190-{number:04}");
    for number in 0..MAX_KEPT {
        write(places, &name(number), &rules).unwrap();
    }
    let other = directory(places).join("0000-notes.txt");
    std::fs::write(&other, "").unwrap();
    assert!(read(places, &name(0)).is_ok());
    for number in MAX_KEPT..MAX_KEPT + 2 {
        write(places, &name(number), &rules).unwrap();
    }
    for gone in 0..2 {
        let read = read(places, &name(gone));
        assert!(matches!(read, Err(SessionError::NoAnswers { .. })), "{gone}");
    }
    for kept in 2..MAX_KEPT + 2 {
        assert!(read(places, &name(kept)).is_ok(), "{kept}");
    }
    assert!(other.exists());
}

/// Proves: POL-5 save
#[test]
fn a_session_is_named_not_a_path() {
    let corner = Corner::new();
    for name in ["", "../trust", "/etc/passwd", "a/b", "a.b"] {
        let outcome = read(&corner.caller.places, name);
        assert!(matches!(outcome, Err(SessionError::NoAnswers { .. })), "{name}");
    }
}
