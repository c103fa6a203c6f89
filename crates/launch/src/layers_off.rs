//! Test builds only: effects of a missing layer that skipping its step does not produce. No shipped binary
//! contains this.

use crate::error::{During, Result};
use palisade_sys::At as _;
use rustix::thread::{
    CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// Lets the capabilities of set-up survive exec, which takes them from every uid but 0.
pub(crate) fn keep_capabilities() -> Result<()> {
    const STEP: &str = "keeping capabilities";
    let held = capabilities(None).call("capget").during(STEP)?.permitted;
    let sets = CapabilitySets { effective: held, permitted: held, inheritable: held };
    set_capabilities(None, sets).call("capset").during(STEP)?;
    held.iter()
        .try_for_each(|capability| configure_capability_in_ambient_set(capability, true))
        .call("prctl PR_CAP_AMBIENT")
        .during(STEP)
}
