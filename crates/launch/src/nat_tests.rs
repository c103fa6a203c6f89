use super::*;
use palisade_sys::test_child::in_child;
use std::fs::{File, read};

#[test]
fn every_network_has_a_name_and_addresses_of_its_own() {
    for number in [0, 1, 77, NETWORKS - 1] {
        let found = pair(number);
        assert!(found.outside_name.len() < 16, "IFNAMSIZ");
        assert_eq!(u32::from(found.inside), u32::from(found.outside) + 1);
        assert_eq!(found.inside.octets()[..2], [198, 19]);
        assert_eq!(found.inside.octets()[3] % 4, 2, "neither its network nor its broadcast");
    }
}

#[test]
fn what_a_helper_lacks_is_said() {
    let path = Path::new("/usr/bin/pasta");
    let heard = b"something\nFailed to open() /dev/net/tun: Permission denied\n";
    let error = failed(path, "it ended", heard);
    assert!(error.detail.ends_with("/dev/net/tun: Permission denied"), "{error}");
    assert!(error.fix.unwrap().contains("chmod"));
    assert!(failed(path, "it ended", b"").detail.contains("without a word"));
}

/// Proves: NET-9 helper-confined
#[test]
fn a_helper_that_does_not_hide_the_hosts_files_from_itself_is_kept_from_them() {
    let program = Path::new("/usr/bin/env");
    assert!(NatHelperKind::Pasta.files(program).is_none(), "it could not mount any more");
    let Some(files) = NatHelperKind::Slirp4netns.files(program) else {
        println!("not tried: this kernel has no Landlock");
        return;
    };
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    in_child(|| {
        landlock::restrict(&files).unwrap();
        read(program).unwrap();
        read("/etc/resolv.conf").unwrap();
        read(elsewhere.path()).unwrap_err();
        File::options().write(true).open(elsewhere.path()).unwrap_err();
        std::fs::read_dir("/").unwrap_err();
    });
}
