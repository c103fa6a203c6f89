//! Kept states on disk: how much of it they take, and that they are there after a loss of power (LIFE-5).

use std::path::Path;

use palisade_testkit::World;
use serde_json::Value;

use crate::checkpoints::script;
use crate::fault_points::{Fault, listed as moments};
use crate::sessions_support::{Sessions, wait_until};

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
fn a_state_is_on_disk_when_the_list_says_so() {
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
    sessions.sandbox(&["checkpoint", "--sync", "s"]).assert_code(0);
    assert_eq!(listed(&sessions)[1]["isOnDisk"], true, "it was waited for");
    wait_until("both are on disk", || listed(&sessions)[0]["isOnDisk"] == true);
    for kept in ["checkpoints/1", "checkpoints/2"] {
        let kept = sessions.directory(&id).join(kept);
        for name in ["upper/large", "checkpoint.json"] {
            assert!(is_on_disk(&world, &kept.join(name)), "{name}");
        }
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

/// A start does not wait for the disk, and a command that is over soon needs nothing of it.
///
/// Proves: LIFE-2 apply, LIFE-5 crash
#[test]
fn what_is_written_down_about_a_transaction_is_on_disk_a_moment_after_its_start() {
    const SYNCED: &str = "synced the records#1";
    let world = World::new();
    let sessions = Sessions::new(&world);
    let run = |script: &str| {
        let words = ["run", "--transaction", "--", "sh", "-c", script];
        Fault::list(&world).sandbox(&world, &words).run().assert_code(0);
        moments(&world).iter().any(|moment| moment == SYNCED)
    };
    assert!(!run("true"));
    assert!(run("sleep 2"));
    let create = ["create", "--quiet", "--transaction", "--name", "s"];
    Fault::list(&world).sandbox(&world, &create).run().assert_code(0);
    let list = world.outside().join("moments");
    wait_until("it is on disk", || {
        std::fs::read_to_string(&list).is_ok_and(|text| text.contains("synced the records"))
    });
    sessions.sandbox(&["stop", "s"]).assert_code(0);
}

/// Nobody waits for the disk but a process of the session. It is killed at each of its moments: what is listed is true, the
/// session goes on, and the next one who writes brings to disk what was not there.
///
/// Proves: LIFE-5 crash, LIFE-5 checkpoint
#[test]
fn who_writes_checkpoints_to_disk_may_be_killed_at_any_moment() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let create = ["create", "--quiet", "--transaction", "--name", "s"];
    let live = |fault: Fault| {
        let created = fault.sandbox(&world, &create).run();
        let id = created.assert_code(0).out().trim().to_owned();
        script(&sessions, "s", "echo one > notes");
        sessions.sandbox(&["checkpoint", "s", "-m", "first"]).assert_code(0);
        sessions.directory(&id)
    };
    let end = || {
        sessions.sandbox(&["stop", "s"]).assert_code(0);
        assert!(listed(&sessions).iter().all(|checkpoint| checkpoint["isOnDisk"] == true));
        sessions.sandbox(&["rollback", "s", "1"]).assert_code(0);
        sessions.sandbox(&["rm", "--force", "s"]).assert_code(0);
    };
    live(Fault::list(&world));
    wait_until("it is on disk", || listed(&sessions)[0]["isOnDisk"] == true);
    let moments = moments(&world);
    end();
    let of_worker: Vec<_> =
        moments.into_iter().filter(|moment| moment.contains(" the checkpoints#1")).collect();
    assert_eq!(of_worker.len(), 4, "{of_worker:?}");
    for moment in of_worker {
        let directory = live(Fault::KillAt(moment.clone()));
        let log = directory.join("supervisor.log");
        wait_until(&moment, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("its process was killed"))
        });
        let all = listed(&sessions);
        assert_eq!(all[0]["isOnDisk"], false, "{moment}");
        let shown = sessions.sandbox(&["checkpoints", "s"]);
        assert!(shown.out().contains("by hand, not on disk: first"), "{}", shown.out());
        script(&sessions, "s", "echo two > notes");
        sessions.sandbox(&["checkpoint", "--sync", "s"]).assert_code(0);
        end();
    }
}
