//! Attempts at what a file is rather than what is in it: times, modes, flags, attributes.
//! Must never look for another way once one is refused.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use palisade_testkit::raw;
use rustix::fs::{AtFlags, CWD, IFlags, Timespec, Timestamps, XattrFlags};

use crate::{Failure, Probe, argument};

pub(crate) const PROBES: &[Probe] = &[
    ("set-times", "PATH", set_times),
    ("set-mode", "PATH", set_mode),
    ("set-attribute", "PATH", set_attribute),
    ("set-flags", "PATH", set_flags),
    ("truncate", "PATH", truncate),
    ("set-user-id", "chmod|fchmod|open|group-chmod|group-fchmod PATH", set_user_id),
    ("give-capability", "PATH", give_capability),
    ("attribute-of", "PATH NAME", attribute_of),
    ("is-kept-from-backups", "PATH", is_kept_from_backups),
];

/// To the second after the epoch, which nobody else would choose.
fn set_times(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let long_ago = Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = Timestamps { last_access: long_ago, last_modification: long_ago };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?;
    Ok(path.to_owned())
}

fn set_mode(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    fs::set_permissions(path, Permissions::from_mode(0o777))?;
    Ok(path.to_owned())
}

fn set_attribute(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    rustix::fs::setxattr(path, "user.palisade", b"planted", XattrFlags::empty())?;
    Ok(path.to_owned())
}

/// The flag that keeps a file out of backups: it is the owner's to set, and harmless here.
fn set_flags(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let file = File::open(path)?;
    let flags = rustix::fs::ioctl_getflags(&file)?;
    rustix::fs::ioctl_setflags(&file, flags | IFlags::NODUMP)?;
    Ok(path.to_owned())
}

/// By name, without ever opening the file.
fn truncate(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    raw::truncate(path)?;
    Ok(path.to_owned())
}

/// Makes a file set-user-id, or a new one that is, by one of the ways there are.
fn set_user_id(arguments: &[String]) -> Result<String, Failure> {
    const SET_USER_ID: u32 = 0o4755;
    const SET_GROUP_ID: u32 = 0o2755;
    let path = argument(arguments, 1, "PATH")?;
    match argument(arguments, 0, "chmod|fchmod|open|group-chmod|group-fchmod")? {
        "chmod" => fs::set_permissions(path, Permissions::from_mode(SET_USER_ID))?,
        "fchmod" => File::open(path)?.set_permissions(Permissions::from_mode(SET_USER_ID))?,
        "group-chmod" => fs::set_permissions(path, Permissions::from_mode(SET_GROUP_ID))?,
        "group-fchmod" => {
            File::open(path)?.set_permissions(Permissions::from_mode(SET_GROUP_ID))?;
        }
        "open" => {
            OpenOptions::new().write(true).create_new(true).mode(SET_USER_ID).open(path)?;
        }
        other => return Err(Failure::Usage(format!("no such way: {other}"))),
    }
    Ok(path.to_owned())
}

/// Every capability, for whoever executes the file: `struct vfs_cap_data` of version 2.
fn give_capability(arguments: &[String]) -> Result<String, Failure> {
    const VERSION_2_AND_EFFECTIVE: u32 = 0x0200_0001;
    let path = argument(arguments, 0, "PATH")?;
    fs::write(path, "")?;
    let words = [VERSION_2_AND_EFFECTIVE, u32::MAX, 0, 0x1ff, 0];
    let value: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    rustix::fs::setxattr(path, "security.capability", &value, XattrFlags::empty())?;
    Ok(path.to_owned())
}

/// For the witness outside: whether the attribute is there.
fn attribute_of(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(path, argument(arguments, 1, "NAME")?, &mut value[..])?;
    Ok(format!("{length} bytes"))
}

/// For the witness outside: whether `set-flags` had its way.
fn is_kept_from_backups(arguments: &[String]) -> Result<String, Failure> {
    let file = File::open(argument(arguments, 0, "PATH")?)?;
    let is_set = rustix::fs::ioctl_getflags(&file)?.contains(IFlags::NODUMP);
    if is_set { Ok("set".to_owned()) } else { Err(rustix::io::Errno::NODATA.into()) }
}
