//! Numbered states of a transaction (LIFE-5). Each is a copy of all its changes, made beside the session: nothing in the
//! sandbox is stopped or mounted for it, and each can be removed without the others.
//!
//! ```text
//! sessions/ID/checkpoints/N/checkpoint.json
//! sessions/ID/checkpoints/N/upper/            as the upper layer was
//! sessions/ID/checkpoints/new-…/              one that is being made, or was interrupted
//! ```

use super::disk_marks::{Lasting, lasting};
use super::state_number::StateNumber;
use super::waiting::WaitingChanges;
use super::{CHECKPOINTS, DIRECTORY, UPPER};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::journal::Journal;
use crate::machine_start;
use jiff::Timestamp;
use palisade_changes::{ChangeSet, CopiedLayer, CopyThreads, Layers};
use palisade_plan::model::TransactionMethod;
use palisade_record::{CheckpointMade, EventKind};
use palisade_sys::beneath::open_beneath;
use palisade_sys::{At as _, Errno, OFlags, fault};
use rustix::fs::{Dir, Mode, RenameFlags};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use uuid::Uuid;

const RECORD: &str = "checkpoint.json";
const IMAGE: &str = "upper";
/// What the name of one begins with that is being made.
const UNFINISHED: &str = "new-";
const MAX_RECORD_BYTES: u64 = 64 << 10;
/// Of a person's words.
const MAX_MESSAGE: usize = 4096;
/// Those that nobody asked for; the oldest go.
const MAX_AUTOMATIC: usize = 50;
/// What they may take on disk together: a command must not fill the disk by way of them. A session cannot have a limit on
/// its changes (`--disk`), which is enforced by polling.
const MAX_AUTOMATIC_DISK: u64 = 4 << 30;
/// Of them, those that somebody is asked about: by a tool, and on a page that shows the same changes.
const MAX_REVIEWED: usize = 4;
/// All of them.
const MAX_CHECKPOINTS: usize = 1000;

/// A state that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    pub number: u32,
    pub created_at: Timestamp,
    pub reason: CheckpointReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Files, directories and deletions that differ from the project.
    pub entries: u64,
    /// The length of these files.
    pub bytes: u64,
    /// What they take on disk.
    #[serde(default)]
    pub disk_bytes: u64,
    /// The start of the machine as long as which it lasts, if it is not on disk: after a loss of power its files could be
    /// empty. None once it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_restart_of: Option<String>,
}

impl Checkpoint {
    pub fn is_on_disk(&self) -> bool {
        self.until_restart_of.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckpointReason {
    /// `sandbox checkpoint`.
    Asked,
    /// The supervisor of a session that keeps a state before each command.
    BeforeCommand,
    BeforeRollback,
    /// What a person is asked about, so that it stays as it is while they look. The last few are kept.
    ForReview,
}

impl CheckpointReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::BeforeCommand => "beforeCommand",
            Self::BeforeRollback => "beforeRollback",
            Self::ForReview => "forReview",
        }
    }

    /// Whether it is only a step on the way, which nobody would miss.
    pub(super) fn is_step(self) -> bool {
        matches!(self, Self::BeforeCommand | Self::ForReview)
    }

    fn is_automatic(self) -> bool {
        self != Self::Asked
    }
}

