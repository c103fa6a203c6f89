//! Grants that a client takes back: begun with the state, told once they are gone.

use super::Gate;
use super::state::Revocation;
use super::still_open::{mounts_of, users_of};
use crate::asking::{Asking, RevokeWish, who};
use palisade_ask::message::Revoked;
use palisade_launch::Running;
use palisade_record::{AccessRevoked, EventKind};
use std::collections::HashSet;
use std::path::Path;

/// A revocation that the keeper carries out.
#[derive(Debug)]
pub(super) struct UnderWay {
    wish: RevokeWish,
    revocation: Revocation,
    /// What was mounted in the sandbox before.
    mounts: HashSet<u64>,
}

impl Gate<'_> {
    pub(crate) fn revoke(&mut self, wish: RevokeWish, running: &Running, asking: &mut Asking) {
        let mounts = running.roots().first().map(|init| mounts_of(*init)).unwrap_or_default();
        match self.state.revoke(&wish.path) {
            Ok(revocation) => self.revoking.push(UnderWay { wish, revocation, mounts }),
            Err(why) => asking.revoked(&wish, Err(why.to_string())),
        }
    }

    /// Everything is gone that this one is about.
    pub(super) fn has_revoked(
        &mut self,
        id: u64,
        running: &Running,
        asking: &mut Asking,
        log: &mut dyn FnMut(EventKind),
    ) {
        for done in self.revoking.extract_if(.., |one| one.revocation.id == id) {
            let roots = running.roots();
            let left = roots.first().map(|init| mounts_of(*init)).unwrap_or_default();
            let (still_open, has_more) = users_of(&(&done.mounts - &left), &roots);
            let Revocation { paths, part_of, .. } = done.revocation;
            let paths = paths.iter().map(|path| text(path)).collect::<Vec<_>>();
            log(EventKind::AccessRevoked(Box::new(AccessRevoked {
                path: text(&done.wish.path),
                granted: paths.clone(),
                by: who(done.wish.source()),
                still_open: still_open.iter().map(|user| user.pid).collect(),
            })));
            let part_of = part_of.as_deref().map(text);
            let revoked = Revoked { paths, part_of, still_open, has_more, ..Revoked::default() };
            asking.revoked(&done.wish, Ok(revoked));
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
