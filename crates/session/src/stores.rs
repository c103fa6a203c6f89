//! Saves permanent answers in the policy files of the user, the project and the organisation.
//!
//! Only adds rules and hosts to a file, and only if all layers together are still a valid policy: an answer must never
//! keep the next run from starting.

use crate::answers::Answers;
use crate::app_dirs::{make_private_dir, replace_file};
use crate::caller::Caller;
use crate::config::{self, DocumentFile, PROJECT_DIRECTORY, PolicyRequest, Supposing};
use crate::error::{Result, SessionError};
use crate::trust::TrustStore;
use palisade_ask::Store;
use palisade_gate::Effect;
use palisade_policy::{HostList, Saved, StoredRule, add_hosts, add_rules};
use palisade_supervisor::answers::AnswerStore;
use palisade_sys::lock::{lock_within, open_lock_file, try_lock_file};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

mod entries;
mod forget;

pub(crate) use entries::NETWORK_PROXY;
pub use entries::SavedRule;

/// One file is read, changed and written while the lock is held.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The name for a new file.
const NEW_NAME: &str = "policy.yaml";

/// The policy files of one caller and its project.
#[derive(Clone, Debug)]
pub struct Stores {
    caller: Caller,
    /// What was saved, or failed to be saved, for the report at the end of a run.
    kept: Rc<RefCell<Vec<Kept>>>,
}

/// One attempt to save an answer.
#[derive(Clone, Debug)]
struct Kept {
    path: PathBuf,
    /// The entry in the file, or why it is not there.
    outcome: Result<String, String>,
}

impl AnswerStore for Stores {
    fn save(&self, answers: &Answers, store: Store) -> Result<(), String> {
        Self::save(self, answers, store).map(drop).map_err(|error| error.to_string())
    }

    fn file_that_denies(&self, host: &str) -> Option<PathBuf> {
        Self::file_that_denies(self, host)
    }
}

/// The effect of saving on a file.
#[derive(Clone, Debug)]
pub struct FileChange {
    pub path: PathBuf,
    pub before: String,
    pub after: String,
    /// The new entries, as they are in the file.
    pub added: Vec<String>,
    pub standing: StoreStatus,
}

/// Whether the file is in effect with the new rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreStatus {
    Counts,
    /// Commands could write the file; it was trusted before, so its new content is trusted too.
    TrustRenewed,
    /// It was not trusted, so its permissions have no effect.
    NotTrusted,
}

impl Stores {
    pub fn new(caller: &Caller) -> Self {
        Self { caller: caller.clone(), kept: Rc::default() }
    }

    /// Adds the answers to the file of that layer.
    pub fn save(&self, answers: &Answers, store: Store) -> Result<FileChange> {
        let saved = self.save_now(answers, store);
        let mut kept = self.kept.borrow_mut();
        match &saved {
            Ok(FileChange { path, added, .. }) => kept.extend(
                added.iter().map(|what| Kept { path: path.clone(), outcome: Ok(what.clone()) }),
            ),
            Err(error) => {
                kept.push(Kept { path: PathBuf::new(), outcome: Err(error.to_string()) });
            }
        }
        drop(kept);
        saved
    }

    fn save_now(&self, answers: &Answers, store: Store) -> Result<FileChange> {
        let _lock = self.lock()?;
        let change = self.change(answers, store)?;
        if change.added.is_empty() {
            return Ok(change);
        }
        self.put(&change, store)?;
        Ok(change)
    }

    /// Writes the new content, and keeps the file's mode and trust.
    fn put(&self, change: &FileChange, store: Store) -> Result<()> {
        let mode = fs::metadata(&change.path).ok().map(|found| found.permissions().mode());
        replace_file(&change.path, change.after.as_bytes())?;
        match mode {
            Some(mode) => set_mode(&change.path, mode)?,
            None if store == Store::User => {}
            // Other users need the organisation's and the project's files, too.
            None => {
                set_mode(&change.path, 0o644)?;
                change.path.parent().map_or(Ok(()), |directory| set_mode(directory, 0o755))?;
            }
        }
        if change.standing == StoreStatus::TrustRenewed {
            let mut trusted = TrustStore::load(&self.caller.places)?;
            trusted.trust(&change.path, &change.after);
            trusted.save(&self.caller.places)?;
        }
        Ok(())
    }

