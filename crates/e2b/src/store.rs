//! What is kept about each sandbox that a session has no place for: a file for each, in a directory of the service's own. It outlives the server.

use jiff::Timestamp;
use palisade_service::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const MAX_FILE: u64 = 2 << 20;
const SUFFIX: &str = ".json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptSandbox {
    pub(crate) id: String,
    pub(crate) template: String,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    /// Variables of all of its commands.
    #[serde(default)]
    pub(crate) env_vars: BTreeMap<String, String>,
    pub(crate) allow_internet_access: Option<bool>,
    pub(crate) started_at: Timestamp,
    pub(crate) end_at: Timestamp,
    /// The directory that it works in.
    pub(crate) home: PathBuf,
    /// The same as clients know it.
    pub(crate) shown_home: PathBuf,
}

#[cfg(test)]
impl KeptSandbox {
    pub(crate) fn example(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            template: "base".to_owned(),
            metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            env_vars: BTreeMap::new(),
            allow_internet_access: None,
            started_at: Timestamp::UNIX_EPOCH,
            end_at: Timestamp::UNIX_EPOCH,
            home: "/h".into(),
            shown_home: "/home/user".into(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// None for what is no id, too: a name from a request must not lead elsewhere.
    fn path(&self, id: &str) -> Option<PathBuf> {
        Uuid::try_parse(id).ok().filter(|parsed| parsed.to_string() == id)?;
        Some(self.directory.join(format!("{id}{SUFFIX}")))
    }

    pub(crate) fn load(&self, id: &str) -> Result<Option<KeptSandbox>, Problem> {
        match self.path(id) {
            Some(path) => read(&path),
            None => Ok(None),
        }
    }

    /// Oldest first, since ids sort by time. What cannot be read is left out.
    pub(crate) fn list(&self) -> Vec<KeptSandbox> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ids = names.filter_map(|name| name.strip_suffix(SUFFIX).map(str::to_owned));
        let mut all: Vec<_> = ids.filter_map(|id| self.load(&id).ok().flatten()).collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    /// Replaced as a whole: a server that is killed leaves the old file or the new one.
    pub(crate) fn save(&self, kept: &KeptSandbox) -> Result<(), Problem> {
        let path = self.path(&kept.id).ok_or_else(|| Problem::internal("no id of a sandbox"))?;
        let failed = |error: std::io::Error| {
            Problem::internal(format!("cannot write {}: {error}", path.display()))
        };
        let text = serde_json::to_vec(kept).map_err(|error| failed(error.into()))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        let temporary = self.directory.join(format!(".{}", Uuid::now_v7().simple()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // Why it was not written is worth more.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed)
    }

    pub(crate) fn remove(&self, id: &str) -> Result<(), Problem> {
        let Some(path) = self.path(id) else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Problem::internal(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<Option<KeptSandbox>, Problem> {
    let failed = |why: &dyn std::fmt::Display| {
        Problem::internal(format!("cannot read {}: {why}", path.display()))
    };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text).map_err(|error| failed(&error))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::{KeptSandbox, Store};

    #[test]
    fn what_is_kept_is_found_again_and_a_name_leads_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("e2b"));
        assert_eq!(store.list(), []);
        let kept = KeptSandbox::example("01a1ee5b-7974-7713-97b3-d699db1daa1d");
        store.save(&kept).unwrap();
        assert_eq!(store.load(&kept.id).unwrap().as_ref(), Some(&kept));
        assert_eq!(store.list(), std::slice::from_ref(&kept));
        std::fs::write(directory.path().join("other.json"), "{}").unwrap();
        for wrong in ["../other", "", "x/../../other", &kept.id.to_uppercase()] {
            assert_eq!(store.load(wrong).unwrap(), None, "{wrong}");
        }
        store.remove(&kept.id).unwrap();
        assert_eq!(store.load(&kept.id).unwrap(), None);
        store.remove(&kept.id).unwrap();
    }
}
