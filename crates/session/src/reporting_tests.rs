use super::{observed, planned, relaxation};
use crate::config::tests::Corner;
use palisade_launch::Observation;
use palisade_launch::probe::{RealTree, limit_facts};
use palisade_plan::facts::HostFacts;
use palisade_plan::layer::{Layer, Promise, Strength};
use palisade_plan::model::Plan;
use palisade_policy::{Flag, LayerKind, PolicyDocument, PolicyLayer, Subject, merge};
use palisade_record::{Observed, RunReport, Versions};
use palisade_sys::Errno;

/// A plan in which one layer holds several promises.
pub(crate) fn plan_without_namespaces() -> Plan {
    let flags = vec![
        Flag::new("--level", "isolationLevel", "1"),
        Flag::new("--no-userns", "process.userNamespace", false),
    ];
    let document = PolicyDocument::from_flags(flags).unwrap();
    let layer = PolicyLayer { kind: LayerKind::CommandLine, document };
    let policy = merge(&Subject::Run, vec![layer]).unwrap().policy;
    let corner = Corner::new();
    let facts = HostFacts {
        landlock_abi: 3,
        serves_gate: false,
        canary: Some("/state/canary".into()),
        ..corner.caller.facts.clone()
    };
    palisade_plan::build(&palisade_plan::PlanRequest {
        policy: &policy,
        facts: &facts,
        tree: &RealTree,
        command: vec!["/bin/program".into(), "argument".into()],
        session: "s".to_owned(),
        missing: palisade_plan::IfMissing::IsAnError,
        project: None,
        policy_files: &[],
        preset_paths: &[],
        layer: std::path::Path::new("/state/layer"),
        caches: &|_| palisade_plan::CacheStore::default(),
        listed: None,
        limits: &limit_facts,
    })
    .unwrap()
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

/// Proves: ESC-2 observed
#[test]
fn only_what_was_tried_counts_as_observed() {
    let plan = plan_without_namespaces();
    let versions = Versions { palisade: "0".to_owned(), kernel: "0".to_owned() };
    let mut report = RunReport::begin("s", &["true"], versions);
    planned(&mut report, &plan);
    let seen = |probe: &str, expected, observed| Observation {
        probe: probe.to_owned(),
        expected,
        observed,
    };
    let observations = [
        seen("read-canary", Errno::ACCESS, Some(Errno::ACCESS)),
        seen("write-outside", Errno::ACCESS, None),
    ];
    observed(&mut report, &plan, &observations);
    let of = |id: &str, what: &str| {
        let mut promises = report.promises.iter();
        let found = promises.find(|promise| promise.id == id && promise.what.contains(what));
        let found = found.unwrap();
        (found.observed, found.probe_errno)
    };
    let not_probed = (Some(Observed::NotProbed), None);
    assert_eq!(of("FS-1", "read"), (Some(Observed::Held), Some(13)));
    assert_eq!(of("FS-1", "written"), not_probed, "reading tells nothing about writing");
    assert_eq!(of("FS-3", ""), not_probed, "not held, so nothing of it was seen to hold");
    assert_eq!(of("SYS-1", ""), not_probed);
    let told: Vec<_> =
        report.self_check.iter().map(|probe| (probe.observed.as_str(), probe.ok)).collect();
    assert_eq!(told, [("EACCES", true), ("not-probed", false)]);
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
