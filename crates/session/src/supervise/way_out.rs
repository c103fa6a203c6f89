//! The beginning and the end of the way out, in the life of a run.

use super::Watch;
use crate::error::SessionError;

impl Watch<'_> {
    /// The network namespace is made and its listeners have come: they are served from now on.
    pub(super) fn open_way_out(&mut self) -> Result<(), SessionError> {
        match (&mut self.way_out, self.running.take_network()) {
            (Some(way_out), Some(inside)) => way_out.start(inside, &self.running),
            _ => Ok(()),
        }
    }

    /// Nobody inside is left: what the egress process has not told yet is heard and recorded.
    pub(super) fn close_way_out(&mut self) {
        let unlogged = &mut self.unlogged;
        if let Some(way_out) = &mut self.way_out {
            way_out.finish(&mut self.asking, &mut |kind| unlogged.push(kind));
        }
    }
}
