//! Caches of the sandboxes' own: several of them are parts of one overlay, each mounted where it belongs. The whole of it
//! stands on a directory of the host that the command must never see.

use super::overlay::cache_stack;
use super::stage::shelve;
use crate::error::{During, LaunchError, Result};
use crate::sources::Source;
use palisade_plan::model::CacheStack;
use palisade_sys::OFlags;
use palisade_sys::beneath::open_beneath;
use palisade_sys::mounts::{self, MountAttr, MountAttrs, Recursion};
use std::os::fd::OwnedFd;
use std::path::Path;

const STEP: &str = "mounting the caches";

/// One cache of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachePart<'p> {
    /// Its path on the host.
    pub(crate) cache: &'p Path,
    /// What its overlay stands on.
    pub(crate) stack: &'p Path,
    pub(crate) exec: bool,
}

/// The overlays behind the caches, while the view is built.
pub(crate) struct Caches<'p> {
    planned: &'p [CacheStack],
    mounted: Vec<Mounted<'p>>,
}

struct Mounted<'p> {
    planned: &'p CacheStack,
    overlay: OwnedFd,
}

impl<'p> Caches<'p> {
    pub(crate) fn new(planned: &'p [CacheStack]) -> Self {
        Self { planned, mounted: Vec::new() }
    }

    /// The mount for one cache, not attached yet. The first of an overlay has its source.
    pub(crate) fn part(&mut self, part: &CachePart<'_>, source: Option<Source>) -> Result<OwnedFd> {
        let CachePart { cache, stack, exec } = *part;
        if let Some(source) = source {
            let planned = self.planned.iter().find(|planned| planned.lower == stack);
            let planned =
                planned.ok_or_else(|| LaunchError::new(STEP, "the plan has no overlay"))?;
            let overlay = cache_stack(planned, &source)?;
            shelve(&overlay)?;
            self.mounted.push(Mounted { planned, overlay });
        }
        let mounted = self.mounted.iter().find(|mounted| mounted.planned.lower == stack);
        let mounted = mounted.ok_or_else(|| LaunchError::new(STEP, "its overlay has no source"))?;
        let within = cache.strip_prefix(stack).unwrap_or(Path::new(""));
        let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
        let directory = open_beneath(&mounted.overlay, within, OFlags::PATH | OFlags::DIRECTORY)
            .during(STEP)?;
        let part = mounts::open_tree(&directory, Path::new(""), Recursion::Single).during(STEP)?;
        if !exec {
            let attr = MountAttr { set: MountAttrs::NOEXEC, ..MountAttr::default() };
            mounts::mount_setattr(&part, Recursion::Single, &attr).during(STEP)?;
        }
        Ok(part)
    }
}
