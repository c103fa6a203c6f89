//! The caller of a run: facts about the host and the locations of the caller's files.

use crate::app_dirs::AppDirs;
use crate::error::Result;
use palisade_launch::{Inherited, probe};
use palisade_plan::facts::HostFacts;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Caller {
    pub facts: HostFacts,
    pub places: AppDirs,
}

impl Caller {
    /// The calling process.
    pub fn here() -> Result<Self> {
        // First, because everything written from here on may reach the caller's limits.
        Inherited::take();
        let mut facts = probe::facts()?;
        // It is for this process, and not for what runs in a sandbox.
        facts.env.remove(OsStr::new(crate::ERRORS_AS_JSON));
        let places = AppDirs::of_caller(|name| variable(&facts, name), facts.home.as_deref())?;
        facts.own_paths = places.own_paths();
        Ok(Self { facts, places })
    }
}

impl AppDirs {
    /// Those of the calling process, where nothing else about it or its host has to be known.
    pub fn here() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name);
        match variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
            Some(home) => Self::of_caller(variable, Some(&home)),
            None => Ok(Caller::here()?.places),
        }
    }
}

fn variable(facts: &HostFacts, name: &str) -> Option<OsString> {
    facts.env.get(OsStr::new(name)).cloned()
}
