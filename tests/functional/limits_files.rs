//! Space and files: in file systems of the run's own the kernel refuses, in trees of the host the supervisor
//! counts what the run adds (FS-6).

use palisade_testkit::World;

use crate::limits_support::{
    MIB, Over, PYTHON, assert_over, assert_within, ended_the_run, events, limit_of, python,
};

const LIMIT: u64 = 8 * MIB;
/// The host's file system may need some for itself.
const FITS: u64 = 7 * MIB;
const TOO_MUCH: u64 = 10 * MIB;

/// The project looks writable and is not the host's: every place to write is the run's own.
const OWN: [&str; 4] = ["--disk", "8m", "--overlay", "."];
const HOST: [&str; 2] = ["--disk", "8m"];

/// Helpers for the scripts inside; a write that finds no room ends with code 3.
const HEAD: &str = "import os, signal, sys\n\
    def fill(path, size):\n\
    \x20try:\n\
    \x20 with open(path, 'wb', buffering=0) as file:\n\
    \x20  for _ in range(size >> 16): file.write(os.urandom(1 << 16))\n\
    \x20except OSError as error: sys.exit(3 if error.errno == 28 else 4)\n\
    def make(directory, count):\n\
    \x20try:\n\
    \x20 for number in range(count): open(f'{directory}/file{number}', 'w').close()\n\
    \x20except OSError as error: sys.exit(3 if error.errno == 28 else 4)\n";

fn script(body: &str) -> String {
    format!("{HEAD}{body}\n")
}

/// Proves: FS-6 space, RES-4 disk
#[test]
fn own_file_systems_are_full_at_the_limit() {
    let world = World::new();
    let fits = world.sandbox_run(OWN, [PYTHON, "-c", &script(&format!("fill('/tmp/a', {FITS})"))]);
    let fits = fits.run();
    assert_within(&world, &fits, "disk");
    // One may be large while another is small, and the sum holds.
    for body in [
        format!("fill('/tmp/a', {TOO_MUCH})"),
        format!("fill('/tmp/a', {half}); fill('b', {half})", half = TOO_MUCH / 2),
        format!("fill('/tmp/a', {half}); fill('/dev/shm/b', {half})", half = TOO_MUCH / 2),
    ] {
        let world = World::new();
        let output = world.sandbox_run(OWN, [PYTHON, "-c", &script(&body)]).run();
        let at_least = LIMIT - 64 * 1024;
        let over = Over { name: "disk", outcome: "disk-full", code: 3, at_least };
        assert_over(&world, &output, &over);
        assert!(!ended_the_run(&output, "disk"), "{body}: the command heard of it by itself");
        let limit = limit_of(&output, "disk");
        assert_eq!((&limit["holder"], &limit["grip"]), (&"tmpfs".into(), &"hard".into()));
    }
}

/// Proves: FS-6 gives-back
#[test]
fn what_is_deleted_is_given_back() {
    for flags in [&OWN[..], &HOST[..]] {
        let world = World::new();
        let body = format!("for _ in range(6):\n fill('a', {FITS})\n os.unlink('a')");
        let output = python(&world, flags, &script(&body));
        assert_within(&world, &output, "disk");
    }
}

/// Proves: FS-6 inodes, RES-4 disk
#[test]
fn own_file_systems_hold_so_many_files() {
    let flags = ["--inodes", "60", "--overlay", "."];
    let world = World::new();
    let fits = world.sandbox_run(flags, [PYTHON, "-c", &script("make('/tmp', 50)")]).run();
    assert_within(&world, &fits, "inodes");
    let body = "make('/tmp', 50); make('.', 50)";
    let output = world.sandbox_run(flags, [PYTHON, "-c", &script(body)]).run();
    let over = Over { name: "inodes", outcome: "disk-full", code: 3, at_least: 55 };
    assert_over(&world, &output, &over);
    assert_eq!(limit_of(&output, "inodes")["holder"], "tmpfs");
}

/// What was there before is not the run's.
///
/// Proves: FS-6 space, RES-4 disk
#[test]
fn growth_of_the_project_is_counted() {
    let world = World::new();
    world.write_in_project("before", vec![1; 20 << 20]);
    let fits = python(&world, &HOST, &script(&format!("fill('a', {FITS})")));
    assert_within(&world, &fits, "disk");
    std::fs::remove_file(world.project().join("a")).unwrap();
    let body = format!("fill('a', {TOO_MUCH})\nsignal.pause()");
    let output = python(&world, &HOST, &script(&body));
    let over = Over { name: "disk", outcome: "disk-full", code: 137, at_least: LIMIT };
    assert_over(&world, &output, &over);
    assert!(ended_the_run(&output, "disk"));
    let limit = limit_of(&output, "disk");
    assert_eq!((&limit["holder"], &limit["grip"]), (&"watchdog".into(), &"sampled".into()));
}