impl WaitingChanges {
    /// All that were kept, oldest first. One that cannot be read is left out.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        let Some(all) = self.open_checkpoints()? else { return Ok(Vec::new()) };
        let numbers = names(&all)?.into_iter().filter_map(|name| name.parse::<u32>().ok());
        let mut found: Vec<_> = numbers.filter_map(|number| read_record(&all, number)).collect();
        found.sort_by_key(|checkpoint: &Checkpoint| checkpoint.number);
        Ok(found)
    }

    /// How many differ from the project, of those that somebody asked for or that a rollback left.
    pub fn unapplied_checkpoints(&self) -> Result<usize> {
        let mut count = 0;
        for checkpoint in self.checkpoints()? {
            if checkpoint.reason.is_step() || checkpoint.entries == 0 {
                continue;
            }
            let state = StateNumber::Checkpoint(checkpoint.number);
            let (_, set) = self.between(StateNumber::Checkpoint(0), state)?;
            count += usize::from(!set.is_empty());
        }
        Ok(count)
    }

    /// Keeps the present state. It is there from now on; [`Self::write_checkpoints_soon`] and [`Self::write_checkpoints`] see
    /// to it that it is on disk.
    pub fn checkpoint(
        &self,
        places: &AppDirs,
        message: Option<&str>,
        reason: CheckpointReason,
    ) -> Result<Checkpoint> {
        if reason == CheckpointReason::ForReview {
            self.check_applies_checkpoints()?;
        }
        let _lock = self.lock()?;
        self.checkpoint_locked(places, message, reason, None)
    }

    /// The same for who has the lock. `spared` is not dropped, however old it is.
    pub(super) fn checkpoint_locked(
        &self,
        places: &AppDirs,
        message: Option<&str>,
        reason: CheckpointReason,
        spared: Option<u32>,
    ) -> Result<Checkpoint> {
        let all = self.make_checkpoints()?;
        remove_unfinished(&all)?;
        let existing = self.checkpoints()?;
        if !reason.is_automatic() && existing.len() >= MAX_CHECKPOINTS {
            let session = self.session().id.clone();
            return Err(SessionError::TooManyCheckpoints { session, limit: MAX_CHECKPOINTS });
        }
        let number = next_number(&all)?;
        let name = format!("{UNFINISHED}{}", Uuid::now_v7().simple());
        rustix::fs::mkdirat(&all, &name, Mode::RWXU).at("mkdir", Path::new(&name))?;
        let made = self.fill((&all, &name), number, message, reason).inspect_err(|_| {
            // The first error is the one that matters; the next checkpoint tries again.
            let _ = palisade_changes::discard(all.as_fd(), OsStr::new(&name));
        })?;
        let automatic: Vec<_> =
            existing.into_iter().filter(|checkpoint| checkpoint.reason.is_automatic()).collect();
        for number in to_drop(&automatic, &made, spared, MAX_AUTOMATIC_DISK) {
            drop_checkpoint(&all, number)?;
        }
        let event = CheckpointMade {
            checkpoint: number,
            reason: reason.name().to_owned(),
            entries: made.entries,
            bytes: made.bytes,
        };
        let about = (self.session().id.as_str(), self.session().state);
        Journal::add_later(places, about, EventKind::CheckpointMade(event))?;
        Ok(made)
    }

    fn fill(
        &self,
        (all, name): (&OwnedFd, &str),
        number: u32,
        message: Option<&str>,
        reason: CheckpointReason,
    ) -> Result<Checkpoint> {
        fault::point("copying", "the layer");
        let place = open_beneath(all, Path::new(name), DIRECTORY)?;
        let upper = self.open_upper()?;
        // That of the supervisor is a fork, and stays one process with one thread.
        let threads = match reason {
            CheckpointReason::BeforeCommand => CopyThreads::One,
            _ => CopyThreads::Two,
        };
        let image = OsStr::new(IMAGE);
        let CopiedLayer { entries, bytes, disk_bytes } =
            palisade_changes::copy_layer(upper.as_fd(), place.as_fd(), image, threads)?;
        fault::point("copied", "the layer");
        let message = message.map(|text| text.chars().take(MAX_MESSAGE).collect::<String>());
        let created_at = Timestamp::now();
        // Before files of the project are replaced.
        let is_synced = reason == CheckpointReason::BeforeRollback;
        let until_restart_of = if is_synced { None } else { Some(machine_start::this_start()?) };
        let made = Checkpoint {
            number,
            created_at,
            reason,
            message,
            entries,
            bytes,
            disk_bytes,
            until_restart_of,
        };
        write_record(&place, &made)?;
        // After a loss of power it is either whole or not listed. All files at once: one by one takes far longer.
        if is_synced {
            rustix::fs::syncfs(&place).call("syncfs")?;
        }
        fault::point("listing", "the checkpoint");
        // From here on it counts.
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(all, name, all, number.to_string(), flags)
            .at("rename", Path::new(name))?;
        fault::point("listed", "the checkpoint");
        Ok(made)
    }

    /// An error if there is no such state.
    pub fn check_state(&self, state: StateNumber) -> Result<()> {
        self.open_state(state).map(drop)
    }

    fn check_applies_checkpoints(&self) -> Result<()> {
        if self.record().method == TransactionMethod::Copy {
            // What the session left alone cannot be told from what the host changed since.
            let session = self.session().label().to_owned();
            return Err(SessionError::CheckpointOfCopy { session });
        }
        Ok(())
    }

    /// The same changes as they were at a checkpoint. No command of the session can change these any more, so what a person
    /// looked at is what is applied.
    pub fn at_checkpoint(self, number: u32) -> Result<Self> {
        self.check_applies_checkpoints()?;
        let state = StateNumber::Checkpoint(number);
        let layers = Layers::new(self.open_project()?, vec![self.open_state(state)?]);
        Ok(self.with_state(state, layers))
    }

    /// What changed from one state to another.
    pub fn between(&self, from: StateNumber, to: StateNumber) -> Result<(Layers, ChangeSet)> {
        let layers = self.states(from, to)?;
        let set = palisade_changes::compare(&layers)?;
        Ok((layers, set))
    }

    pub(super) fn states(&self, from: StateNumber, to: StateNumber) -> Result<Layers> {
        let project = self.open_project()?;
        let (from, to) = (self.open_state(from)?, self.open_state(to)?);
        Ok(match self.record().method {
            TransactionMethod::Overlay => Layers::states(project, from, to, self.hidden()),
            TransactionMethod::Copy => Layers::states_of_copies(project, from, to, self.hidden()),
        })
    }

    pub(super) fn open_state(&self, state: StateNumber) -> Result<OwnedFd> {
        match state {
            StateNumber::Now => self.open_upper(),
            StateNumber::Checkpoint(0) if self.record().method == TransactionMethod::Copy => {
                self.open_project()
            }
            StateNumber::Checkpoint(0) => self.open_start(),
            StateNumber::Checkpoint(number) => self.open_image(number),
        }
    }

    pub(super) fn open_image(&self, number: u32) -> Result<OwnedFd> {
        let all = self.open_checkpoints()?;
        let listed = all.filter(|all| read_record(all, number).is_some());
        let all = listed.ok_or_else(|| SessionError::NoCheckpoint {
            session: self.session().label().to_owned(),
            number,
        })?;
        Ok(open_beneath(&all, &Path::new(&number.to_string()).join(IMAGE), DIRECTORY)?)
    }

    /// The project without changes, as an upper layer: an empty one that looks like the project itself.
    fn open_start(&self) -> Result<OwnedFd> {
        let all = self.make_checkpoints()?;
        let name = "0";
        match rustix::fs::mkdirat(&all, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).at("mkdir", Path::new(name))?,
        }
        let start = open_beneath(&all, Path::new(name), DIRECTORY)?;
        palisade_changes::look_like(self.open_project()?.as_fd(), start.as_fd())?;
        Ok(start)
    }

    fn open_upper(&self) -> Result<OwnedFd> {
        Ok(open_beneath(self.directory().directory(), Path::new(UPPER), DIRECTORY)?)
    }

    pub(super) fn open_checkpoints(&self) -> Result<Option<OwnedFd>> {
        match open_beneath(self.directory().directory(), Path::new(CHECKPOINTS), DIRECTORY) {
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            all => Ok(Some(all?)),
        }
    }

    fn make_checkpoints(&self) -> Result<OwnedFd> {
        let at = self.directory().directory();
        match rustix::fs::mkdirat(at, CHECKPOINTS, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).at("mkdir", Path::new(CHECKPOINTS))?,
        }
        Ok(open_beneath(at, Path::new(CHECKPOINTS), DIRECTORY)?)
    }
}

