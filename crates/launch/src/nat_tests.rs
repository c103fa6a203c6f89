use super::*;

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
    assert!(error.mend.unwrap().contains("chmod"));
    assert!(failed(path, "it ended", b"").detail.contains("without a word"));
}
