//! Which program could forward for a sandbox: read only for the network mode nat.

use palisade_plan::facts::{HostFacts, NatFacts};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Searched if the caller's `PATH` is not set.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub fn nat_facts(facts: &HostFacts) -> NatFacts {
    let path = facts.env.get(OsStr::new("PATH")).map_or(OsStr::new(USUAL_PATH), |path| path);
    let find = |name: &str| {
        let mut places = std::env::split_paths(path).filter(|place| place.is_absolute());
        places.find_map(|place| program(&place.join(name)))
    };
    let forwards = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    NatFacts {
        pasta: find("pasta"),
        slirp4netns: find("slirp4netns"),
        ip_forward: forwards.is_ok_and(|text| text.trim() == "1"),
        // Without netlink no packet rule can be made either, and the launch fails for that.
        own_addresses: palisade_netlink::link_addresses().unwrap_or_default(),
    }
}

/// It runs outside the sandbox, so only programs that root owns count, not files an earlier run may have left.
/// The file that was checked is the file that runs: it is in a directory where nobody else can replace it.
fn program(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let metadata = real.metadata().ok()?;
    let mode = metadata.permissions().mode();
    let is_sound =
        metadata.is_file() && metadata.uid() == 0 && mode & 0o111 != 0 && mode & 0o022 == 0;
    let stays =
        real.ancestors().skip(1).all(|place| place.metadata().is_ok_and(|place| is_roots(&place)));
    (is_sound && stays).then_some(real)
}

/// A group may have been given write access: in Debian, `/usr/local` belongs to the group staff.
fn is_roots(place: &Metadata) -> bool {
    place.uid() == 0 && place.mode() & 0o002 == 0
}

#[cfg(test)]
mod tests {
    use super::program;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_programs_that_nobody_else_can_change_count() {
        let shell = std::path::Path::new("/bin/sh");
        assert_eq!(program(shell), shell.canonicalize().ok());
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // The target is what counts, so the owner of the link does not matter.
        let link = directory.path().join("slirp4netns");
        std::os::unix::fs::symlink(shell, &link).unwrap();
        assert_eq!(program(&link), shell.canonicalize().ok());
        let movable = directory.path().join("sh");
        fs::copy(shell, &movable).unwrap();
        assert_eq!(program(&movable), None, "in a place that is everybody's");
        let planted = directory.path().join("pasta");
        fs::write(&planted, "").unwrap();
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(program(&planted), None);
        assert_eq!(program(directory.path()), None);
    }
}
