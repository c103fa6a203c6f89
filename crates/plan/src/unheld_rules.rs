//! Denials among the policy's rules that static mode would not enforce: it shows more from the start than dynamic mode, and a
//! rule removes nothing from a view.

use crate::error::{PlanError, Result};
use crate::grant::HOST_TREE;
use crate::host::Host;
use crate::model::MountOp;
use palisade_policy::model::{Mode, Policy};

/// An error for a denial of something that static mode alone shows from the start.
pub(crate) fn refuse(policy: &Policy, host: &Host<'_>, mounts: &[MountOp]) -> Result<()> {
    if policy.mode != Mode::Static {
        return Ok(());
    }
    let home = host.home();
    for rule in &policy.filesystem.rules {
        let mut shown = mounts.iter().filter(|op| is_of_static_mode(op)).map(MountOp::target);
        if let Some(shown) = shown.find(|shown| rule.may_deny_within(shown, home)) {
            return Err(PlanError::RuleNotHeld {
                rule: rule.pattern.clone(),
                place: rule.place(),
                shown: shown.to_owned(),
            });
        }
    }
    Ok(())
}

fn is_of_static_mode(op: &MountOp) -> bool {
    matches!(op, MountOp::Bind { why, .. } | MountOp::Overlay { why, .. } if *why == HOST_TREE)
}

#[cfg(test)]
mod tests {
    use crate::error::PlanError;
    use crate::facts::HostFacts;
    use crate::fake::{FakeTree, plan, policy, user};
    use palisade_policy::model::{Mode, Policy, StoredRule};

    fn denying(pattern: &str) -> Policy {
        let rule = serde_json::json!({
            "effect": "deny", "pattern": pattern, "access": "read",
            "store": "user", "file": "policy.yaml", "line": 3,
        });
        let rule: StoredRule = serde_json::from_value(rule).unwrap();
        let mut policy = Policy { mode: Mode::Static, ..policy() };
        policy.filesystem.rules = vec![rule];
        policy
    }

    /// Proves: POL-2 not-enforced, GATE-7 rules
    #[test]
    fn a_denial_of_what_static_mode_shows_from_the_start_is_not_ignored() {
        let mut tree = FakeTree::new();
        tree.file("/srv/data/x", "").file("/var/log/syslog", "").dir("/home/u/notes");
        let served = HostFacts { serves_gate: true, ..user() };
        for unheld in ["/srv/data/x", "/srv/", "/**", "/var/log/", "/srv/*.key"] {
            let refused = plan(&denying(unheld), &user(), &tree);
            assert!(matches!(refused, Err(PlanError::RuleNotHeld { .. })), "{unheld}");
            let dynamic = Policy { mode: Mode::Dynamic, ..denying(unheld) };
            plan(&dynamic, &user(), &tree).unwrap();
            plan(&denying(unheld), &served, &tree).unwrap();
        }
        for held in ["~/notes/", "/home/other/x", "~/*.key"] {
            plan(&denying(held), &user(), &tree).unwrap();
            plan(&denying(held), &served, &tree).unwrap();
        }
    }
}
