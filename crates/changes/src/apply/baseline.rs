//! What is known about the host's files from before: when the transaction started, and what it applied since.

use crate::changeset::ChangeKind;
use crate::entry::{EntryKind, Found, Timestamp};
use crate::layers::Layers;
use crate::paths::order;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the session's changes are compared with to find conflicts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// The time of the last status change (`ctime`) of a file that was created when the transaction started, on the
    /// project's file system: the clock of the file system lags behind that of the system.
    pub started: Timestamp,
    /// What earlier applies of this transaction brought to the host.
    pub installed: Vec<Installed>,
}

/// A file that an apply brought to the host, and by what it is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    #[serde(with = "crate::bytes_path")]
    pub path: PathBuf,
    pub inode: u64,
    pub changed: Timestamp,
}

impl Baseline {
    /// For a transaction that starts now, see [`Baseline::started`].
    pub fn started(started: Timestamp) -> Self {
        Self { started, installed: Vec::new() }
    }

    /// Whether the host changed an entry: after the start of the transaction, and not by an earlier apply.
    pub(super) fn is_newer(&self, path: &Path, found: &Found) -> bool {
        let known = self.installed.binary_search_by(|known| order(&known.path, path));
        let is_ours = known.is_ok_and(|at| {
            let known = &self.installed[at];
            (known.inode, known.changed) == (found.inode, found.changed)
        });
        found.changed >= self.started && !is_ours
    }

    /// With what an apply brought. `applied` is ordered as a change set is.
    pub(super) fn after(&self, layers: &Layers, applied: &[(PathBuf, ChangeKind)]) -> Self {
        let is_applied =
            |path: &Path| applied.binary_search_by(|(applied, _)| order(applied, path)).is_ok();
        let before = self.installed.iter().filter(|known| !is_applied(&known.path));
        let mut installed: Vec<Installed> = before.cloned().collect();
        for (path, _) in applied {
            if let Ok(Some(found)) = layers.stat(layers.project(), path)
                && found.kind != EntryKind::Directory
            {
                let (inode, changed) = (found.inode, found.changed);
                installed.push(Installed { path: path.clone(), inode, changed });
            }
        }
        installed.sort_by(|one, other| order(&one.path, &other.path));
        Self { started: self.started, installed }
    }
}
