//! Kept states on disk: how much of it they take, and that they are there after a loss of power (LIFE-5).

use std::path::Path;

use palisade_testkit::World;
use serde_json::Value;

use crate::checkpoints::script;
use crate::sessions_support::Sessions;

/// As many as are kept of those before each command.
const MAX_AUTOMATIC: usize = 50;

fn listed(sessions: &Sessions<'_>) -> Vec<Value> {
    let all = sessions.sandbox(&["checkpoints", "--json", "s"]);
    let all: Value = serde_json::from_slice(&all.assert_code(0).stdout).unwrap();
    all["checkpoints"].as_array().unwrap().clone()
}

/// Proves: LIFE-5 rollback, LIFE-5 checkpoint
#[test]
fn the_oldest_state_before_a_command_comes_back_though_another_one_is_kept_for_that() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--transaction", "--checkpoint-each", "--name", "s"]);
    // Holes take nothing, neither room nor time.
    script(&sessions, "s", "truncate -s 1T holes; head -c 1M /dev/zero > large");
    for step in 0..=MAX_AUTOMATIC {
        script(&sessions, "s", &format!("echo {step} > step"));
    }
    let all = listed(&sessions);
    assert_eq!(all.len(), MAX_AUTOMATIC);
    let disk_bytes = all[1]["diskBytes"].as_u64().unwrap();
    assert!((1 << 20..2 << 20).contains(&disk_bytes), "{disk_bytes}");
    let oldest = all[0]["number"].to_string();
    sessions.sandbox(&["rollback", "s", &oldest]).assert_code(0);
    assert!(listed(&sessions).iter().any(|checkpoint| checkpoint["number"] == all[0]["number"]));
    let since = sessions.sandbox(&["diff", "s", &format!("{oldest}.."), "--name-only"]);
    assert_eq!(since.assert_code(0).out(), "");
}

/// Whether the content of a file has a place on disk, by what the file system says of its extents (FIEMAP): one that only
/// waits in memory has none.
fn is_on_disk(world: &World, file: &Path) -> bool {
    const LOOK: &str = "import fcntl, struct, sys\n\
         FIEMAP, DELAYED_OR_UNKNOWN = 0xC020660B, 0x2 | 0x4\n\
         request = bytearray(struct.pack('=QQIIII', 0, 2**64 - 1, 0, 0, 64, 0) + bytes(64 * 56))\n\
         fcntl.ioctl(open(sys.argv[1], 'rb'), FIEMAP, request)\n\
         count = struct.unpack_from('=I', request, 20)[0]\n\
         flags = [struct.unpack_from('=I', request, 32 + 56 * at + 40)[0] for at in range(count)]\n\
         print(count > 0 and not any(flag & DELAYED_OR_UNKNOWN for flag in flags))";
    let said = world.bare("python3").args(["-c", LOOK]).arg(file).run();
    said.out().trim() == "True"
}

/// Proves: LIFE-5 crash
#[test]
fn a_state_is_on_disk_before_it_is_listed() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--transaction", "--name", "s"]);
    let recent = world.write_in_project("recent", vec![1; 1 << 20]);
    if is_on_disk(&world, &recent) {
        // A file system that writes at once, or does not say.
        return;
    }
    script(&sessions, "s", "head -c 1M /dev/urandom > large");
    sessions.sandbox(&["checkpoint", "s"]).assert_code(0);
    let kept = sessions.directory(&id).join("checkpoints/1");
    for name in ["upper/large", "checkpoint.json"] {
        assert!(is_on_disk(&world, &kept.join(name)), "{name}");
    }
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    bring_back(&sessions);
    let back = sessions.directory(&id).join("layers/1/upper/large");
    assert!(is_on_disk(&world, &back));
}

/// In a session that is over, the changes are replaced by a copy.
fn bring_back(sessions: &Sessions<'_>) {
    sessions.sandbox(&["rollback", "s", "0"]).assert_code(0);
    sessions.sandbox(&["rollback", "s", "1"]).assert_code(0);
}
