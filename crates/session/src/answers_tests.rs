use super::{RecordedAnswer, last_session, read, write};
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
    write(places, "0190-older", &rules[..1]).unwrap();
    write(places, "0191-newer", &rules).unwrap();
    write(places, "0192-silent", &[]).unwrap();
    assert_eq!(last_session(places).unwrap(), "0191-newer");
    assert_eq!(read(places, "0191-newer").unwrap(), given);
    assert!(matches!(read(places, "0192-silent"), Err(SessionError::NoAnswers { .. })));
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
