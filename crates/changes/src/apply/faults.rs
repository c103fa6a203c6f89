//! Where an apply could be interrupted, numbered, so that a test can stop at each of them.

use crate::error::Result;
use palisade_sys::fault;

pub(crate) trait Faults {
    /// Called before each step. An error ends the apply at once, as a crash would: nothing is undone or removed.
    fn step(&mut self) -> Result<()>;
}

pub(crate) struct NoFaults;

impl Faults for NoFaults {
    fn step(&mut self) -> Result<()> {
        fault::point("applying", "");
        Ok(())
    }
}
