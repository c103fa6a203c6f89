use super::{Access, Hosts, Peer, Protection, token};
use crate::error::ServiceError;
use crate::logins::{KEY_HEADER, Logins};
use axum::http::{HeaderMap, Method, Uri, header};
use std::os::unix::fs::PermissionsExt;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn access() -> Access {
    let hosts = Hosts::of(([127, 0, 0, 1], 8080).into(), &["box.example".to_owned()], false);
    Access::by_token(TOKEN, hosts, Logins::new(8080, false))
}

/// The status that a request to a TCP socket gets; 0 if it is accepted.
fn status(path: &str, headers: &[(header::HeaderName, &str)]) -> u64 {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        all.append(name, value.parse().unwrap());
    }
    let uri: Uri = path.parse().unwrap();
    let full = Protection::Full;
    status_of(access().check(Peer::Network, (&Method::GET, &uri), &all, full))
}

fn status_of(checked: Result<(), crate::problem::Problem>) -> u64 {
    checked
        .err()
        .map_or(0, |problem| serde_json::to_value(problem).unwrap()["status"].as_u64().unwrap())
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let name = |name: &str| name.parse::<header::HeaderName>().unwrap();
    pairs.iter().map(|(key, value)| (name(key), value.parse().unwrap())).collect()
}

#[test]
fn a_browser_that_has_logged_in_is_answered_from_our_own_page_only() {
    let access = access();
    let login = access.logins().unwrap().log_in().unwrap();
    let cookie = format!("palisade-8080={}", login.cookie);
    let (host, cookie, key) =
        (("host", "localhost:8080"), ("cookie", cookie.as_str()), (KEY_HEADER, login.key.as_str()));
    let uri = Uri::from_static("/v1/sandboxes");
    let status = |pairs: &[(&str, &str)], protection| {
        let headers = headers(pairs);
        status_of(access.check(Peer::Network, (&Method::POST, &uri), &headers, protection))
    };
    let full = Protection::Full;
    assert_eq!(status(&[host, cookie, key], full), 0);
    assert_eq!(status(&[host, cookie, key, ("sec-fetch-site", "same-origin")], full), 0);
    assert_eq!(status(&[host, cookie], full), 403, "as a form of another site would send it");
    assert_eq!(status(&[host, cookie, (KEY_HEADER, "1")], full), 401);
    assert_eq!(status(&[host, key], full), 401);
    for site in ["cross-site", "same-site", "strange"] {
        assert_eq!(status(&[host, cookie, key, ("sec-fetch-site", site)], full), 403, "{site}");
    }
    assert_eq!(status(&[host, cookie, key, ("origin", "http://localhost:3000")], full), 403);
    assert_eq!(status(&[("host", "evil.example:8080"), cookie, key], full), 403);
    // With a token that is wrong, the cookie does not help.
    assert_eq!(status(&[host, cookie, key, ("authorization", "Bearer x")], full), 401);
    // The page itself is no secret; who logs in has to come from there.
    assert_eq!(status(&[host], Protection::Page), 0);
    assert_eq!(status(&[("host", "evil.example:8080")], Protection::Page), 403);
    assert_eq!(status(&[host], Protection::Login), 0);
    assert_eq!(status(&[host, ("sec-fetch-site", "cross-site")], Protection::Login), 403);
}

