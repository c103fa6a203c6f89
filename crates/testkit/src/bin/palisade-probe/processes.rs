//! Attempts at processes, descriptors, `/proc` and the terminal.
//! Must never look for another way once one is refused.

use crate::Probe;

pub(crate) const PROBES: &[Probe] = &[];
