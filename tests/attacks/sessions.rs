//! Against the sessions beside this one: their directories, by ids that were guessed right.

use std::fs;
use std::path::PathBuf;

use palisade_testkit::{Attack, World};

use crate::host::strings;
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

/// Any id is guessed by somebody who can guess.
const OTHER: &str = "019a1eb8-0000-7000-8000-000000000001";
const KEPT: &str = "what the other session wrote";

fn other(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/sessions").join(OTHER)
}

fn make_other(world: &World) {
    let directory = format!("home/.local/state/palisade/sessions/{OTHER}");
    world.write(format!("{directory}/output/1/00000000000000000000"), KEPT);
    world.write(format!("{directory}/session.json"), "{}");
}

/// Proves: FS-8 read
#[test]
fn f28_the_output_of_another_session_cannot_be_read() {
    Attack::new("F28", "read what another session wrote, in its directory")
        .proves(&["FS-8 read"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(make_other)
        .command(|world| {
            let log = other(world).join("output/1/00000000000000000000");
            strings(&["cat", &log.display().to_string()])
        })
        .succeeded(|_, output| output.out().contains(KEPT))
        .check();
}

/// Proves: FS-8 write
#[test]
fn f28_nothing_can_be_written_into_the_directory_of_another_session() {
    Attack::new("F28", "put a record of its own into another session's directory")
        .proves(&["FS-8 write"])
        // Landlock allows writing in the home directory, which is a private one in the view.
        .held_by(&["mount-view", "read-only-mounts", "identity"])
        .prepare(make_other)
        .command(|world| {
            let record = other(world).join("session.json");
            strings(&["sh", "-c", "echo forged > \"$0\"", &record.display().to_string()])
        })
        .succeeded(|world, _| {
            fs::read_to_string(other(world).join("session.json")).is_ok_and(|text| text != "{}")
        })
        .check();
}
