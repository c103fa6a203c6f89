//! One thing outside the view that calls wait for, from the first touch to the answer.

use palisade_broker::{Touch, Wants};
use palisade_gate::Access;
use palisade_keeper::Kind;
use palisade_plan::model::Nature;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// So many directories are looked for, from what is to be made upwards; then the first one on the way.
const MOST_LOOKS: usize = 16;

/// What the host has at a path: the very file that the keeper holds open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

/// Another file without which the one that was found can not be executed.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) token: u64,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The keeper looks what is there; so many answers are to come.
    Looking { awaited: usize },
    /// Its question is in the queue.
    Asked,
}

#[derive(Debug)]
pub(super) struct Inquiry {
    /// By which the keeper knows it.
    pub(super) token: u64,
    /// Who waits. Never empty.
    pub(super) touches: Vec<Touch>,
    pub(super) stage: Stage,
    /// Where the keeper was sent last, if that is not the path that was touched.
    looked_for: Option<PathBuf>,
    looks: usize,
    pub(super) found: Option<Found>,
    pub(super) needs: Vec<Need>,
    /// Where the links are that led to any of these.
    pub(super) links: Vec<PathBuf>,
    /// Of everything that has to be granted; the worst that is asked about until that is known.
    pub(super) nature: Nature,
    pub(super) since: Instant,
}

impl Inquiry {
    pub(super) fn new(token: u64, touch: Touch, since: Instant) -> Self {
        Self {
            token,
            touches: vec![touch],
            stage: Stage::Looking { awaited: 1 },
            looked_for: None,
            looks: 0,
            found: None,
            needs: Vec::new(),
            links: Vec::new(),
            nature: Nature::Secret,
            since,
        }
    }

    /// Whether the keeper's answer for this serves another call as well.
    pub(super) fn serves(&self, touch: &Touch) -> bool {
        self.touches.first().is_some_and(|first| {
            first.path == touch.path
                && first.follow == touch.follow
                && access_of(first) == access_of(touch)
        })
    }

    /// The directory above what was looked for last, if something is to be made there and it is not there inside.
    pub(super) fn next_above(&mut self) -> Option<Vec<u8>> {
        let first = self.touches.first().filter(|touch| touch.wants == Wants::Write)?;
        let existing = first.existing_directory()?;
        let last = self.looked_for.as_deref().unwrap_or(Path::new(OsStr::from_bytes(&first.path)));
        let above =
            last.parent().filter(|above| above.starts_with(existing) && *above != existing)?;
        let first_name = || above.ancestors().take_while(|dir| *dir != existing).last();
        let above = if self.looks < MOST_LOOKS { above } else { first_name()? };
        let above = above.to_owned();
        self.looks += 1;
        self.looked_for = Some(above.clone());
        Some(above.into_os_string().into_encoded_bytes())
    }

    pub(super) fn access(&self) -> Access {
        self.touches.first().map_or(Access::Read, access_of)
    }

    /// Everything that has to be granted for the call to succeed.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let found = self.found.iter().map(|found| found.path.as_path());
        found.chain(self.needs.iter().map(|need| need.path.as_path()))
    }
}

pub(super) fn access_of(touch: &Touch) -> Access {
    match touch.wants {
        Wants::Execute => Access::Execute,
        Wants::Open { .. } | Wants::Look | Wants::Enter | Wants::Source | Wants::Write => {
            Access::Read
        }
    }
}
