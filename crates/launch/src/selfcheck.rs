//! The child tries what must not work, before the command starts (ESC-2).
//!
//! Each attempt has exactly one harmless outcome, down to the errno: another errno means that
//! another layer held, or chance did, and the run stops all the same.

use crate::error::{LaunchError, Mistake};
use palisade_plan::layer::Layer;
use palisade_plan::model::Probe;
use palisade_sys::creds::try_regain_capability;
use palisade_sys::net::tcp_connect_loopback;
use palisade_sys::raw::{try_create, try_keyctl, try_kill0, try_open_read};
use palisade_sys::{Errno, Pid, errno_name};

const STEP: &str = "checking the walls from inside";
const FIELD: char = '\u{1e}';
/// A new pid namespace holds only the first few pids; a supervisor with one of those (as pid 1 of a
/// container, say) can not be told from one of ours.
const FIRST_TELLING_PID: i32 = 16;

/// What an attempt gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub probe: String,
    /// The outcome that lets the run go on.
    pub expected: String,
    /// What happened; equal to `expected`, or `not-probed`.
    pub observed: String,
}

impl Observation {
    pub(crate) fn encode(&self) -> String {
        format!("{}{FIELD}{}{FIELD}{}", self.probe, self.expected, self.observed)
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut fields = text.split(FIELD).map(str::to_owned);
        let (probe, expected, observed) = (fields.next()?, fields.next()?, fields.next()?);
        fields.next().is_none().then_some(Self { probe, expected, observed })
    }
}

/// What the attempts aim at, outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub(crate) supervisor: Pid,
    /// A loopback port the supervisor listens on.
    pub(crate) port: Option<u16>,
}

/// When in the child's last steps a probe makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Everything but the filter stands. A custom filter may forbid the very calls of the probes,
    /// and its refusal would prove nothing about the wall behind it.
    BeforeFilter,
    AfterFilter,
}

/// Makes the attempts of this moment.
pub(crate) fn run(
    probes: &[Probe],
    moment: Moment,
    targets: Targets,
) -> Result<Vec<Observation>, LaunchError> {
    probes
        .iter()
        .filter(|probe| moment_of(probe) == moment)
        .map(|probe| try_one(probe, targets))
        .collect()
}

fn moment_of(probe: &Probe) -> Moment {
    match probe {
        Probe::ForbiddenSyscall { .. } | Probe::ReachNetwork { layer: Layer::Seccomp } => {
            Moment::AfterFilter
        }
        _ => Moment::BeforeFilter,
    }
}

fn try_one(probe: &Probe, targets: Targets) -> Result<Observation, LaunchError> {
    let (name, expected, outcome) = match probe {
        Probe::ReadCanary { path, layer } => {
            let expected = if *layer == Layer::Landlock { Errno::ACCESS } else { Errno::NOENT };
            ("read-canary", expected, Some(try_open_read(path)))
        }
        Probe::WriteOutside { path, layer } => {
            let expected = if *layer == Layer::Landlock { Errno::ACCESS } else { Errno::ROFS };
            ("write-outside", expected, Some(try_create(path)))
        }
        Probe::ReachNetwork { layer } => {
            let expected =
                if *layer == Layer::Seccomp { Errno::ACCESS } else { Errno::CONNREFUSED };
            ("reach-network", expected, targets.port.map(tcp_connect_loopback))
        }
        Probe::SeeSupervisor { .. } => {
            let pid = targets.supervisor;
            let telling = pid.as_raw_nonzero().get() >= FIRST_TELLING_PID;
            ("see-supervisor", Errno::SRCH, telling.then(|| try_kill0(pid)))
        }
        Probe::RegainCapability { .. } => {
            ("regain-capability", Errno::PERM, Some(try_regain_capability()))
        }
        Probe::ForbiddenSyscall { .. } => ("forbidden-syscall", Errno::PERM, Some(try_keyctl())),
    };
    let observed = match outcome {
        None => "not-probed",
        Some(Ok(())) => "succeeded",
        Some(Err(errno)) => errno_name(errno),
    };
    let expected_name = errno_name(expected);
    if outcome.is_some_and(|outcome| outcome != Err(expected)) {
        return Err(LaunchError::new(
            STEP,
            format!(
                "{name} should have failed with {expected_name} by {}, and gave: {observed}",
                layer_of(probe).name()
            ),
        )
        .with_mend(
            "a wall is missing on this host, so nothing was started; `sandbox doctor` tells more",
        )
        .with_mistake(Mistake::WallMissing));
    }
    Ok(Observation {
        probe: name.to_owned(),
        expected: expected_name.to_owned(),
        observed: observed.to_owned(),
    })
}

fn layer_of(probe: &Probe) -> Layer {
    match probe {
        Probe::ReadCanary { layer, .. }
        | Probe::WriteOutside { layer, .. }
        | Probe::ReachNetwork { layer }
        | Probe::SeeSupervisor { layer }
        | Probe::RegainCapability { layer }
        | Probe::ForbiddenSyscall { layer } => *layer,
    }
}
