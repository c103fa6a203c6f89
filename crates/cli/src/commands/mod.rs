//! A file a command.

pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod cache;
pub(crate) mod changes;
pub(crate) mod check_path;
pub(crate) mod checkpoints;
pub(crate) mod complete;
pub(crate) mod doctor;
pub(crate) mod explain_syscall;
pub(crate) mod generate;
pub(crate) mod learn;
pub(crate) mod manual;
pub(crate) mod net;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod proxy;
pub(crate) mod quarantine;
pub(crate) mod replay;
pub(crate) mod revoke;
pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod supervise;
pub(crate) mod top;
pub(crate) mod why;