fn names(directory: &OwnedFd) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).call("getdents")? {
        let entry = entry.call("getdents")?;
        // All names there are ours.
        names.extend(entry.file_name().to_str().map(str::to_owned));
    }
    Ok(names)
}

/// By the names: one whose record cannot be read has its number all the same.
fn next_number(all: &OwnedFd) -> Result<u32> {
    let taken = names(all)?.into_iter().filter_map(|name| name.parse::<u32>().ok());
    Ok(taken.max().unwrap_or(0).saturating_add(1))
}

/// The next one takes up what an interrupted one left.
fn remove_unfinished(all: &OwnedFd) -> Result<()> {
    for name in names(all)?.iter().filter(|name| name.starts_with(UNFINISHED)) {
        palisade_changes::discard(all.as_fd(), OsStr::new(name))?;
    }
    Ok(())
}

/// The oldest of those that nobody asked for, if they are too many or take too much. `last` stays.
fn to_drop(
    automatic: &[Checkpoint],
    last: &Checkpoint,
    spared: Option<u32>,
    disk_limit: u64,
) -> Vec<u32> {
    let is_counted = last.reason.is_automatic();
    let mut count = automatic.len() + usize::from(is_counted);
    let counted = automatic.iter().chain(Some(last).filter(|_| is_counted));
    // A record may say anything, as nobody checks it.
    let mut disk_bytes: u128 = counted.map(|checkpoint| u128::from(checkpoint.disk_bytes)).sum();
    let is_reviewed = |checkpoint: &&Checkpoint| checkpoint.reason == CheckpointReason::ForReview;
    let reviewed = automatic.iter().chain(Some(last)).filter(is_reviewed).count();
    let mut no_more_reviewed = reviewed.saturating_sub(MAX_REVIEWED);
    let mut dropped = Vec::new();
    for checkpoint in automatic.iter().filter(|checkpoint| Some(checkpoint.number) != spared) {
        let is_too_much = count > MAX_AUTOMATIC || disk_bytes > disk_limit.into();
        let is_surplus = no_more_reviewed > 0 && is_reviewed(&checkpoint);
        if !is_too_much && !is_surplus {
            continue;
        }
        no_more_reviewed -= usize::from(is_surplus);
        count -= 1;
        disk_bytes = disk_bytes.saturating_sub(checkpoint.disk_bytes.into());
        dropped.push(checkpoint.number);
    }
    dropped
}

