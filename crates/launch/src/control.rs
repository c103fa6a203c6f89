//! What the supervisor, our pid 1 and the command's process say to each other, over a SEQPACKET
//! socket between each two.
//!
//! A message is a packet of fields divided by `US` (0x1f). Both ends are ours; the command never
//! holds the socket. A packet that does not parse is an error, never a guess.

use crate::error::{LaunchError, Mistake};
use crate::network::{Front, Handed};
use crate::selfcheck::Observation;
use std::time::Duration;

const UNIT: char = '\u{1f}';
/// No packet is longer. A message that does not fit is cut at its end, which only shortens an error
/// text.
pub(crate) const LONGEST_PACKET: usize = 8 * 1024;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(i32),
    Signal(i32),
}

/// What the self-check saw, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub took: Duration,
    pub observations: Vec<Observation>,
}

/// From pid 1 to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromInit {
    /// The terminal inside is made; [`crate::Running::pty`] has its other end from now on.
    Terminal,
    /// The private home directory is made, and so many inodes of its file system are in use;
    /// [`crate::Running::take_private_home`] has it from now on.
    PrivateHome { inodes: u64 },
    /// The network inside is made; [`crate::Running::take_network`] has what is to be served.
    Network(Handed),
    /// The network inside leads nowhere; [`crate::Running::take_network_counters`] has what counts the attempts.
    NetworkCounters,
    /// The self-check passed.
    Checked(Checked),
    /// The command's exec succeeded.
    Started,
    /// The launch failed; nothing of the command ran.
    Failed(LaunchError),
    /// The command was stopped by this signal (job control).
    Stopped(i32),
    /// The command ended, and everything else inside with it.
    Exited(Ending),
}

/// From the supervisor to pid 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToInit {
    /// The id maps are written: go on.
    Mapped,
    /// The way out stands.
    Connected,
    /// Send this signal to the command's process group.
    Signal(i32),
    /// Continue the stopped command in the foreground.
    Resume,
    /// End everybody, and leave.
    End,
}

/// Between pid 1 and the process that becomes the command: how far each of them is. What the latter
/// says besides is a [`FromInit`], for pid 1 to pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// To pid 1: the network namespace is made.
    NetworkReady,
    /// From pid 1: the new root is `/`.
    RootChanged,
    /// To pid 1: nothing of the host's tree is left but what was taken.
    OldRootGone,
    /// From pid 1: everything stands, go on.
    Go,
}

impl Milestone {
    pub(crate) fn encode(self) -> &'static [u8] {
        match self {
            Self::NetworkReady => b"network ready",
            Self::RootChanged => b"root changed",
            Self::OldRootGone => b"old root gone",
            Self::Go => b"go",
        }
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        [Self::NetworkReady, Self::RootChanged, Self::OldRootGone, Self::Go]
            .into_iter()
            .find(|milestone| milestone.encode() == packet)
    }
}

impl FromInit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = match self {
            Self::Checked(Checked { took, observations }) => {
                let mut text = format!("checked{UNIT}{}", took.as_micros());
                for observation in observations {
                    text.push(UNIT);
                    text.push_str(&observation.encode());
                }
                text
            }
            Self::Terminal => "terminal".to_owned(),
            Self::PrivateHome { inodes } => format!("private-home{UNIT}{inodes}"),
            Self::Network(Handed { front, tcp, udp }) => {
                format!("network{UNIT}{}{UNIT}{tcp}{UNIT}{udp}", front.name())
            }
            Self::NetworkCounters => "network-counters".to_owned(),
            Self::Started => "started".to_owned(),
            Self::Failed(error) => {
                let mistake = match error.mistake {
                    Mistake::Ours => "ours",
                    Mistake::NotExecutable => "not-executable",
                    Mistake::NotFound => "not-found",
                    Mistake::WallMissing => "wall-missing",
                };
                let mend = error.mend.as_deref().unwrap_or("");
                ["failed", mistake, &error.step, &error.detail, mend].join("\u{1f}")
            }
            Self::Stopped(signal) => format!("stopped{UNIT}{signal}"),
            Self::Exited(Ending::Code(code)) => format!("exited{UNIT}code{UNIT}{code}"),
            Self::Exited(Ending::Signal(signal)) => format!("exited{UNIT}signal{UNIT}{signal}"),
        };
        text.truncate(text.floor_char_boundary(LONGEST_PACKET));
        text.into_bytes()
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(packet).ok()?;
        let mut fields = text.split(UNIT);
        let message = match fields.next()? {
            "checked" => {
                let took = Duration::from_micros(fields.next()?.parse().ok()?);
                let observations =
                    fields.by_ref().map(Observation::decode).collect::<Option<_>>()?;
                Self::Checked(Checked { took, observations })
            }
            "terminal" => Self::Terminal,
            "private-home" => Self::PrivateHome { inodes: fields.next()?.parse().ok()? },
            "network" => Self::Network(Handed {
                front: Front::from_name(fields.next()?)?,
                tcp: fields.next()?.parse().ok()?,
                udp: fields.next()?.parse().ok()?,
            }),
            "network-counters" => Self::NetworkCounters,
            "started" => Self::Started,
            "failed" => {
                let mistake = match fields.next()? {
                    "ours" => Mistake::Ours,
                    "not-executable" => Mistake::NotExecutable,
                    "not-found" => Mistake::NotFound,
                    "wall-missing" => Mistake::WallMissing,
                    _ => return None,
                };
                let step = fields.next()?.to_owned();
                let detail = fields.next().unwrap_or("").to_owned();
                let mend = fields.next().filter(|mend| !mend.is_empty()).map(str::to_owned);
                Self::Failed(LaunchError { step, detail, mend, mistake })
            }
            "stopped" => Self::Stopped(fields.next()?.parse().ok()?),
            "exited" => {
                let kind = fields.next()?;
                let number = fields.next()?.parse().ok()?;
                match kind {
                    "code" => Self::Exited(Ending::Code(number)),
                    "signal" => Self::Exited(Ending::Signal(number)),
                    _ => return None,
                }
            }
            _ => return None,
        };
        fields.next().is_none().then_some(message)
    }
}

impl ToInit {
    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Mapped => b"mapped".to_vec(),
            Self::Connected => b"connected".to_vec(),
            Self::Signal(signal) => format!("signal{UNIT}{signal}").into_bytes(),
            Self::Resume => b"resume".to_vec(),
            Self::End => b"end".to_vec(),
        }
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(packet).ok()?;
        match text.split_once(UNIT) {
            None if text == "mapped" => Some(Self::Mapped),
            None if text == "connected" => Some(Self::Connected),
            None if text == "resume" => Some(Self::Resume),
            None if text == "end" => Some(Self::End),
            Some(("signal", number)) => number.parse().ok().map(Self::Signal),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
