//! The configuration of a run's egress process: rules, credentials, certificates.

mod config;
mod facts;

pub(crate) use config::{bound, bound_by_descriptors, config, most_files, of_proxy};
pub(crate) use facts::facts;
