//! A file a command.

pub(crate) mod audit;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod run;
