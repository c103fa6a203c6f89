//! Turns what was planned and what was observed into a run report, keeping the two apart.

use palisade_launch::Observation;
use palisade_plan::layer::{Layer, Promise, Strength};
use palisade_plan::model::{Confinement, Plan, Probe};
use palisade_record::{
    Approval, Identity, Observed, Planned, ProbeReport, PromiseReport, RunReport, Versions, Walls,
};
use palisade_sys::{Errno, errno_name};
use serde::Serialize;

/// Which promises an attempt of the self-check speaks for, if the layer it tried holds them.
const SPEAKS_FOR: [(&str, &[&str]); 6] = [
    ("read-canary", &["FS-1", "FS-2", "FS-3"]),
    ("write-outside", &["FS-1"]),
    ("reach-network", &["NET-1", "NET-2"]),
    ("see-supervisor", &["PROC-1"]),
    ("regain-capability", &["PROC-6"]),
    ("forbidden-syscall", &["SYS-1"]),
];

pub(crate) fn versions() -> Versions {
    Versions {
        palisade: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
    }
}

/// The policy's own word for a value.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// What the plan says, before anything was observed.
pub(crate) fn planned(report: &mut RunReport, plan: &Plan) {
    report.walls = Some(Walls {
        level: word(&plan.level),
        view: word(&plan.view),
        mode: word(&plan.mode),
        network: word(&plan.network),
        identity: identity(plan),
    });
    report.promises = plan.promises.iter().map(promise).collect();
    report.relaxations = plan.promises.iter().filter_map(relaxation).collect();
    report.notes.extend(plan.notes.iter().map(|note| note.text.clone()));
    report.approvals = plan
        .approvals
        .iter()
        .map(|approval| Approval { what: approval.what.clone(), reason: approval.reason.clone() })
        .collect();
}

/// What the child saw. The command only started because every attempt was stopped.
pub(crate) fn observed(report: &mut RunReport, tried: &[Probe], observations: &[Observation]) {
    for promise in &mut report.promises {
        let seen = observations
            .iter()
            .filter(|seen| seen.observed == seen.expected)
            .find(|seen| speaks_for(&seen.probe, promise, tried))
            .map(|seen| seen.observed.as_str());
        promise.observed = Some(if seen.is_some() { Observed::Held } else { Observed::NotProbed });
        promise.probe_errno = seen.and_then(errno_number);
    }
    report.self_check = observations
        .iter()
        .map(|seen| ProbeReport {
            probe: seen.probe.clone(),
            expected: seen.expected.clone(),
            observed: seen.observed.clone(),
            ok: seen.observed == seen.expected,
        })
        .collect();
}

fn speaks_for(probe: &str, promise: &PromiseReport, tried: &[Probe]) -> bool {
    SPEAKS_FOR.iter().any(|(name, ids)| *name == probe && ids.contains(&promise.id.as_str()))
        && tried
            .iter()
            .map(name_and_layer)
            .any(|(name, layer)| name == probe && promise.layers.iter().any(|l| l == layer.name()))
}

fn name_and_layer(probe: &Probe) -> (&'static str, Layer) {
    match probe {
        Probe::ReadCanary { layer, .. } => ("read-canary", *layer),
        Probe::WriteOutside { layer, .. } => ("write-outside", *layer),
        Probe::ReachNetwork { layer } => ("reach-network", *layer),
        Probe::SeeSupervisor { layer } => ("see-supervisor", *layer),
        Probe::RegainCapability { layer } => ("regain-capability", *layer),
        Probe::ForbiddenSyscall { layer } => ("forbidden-syscall", *layer),
    }
}

fn errno_number(name: &str) -> Option<i32> {
    const EXPECTED: [Errno; 6] =
        [Errno::NOENT, Errno::ACCESS, Errno::ROFS, Errno::CONNREFUSED, Errno::SRCH, Errno::PERM];
    EXPECTED.into_iter().find(|errno| errno_name(*errno) == name).map(Errno::raw_os_error)
}

fn promise(promise: &Promise) -> PromiseReport {
    PromiseReport {
        id: promise.id.to_owned(),
        what: promise.what.to_owned(),
        layers: promise.layers.iter().map(|layer| layer.name().to_owned()).collect(),
        planned: match promise.strength {
            Strength::Enforced => Planned::Held,
            Strength::Advisory => Planned::Advisory,
            Strength::Absent => Planned::Absent,
        },
        observed: None,
        probe_errno: None,
    }
}

fn relaxation(promise: &Promise) -> Option<String> {
    let how = match promise.strength {
        Strength::Enforced => return None,
        Strength::Advisory => "advisory",
        Strength::Absent => "absent",
    };
    let remark = promise.remark.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    Some(format!("{} {how}: {}{remark}", promise.id, promise.what))
}

fn identity(plan: &Plan) -> Identity {
    if let Confinement::Namespaces(inside) = &plan.confinement {
        let identity = &inside.identity;
        return Identity {
            inside_uid: identity.inside_uid,
            inside_gid: identity.inside_gid,
            outside_uid: identity.host_uid,
            outside_gid: identity.host_gid,
        };
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    Identity { inside_uid: uid, inside_gid: gid, outside_uid: uid, outside_gid: gid }
}

#[cfg(test)]
#[path = "reporting_tests.rs"]
mod tests;
