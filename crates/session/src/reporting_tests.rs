use super::{errno_number, observed, promise, relaxation};
use palisade_launch::Observation;
use palisade_plan::layer::{Layer, Promise, Strength};
use palisade_plan::model::Probe;
use palisade_record::{Observed, RunReport, Versions};

fn report(promises: &[Promise]) -> RunReport {
    let versions = Versions { palisade: "0".to_owned(), kernel: "0".to_owned() };
    let mut report = RunReport::begin("s", &["true"], versions);
    report.promises = promises.iter().map(promise).collect();
    report
}

fn held(id: &'static str) -> Promise {
    Promise {
        id,
        what: "something",
        strength: Strength::Enforced,
        layers: vec![Layer::MountView],
        remark: None,
    }
}

fn seen(probe: &str, expected: &str, observed: &str) -> Observation {
    Observation { probe: probe.into(), expected: expected.into(), observed: observed.into() }
}

/// Proves: ESC-2 observed
#[test]
fn only_what_was_tried_counts_as_observed() {
    let read_only = Promise { layers: vec![Layer::ReadOnlyMounts], ..held("FS-1") };
    let mut report = report(&[held("PROC-1"), held("FS-2"), held("PROC-8"), read_only]);
    let tried = [Probe::ReadCanary { path: "/canary".into(), layer: Layer::MountView }];
    let observations =
        [seen("see-supervisor", "ESRCH", "not-probed"), seen("read-canary", "ENOENT", "ENOENT")];
    observed(&mut report, &tried, &observations);
    let of = |id: &str| report.promises.iter().find(|promise| promise.id == id).unwrap();
    assert_eq!(of("PROC-1").observed, Some(Observed::NotProbed));
    assert_eq!(of("FS-2").observed, Some(Observed::Held));
    assert_eq!(of("FS-2").probe_errno, Some(2));
    assert_eq!(of("FS-1").observed, Some(Observed::NotProbed), "held by a layer nobody tried");
    assert_eq!(of("PROC-8").observed, Some(Observed::NotProbed));
    assert!(!report.self_check[0].ok && report.self_check[1].ok);
}

#[test]
fn a_weaker_promise_is_a_relaxation_with_its_remark() {
    let mut weak = held("PROC-1");
    weak.strength = Strength::Absent;
    weak.remark = Some("no namespaces".to_owned());
    let text = relaxation(&weak).unwrap();
    assert_eq!(text, "PROC-1 absent: something (no namespaces)");
    assert!(relaxation(&held("PROC-1")).is_none());
}

#[test]
fn errno_names_have_their_numbers() {
    assert_eq!(errno_number("EROFS"), Some(30));
    assert_eq!(errno_number("not-probed"), None);
}
