//! For test builds only: what a layer's absence would mean and does not come about by leaving its
//! step out. No shipped binary has this.

use crate::error::{During, LaunchError};
use palisade_sys::At as _;
use rustix::thread::{
    CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// Lets the capabilities of set-up survive exec, which takes them from every uid but 0.
pub(crate) fn keep_capabilities() -> Result<(), LaunchError> {
    const STEP: &str = "keeping capabilities";
    let held = capabilities(None).call("capget").during(STEP)?.permitted;
    let sets = CapabilitySets { effective: held, permitted: held, inheritable: held };
    set_capabilities(None, sets).call("capset").during(STEP)?;
    held.iter()
        .try_for_each(|capability| configure_capability_in_ambient_set(capability, true))
        .call("prctl PR_CAP_AMBIENT")
        .during(STEP)
}
