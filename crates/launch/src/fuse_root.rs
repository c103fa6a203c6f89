//! The gate's file system as the process that builds the view gets it: mounted by another process, and told what to show.

use crate::error::{During, LaunchError};
use palisade_gatefs::{FromSetup, ToSetup};
use palisade_plan::model::IdMapping;
use palisade_sys::{At as _, Mode, OFlags};
use palisade_wire::{Received, WireMessage as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const STEP: &str = "mounting the gate's file system";

/// The file system as the process that builds the view gets it.
#[derive(Debug)]
pub(crate) struct FuseRoot {
    setup: OwnedFd,
    /// Not attached yet.
    mount: OwnedFd,
}

/// The file system was requested.
#[derive(Debug)]
pub(crate) struct RequestedFuseRoot {
    setup: OwnedFd,
}

impl RequestedFuseRoot {
    /// `mapping` says whose user namespace it is to belong to: root's keeper stays in the host's.
    pub(crate) fn request(setup: OwnedFd, mapping: IdMapping) -> Result<Self, LaunchError> {
        match mapping {
            IdMapping::OwnId => {
                let path = Path::new("/proc/self/ns/user");
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let own = rustix::fs::open(path, flags, Mode::empty()).at("open", path);
                tell(&setup, &FromSetup::UserNamespace, Some(own.during(STEP)?.as_fd()))?;
            }
            IdMapping::ByRoot => tell(&setup, &FromSetup::HostsNamespace, None)?,
        }
        Ok(Self { setup })
    }

    /// Waits until it is mounted.
    pub(crate) fn receive(self) -> Result<FuseRoot, LaunchError> {
        let Self { setup } = self;
        let (answer, mount) = hear(&setup)?;
        match (answer, mount) {
            (ToSetup::Mounted, Some(mount)) => Ok(FuseRoot { setup, mount }),
            (ToSetup::Failed(why), _) => Err(LaunchError::new(STEP, why).with_fix(
                "use --gate notify, or make /dev/fuse readable and writable (mode 0666)",
            )),
            _ => Err(went_away()),
        }
    }
}

impl FuseRoot {
    pub(crate) fn root(&self) -> Result<OwnedFd, LaunchError> {
        self.mount.try_clone().map_err(|error| LaunchError::new(STEP, error.to_string()))
    }

    /// Shows what `ground` holds at this path from now on.
    pub(crate) fn show(&self, path: &Path, ground: &OwnedFd) -> Result<(), LaunchError> {
        let message = FromSetup::Ground { path: path.to_owned() };
        tell(&self.setup, &message, Some(ground.as_fd()))?;
        match hear(&self.setup)?.0 {
            ToSetup::Shown => Ok(()),
            ToSetup::Failed(why) => Err(LaunchError::new(STEP, why)),
            ToSetup::Mounted => Err(went_away()),
        }
    }
}

fn tell(
    setup: &OwnedFd,
    message: &FromSetup,
    file: Option<BorrowedFd<'_>>,
) -> Result<(), LaunchError> {
    palisade_wire::send(setup, message, file.as_slice()).map_err(|_| went_away())
}

fn hear(setup: &OwnedFd) -> Result<(ToSetup, Option<OwnedFd>), LaunchError> {
    let mut buffer = [0; ToSetup::MAX_BYTES];
    match palisade_wire::receive(setup, &mut buffer) {
        Ok(Received { message, mut descriptors }) => Ok((message, descriptors.pop())),
        Err(_) => Err(went_away()),
    }
}

fn went_away() -> LaunchError {
    LaunchError::new(STEP, "its process went away")
}

/// A file system of the sandbox's own behind the gate's, by the path at which that shows it.
#[derive(Debug)]
pub(crate) struct GroundStore {
    pub(crate) path: PathBuf,
    pub(crate) root: OwnedFd,
}
