//! The caller of a run: facts about the host and the locations of the caller's files.

use crate::app_dirs::AppDirs;
use crate::error::Result;
use palisade_launch::{Inherited, probe};
use palisade_plan::facts::HostFacts;
use std::ffi::{OsStr, OsString};

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
        let places = AppDirs::of_caller(|name| variable(&facts, name), facts.home.as_deref())?;
        facts.own_paths = places.own_paths();
        Ok(Self { facts, places })
    }
}

fn variable(facts: &HostFacts, name: &str) -> Option<OsString> {
    facts.env.get(OsStr::new(name)).cloned()
}
