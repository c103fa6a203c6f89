//! How a person names two states of a session.

use palisade_session::transaction::StateNumber;
use std::fmt;
use std::str::FromStr;

/// Two states, as in `2..5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateRange {
    pub(crate) from: StateNumber,
    pub(crate) to: StateNumber,
}

#[derive(Debug)]
pub(crate) struct NotAStateRange;

impl fmt::Display for NotAStateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not two checkpoints, such as 2..5, 2.. or ..5")
    }
}

impl std::error::Error for NotAStateRange {}

impl FromStr for StateRange {
    type Err = NotAStateRange;

    fn from_str(text: &str) -> Result<Self, NotAStateRange> {
        let number = |text: &str, otherwise| match text {
            "" => Ok(otherwise),
            text => text.parse().map(StateNumber::Checkpoint).map_err(|_| NotAStateRange),
        };
        let (from, to) = text.split_once("..").unwrap_or((text, ""));
        if text.is_empty() || text == ".." {
            return Err(NotAStateRange);
        }
        Ok(Self {
            from: number(from, StateNumber::Checkpoint(0))?,
            to: number(to, StateNumber::Now)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{StateNumber, StateRange};

    #[test]
    fn two_states_are_read_as_git_reads_them() {
        let (now, of) = (StateNumber::Now, StateNumber::Checkpoint);
        for (text, from, to) in
            [("2..5", of(2), of(5)), ("2..", of(2), now), ("2", of(2), now), ("..5", of(0), of(5))]
        {
            assert_eq!(text.parse::<StateRange>().unwrap(), StateRange { from, to }, "{text}");
        }
        for text in ["", "..", "x", "1..x", "-1", "1...2", "99999999999"] {
            assert!(text.parse::<StateRange>().is_err(), "{text}");
        }
    }
}
