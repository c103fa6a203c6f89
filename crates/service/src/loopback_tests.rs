use super::Admission;
use crate::auth::{Hosts, Peer};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

const OWN: Option<Peer> = Some(Peer::LocalUser { uid: 1000, is_outside: true });
const HOST: (HeaderName, &str) = (header::HOST, "127.0.0.1:4000");
const ORIGIN: (HeaderName, &str) = (header::ORIGIN, "http://127.0.0.1:4000");

fn refuses(peer: Option<Peer>, method: &Method, headers: &[(HeaderName, &'static str)]) -> bool {
    let hosts = Hosts::only("127.0.0.1:4000".parse().unwrap());
    let admission = Admission { uid: 1000, hosts };
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
        .collect();
    admission.refuses(peer, method, &Uri::from_static("/x"), &headers).is_some()
}

#[test]
fn only_the_same_user_outside_of_sandboxes_is_answered() {
    assert!(!refuses(OWN, &Method::GET, &[HOST]));
    for other in [
        None,
        Some(Peer::LocalUser { uid: 1000, is_outside: false }),
        Some(Peer::LocalUser { uid: 1001, is_outside: true }),
        Some(Peer::LocalUser { uid: 0, is_outside: true }),
        Some(Peer::Network),
        Some(Peer::Process { uid: 1000, is_outside: true }),
    ] {
        assert!(refuses(other, &Method::GET, &[HOST]), "{other:?}");
    }
}

#[test]
fn a_name_that_leads_here_from_elsewhere_is_refused() {
    for host in [
        "evil.example:4000",
        "127.0.0.1",
        "127.0.0.1:4001",
        "127.0.0.1.evil.example:4000",
        "localhost:4000",
        "[::1]:4000",
    ] {
        assert!(refuses(OWN, &Method::GET, &[(header::HOST, host)]), "{host}");
    }
    assert!(refuses(OWN, &Method::GET, &[]), "no name");
}

#[test]
fn only_a_form_of_the_page_itself_is_taken() {
    let site = HeaderName::from_static("sec-fetch-site");
    assert!(!refuses(OWN, &Method::POST, &[HOST, ORIGIN]));
    assert!(!refuses(OWN, &Method::POST, &[HOST, ORIGIN, (site.clone(), "same-origin")]));
    assert!(refuses(OWN, &Method::POST, &[HOST]), "no origin");
    for origin in [
        "null",
        "http://evil.example",
        "https://127.0.0.1:4000",
        "http://127.0.0.1:4001",
        // Somebody else may listen there.
        "http://localhost:4000",
        "http://[::1]:4000",
    ] {
        assert!(refuses(OWN, &Method::POST, &[HOST, (header::ORIGIN, origin)]), "{origin}");
    }
    for from in ["cross-site", "same-site"] {
        assert!(refuses(OWN, &Method::POST, &[HOST, ORIGIN, (site.clone(), from)]), "{from}");
    }
    // Following a link from elsewhere is what it is for.
    assert!(!refuses(OWN, &Method::GET, &[HOST, (site, "cross-site")]));
}
