//! The states of a transaction, by number.

/// A state that can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateNumber {
    /// 0 is the project without changes.
    Checkpoint(u32),
    Now,
}
