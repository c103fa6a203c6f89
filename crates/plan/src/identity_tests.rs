use super::*;
use crate::fake::{policy, root, user};

#[test]
fn an_ordinary_user_stays_itself() {
    let identity = choose(&policy().process, "s", &user()).unwrap();
    assert_eq!((identity.inside_uid, identity.host_uid), (1000, 1000));
    assert_eq!(identity.mapping, IdMapping::OwnId);
}

#[test]
fn root_hands_out_an_id_that_is_nobodys() {
    for ranges in
        [vec![(0, u32::MAX)], vec![(0, 65_536)], vec![(0, 1), (100_000, 65_536)], vec![(0, 2)]]
    {
        let facts = HostFacts { uid_ranges: ranges.clone(), gid_ranges: ranges.clone(), ..root() };
        for session in 0..20_000 {
            let identity =
                choose(&policy().process, &format!("session-{session}"), &facts).unwrap();
            for id in [identity.host_uid, identity.host_gid] {
                assert_ne!(id, 0);
                assert_ne!(id, OVERFLOW_ID);
                let mapped =
                    ranges.iter().any(|(first, count)| id >= *first && id - first < *count);
                assert!(mapped, "{id} in {ranges:?}");
            }
            assert_eq!(identity.mapping, IdMapping::ByRoot);
            assert_eq!((identity.inside_uid, identity.inside_gid), (1000, 1000));
        }
    }
}

#[test]
fn two_sessions_get_two_ids() {
    let id = |session: &str| choose(&policy().process, session, &root()).unwrap().host_uid;
    assert_ne!(
        id("0192a7c4-0000-7000-8000-000000000001"),
        id("0192a7c4-0000-7000-8000-000000000002")
    );
    assert_eq!(id("same"), id("same"));
}

#[test]
fn root_without_another_id_runs_nothing() {
    for ranges in [vec![(0, 1)], vec![]] {
        let facts = HostFacts { uid_ranges: ranges, ..root() };
        let error = choose(&policy().process, "s", &facts).unwrap_err();
        assert!(error.to_string().contains("must not run as root"), "{error}");
    }
}

/// Proves: PROC-6 names
#[test]
fn accounts_of_the_host_stay_but_for_our_name_and_id() {
    let mut tree = crate::fake::FakeTree::new();
    let passwd = "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n\
                  sandbox:x:7:7::/:/bin/sh\n\npostgres:x:101:104::/var/lib/postgresql:/bin/sh\n";
    tree.file("/etc/passwd", passwd).file("/etc/group", "root:x:0:\nstaff:x:50:a,b\n");
    let plan = crate::fake::plan(&policy(), &root(), &tree).unwrap();
    let content = |path: &str| match crate::fake::op_at(&plan, path) {
        Some(MountOp::File { content, .. }) => content.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        content("/etc/passwd"),
        "sandbox:x:1000:1000:sandbox:/root:/bin/bash\nroot:x:0:0:root:/root:/bin/sh\n\
         postgres:x:101:104::/var/lib/postgresql:/bin/sh\n"
    );
    assert_eq!(content("/etc/group"), "sandbox:x:1000:\nroot:x:0:\nstaff:x:50:a,b\n");
    let long = "user:x:5:5::/:/bin/sh\n".repeat(5_000);
    tree.file("/etc/passwd", &long);
    let plan = crate::fake::plan(&policy(), &root(), &tree).unwrap();
    let Some(MountOp::File { content, .. }) = crate::fake::op_at(&plan, "/etc/passwd") else {
        panic!()
    };
    assert!(content.contains("nobody") && !content.contains("user:x:5:"), "{}", content.len());
}
