//! The table answers as a search through all of it would.

use super::Mounts;
use crate::facts::HostMount;
use std::path::{Path, PathBuf};

fn mount(device: &str, root: &str, mount_point: &str) -> HostMount {
    HostMount {
        device: device.to_owned(),
        root: root.into(),
        mount_point: mount_point.into(),
        fs_type: "ext4".to_owned(),
        read_only: false,
    }
}

fn aliases(mounts: &[HostMount], path: &str) -> Vec<PathBuf> {
    let mut found = Mounts::new(mounts).aliases(Path::new(path));
    found.sort();
    found.dedup();
    found
}

/// Proves: FS-2 aliases
#[test]
fn every_other_place_of_a_path_is_found() {
    let mounts = [
        mount("8:1", "/", "/"),
        mount("8:2", "/", "/home"),
        mount("8:2", "/u", "/mnt/u"),
        mount("8:2", "/u/.ssh/keys", "/mnt/keys"),
        mount("8:2", "/u-other", "/mnt/u-other"),
        mount("9:1", "/", "/home/u/.ssh/vault"),
        mount("9:1", "/part", "/srv/vault"),
    ];
    let expected = ["/mnt/keys", "/mnt/u/.ssh", "/srv/vault"].map(PathBuf::from);
    assert_eq!(aliases(&mounts, "/home/u/.ssh"), expected);
    assert_eq!(
        aliases(&mounts, "/home/u/.ssh/keys/id"),
        [PathBuf::from("/mnt/keys/id"), PathBuf::from("/mnt/u/.ssh/keys/id"),]
    );
    assert_eq!(aliases(&mounts, "/etc/shadow"), Vec::<PathBuf>::new());
}

#[test]
fn the_root_directory_and_names_that_only_begin_alike_are_told_apart() {
    let mounts = [mount("8:1", "/", "/"), mount("8:1", "/srv", "/a"), mount("8:1", "/", "/a-b")];
    assert_eq!(aliases(&mounts, "/srv"), [PathBuf::from("/a"), PathBuf::from("/a-b/srv")]);
    assert_eq!(aliases(&mounts, "/a"), [PathBuf::from("/a-b/srv"), PathBuf::from("/srv")]);
    assert_eq!(aliases(&mounts, "/"), Vec::<PathBuf>::new());
}

#[test]
fn of_two_mounts_at_a_place_the_last_one_shows() {
    let mounts = [
        mount("8:1", "/", "/"),
        mount("8:2", "/", "/data"),
        mount("8:3", "/", "/data"),
        mount("8:3", "/", "/copy"),
        mount("8:2", "/", "/old"),
    ];
    assert_eq!(aliases(&mounts, "/data/x"), [PathBuf::from("/copy/x")]);
}
