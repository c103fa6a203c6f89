//! One thing outside the view that calls wait for, from the first touch to the answer.

use palisade_ask::Act;
use palisade_gate::Access;
use palisade_gate::{PathAccess, Wants};
use palisade_keeper::FileKind;
use palisade_plan::model::Nature;
use palisade_sys::FileIdentity;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// So many directories are looked for, from what is to be made upwards; then the first one on the way.
const MAX_LOOKS: usize = 16;

/// What the host has at a path: the very file that the keeper holds open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// Another file without which the one that was found cannot be executed.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) token: u64,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InquiryStage {
    /// The keeper looks what is there; so many answers are to come.
    Looking { awaited: usize },
    /// The keeper checks whether the directory that would be granted could be shown as a whole.
    Surveying,
    /// Its question is in the queue.
    Asked,
}

#[derive(Debug)]
pub(super) struct Inquiry {
    /// By which the keeper knows it.
    pub(super) token: u64,
    /// Who waits. Never empty.
    pub(super) requests: Vec<PathAccess>,
    pub(super) stage: InquiryStage,
    /// Whether one of them had its place in the line of questions, and its turn.
    pub(super) has_waited: bool,
    /// Where the keeper was sent last, if that is not the path that was touched.
    looked_for: Option<PathBuf>,
    looks: usize,
    /// What the keeper was sent to survey.
    pub(super) surveyed: Option<PathBuf>,
    /// Nobody can be asked about writing: what may be read is granted for that.
    pub(super) settled_for_reading: bool,
    /// Why the host would not let it be written.
    pub(super) unwritable: Option<u16>,
    pub(super) found: Option<Found>,
    /// Of what was found.
    pub(super) identity: Option<FileIdentity>,
    pub(super) needs: Vec<Need>,
    /// Where the links are that led to any of these.
    pub(super) links: Vec<PathBuf>,
    /// Of everything that has to be granted; the worst that is asked about until that is known.
    pub(super) nature: Nature,
    pub(super) since: Instant,
}

impl Inquiry {
    pub(super) fn new(token: u64, request: PathAccess, since: Instant) -> Self {
        Self {
            token,
            requests: vec![request],
            stage: InquiryStage::Looking { awaited: 1 },
            has_waited: false,
            looked_for: None,
            looks: 0,
            surveyed: None,
            settled_for_reading: false,
            unwritable: None,
            found: None,
            identity: None,
            needs: Vec::new(),
            links: Vec::new(),
            nature: Nature::Secret,
            since,
        }
    }

    /// Whether the keeper's answer for this serves another call as well.
    pub(super) fn serves(&self, request: &PathAccess) -> bool {
        self.requests.first().is_some_and(|first| {
            first.path == request.path
                && first.follow == request.follow
                && first.is_covered == request.is_covered
                && is_alike(first.wants, request.wants)
        })
    }

