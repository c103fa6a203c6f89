//! Races with set-up: names change between the look at the host and the mounts made from it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use palisade_testkit::World;

const SECRET: &str = "the secret itself";
const HARMLESS: &str = "nothing to hide";
/// A short run; whichever way a start comes out, it must not show the secret.
const STARTS: usize = 60;
/// About as long as set-up takes from its look to its mount, so that many swaps fall in between.
const STAY: Duration = Duration::from_micros(500);

/// A start that fails its test must not leave the other thread at work.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps a directory and a link to what is denied, over and over, while sandboxes start.
///
/// Proves: FS-1 blacklist, FS-3 approved-mounts
#[test]
fn f02_a_directory_swapped_for_a_link_during_set_up_uncovers_nothing() {
    let world = World::new();
    let denied = world.write("outside/denied/file", SECRET).parent().unwrap().to_owned();
    let swapped = world.write("outside/swapped/file", HARMLESS).parent().unwrap().to_owned();
    let aside = world.path().join("aside");
    let stop = AtomicBool::new(false);

    let swap = || {
        while !stop.load(Ordering::Relaxed) {
            fs::rename(&swapped, &aside).unwrap();
            symlink(&denied, &swapped).unwrap();
            std::thread::sleep(STAY);
            fs::remove_file(&swapped).unwrap();
            fs::rename(&aside, &swapped).unwrap();
            std::thread::sleep(STAY);
        }
    };
    let start = || {
        let outside = world.outside().display().to_string();
        let denied = denied.display().to_string();
        // Taken apart around the denied directory, and so mounted name by name.
        let flags = ["--ro", &outside, "--blacklist", &denied];
        let file = swapped.join("file").display().to_string();
        world.sandbox_run(flags, ["cat", &file]).run()
    };
    let seen: Vec<_> = std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(swap);
        (0..STARTS).map(|_| start()).collect()
    });

    for output in &seen {
        assert!(!output.out().contains(SECRET), "{}\n{}", output.out(), output.err());
    }
    // With the swapping over, the same start shows what it should: the attempts were in earnest.
    assert_eq!(start().assert_code(0).out(), HARMLESS);
}
