//! Decides everything about a run as pure data: policy and facts about the host in, a [`model::Plan`] out.
//!
//! No I/O: the host is known through [`facts::HostFacts`] and accessed through [`facts::HostTree`]. Nothing is
//! decided afterwards: `launch` only carries out the plan.
#![forbid(unsafe_code)]

pub mod agents;
mod aliases;
mod build;
mod build_dirs;
mod caches;
mod compose;
mod credentials;
mod denied;
mod dotenv;
mod egress;
mod environment;
mod error;
mod executables;
pub mod facts;
mod followed;
mod gate;
mod git;
mod grant;
mod guard;
mod host;
mod identity;
mod indirect;
mod installed;
pub mod kept_layer;
mod known;
mod landlock;
pub mod layer;
#[cfg(any(test, feature = "layers-off"))]
pub mod layers_off;
mod leftovers;
mod lifetime;
pub mod limit;
mod limits;
mod listed;
pub mod listed_view;
mod lists;
mod locate;
pub mod model;
mod namespaces;
mod own;
mod path_map;
mod path_text;
mod paths;
mod planted;
mod policy_files;
pub mod program;
mod project;
mod promises;
mod reach;
mod render;
mod request;
mod seccomp;
mod see;
mod selfcheck;
mod settings;
mod sourced;
mod summary;
mod text;
mod unheld_rules;
mod view;
mod virtualenv;
mod writable;
mod written;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod property_tests;

pub use build::{build, filter, locate_project, project_root};
pub use caches::{layer_name, path_of_layer};
pub use dotenv::is_dotenv;
pub use egress::proxy_alone;
pub use environment::is_secret as is_secret_variable;
pub use error::PlanError;
pub use followed::{GuardPlaces, followed_paths};
pub use leftovers::leftovers;
pub use model::{FoundBy, Located};
pub use request::{CacheStore, FinishedLayer, IfMissing, PlanRequest};
pub use seccomp::key_of;
pub use virtualenv::active as active_virtualenv;
pub use writable::{could_be_written, resolved_path, writable_places};