    /// Whether one answer serves the calls of both, carried out with what the keeper found for either.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let is_covered = |inquiry: &Self| inquiry.requests.first().map(|first| first.is_covered);
        self.found == other.found
            && self.identity == other.identity
            && self.paths().eq(other.paths())
            && self.links == other.links
            && self.nature == other.nature
            && self.access() == other.access()
            && self.act() == other.act()
            && self.lent_path() == other.lent_path()
            && self.settled_for_reading == other.settled_for_reading
            && is_covered(self) == is_covered(other)
    }

    /// The directory above what was looked for last, if something is to be made there. Not one that is there inside in the
    /// private home: what is made there is the run's own.
    pub(super) fn next_above(&mut self, private_home: Option<&Path>) -> Option<Vec<u8>> {
        let first = self.requests.first().filter(|request| request.wants.is_change())?;
        // What is not there is neither removed nor renamed.
        if self.found.is_none() && !first.wants.may_make() {
            return None;
        }
        let existing = first.existing_directory()?;
        // A name that is not right in it fails, whatever is answered.
        let is_useless = self.looks > 0;
        let is_made = first.wants.may_make();
        let is_out = |above: &Path| {
            let is_private = is_made && private_home.is_some_and(|home| above.starts_with(home));
            above == existing && (is_private || is_useless)
        };
        let last = self.looked_for.as_deref().unwrap_or(Path::new(OsStr::from_bytes(&first.path)));
        let above = last.parent().filter(|above| above.starts_with(existing) && !is_out(above))?;
        let first_name = || above.ancestors().take_while(|dir| *dir != existing).last();
        let above = if self.looks < MAX_LOOKS { above } else { first_name()? };
        let above = above.to_owned();
        self.looks += 1;
        self.looked_for = Some(above.clone());
        Some(above.into_os_string().into_encoded_bytes())
    }

    /// What has to be granted of it for the calls to succeed, as far as that is known.
    pub(super) fn access(&self) -> Access {
        match self.requests.first() {
            Some(first) if first.wants == Wants::Execute => Access::Execute,
            Some(first) if first.wants.is_change() && self.is_changed(first) => Access::Write,
            _ => Access::Read,
        }
    }

    /// Whether what was found is what the call would change: the file itself, or the directory that something is made
    /// in. A call that finds its name taken, or two directories missing, changes nothing.
    fn is_changed(&self, first: &PathAccess) -> bool {
        let Some(found) = self.found.as_ref().filter(|_| !self.settled_for_reading) else {
            return false;
        };
        match (self.looks, first.wants) {
            (0, Wants::Write | Wants::WriteExisting | Wants::Replace) => {
                found.kind == FileKind::File
            }
            (0, Wants::Remove) => true,
            (0, Wants::Change) => matches!(found.kind, FileKind::File | FileKind::Directory),
            (1, wants) => wants != Wants::MoveInto && found.kind == FileKind::Directory,
            _ => false,
        }
    }

    /// Whether what was found would get another name, which is a change of the directory it is in.
    pub(super) fn is_renamed(&self) -> bool {
        self.looks == 0 && self.wants() == Some(Wants::Rename)
    }

    /// Whether a link is only followed: where it leads is decided about by itself.
    pub(super) fn is_followed(&self) -> bool {
        self.wants() == Some(Wants::Follow)
    }

    /// Whether the call needs the directory that it removes something from, for that one name.
    pub(super) fn needs_parent(&self) -> bool {
        self.looks == 0 && self.wants() == Some(Wants::Remove)
    }

    /// The real path of what one call may change: of a rename, the old one.
    pub(super) fn lent_path(&self) -> Option<PathBuf> {
        let found = self.found.as_ref()?;
        match self.entry() {
            Some(entry) => Some(found.path.join(entry.file_name()?)),
            None => Some(found.path.clone()),
        }
    }

    fn wants(&self) -> Option<Wants> {
        self.requests.first().map(|request| request.wants)
    }

    /// What the call would do, as far as that is asked about.
    pub(super) fn act(&self) -> Act {
        let is_changed = self.access() == Access::Write;
        match self.wants() {
            Some(Wants::Rename) if is_changed => Act::Rename,
            Some(Wants::Remove) if is_changed => Act::Remove,
            Some(Wants::Change) if is_changed => Act::Change,
            Some(_) if is_changed && self.looks > 0 => Act::Create,
            Some(Wants::Replace) if is_changed => Act::Replace,
            Some(_) if is_changed => Act::Write,
            Some(Wants::Open { .. } | Wants::Source) => Act::Read,
            Some(Wants::Enter) => Act::Enter,
            Some(Wants::Execute) => Act::Execute,
            _ => Act::See,
        }
    }

    /// Whether it is a directory that is there inside without what the host has in it.
    pub(super) fn is_there_already(&self) -> bool {
        let existing = self.requests.first().and_then(PathAccess::existing_directory);
        existing.is_some() && self.found.as_ref().map(|found| found.path.as_path()) == existing
    }

    /// The directory the caller looks in, if a grant covers it: what the grant shows is not found there.
    pub(super) fn covered_directory(&self) -> Option<&Path> {
        self.requests.first().filter(|request| request.is_covered)?.existing_directory()
    }

    /// What is to be made or renamed in the directory that was found.
    pub(super) fn entry(&self) -> Option<PathBuf> {
        let is_made = self.looks > 0 && self.access() == Access::Write;
        let first = self.requests.first().filter(|_| is_made)?;
        Some(PathBuf::from(OsStr::from_bytes(&first.path)))
    }

    /// Everything that has to be granted for the call to succeed.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let found = self.found.iter().map(|found| found.path.as_path());
        found.chain(self.needs.iter().map(|need| need.path.as_path()))
    }
}

/// Whether one answer serves both.
fn is_alike(one: Wants, other: Wants) -> bool {
    let is_apart =
        |wants: Wants| matches!(wants, Wants::Execute | Wants::Follow) || wants.is_change();
    one == other || !(is_apart(one) || is_apart(other))
}
