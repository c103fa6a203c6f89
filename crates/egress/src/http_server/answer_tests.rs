use super::*;
use palisade_record::network::NetworkAction;

fn refused_because(cause: Cause) -> Refused {
    Refused {
        cause,
        action: NetworkAction::ProxyDenied,
        host: "x.example".to_owned(),
        port: 443,
        reason: "no rule\r\nallows it".to_owned(),
        rule: None,
        flag: Some("--allow-host x.example".to_owned()),
    }
}

/// Proves: NET-7 refusals
#[test]
fn a_refusal_says_what_would_allow_it() {
    let text = String::from_utf8(refused(&refused_because(Cause::Denied), Shape::Whole)).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"));
    assert!(head.contains("\r\nx-sandbox-denied: no rule  allows it"), "{head:?}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"], "denied");
    assert_eq!(body["host"], "x.example");
    assert_eq!(body["port"], 443);
    assert_eq!(body["allow"], "--allow-host x.example");
    assert!(body.get("rule").is_none());
}

/// Proves: NET-7 refusals
#[test]
fn each_cause_has_its_status() {
    for (cause, status) in [
        (Cause::Address, 403),
        (Cause::Disagrees, 403),
        (Cause::Limit, 429),
        (Cause::Lookup, 502),
        (Cause::Unreachable, 502),
        (Cause::TimedOut, 504),
    ] {
        let text = String::from_utf8(refused(&refused_because(cause), Shape::Whole)).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
}

#[test]
fn what_the_client_did_wrong_is_not_called_an_answer() {
    for (status, error) in [(400, "bad request"), (505, "bad request"), (502, "bad answer")] {
        let text = String::from_utf8(bad(status, "why", Shape::Whole)).unwrap();
        assert!(text.contains(&format!("\"error\":\"{error}\"")), "{text}");
    }
}

#[test]
fn after_head_there_is_no_body() {
    let text =
        String::from_utf8(refused(&refused_because(Cause::Denied), Shape::HeadOnly)).unwrap();
    assert!(text.ends_with("\r\n\r\n"));
}
