//! Merges many documents into one policy, with the origin of every value.
//!
//! Order: built-in, organisation, project, user, environment, command line; a later layer wins. Lists are
//! concatenated, and an empty list clears the previous entries, as in systemd.unit(5); deny lists only grow.
//! Two rules take precedence over the order: no layer loosens what the organisation locked, and a file that
//! commands could have written only tightens unless it is trusted.

mod layer;
mod permission;
pub(crate) mod stack;
pub(crate) mod tighten;
mod untrusted;

use crate::contradictions;
use crate::diagnostic::Diagnostic;
use crate::settings::Settings;
pub use layer::{LayerKind, Merged, PolicyLayer, Provenance, Subject, Trust};
use stack::Stack;
pub use tighten::Direction;

/// Merges the layers over the built-in one. They may be passed in any order.
pub fn merge(subject: &Subject, layers: Vec<PolicyLayer>) -> Result<Merged, Vec<Diagnostic>> {
    let mut layers = layers;
    layers.sort_by_key(|layer| layer.kind.rank());
    let mut stack = Stack::new(subject);
    stack.built_in();
    let built_in = stack.settings.clone();
    let mut organisation = None;
    for layer in &layers {
        stack.layer(layer);
        if layer.kind == LayerKind::Organisation {
            stack.lock(&layer.document.locks);
            let own: &mut Settings = organisation.get_or_insert_default();
            own.extend(layer.document.settings.clone());
            if let Subject::Tool(name) = subject {
                own.extend(layer.document.tools.get(name).cloned().unwrap_or_default());
            }
        }
    }
    stack.hold_to_maximum();
    if stack.problems.is_empty() {
        stack.problems.extend(contradictions::in_the_end(&stack.settings));
        let asked =
            permission::Asked { subject, built_in: &built_in, organisation: organisation.as_ref() };
        match permission::check(&asked, &stack.settings) {
            Ok(recorded) => stack.record(recorded),
            Err(problems) => stack.problems.extend(problems),
        }
    }
    stack.finish()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
