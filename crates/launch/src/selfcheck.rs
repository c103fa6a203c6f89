//! The self-check (ESC-2): before the command starts, the child tries what must not work.
//!
//! Each attempt has exactly one correct result, down to the errno. Another errno means that a different layer
//! refused, or that it was chance, and the run stops in either case.

use crate::error::{FailureKind, LaunchError, Result};
use palisade_plan::layer::Layer;
use palisade_plan::model::Probe;
use palisade_sys::creds::try_regain_capability;
use palisade_sys::net::tcp_connect_loopback;
use palisade_sys::raw::{try_create, try_keyctl, try_kill0, try_open_read};
use palisade_sys::{Errno, Pid, errno_name};
use palisade_wire::AsErrno;
use serde::{Deserialize, Serialize};

const STEP: &str = "checking the walls from inside";
/// A new pid namespace has only the first few pids; a supervisor with one of those (as pid 1 of a container)
/// cannot be distinguished from one of ours.
const FIRST_TELLING_PID: i32 = 16;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// [`Probe::name`] of what was tried.
    pub probe: String,
    /// The result that lets the run go on.
    #[serde(with = "AsErrno")]
    pub expected: Errno,
    /// What happened: equal to `expected`, or none where there was no target.
    #[serde(with = "AsErrno")]
    pub observed: Option<Errno>,
}

/// The targets of the attempts, outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub(crate) supervisor: Pid,
    /// A loopback port the supervisor listens on.
    pub(crate) port: Option<u16>,
}

/// When in the child's last steps a probe runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeStage {
    /// Everything but the filter is in place. A custom filter may forbid the calls of the probes, and its
    /// refusal would prove nothing about the layer behind it.
    BeforeFilter,
    AfterFilter,
}

/// Makes the attempts of this stage.
pub(crate) fn run(
    probes: &[Probe],
    moment: ProbeStage,
    targets: Targets,
) -> Result<Vec<Observation>> {
    probes
        .iter()
        .filter(|probe| moment_of(probe) == moment)
        .map(|probe| try_one(probe, targets))
        .collect()
}

fn moment_of(probe: &Probe) -> ProbeStage {
    match probe {
        Probe::ForbiddenSyscall { .. } | Probe::ReachNetwork { layer: Layer::Seccomp } => {
            ProbeStage::AfterFilter
        }
        _ => ProbeStage::BeforeFilter,
    }
}

fn try_one(probe: &Probe, targets: Targets) -> Result<Observation> {
    let (expected, outcome) = match probe {
        Probe::ReadCanary { path, layer } => {
            let expected = if *layer == Layer::Landlock { Errno::ACCESS } else { Errno::NOENT };
            (expected, Some(try_open_read(path)))
        }
        Probe::WriteOutside { path, layer } => {
            let expected = if *layer == Layer::Landlock { Errno::ACCESS } else { Errno::ROFS };
            (expected, Some(try_create(path)))
        }
        Probe::WriteGuarded { path, .. } => (Errno::ACCESS, Some(try_create(path))),
        Probe::ReachNetwork { layer } => {
            let expected =
                if *layer == Layer::Seccomp { Errno::ACCESS } else { Errno::CONNREFUSED };
            (expected, targets.port.map(tcp_connect_loopback))
        }
        Probe::SeeSupervisor { .. } => {
            let pid = targets.supervisor;
            let telling = pid.as_raw_nonzero().get() >= FIRST_TELLING_PID;
            (Errno::SRCH, telling.then(|| try_kill0(pid)))
        }
        Probe::RegainCapability { .. } => (Errno::PERM, Some(try_regain_capability())),
        Probe::ForbiddenSyscall { .. } => (Errno::PERM, Some(try_keyctl())),
    };
    match outcome {
        Some(outcome) if outcome != Err(expected) => Err(missing_wall(probe, expected, outcome)),
        _ => Ok(Observation {
            probe: probe.name().to_owned(),
            expected,
            observed: outcome.map(|_| expected),
        }),
    }
}

fn missing_wall(probe: &Probe, expected: Errno, outcome: Result<(), Errno>) -> LaunchError {
    let detail = format!(
        "{} should have failed with {} by {}, and gave: {}",
        probe.name(),
        errno_name(expected),
        probe.layer().name(),
        outcome.map_or_else(errno_name, |()| "succeeded"),
    );
    LaunchError::new(STEP, detail)
        .with_fix(
            "a wall is missing on this host, so nothing was started; `sandbox doctor` tells more",
        )
        .with_kind(FailureKind::LayerMissing)
}
