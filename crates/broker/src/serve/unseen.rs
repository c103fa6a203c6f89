//! A call on something that is missing inside and may exist on the host: what it wants of it, and where it looked.

use crate::call::{Call, PathArg};
use crate::caller::Caller;
use crate::missing::Missing;
use crate::stand_ins::LISTING;
use palisade_gate::Wants;
use rustix::fs::RenameFlags;

const NO_REPLACE: u32 = RenameFlags::NOREPLACE.bits();

/// What is missing, and may be asked about.
pub(crate) struct Unseen {
    pub(super) wants: Wants,
    pub(super) missing: Missing,
    pub(super) follow: bool,
    /// Whether nothing is missing, and it was granted for reading only.
    pub(super) is_read_only: bool,
    /// As the caller wrote it, if that was an absolute path.
    pub(super) typed: Option<Vec<u8>>,
    /// Whether the same call was granted a moment ago, and did not find it.
    pub(super) is_second_look: bool,
}

impl Unseen {
    pub(super) fn new(wants: Wants, missing: Missing, follow: bool) -> Self {
        let (is_read_only, is_second_look) = (false, false);
        Self { wants, missing, follow, is_read_only, typed: None, is_second_look }
    }

    /// Whether a directory is listed that exists, below the grant that covers it.
    pub(super) fn lists_below_cover(&self) -> bool {
        let Missing { path, existing, is_covered } = &self.missing;
        self.wants == LISTING && *is_covered && *existing == path.len()
    }
}

/// Whether both paths name entries of one directory, by their text.
pub(super) fn is_in_one_directory(caller: &Caller, from: PathArg, to: PathArg) -> bool {
    let directory = |path: PathArg| {
        let bytes = caller.path(path.address).ok()?;
        let name = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        Some(bytes[..name].to_vec())
    };
    let (old, new) = (directory(from), directory(to));
    let is_whole = old.as_ref().is_some_and(|old| old.starts_with(b"/"));
    old.is_some() && old == new && (is_whole || from.dir == to.dir)
}

/// What a call wants of its target.
pub(super) fn wants_of(caller: &Caller, call: Call) -> Wants {
    match call {
        // On one mount, if that directory is granted.
        Call::Link { from, to, .. } if is_in_one_directory(caller, from, to) => Wants::Make,
        Call::Rename { flags: 0, .. } => Wants::Replace,
        Call::Rename { flags, .. } if flags == NO_REPLACE => Wants::Make,
        Call::Rename { .. } | Call::Link { .. } => Wants::MoveInto,
        Call::Remove { .. } => Wants::Remove,
        Call::ChangeMode { .. }
        | Call::ChangeOwner { .. }
        | Call::ChangeTimes { .. }
        | Call::ChangeAttribute { .. } => Wants::Change,
        call if call.only_makes() => Wants::Make,
        call if call.may_make() => Wants::Write,
        _ => Wants::WriteExisting,
    }
}
