//! The states of a sandbox, and which may follow which (LIFE-1).
//!
//! Only checks the order; the session decides what happens in a state.

use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// Planned; nothing exists on the host yet.
    Created,
    /// The confinement is set up and was probed from inside.
    Initialized,
    /// The command was started.
    Running,
    /// The supervisor watches limits, signals and questions.
    Monitoring,
    Completed,
    Timeout,
    Error,
    /// Processes, mounts and directories are being removed, or are gone.
    Cleanup,
}

/// A state that cannot follow another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sandbox cannot go from {from:?} to {to:?}")]
pub struct WrongOrder {
    pub from: State,
    pub to: State,
}

impl From<Outcome> for State {
    /// The state in which a run of this outcome ends.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed | Outcome::Signalled | Outcome::OutputCapped => Self::Completed,
            Outcome::Timeout => Self::Timeout,
            Outcome::OutOfMemory
            | Outcome::CpuTime
            | Outcome::TooManyProcesses
            | Outcome::DiskFull
            | Outcome::Killed
            | Outcome::Refused
            | Outcome::Failed => Self::Error,
        }
    }
}

impl State {
    /// The next state, if it may follow this one. Set-up can fail before anything is monitored, so `Error` is reachable
    /// from every state before the end.
    pub fn advance(self, to: State) -> Result<State, WrongOrder> {
        use State::{
            Cleanup, Completed, Created, Error, Initialized, Monitoring, Running, Timeout,
        };
        let allowed = matches!(
            (self, to),
            (Created, Initialized | Error)
                | (Initialized, Running | Error)
                | (Running, Monitoring | Error)
                | (Monitoring, Completed | Timeout | Error)
                | (Completed | Timeout | Error, Cleanup)
        );
        if allowed { Ok(to) } else { Err(WrongOrder { from: self, to }) }
    }
}

#[cfg(test)]
mod tests {
    use super::State::{
        self, Cleanup, Completed, Created, Error, Initialized, Monitoring, Running, Timeout,
    };

    const ALL: [State; 8] =
        [Created, Initialized, Running, Monitoring, Completed, Timeout, Error, Cleanup];

    /// Proves: LIFE-1 state-machine
    #[test]
    fn only_the_drawn_transitions_are_allowed() {
        let allowed = [
            (Created, Initialized),
            (Created, Error),
            (Initialized, Running),
            (Initialized, Error),
            (Running, Monitoring),
            (Running, Error),
            (Monitoring, Completed),
            (Monitoring, Timeout),
            (Monitoring, Error),
            (Completed, Cleanup),
            (Timeout, Cleanup),
            (Error, Cleanup),
        ];
        for from in ALL {
            for to in ALL {
                let expected = allowed.contains(&(from, to));
                assert_eq!(from.advance(to).is_ok(), expected, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_refused_transition_names_both_states() {
        let error = Cleanup.advance(Running).unwrap_err();
        assert_eq!(error.to_string(), "a sandbox cannot go from Cleanup to Running");
    }
}