#[test]
fn a_tunnel_to_a_unix_socket_lets_no_other_site_in() {
    let access = Access::SameUser { uid: 1000 };
    let uri = Uri::from_static("/v1/sandboxes");
    let status = |pairs: &[(&str, &str)], protection| {
        let peer = Peer::Process { uid: 1000, is_outside: true };
        status_of(access.check(peer, (&Method::POST, &uri), &headers(pairs), protection))
    };
    let (full, browser) = (Protection::Full, ("user-agent", "Mozilla/5.0"));
    let (host, key) = (("host", "localhost:9000"), (KEY_HEADER, "1"));
    assert_eq!(status(&[("host", "localhost"), ("user-agent", "curl/8")], full), 0);
    // A page can leave out what a browser says of itself, and still not choose the name.
    assert_eq!(status(&[("host", "evil.example:9000"), ("user-agent", "x")], full), 403);
    assert_eq!(status(&[host, browser, key], full), 0);
    assert_eq!(status(&[("host", "[::1]:9000"), browser, key], full), 0);
    assert_eq!(status(&[host, browser, key, ("origin", "http://localhost:9000")], full), 0);
    assert_eq!(status(&[host, browser], full), 403);
    assert_eq!(status(&[host, browser], Protection::Page), 0);
    for name in ["evil.example:9000", "localhost.evil:9000", "127.0.0.1.evil", "localhost:9.e", ""]
    {
        assert_eq!(status(&[("host", name), browser, key], full), 403, "{name}");
        assert_eq!(status(&[("host", name), browser, key], Protection::Page), 403, "{name}");
    }
    for origin in ["http://evil.example", "http://localhost:9001", "https://localhost:9000", "null"]
    {
        assert_eq!(status(&[host, key, ("origin", origin)], full), 403, "{origin}");
    }
    assert_eq!(status(&[host, key, ("sec-fetch-site", "cross-site")], full), 403);
}

#[test]
fn a_request_needs_the_token_our_name_and_no_other_origin() {
    let right = format!("Bearer {TOKEN}");
    let (host, origin, bearer) = (header::HOST, header::ORIGIN, header::AUTHORIZATION);
    let ours = (host.clone(), "127.0.0.1:8080");
    let good = (bearer.clone(), right.as_str());
    assert_eq!(status("/v1/sandboxes", &[ours.clone(), good.clone()]), 0);
    for name in ["localhost:8080", "LOCALHOST:8080", "[::1]:8080", "box.example:8080"] {
        assert_eq!(status("/v1/sandboxes", &[(host.clone(), name), good.clone()]), 0, "{name}");
    }
    for name in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "", "localhost:8080.evil"] {
        assert_eq!(status("/v1/sandboxes", &[(host.clone(), name), good.clone()]), 403, "{name}");
    }
    assert_eq!(status("/v1/sandboxes", std::slice::from_ref(&good)), 403, "no Host");
    assert_eq!(status("/v1/sandboxes", &[ours.clone(), ours.clone(), good.clone()]), 403);
    let whole = "http://evil.example:8080/v1/sandboxes";
    assert_eq!(status(whole, &[ours.clone(), good.clone()]), 403);
    for (from, expected) in [
        ("http://localhost:8080", 0),
        ("https://localhost:8080", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ] {
        let headers = [ours.clone(), good.clone(), (origin.clone(), from)];
        assert_eq!(status("/v1/sandboxes", &headers), expected, "{from}");
    }
    for wrong in ["", "Bearer", "Bearer x", "Basic 0123456789abcdef0123456789abcdef", TOKEN] {
        assert_eq!(status("/v1/sandboxes", &[ours.clone(), (bearer.clone(), wrong)]), 401);
    }
    assert_eq!(status("/v1/sandboxes", std::slice::from_ref(&ours)), 401);
    assert_eq!(status("/healthz", &[ours]), 0, "whether it is there is no secret");
    assert_eq!(status("/healthz", &[(host, "evil.example")]), 403);
}

#[test]
fn only_the_same_user_outside_a_sandbox_is_answered_at_a_unix_socket() {
    let access = Access::SameUser { uid: 1000 };
    let (uri, headers) = (Uri::from_static("/v1/sandboxes"), headers(&[("host", "localhost")]));
    let is_accepted =
        |peer| access.check(peer, (&Method::GET, &uri), &headers, Protection::Full).is_ok();
    assert!(is_accepted(Peer::Process { uid: 1000, is_outside: true }));
    assert!(!is_accepted(Peer::Process { uid: 1000, is_outside: false }));
    assert!(!is_accepted(Peer::Process { uid: 0, is_outside: true }));
    assert!(!is_accepted(Peer::Network));
}

#[test]
fn a_token_is_made_once_and_others_must_not_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let made = token(&path).unwrap();
    assert_eq!(made.len(), 64);
    assert_eq!(token(&path).unwrap(), made);
    let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    mode(0o640);
    assert!(matches!(token(&path), Err(ServiceError::TokenReadable { mode: 0o640, .. })));
    mode(0o600);
    std::fs::write(&path, "short\n").unwrap();
    assert!(matches!(token(&path), Err(ServiceError::TokenShort { length: 5, .. })));
}
