use super::{ChangeKind, Changes, EntryKind, Held, RefusedReason};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

#[test]
fn a_diff_is_read_with_paths_that_are_no_text() {
    let text = r#"{"changes":[
        {"path":"a\ufffd","pathHex":"61ff","kind":"typeChanged",
         "old":{"kind":"file","mode":420,"size":3,"modified":{"seconds":1,"nanoseconds":2}},
         "new":{"kind":"link","mode":511,"size":1,"modified":{"seconds":1,"nanoseconds":2},"target":"b"},
         "addedLater":true},
        {"path":"b","kind":"deleted"}],
        "renames":[{"from":"b","to":"c","similarity":90}]}"#;
    let changes: Changes = serde_json::from_str(text).unwrap();
    let first = &changes.changes[0];
    assert_eq!(first.path.as_os_str(), OsStr::from_bytes(b"a\xff"));
    assert_eq!(first.kind, ChangeKind::TypeChanged);
    let new = first.new.as_ref().unwrap();
    assert_eq!((new.kind, new.target.as_deref()), (EntryKind::Link, Some("b".as_ref())));
    assert_eq!((changes.changes[1].old.as_ref(), changes.renames[0].similarity), (None, 90));
    for wrong in ["6", "zz"] {
        let text = text.replace("61ff", wrong);
        assert!(serde_json::from_str::<Changes>(&text).is_err(), "{wrong}");
    }
}

#[test]
fn what_stands_in_the_way_is_read() {
    let text = r#"{"refused":[{"path":".git/hooks/x","reason":{"runLater":{"rule":"r","why":"w"}}},
        {"path":"l","reason":"linkLeavesProject"}],"conflicts":[]}"#;
    let held: Held = serde_json::from_str(text).unwrap();
    assert!(matches!(&held.refused[0].reason, RefusedReason::RunLater(it) if it.rule == "r"));
    assert_eq!(held.refused[1].reason, RefusedReason::LinkLeavesProject);
}
