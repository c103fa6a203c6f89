use super::{bound, closed, credential};
use crate::config::tests::Corner;
use palisade_hosts::HostEntry;
use palisade_plan::model::{CredentialPlan, CredentialSource};
use std::fs;

fn planned(source: CredentialSource) -> CredentialPlan {
    CredentialPlan {
        name: "TOKEN".to_owned(),
        source,
        hosts: vec![HostEntry::parse("api.example").unwrap()],
        header: "authorization".to_owned(),
        format: "Bearer {}".to_owned(),
        placeholder: "placeholder".to_owned(),
    }
}

#[test]
fn a_secret_comes_from_a_variable_or_a_file_and_never_shows() {
    let mut corner = Corner::new();
    corner.caller.facts.env.insert("SECRET".into(), "hunter2".into());
    let file = corner.caller.places.user.join("token");
    fs::write(&file, "hunter2\n").unwrap();
    for source in [CredentialSource::Env("SECRET".to_owned()), CredentialSource::File(file)] {
        let found = credential(&planned(source), &corner.caller.facts).unwrap();
        assert_eq!(found.value.reveal(), "Bearer hunter2");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}

#[test]
fn what_cannot_be_had_stops_the_run_and_says_what_to_do() {
    let mut corner = Corner::new();
    corner.caller.facts.env.insert("FORGED".into(), "x\r\nhost: evil".into());
    corner.caller.facts.env.insert("EMPTY".into(), "".into());
    let directory = corner.caller.places.user.clone();
    let long = directory.join("long");
    fs::write(&long, "x".repeat(20_000)).unwrap();
    for (source, told) in [
        (CredentialSource::Env("MISSING".to_owned()), "MISSING is not set"),
        (CredentialSource::Env("FORGED".to_owned()), "not valid in a header"),
        (CredentialSource::Env("EMPTY".to_owned()), "it is empty"),
        (CredentialSource::File(directory.join("none")), "No such file"),
        (CredentialSource::File(directory), "not a regular file"),
        (CredentialSource::File(long), "not a token"),
    ] {
        let error = credential(&planned(source), &corner.caller.facts).unwrap_err().to_string();
        assert!(error.contains("TOKEN") && error.contains(told), "{error}");
        assert!(!error.contains("evil"), "{error}");
    }
}

/// Proves: NET-7 limit
#[test]
fn no_more_connections_are_promised_than_descriptors_allow_for() {
    let mut config = closed();
    config.limits.connections = 512;
    assert_eq!(bound(&mut config, 1 << 20), None);
    assert_eq!(config.limits.connections, 512);
    let told = bound(&mut config, 256).unwrap();
    assert_eq!(config.limits.connections, (256 - 32) / 6);
    assert!(told.contains("instead of 512") && told.contains("ulimit -Hn"), "{told}");
    // However few there are, one connection at a time is tried.
    bound(&mut config, 8).unwrap();
    assert_eq!(config.limits.connections, 1);
}
