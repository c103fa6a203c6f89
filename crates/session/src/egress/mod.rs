//! What the egress process of a run is configured with: rules, credentials, certificates.

mod config;
mod facts;

pub(crate) use config::{bound, bound_by_descriptors, config, most_files, of_proxy};
pub(crate) use facts::facts;
