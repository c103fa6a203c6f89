//! Switches off named layers, so that a test can show which one stops an attack. Compiled only with the feature of the
//! same name, which no shipped binary has.

use crate::error::{Result, SessionError};
use palisade_launch::probe::RealTree;
use palisade_plan::facts::HostFacts;
use palisade_plan::layer::Layer;
use palisade_plan::model::Plan;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;

/// Comma-separated names of layers.
pub const VARIABLE: &str = "PALISADE_LAYERS_OFF";

pub(crate) fn apply(plan: Plan, facts: &HostFacts) -> Result<Plan> {
    let named = facts.env.get(OsStr::new(VARIABLE)).map(|names| names.to_string_lossy());
    let layers = named
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| {
            Layer::from_name(name)
                .ok_or_else(|| SessionError::NoSuchLayer { name: name.to_owned() })
        })
        .collect::<Result<Vec<Layer>>>()?;
    let plan = palisade_plan::layers_off::without(plan, facts, &RealTree, &layers);
    let as_it_is = !plan.sandbox.hardening.escaped_text;
    palisade_record::escape::AS_IT_IS.store(as_it_is, Ordering::Relaxed);
    let unreviewed = !plan.sandbox.hardening.reviewed_changes;
    palisade_changes::UNREVIEWED.store(unreviewed, Ordering::Relaxed);
    Ok(plan)
}
