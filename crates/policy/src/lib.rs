//! Resolves documents, layers and presets to one [`Policy`], with the provenance of every value.
//!
//! This crate does no I/O: callers pass in text and the name of its file. It must never silently accept an
//! unknown key, a value above its maximum, or a grant of an untrusted project.
#![forbid(unsafe_code)]

mod contradictions;
mod decode;
mod diagnostic;
mod diff;
mod enforced;
mod keys;
pub mod limit;
mod loaders;
mod merge;
pub mod model;
mod nearest;
mod presets;
mod save;
mod schema;
mod settings;
mod show;
mod syntax;
pub mod tool;
pub mod units;

pub use decode::document::{Flag, PolicyDocument};
pub use decode::parse::parse;
pub use diagnostic::{Diagnostic, Problem};
pub use diff::{PolicyChange, diff};
pub use enforced::not_enforced;
pub use loaders::{ENVIRONMENT_NAMES, LoadedDocument, SourceKind, load, load_environment};
pub use merge::{Direction, LayerKind, Merged, PolicyLayer, Provenance, Subject, Trust, merge};
pub use model::StoredRule;
pub use model::network;
pub use model::{
    Approval, CacheAccess, EnvMode, Filesystem, Level, Mode, Network, NetworkMode, OnAsk, Policy,
    Process, ProjectAccess, Resources, SyscallMode, Syscalls, View,
};
pub use nearest::nearest;
pub use presets::{Preset, preset, presets};
pub use save::{
    HostList, ListEntry, SaveError, Saved, SavedHosts, add_hosts, add_rules, add_writable_paths,
    entries, with_proxy, without,
};
pub use schema::schema;
pub use show::{export, show_json, show_lines};
pub use syntax::tree::Format;
