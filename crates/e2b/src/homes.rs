//! The directory that a sandbox works in: its home, empty at the beginning and removed with it.

use palisade_service::Problem;
use rustix::fs::{Mode, OFlags};
use std::fs::DirBuilder;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Homes {
    /// None: this user has no home directory.
    all: Option<PathBuf>,
}

impl Homes {
    /// In the data directory (XDG base directories): the state directory is visible in no sandbox.
    pub(crate) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let data = variable("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")));
        Self { all: data.map(|data| data.join("palisade").join("e2b")) }
    }

    #[cfg(test)]
    pub(crate) fn at(all: PathBuf) -> Self {
        Self { all: Some(all) }
    }

    pub(crate) fn make(&self) -> Result<PathBuf, Problem> {
        let all = self.all.as_ref().ok_or_else(|| {
            Problem::internal("sandboxes need a directory: set HOME or XDG_DATA_HOME")
        })?;
        let home = all.join(Uuid::now_v7().simple().to_string());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&home);
        made.map_err(|error| {
            Problem::internal(format!("cannot make {}: {error}", home.display()))
        })?;
        Ok(home)
    }

    /// With everything in it, which a command made: of any depth, and with any permissions.
    pub(crate) async fn remove(&self, home: PathBuf) -> Result<(), Problem> {
        // Whatever a file says, nothing else is removed.
        if self.all.is_none() || home.parent() != self.all.as_deref() {
            return Ok(());
        }
        let removing = tokio::task::spawn_blocking(move || remove_tree(&home));
        removing.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Those that are there.
    pub(crate) fn list(&self) -> Vec<PathBuf> {
        let entries = self.all.as_ref().and_then(|all| std::fs::read_dir(all).ok());
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }
}

fn remove_tree(home: &Path) -> Result<(), Problem> {
    let (Some(parent), Some(name)) = (home.parent(), home.file_name()) else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: &dyn std::fmt::Display| {
        Problem::internal(format!("cannot remove {}: {error}", home.display()))
    };
    let parent = rustix::fs::open(parent, flags, Mode::empty()).map_err(|error| failed(&error))?;
    palisade_changes::discard(parent.as_fd(), name).map_err(|error| failed(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Homes;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[tokio::test]
    async fn a_home_is_removed_whatever_is_in_it_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("outside");
        std::fs::write(&outside, "stays").unwrap();
        let homes = Homes::at(directory.path().join("homes"));
        let home = homes.make().unwrap();
        let closed = home.join("closed");
        std::fs::create_dir_all(closed.join("in")).unwrap();
        symlink(&outside, home.join("link")).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0)).unwrap();
        homes.remove(home.clone()).await.unwrap();
        assert!(!home.exists() && outside.exists());
        homes.remove(outside.clone()).await.unwrap();
        assert!(outside.exists(), "it is no home");
    }
}