/// Most of it is counted while the command already fills it.
///
/// Proves: FS-6 flat-start, FS-6 space, RES-4 disk
#[test]
fn growth_of_a_large_project_is_counted_though_no_start_waits_for_it() {
    let world = World::new();
    for number in 0..3000 {
        world.write_in_project(format!("src/{}/{number}", number % 20), "x");
    }
    let body = format!("fill('a', {TOO_MUCH})\nsignal.pause()");
    let output = python(&world, &HOST, &script(&body));
    let over = Over { name: "disk", outcome: "disk-full", code: 137, at_least: LIMIT };
    assert_over(&world, &output, &over);
    assert!(ended_the_run(&output, "disk"));
}

/// Proves: FS-6 space
#[test]
fn own_files_and_the_projects_are_one_sum() {
    let world = World::new();
    let half = TOO_MUCH / 2 + MIB;
    let body = format!("fill('a', {half}); fill('/tmp/b', {half})\nsignal.pause()");
    let output = python(&world, &HOST, &script(&body));
    let over = Over { name: "disk", outcome: "disk-full", code: 137, at_least: LIMIT };
    assert_over(&world, &output, &over);
}

/// Proves: FS-6 space
#[test]
fn what_is_deleted_and_still_open_is_held() {
    let world = World::new();
    let body = format!(
        "held = open('a', 'wb', buffering=0)\nos.unlink('a')\n\
         for _ in range({TOO_MUCH} >> 16): held.write(os.urandom(1 << 16))\nsignal.pause()"
    );
    let output = python(&world, &HOST, &script(&body));
    let over = Over { name: "disk", outcome: "disk-full", code: 137, at_least: LIMIT };
    assert_over(&world, &output, &over);
}

/// Proves: FS-6 inodes
#[test]
fn new_files_in_the_project_are_counted() {
    let world = World::new();
    let flags = ["--inodes", "60"];
    let fits = python(&world, &flags, &script("make('.', 50)"));
    assert_within(&world, &fits, "inodes");
    let body = "os.mkdir('more'); make('more', 100)\nsignal.pause()";
    let output = python(&world, &flags, &script(body));
    let over = Over { name: "inodes", outcome: "disk-full", code: 137, at_least: 61 };
    assert_over(&world, &output, &over);
}

/// Too quick to be ended, not too quick to be told.
///
/// Proves: FS-6 space, RES-1 overshoot
#[test]
fn what_was_written_before_anybody_looked_is_reported() {
    let world = World::new();
    let output = python(&world, &HOST, &script(&format!("fill('a', {TOO_MUCH})")));
    let limit = limit_of(&output, "disk");
    assert!(limit["reached"]["usage"].as_u64() >= Some(LIMIT), "{limit:#}");
    assert_eq!(events(&world).len(), 1);
}

/// Proves: FS-6 space, RES-1 unheld
#[test]
fn growth_of_the_host_has_to_be_accepted_or_waived() {
    let world = World::new();
    for (option, value) in [("--disk", "8m"), ("--inodes", "60")] {
        let name = option.trim_start_matches('-');
        let refused = world.sandbox_run([option, value], ["touch", "ran"]).run();
        refused.assert_code(125);
        for words in ["watchdog", "--best-effort-limits", &format!("--waive-limit {name}")] {
            assert!(refused.err().contains(words), "no {words} in {}", refused.err());
        }
        assert!(!world.project().join("ran").exists());
        let flags = [option, value, "--waive-limit", name];
        let waived = world.sandbox_run(flags, ["true"]).run();
        waived.assert_code(0);
        let report = waived.report.as_ref().unwrap();
        assert!(!report["limits"].to_string().contains(name), "{report:#}");
        let relaxations = report["relaxations"].to_string();
        assert!(relaxations.contains(name), "{relaxations}");
    }
}

/// Proves: FS-6 file-size, RES-1 rlimits
#[test]
fn a_file_that_grows_too_large_is_told() {
    let world = World::new();
    let flags = ["--file-size", "1m"];
    let write = |times: u32| {
        // Python ignores the signal, which would end it; the default comes back.
        format!(
            "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n\
             file = open('a', 'wb', buffering=0)\n\
             for _ in range({times}): file.write(b'x' * {MIB})"
        )
    };
    let fits = world.sandbox_run(flags, [PYTHON, "-c", &write(1)]).run();
    assert_within(&world, &fits, "file-size");
    let output = world.sandbox_run(flags, [PYTHON, "-c", &write(2)]).run();
    let over = Over { name: "file-size", outcome: "signalled", code: 153, at_least: MIB };
    assert_over(&world, &output, &over);
    let limit = limit_of(&output, "file-size");
    assert_eq!((&limit["holder"], &limit["grip"]), (&"rlimit".into(), &"hard".into()));
}
