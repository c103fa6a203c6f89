//! Directories that are watched for clients who come for the changes, with what nobody came for yet.

use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Each has a process in its sandbox, and one of the server's places.
pub(crate) const MAX_WATCHERS: usize = 16;
/// Events that nobody came for. The oldest are forgotten first.
const MAX_EVENTS: usize = 4096;
const FORGOTTEN: Duration = Duration::from_secs(1800);

#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<String, Watcher>>);

#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) sandbox: String,
    events: VecDeque<Value>,
    asked: Instant,
    /// Dropped, it ends the watch.
    _end: oneshot::Sender<()>,
}

impl Watcher {
    pub(crate) fn new(sandbox: String, end: oneshot::Sender<()>) -> Self {
        Self { sandbox, events: VecDeque::new(), asked: Instant::now(), _end: end }
    }
}

impl Watchers {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of this sandbox only: the id of another one's leads nowhere.
    pub(crate) fn take_events(&self, sandbox: &str, id: &str) -> Option<VecDeque<Value>> {
        let mut all = self.lock();
        let watcher = all.get_mut(id).filter(|watcher| watcher.sandbox == sandbox)?;
        watcher.asked = Instant::now();
        Some(std::mem::take(&mut watcher.events))
    }

    pub(crate) fn push(&self, id: &str, event: Value) {
        if let Some(watcher) = self.lock().get_mut(id) {
            if watcher.events.len() == MAX_EVENTS {
                watcher.events.pop_front();
            }
            watcher.events.push_back(event);
        }
    }

    /// When it is forgotten if nobody comes. None: it is not there any more.
    pub(crate) fn forgotten_at(&self, id: &str) -> Option<Instant> {
        self.lock().get(id).map(|watcher| watcher.asked + FORGOTTEN)
    }
}
