use super::*;

/// A netlink message of this type, with `code` where an error has its errno.
fn message(kind: u16, code: i32) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[16..20].copy_from_slice(&code.to_ne_bytes());
    bytes
}

/// Proves: PROC-7 doctor-more
#[test]
fn only_an_answer_of_nf_tables_counts() {
    assert!(judge(&message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN, 0)).is_ok());
    let refused = judge(&message(NLMSG_ERROR, -22)).unwrap_err();
    assert!(refused.detail.contains("EINVAL"), "{refused:?}");
    assert!(judge(&message(7, 0)).is_err());
    assert!(judge(&[]).is_err());
}
