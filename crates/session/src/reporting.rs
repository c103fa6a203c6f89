//! Fills the run report from the plan and from observations, and keeps the two apart.

use palisade_launch::Observation;
use palisade_plan::layer::{Promise, Strength};
use palisade_plan::model::{Confinement, Plan};
use palisade_record::{
    Approval, Observed, Planned, ProbeReport, PromiseReport, ReportedConfinement, ReportedIdentity,
    RunReport, Versions,
};
use palisade_sys::{Errno, errno_name};
use serde::Serialize;

pub(crate) fn versions() -> Versions {
    Versions {
        palisade: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
    }
}

/// The word for a value in a policy file.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// What the plan promises, before any observation.
pub(crate) fn planned(report: &mut RunReport, plan: &Plan) {
    report.walls = Some(ReportedConfinement {
        level: word(&plan.explanation.level),
        view: word(&plan.explanation.view),
        mode: word(&plan.explanation.mode),
        network: plan.sandbox.network.name().to_owned(),
        identity: identity(plan),
    });
    report.promises = plan.explanation.promises.iter().map(promise).collect();
    report.relaxations = plan.explanation.promises.iter().filter_map(relaxation).collect();
    report.notes.extend(plan.explanation.notes.iter().map(|note| note.text.clone()));
    report.approvals = plan
        .supervision
        .approvals
        .iter()
        .map(|approval| Approval { what: approval.what.clone(), reason: approval.reason.clone() })
        .collect();
}

/// What the self-check observed. The command started only because every probe was refused.
pub(crate) fn observed(report: &mut RunReport, plan: &Plan, observations: &[Observation]) {
    for (told, promise) in report.promises.iter_mut().zip(&plan.explanation.promises) {
        let held = observations
            .iter()
            .filter(|seen| {
                let tried = plan.sandbox.self_check.iter().find(|probe| probe.name() == seen.probe);
                tried.is_some_and(|probe| promise.is_tried_by(probe))
            })
            .find_map(|seen| seen.observed);
        told.observed = Some(if held.is_some() { Observed::Held } else { Observed::NotProbed });
        told.probe_errno = held.map(Errno::raw_os_error);
    }
    report.self_check = observations
        .iter()
        .map(|seen| ProbeReport {
            probe: seen.probe.clone(),
            expected: errno_name(seen.expected).to_owned(),
            observed: seen.observed.map_or("not-probed", errno_name).to_owned(),
            ok: seen.observed == Some(seen.expected),
        })
        .collect();
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

fn identity(plan: &Plan) -> ReportedIdentity {
    if let Confinement::Namespaces(inside) = &plan.sandbox.confinement {
        let identity = &inside.identity;
        return ReportedIdentity {
            inside_uid: identity.inside_uid,
            inside_gid: identity.inside_gid,
            outside_uid: identity.host_uid,
            outside_gid: identity.host_gid,
        };
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    ReportedIdentity { inside_uid: uid, inside_gid: gid, outside_uid: uid, outside_gid: gid }
}

#[cfg(test)]
#[path = "reporting_tests.rs"]
pub(crate) mod tests;