fn drop_checkpoint(all: &OwnedFd, number: u32) -> Result<()> {
    // Out of the list first: half of a state is none.
    let (number, gone) = (number.to_string(), format!("{UNFINISHED}{number}"));
    rustix::fs::renameat(all, &number, all, &gone).at("rename", Path::new(&number))?;
    palisade_changes::discard(all.as_fd(), OsStr::new(&gone))?;
    Ok(())
}

/// None also for one that was not on disk before the machine started anew.
fn read_record(all: &OwnedFd, number: u32) -> Option<Checkpoint> {
    let path = Path::new(&number.to_string()).join(RECORD);
    let file =
        open_beneath(all, &path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC).ok()?;
    let mut text = Vec::new();
    File::from(file).take(MAX_RECORD_BYTES).read_to_end(&mut text).ok()?;
    let record: Checkpoint = serde_json::from_slice(&text).ok()?;
    let record = Checkpoint { number, ..record };
    match record.until_restart_of.as_ref().map(|start| lasting(all, number, start)) {
        Some(Lasting::Lost) => None,
        Some(Lasting::UntilRestart) => Some(record),
        Some(Lasting::OnDisk) | None => Some(Checkpoint { until_restart_of: None, ..record }),
    }
}

fn write_record(place: &OwnedFd, record: &Checkpoint) -> Result<()> {
    let failed = |source| SessionError::io("write", Path::new(RECORD), source);
    let text = serde_json::to_vec_pretty(record).map_err(|error| failed(error.into()))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(place, RECORD, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| failed(errno.into()))?;
    File::from(file).write_all(&text).map_err(failed)
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
