//! The directory that a sandbox works in: its home, empty at the beginning and removed with it. Inside it is `/home/user`, too, which
//! programs for E2B write out.
//!
//! ```text
//! DATA/palisade/e2b/NAME/home            the home, which is the project of the session
//! DATA/palisade/e2b/NAME/root/home/user  a link to it, which appears at `/home/user`
//! ```

use palisade_service::Problem;
use rustix::fs::{Mode, OFlags};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The home of E2B's user.
pub(crate) const E2B_HOME: &str = "/home/user";
const HOME: &str = "home";
const ROOT: &str = "root";

#[derive(Debug)]
pub(crate) struct Homes {
    /// None: this user has no home directory.
    all: Option<PathBuf>,
    /// Whether `/home/user` is free: it may be the home of who runs the server.
    has_link: bool,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewHome {
    pub(crate) home: PathBuf,
    /// What appears at `/` inside, with the link.
    pub(crate) root: Option<PathBuf>,
}

impl Homes {
    /// In the data directory (XDG base directories): the state directory is visible in no sandbox.
    pub(crate) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let home = variable("HOME");
        let data = variable("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| home.as_ref().map(|home| home.join(".local/share")));
        let is_taken =
            |path: &Option<PathBuf>| path.as_ref().is_some_and(|it| it.starts_with(E2B_HOME));
        let has_link = !is_taken(&home) && !is_taken(&data);
        Self { all: data.map(|data| data.join("palisade").join("e2b")), has_link }
    }

    pub(crate) fn make(&self) -> Result<NewHome, Problem> {
        let all = self.all.as_ref().ok_or_else(|| {
            Problem::internal("sandboxes need a directory: set HOME or XDG_DATA_HOME")
        })?;
        let place = all.join(Uuid::now_v7().simple().to_string());
        self.make_at(&place)
            .map_err(|error| Problem::internal(format!("cannot make {}: {error}", place.display())))
    }

    fn make_at(&self, place: &Path) -> io::Result<NewHome> {
        // Nobody else gets to what is in it.
        DirBuilder::new().recursive(true).mode(0o700).create(place)?;
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o755).create(path);
        let home = place.join(HOME);
        make(&home)?;
        if !self.has_link {
            return Ok(NewHome { home, root: None });
        }
        let root = place.join(ROOT);
        let link = root.join(Path::new(E2B_HOME).strip_prefix("/").unwrap_or(Path::new(HOME)));
        make(link.parent().unwrap_or(&root))?;
        symlink(&home, link)?;
        Ok(NewHome { home, root: Some(root) })
    }

    /// With everything in it, which a command made: of any depth, and with any permissions.
    pub(crate) async fn remove(&self, home: &Path) -> Result<(), Problem> {
        // Whatever a file says, nothing else is removed.
        let place = home.parent().filter(|_| home.ends_with(HOME));
        let is_ours = self.all.is_some() && place.and_then(Path::parent) == self.all.as_deref();
        let Some(place) = place.filter(|_| is_ours).map(Path::to_owned) else { return Ok(()) };
        let removing = tokio::task::spawn_blocking(move || remove_tree(&place));
        removing.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Those that are there.
    pub(crate) fn list(&self) -> Vec<PathBuf> {
        let entries = self.all.as_ref().and_then(|all| std::fs::read_dir(all).ok());
        entries.into_iter().flatten().flatten().map(|entry| entry.path().join(HOME)).collect()
    }
}

fn remove_tree(place: &Path) -> Result<(), Problem> {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: &dyn std::fmt::Display| {
        Problem::internal(format!("cannot remove {}: {error}", place.display()))
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
        let outside = directory.path().join("outside").join("home");
        std::fs::create_dir_all(&outside).unwrap();
        let homes = Homes { all: Some(directory.path().join("homes")), has_link: true };
        let made = homes.make().unwrap();
        let link = made.root.unwrap().join("home/user");
        assert_eq!(std::fs::read_link(link).unwrap(), made.home);
        assert_eq!(homes.list(), std::slice::from_ref(&made.home));
        let closed = made.home.join("closed");
        std::fs::create_dir_all(closed.join("in")).unwrap();
        symlink(&outside, made.home.join("link")).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
        homes.remove(&made.home).await.unwrap();
        assert!(!made.home.exists() && outside.exists() && homes.list().is_empty());
        homes.remove(&outside).await.unwrap();
        assert!(outside.exists(), "it is no home of ours");
    }
}
