//! Which sandboxes may be prepared before anybody asks for them.
//!
//! What waits must hold nothing that belongs to the client that claims it later, and nothing that grows old while it waits.

use crate::error::{Result, SessionError};
use palisade_plan::model::{Egress, Plan};

/// Refuses a plan with secrets, or with a state of the project that is fixed at the start.
pub(super) fn check(plan: &Plan, has_authority: bool) -> Result<()> {
    let egress = plan.sandbox.egress.as_ref();
    let has_secrets = egress.is_some_and(|egress| match egress {
        Egress::Proxy(proxy) => {
            // A proxy beyond ours may have a login in its address.
            let has_login = proxy.upstream.as_ref().is_some_and(|upstream| upstream.contains('@'));
            has_login || !proxy.credentials.is_empty()
        }
        Egress::Nat(_) => false,
    });
    let why = if has_secrets || has_authority {
        "it holds secrets for the network"
    } else if plan.supervision.transaction.is_some() {
        "its transaction begins with the project as it is when it is made"
    } else {
        return Ok(());
    };
    Err(SessionError::CannotWait { why })
}
