//! The identity that the server acts with.
//!
//! An ordinary user's server is that user. Root's server looks at the host as root without capabilities, so that it
//! tells nothing of directories that are closed to root's own id; in the grounds it acts as the command.

use palisade_sys::creds::{self, act_as};
use palisade_sys::proc::sig;
use palisade_sys::{Errno, SysError};
use std::cell::Cell;

/// Who starts the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerIdentity {
    OrdinaryUser,
    /// The command's ids, as the host knows them.
    Root {
        uid: u32,
        gid: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acting {
    OnHost,
    AsCommand,
}

#[derive(Debug)]
pub(crate) struct Identity {
    of: ServerIdentity,
    acting: Cell<Acting>,
}

impl Identity {
    pub(crate) fn new(of: ServerIdentity) -> Self {
        Self { of, acting: Cell::new(Acting::OnHost) }
    }

    /// For what is done in a ground from now on.
    pub(crate) fn as_command(&self) -> Result<(), Errno> {
        match self.of {
            ServerIdentity::OrdinaryUser => Ok(()),
            ServerIdentity::Root { uid, gid } => self.act(Acting::AsCommand, uid, gid),
        }
    }

    /// For what is looked at on the host from now on.
    pub(crate) fn on_host(&self) -> Result<(), Errno> {
        match self.of {
            ServerIdentity::OrdinaryUser => Ok(()),
            ServerIdentity::Root { .. } => self.act(Acting::OnHost, 0, 0),
        }
    }

    fn act(&self, acting: Acting, uid: u32, gid: u32) -> Result<(), Errno> {
        if self.acting.get() != acting {
            // Changing ids clears the parent-death signal.
            let done = act_as(uid, gid).and_then(|()| creds::set_pdeathsig(sig::SIGKILL));
            done.map_err(|SysError { errno, .. }| errno)?;
            self.acting.set(acting);
        }
        Ok(())
    }

    /// How the command sees an owner of the host: what belongs to whoever started the run belongs to the command.
    pub(crate) fn shown_owner(&self, uid: u32, gid: u32) -> (u32, u32) {
        match self.of {
            ServerIdentity::Root { uid: own, gid: own_group } => {
                (if uid == 0 { own } else { uid }, if gid == 0 { own_group } else { gid })
            }
            ServerIdentity::OrdinaryUser => (uid, gid),
        }
    }

    /// The command's ids as this process knows them.
    pub(crate) fn command(&self) -> (u32, u32) {
        match self.of {
            ServerIdentity::Root { uid, gid } => (uid, gid),
            ServerIdentity::OrdinaryUser => {
                (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
            }
        }
    }
}
