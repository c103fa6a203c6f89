//! Races: names change while set-up looks at them, and while a walk passes through them.
//! Two pinned threads and a canary outside; `cargo xtask attacks --long` tries a million times.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{Attack, Demonstration, World, patiently, pin, tries};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::host::probe;
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

pub(crate) const SECRET: &str = "the secret itself";
pub(crate) const HARMLESS: &str = "nothing to hide";
/// Swaps of a short run; whichever way a start comes out, it must not show the secret.
const SWAPS: u32 = 3000;
const WALKS: u32 = 20_000;
/// How long a swapped name stays, in eight steps: from nothing to about as long as set-up takes from
/// its look to its mount.
const STEP: Duration = Duration::from_micros(60);
const STEPS: u32 = 8;
/// How long a program without a sandbox may take to be fooled.
const RACE_TIMEOUT: Duration = Duration::from_secs(60);

/// A failed test must not leave the other thread at work.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes `name` a directory and a link to `target` in turns, and calls `attempt` meanwhile, until
/// there were enough swaps or it has seen enough.
pub(crate) fn while_swapping(name: &Path, target: &Path, attempt: impl FnMut() -> Seen) {
    swap(name, target, tries(SWAPS), attempt);
}

/// The same, for as long as it takes.
pub(crate) fn swap_while(name: &Path, target: &Path, attempt: impl FnMut() -> Seen) {
    swap(name, target, u32::MAX, attempt);
}

/// Whether it happens while `name` is swapped. Whoever swaps has no CPU for a while on a busy machine.
fn happens_while_swapping(name: &Path, target: &Path, mut it: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patiently(RACE_TIMEOUT);
    let mut happened = false;
    swap_while(name, target, || {
        happened = it();
        if happened || Instant::now() > until { Seen::Enough } else { Seen::NotYet }
    });
    happened
}

fn swap(name: &Path, target: &Path, enough: u32, mut attempt: impl FnMut() -> Seen) {
    // Exchanged in one step: at no moment is there nothing of that name.
    let other = name.with_extension("other");
    symlink(target, &other).unwrap();
    let exchange = || renameat_with(CWD, name, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    let stop = AtomicBool::new(false);
    let swaps = AtomicU32::new(0);
    let swap = || {
        pin(1).unwrap();
        while !stop.load(Ordering::Relaxed) {
            let stay = STEP * (swaps.fetch_add(1, Ordering::Relaxed) % STEPS);
            exchange();
            std::thread::sleep(stay);
            exchange();
            std::thread::sleep(stay);
        }
    };
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(swap);
        pin(0).unwrap();
        while swaps.load(Ordering::Relaxed) < enough && attempt() == Seen::NotYet {}
    });
    fs::remove_file(&other).unwrap();
}

#[derive(PartialEq, Eq)]
pub(crate) enum Seen {
    NotYet,
    Enough,
}

/// What a program does that looks first and then uses the same name again.
fn looks_like_a_directory(name: &Path) -> bool {
    let found = fs::symlink_metadata(name).is_ok_and(|found| found.is_dir());
    std::thread::sleep(STEP);
    found
}

/// Shows that the swap is a race: whoever looks first and then reads gets what is denied.
fn a_reader_is_fooled(swapped: &Path, denied: &Path) {
    let won = happens_while_swapping(swapped, denied, || {
        let file = swapped.join("file");
        let content = looks_like_a_directory(swapped).then(|| fs::read_to_string(file));
        content.is_some_and(|content| content.is_ok_and(|content| content == SECRET))
    });
    assert!(won, "the race is not one");
}

/// Swaps a directory and a link to what is denied, over and over, while sandboxes start.
///
/// Proves: FS-1 blacklist, FS-3 approved-mounts
#[test]
fn f02_a_directory_swapped_for_a_link_during_set_up_uncovers_nothing() {
    let shown = Demonstration::of(
        "F02",
        "swap a granted directory for a link to a denied one while the sandbox is set up",
        "what was looked at is what is mounted: sources are opened without following links",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let denied = world.write("outside/denied/file", SECRET).parent().unwrap().to_owned();
    let swapped = world.write("outside/swapped/file", HARMLESS).parent().unwrap().to_owned();
    let file = swapped.join("file");

    a_reader_is_fooled(&swapped, &denied);
    shown.worked_bare();

    let start = || {
        let outside = world.outside().display().to_string();
        let denied = denied.display().to_string();
        // Taken apart around the denied directory, and so mounted name by name.
        let flags = ["--ro", &outside, "--blacklist", &denied];
        world.sandbox_run(flags, ["cat", &file.display().to_string()]).run()
    };
    while_swapping(&swapped, &denied, || {
        let output = start();
        assert!(!output.out().contains(SECRET), "{}\n{}", output.out(), output.err());
        Seen::NotYet
    });
    // With the swapping over, the same start shows what it should: the attempts were in earnest.
    assert_eq!(start().assert_code(0).out(), HARMLESS);
    shown.held();
}

/// Sandboxes that start at once make the directories they were granted in a place that changes
/// under them (CVE-2024-45310).
///
/// Proves: FS-1 rw-created, FS-3 approved-mounts
#[test]
fn f07_starts_at_once_make_nothing_outside() {
    let shown = Demonstration::of(
        "F07",
        "swap a shared directory for a link while sandboxes make directories in it",
        "missing directories are made step by step below a descriptor, without following links",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let shared = world.project().join("shared");
    fs::create_dir(&shared).unwrap();
    let made_outside = || fs::read_dir(world.outside()).unwrap().count() > 0;

    let won = happens_while_swapping(&shared, &world.outside(), || {
        if looks_like_a_directory(&shared) {
            let _ = fs::create_dir(shared.join("new"));
        }
        made_outside()
    });
    assert!(won, "the race is not one");
    fs::remove_dir(world.outside().join("new")).unwrap();
    shown.worked_bare();

    let mut count = 0;
    while_swapping(&shared, &world.outside(), || {
        let starts: Vec<_> = (0..2)
            .map(|_| {
                count += 1;
                let granted = format!("shared/deep/new-{count}");
                world.sandbox(["run", "--rw", &granted, "--", "touch", &granted]).spawn()
            })
            .collect();
        starts.into_iter().for_each(|start| drop(start.wait()));
        assert!(!made_outside(), "something was made outside");
        Seen::NotYet
    });
    let granted = "shared/deep/last";
    let script = ["sh", "-c", r#"touch "$0/file""#, granted];
    world.sandbox_run(["--rw", granted], script).run().assert_code(0);
    assert!(world.project().join(granted).join("file").exists());
    shown.held();
}

fn canary(world: &World) -> String {
    world.write("outside/canary", SECRET).display().to_string()
}

/// A race inside, for a file outside.
fn race(id: &'static str, name: &'static str, attempt: &'static str) -> Attack {
    Attack::new(id, name)
        .proves(&["FS-3 own-root"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .command(move |world| probe(world, &[attempt, &tries(WALKS).to_string(), &canary(world)]))
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(|_, output| output.out().starts_with("refused 13 "))
}

/// Proves: FS-3 own-root
#[test]
fn f09_a_directory_renamed_during_a_walk_leads_nowhere() {
    race("F09", "rename a directory while a walk with `..` passes through it", "race-dots").check();
}

/// Proves: FS-3 own-root
#[test]
fn f01_a_name_that_is_a_link_in_turns_leads_nowhere() {
    race("F01", "swap a directory and a link that leads out while it is opened", "race-link")
        .check();
}
