use super::TrustStore;
use crate::app_dirs::AppDirs;
use crate::error::SessionError;
use std::path::Path;

fn places(below: &Path) -> AppDirs {
    AppDirs {
        organisation: below.join("etc"),
        user: below.join("config"),
        state: below.join("state"),
        runtime: below.join("run"),
    }
}

/// Proves: POL-4 trust
#[test]
fn trust_follows_the_content_and_not_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let document = Path::new("/project/.palisade/policy.yaml");

    let mut store = TrustStore::load(&places).unwrap();
    assert!(!store.is_trusted(document, "network: {}"));
    store.trust(document, "network: {}");
    store.save(&places).unwrap();

    let mut store = TrustStore::load(&places).unwrap();
    assert!(store.is_trusted(document, "network: {}"));
    assert!(!store.is_trusted(document, "network: {} "), "one byte more is another document");
    assert!(!store.is_trusted(Path::new("/other/.palisade/policy.yaml"), "network: {}"));

    assert!(store.revoke(document));
    assert!(!store.revoke(document));
    assert!(!store.is_trusted(document, "network: {}"));
}

#[test]
fn a_damaged_store_is_an_error_and_not_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    std::fs::create_dir_all(&places.state).unwrap();
    std::fs::write(places.trust_store(), "{").unwrap();
    assert!(matches!(TrustStore::load(&places), Err(SessionError::TrustStore { .. })));
}