    /// What [`Stores::save`] would do.
    pub fn change(&self, answers: &Answers, store: Store) -> Result<FileChange> {
        let directory = self.directory(store)?;
        let (named, path, before) = match config::find(&directory)? {
            Some(DocumentFile { path, .. })
                if store == Store::Project && path.parent() != Some(directory.as_path()) =>
            {
                return Err(SessionError::LinkedPolicy { directory, target: path });
            }
            Some(DocumentFile { named, path, text }) => (named, path, text),
            None => (directory.join(NEW_NAME), directory.join(NEW_NAME), String::new()),
        };
        let (after, added) = with_answers(&before, &path.to_string_lossy(), answers)?;
        let file = DocumentFile { named, path, text: before };
        let standing = self.standing(&file, store)?;
        let DocumentFile { path, text: before, .. } = file;
        let change = FileChange { path, before, after, added, standing };
        self.check(&change, store)?;
        Ok(change)
    }

    /// Whether the present file is in effect.
    fn standing(&self, file: &DocumentFile, store: Store) -> Result<StoreStatus> {
        let counts = match store {
            Store::Project => false,
            Store::User => !config::could_be_written(&self.caller, &file.named),
            Store::Organisation => true,
        };
        if counts {
            return Ok(StoreStatus::Counts);
        }
        let trusted = TrustStore::load(&self.caller.places)?;
        Ok(match trusted.is_trusted(&file.path, &file.text) {
            true => StoreStatus::TrustRenewed,
            false => StoreStatus::NotTrusted,
        })
    }

    /// The file that lists this among its denied hosts, if it is one of ours and can be read.
    pub(crate) fn file_that_denies(&self, host: &str) -> Option<PathBuf> {
        let project = config::project_root(&self.caller, None).ok()?.join(PROJECT_DIRECTORY);
        let places = &self.caller.places;
        [&places.organisation, &places.user, &project].into_iter().find_map(|directory| {
            let DocumentFile { path, text, .. } = config::find(directory).ok()??;
            let hosts = [host.to_owned()];
            let added = add_hosts(&text, &path.to_string_lossy(), HostList::Denied, &hosts).ok()?;
            added.added.is_empty().then_some(path)
        })
    }

    fn directory(&self, store: Store) -> Result<PathBuf> {
        let places = &self.caller.places;
        match store {
            Store::User => Ok(places.user.clone()),
            Store::Organisation => {
                let directory = places.organisation.clone();
                let is_ours = rustix::process::geteuid().is_root() || is_writable(&directory);
                if is_ours {
                    Ok(directory)
                } else {
                    Err(SessionError::NeedsRoot { path: directory })
                }
            }
            Store::Project => {
                let directory = config::project_root(&self.caller, None)?.join(PROJECT_DIRECTORY);
                match fs::read_link(&directory) {
                    Ok(target) => Err(SessionError::LinkedPolicy { directory, target }),
                    Err(_) => Ok(directory),
                }
            }
        }
    }

    /// Validates all layers together, as if the file were already changed.
    fn check(&self, change: &FileChange, store: Store) -> Result<()> {
        let file = DocumentFile::supposed(change.path.clone(), change.after.clone());
        let supposing = match store {
            Store::User => Supposing::User(file),
            Store::Project => Supposing::ProjectFile(file),
            // It takes precedence over all others, so an addition cannot conflict with them.
            Store::Organisation => return Ok(()),
        };
        config::load_supposing(&self.caller, &PolicyRequest::default(), Some(&supposing)).map(drop)
    }

    /// Two sessions that save at the same time would otherwise lose one answer.
    fn lock(&self) -> Result<OwnedFd> {
        let state = &self.caller.places.state;
        make_private_dir(state)?;
        let path = state.join("save.lock");
        let fail = |errno: Errno| SessionError::io("lock", &path, errno.into());
        let file = open_lock_file(&path).map_err(fail)?;
        let try_lock = || try_lock_file(&file, FlockOperation::NonBlockingLockExclusive);
        match lock_within(LOCK_TIMEOUT, try_lock) {
            Ok(true) => Ok(file),
            Ok(false) => Err(fail(Errno::AGAIN)),
            Err(errno) => Err(fail(errno)),
        }
    }
}

/// The text with the missing entries added.
fn with_answers(text: &str, file: &str, answers: &Answers) -> Result<(String, Vec<String>)> {
    let Saved { mut text, added } = add_rules(text, file, &answers.rules)?;
    let mut added: Vec<String> = added.iter().map(StoredRule::to_string).collect();
    for (list, effect) in [(HostList::Allowed, Effect::Allow), (HostList::Denied, Effect::Deny)] {
        let meant = answers.hosts.iter().filter(|answer| answer.effect == effect);
        let hosts: Vec<String> = meant.map(|answer| answer.host.clone()).collect();
        let saved = add_hosts(&text, file, list, &hosts)?;
        text = saved.text;
        added.extend(saved.added);
    }
    Ok((text, added))
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| SessionError::io("change the mode of", path, source))
}

fn is_writable(directory: &Path) -> bool {
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
#[path = "stores_tests.rs"]
mod tests;
