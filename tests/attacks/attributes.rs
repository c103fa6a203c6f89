//! What a file is rather than what is in it: set-user-id bits, capabilities, times, modes, flags.
//! Looked at from the host, where the harm would be.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use palisade_testkit::{Attack, Output, World};

use crate::host::probe;

const SET_ID_BITS: u32 = 0o6000;

fn left_with_set_id(world: &World, _: &Output) -> bool {
    let left = fs::metadata(world.project().join("left"));
    left.is_ok_and(|found| found.permissions().mode() & SET_ID_BITS != 0)
}

/// Proves: FS-1 no-setid-file
#[test]
fn f14_no_set_user_id_file_is_left_in_the_project() {
    let ways: [(&str, &[&str]); 5] = [
        ("chmod", &["seccomp"]),
        ("fchmod", &["seccomp"]),
        // Performed by the broker for directories, and refused by it for files.
        ("group-chmod", &["seccomp"]),
        ("group-fchmod", &["seccomp"]),
        // Without the filter nobody hears of a new file, and Landlock lets none be made.
        ("open", &["seccomp", "guard"]),
    ];
    for (way, layers) in ways {
        Attack::new("F14", format!("leave a set-user-id file in the project: {way}"))
            .held_by(layers)
            .prepare(move |world| {
                if way != "open" {
                    world.write_in_project("left", "");
                }
            })
            .command(move |world| probe(world, &["set-user-id", way, "left"]))
            .succeeded(left_with_set_id)
            .contained(|_, output| output.out().starts_with("refused 1 "))
            .check();
    }
}

/// Proves: PROC-6 capabilities-empty
#[test]
fn f14_no_file_is_given_capabilities() {
    Attack::new("F14", "leave a file in the project that gives capabilities")
        .by_design("the user namespace has no root of its own that a file could stand for")
        .only_as_root("nobody else can give a file capabilities without a sandbox")
        .command(|world| probe(world, &["give-capability", "left"]))
        .succeeded(|world, _| {
            let left = world.project().join("left").display().to_string();
            seen_from_outside(world, &["attribute-of", &left, "security.capability"])
        })
        .contained(|_, output| output.out().starts_with("refused 1 "))
        .check();
}

/// Whether a probe that looks, run on the host, finds it.
fn seen_from_outside(world: &World, words: &[&str]) -> bool {
    world.bare(world.probe()).args(words).run().code() == 0
}

fn put_canary(world: &World) {
    let canary = world.write("outside/canary", "untouched");
    fs::set_permissions(canary, fs::Permissions::from_mode(0o644)).unwrap();
}

/// An attempt at a file that was granted for reading.
fn at_readable_file(name: &'static str, attempt: &'static str) -> Attack {
    Attack::new("F25", name)
        .proves(&["FS-1 read-only"])
        .prepare(put_canary)
        .flags(|world| vec!["--ro".into(), world.outside().display().to_string()])
        .command(move |world| {
            let canary = world.outside().join("canary").display().to_string();
            probe(world, &[attempt, &canary])
        })
        // EROFS: the mount says no before anybody asks who owns the file.
        .contained(|_, output| output.out().starts_with("refused 30 "))
}

fn canary_of(world: &World) -> fs::Metadata {
    fs::metadata(world.outside().join("canary")).unwrap()
}

/// Proves: FS-1 read-only
#[test]
fn f25_the_times_of_a_readable_file_stay() {
    at_readable_file("change the times of a file that may only be read", "set-times")
        .held_by(&["read-only-mounts"])
        .succeeded(|world, _| canary_of(world).mtime() == 1)
        .check();
}

/// Proves: FS-1 read-only
#[test]
fn f25_the_mode_of_a_readable_file_stays() {
    at_readable_file("make a file that may only be read writable for all", "set-mode")
        .held_by(&["read-only-mounts"])
        .succeeded(|world, _| canary_of(world).permissions().mode() & 0o002 != 0)
        .check();
}

/// Proves: FS-1 read-only
#[test]
fn f25_no_attribute_is_left_on_a_readable_file() {
    at_readable_file("put an attribute on a file that may only be read", "set-attribute")
        .held_by(&["read-only-mounts"])
        .succeeded(|world, _| {
            let canary = world.outside().join("canary").display().to_string();
            seen_from_outside(world, &["attribute-of", &canary, "user.palisade"])
        })
        .check();
}

/// Proves: FS-1 read-only
#[test]
fn f25_the_flags_of_a_readable_file_stay() {
    at_readable_file("set a flag of a file that may only be read", "set-flags")
        .held_by(&["read-only-mounts"])
        .succeeded(|world, _| {
            let canary = world.outside().join("canary").display().to_string();
            seen_from_outside(world, &["is-kept-from-backups", &canary])
        })
        .check();
}

/// By truncate(2), which opens nothing. Landlock is not asked to refuse it: that would cost every open
/// a walk up the tree.
///
/// Proves: FS-1 read-only
#[test]
fn f25_a_readable_file_cannot_be_emptied() {
    at_readable_file("empty a file that may only be read, by its name", "truncate")
        .held_by(&["read-only-mounts"])
        .succeeded(|world, _| canary_of(world).len() == 0)
        .check();
}
