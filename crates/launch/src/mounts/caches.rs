//! Caches of the sandboxes' own: several of them are parts of one overlay, each mounted where it belongs. The whole of it
//! stands on a directory of the host that the command must never see.

use super::Builder;
use crate::error::{During, LaunchError, Result};
use crate::sources::Source;
use palisade_plan::model::{CacheStack, NodeKind};
use palisade_sys::beneath::open_beneath;
use palisade_sys::mounts::{self, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, Errno, OFlags};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const STEP: &str = "mounting the caches";
/// On the new root while parts are taken, where the kernel copies only attached mounts (before 6.15).
const PLACE: &str = "/.palisade-caches";

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
    /// Where it is attached, if it had to be.
    place: Option<PathBuf>,
}

impl<'p> Caches<'p> {
    pub(crate) fn new(planned: &'p [CacheStack]) -> Self {
        Self { planned, mounted: Vec::new() }
    }

    /// The mount for one cache, not attached yet. The first of an overlay has its source.
    pub(crate) fn part(
        &mut self,
        builder: &Builder,
        part: &CachePart<'_>,
        source: Option<Source>,
    ) -> Result<OwnedFd> {
        let CachePart { cache, stack, exec } = *part;
        if let Some(source) = source {
            let planned = self.planned.iter().find(|planned| planned.lower == stack);
            let planned =
                planned.ok_or_else(|| LaunchError::new(STEP, "the plan has no overlay"))?;
            let overlay = builder.cache_stack(planned, &source)?;
            self.mounted.push(Mounted { planned, overlay, place: None });
        }
        let number = self.mounted.iter().position(|mounted| mounted.planned.lower == stack);
        let number = number.ok_or_else(|| LaunchError::new(STEP, "its overlay has no source"))?;
        let within = cache.strip_prefix(stack).unwrap_or(Path::new(""));
        let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
        let part = self.mounted[number].cut_out(builder, within, number)?;
        if !exec {
            let attr = MountAttr { set: MountAttrs::NOEXEC, ..MountAttr::default() };
            mounts::mount_setattr(&part, Recursion::Single, &attr).during(STEP)?;
        }
        Ok(part)
    }

    /// The parts keep their overlays alive from now on.
    pub(crate) fn close(self, builder: &Builder) -> Result<()> {
        for place in self.mounted.into_iter().filter_map(|mounted| mounted.place) {
            // By a path relative to the root: it has no absolute name yet.
            rustix::process::fchdir(&builder.root).call("fchdir").during(STEP)?;
            mounts::detach(place.strip_prefix("/").unwrap_or(&place)).during(STEP)?;
            builder.unlink(&place, rustix::fs::AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }
}

impl Mounted<'_> {
    /// A directory of the overlay as a mount of its own.
    fn cut_out(&mut self, builder: &Builder, within: &Path, number: usize) -> Result<OwnedFd> {
        let cut = |overlay: &OwnedFd| {
            let directory = open_beneath(overlay, within, OFlags::PATH | OFlags::DIRECTORY)?;
            mounts::open_tree(&directory, Path::new(""), Recursion::Single)
        };
        if self.place.is_none() {
            match cut(&self.overlay) {
                Err(error) if matches!(error.errno, Errno::INVAL | Errno::PERM) => {}
                cut => return cut.during(STEP),
            }
            let place = PathBuf::from(format!("{PLACE}-{number}"));
            builder.attach(&self.overlay, &place, NodeKind::Dir)?;
            self.overlay = open_beneath(&builder.root, &place, OFlags::PATH).during(STEP)?;
            self.place = Some(place);
        }
        cut(&self.overlay).during(STEP)
    }
}
