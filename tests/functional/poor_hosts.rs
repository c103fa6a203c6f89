//! Hosts that lack, cover or hide what a run needs: it works all the same, or stops before the command with a line that says
//! what is missing and what to do. It never hangs, and never goes on with less.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use palisade_testkit::{Invocation, Output, World, am_root};

use crate::gate::{hidden, socket_directory};
use crate::inside::{eventually, host_script};

const NO_FLAGS: [&str; 0] = [];
/// Without what the setting needed.
const GO_ON: &str = "exec setpriv --ambient-caps -all --inh-caps -all \"$@\"";

/// Runs it where `setting` was done to the mounts; nothing of that shows on this host.
fn on_host(setting: &str, invocation: Invocation) -> Output {
    let script = format!("{setting} && {GO_ON}");
    let own: &[&str] =
        if am_root() { &[] } else { &["--user", "--map-current-user", "--keep-caps"] };
    let mounts = ["--mount", "--propagation", "private", "sh", "-c", &script, "sh"];
    let words: Vec<String> =
        ["unshare"].iter().chain(own).chain(&mounts).map(|word| (*word).to_owned()).collect();
    invocation.started_by(&words).run()
}

/// Proves: LIFE-3 poor-hosts, LIFE-3 own-exit-codes
#[test]
fn a_run_that_needs_what_the_host_lacks_says_what_to_do() {
    // The kernel shows in such a `/proc` only whom its namespace knows, and nobody of that is left.
    let foreign = "unshare --pid --fork mount -t proc proc /proc";
    for (setting, what, what_to_do) in [
        ("mount -t tmpfs none /proc", "/proc/self/uid_map", "mount -t proc proc /proc"),
        (foreign, "/proc/self/uid_map", "mount -t proc proc /proc"),
        ("mount -o remount,bind,ro /proc", "EROFS", "mount -o remount,rw /proc"),
        ("mount -t tmpfs none /proc/sys", "/proc is covered", "unmasked /proc"),
        ("mount -t tmpfs none /dev", "/dev/full", "the usual devices"),
    ] {
        let world = World::new();
        let output = on_host(setting, world.sandbox(["run", "--", "touch", "ran"]));
        output.assert_code(125);
        let (said, lines) = (output.err(), output.err().lines().count());
        assert!(said.contains(what) && said.contains(what_to_do), "{setting}: {said}");
        assert_eq!(lines, 1, "{setting}: {said}");
        assert!(!world.project().join("ran").exists(), "{setting}");
    }
}

/// Proves: LIFE-3 poor-hosts
#[test]
fn a_run_does_without_what_it_does_not_need() {
    for place in ["/sys", "/dev/pts", "/dev/shm", "/tmp"] {
        let world = World::new();
        let setting = format!("mount -t tmpfs -o ro none {place}");
        let output =
            on_host(&setting, world.sandbox_run(NO_FLAGS, ["sh", "-c", "echo x > /tmp/x"]));
        assert_eq!(output.code(), 0, "{place}: {}", output.err());
    }
}

/// Proves: LIFE-3 poor-hosts
#[test]
fn a_home_directory_may_be_missing() {
    for home in [None, Some(""), Some("/"), Some("/nowhere/at/all"), Some("relative")] {
        let world = World::new();
        let run = world.sandbox_run(NO_FLAGS, ["pwd"]);
        let run = match home {
            None => run.started_by(&["env", "-u", "HOME"].map(str::to_owned)),
            Some(home) => run.env("HOME", home),
        };
        let output = run.run();
        assert_eq!(output.code(), 0, "{home:?}: {}", output.err());
        assert_eq!(Path::new(output.out().trim()), world.project(), "{home:?}");
    }
}

/// Proves: LIFE-3 poor-hosts
#[test]
fn a_working_directory_that_is_gone_is_told() {
    let world = World::new();
    let script = "mkdir gone; cd gone; rmdir ../gone; \"$PALISADE\" run -- true";
    let output = host_script(&world, script).run();
    output.assert_code(125);
    assert!(output.err().contains("change to one that exists"), "{}", output.err());
}

/// Pid 1 of a sandbox is closed to inspection, so `/proc` hides it from the user who started it; the view could not be widened
/// then, and every question came to nothing.
///
/// Proves: LIFE-3 poor-hosts, GATE-1 approve-continues
#[test]
fn a_host_that_hides_processes_from_each_other_can_be_asked() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let words = [
        "unshare",
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        "--keep-caps",
        "--pid",
        "--fork",
        "--mount",
        "sh",
        "-c",
    ];
    let script = format!("mount -t proc -o hidepid=2 proc /proc && {GO_ON}");
    let words: Vec<String> =
        words.iter().copied().chain([script.as_str(), "sh"]).map(str::to_owned).collect();
    let run = world.sandbox_run(["--on-ask", "allow"], ["cat", &file]).started_by(&words);
    let output = run.run();
    output.assert_code(0);
    assert_eq!(output.out(), "content of wanted\n", "{}", output.err());
}

/// A run leaves a file by which `sandbox top` finds it, and removes those of dead runs. By a link that another user planted it
/// removed whatever was called so elsewhere.
///
/// Proves: LIFE-4 private-files
#[test]
fn a_runtime_directory_that_others_can_write_to_is_not_used() {
    let world = World::new();
    let kept = world.write("outside/settings/package.json", "{}");
    let shared = world.outside().join("shared");
    let planted = shared.join("palisade");
    fs::create_dir_all(&planted).unwrap();
    for open in [&shared, &planted] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    symlink(kept.parent().unwrap(), planted.join("runs")).unwrap();
    let run = world
        .sandbox_run(NO_FLAGS, ["sh", "-c", "read line"])
        .env("XDG_RUNTIME_DIR", &shared)
        .keep_stdin_open()
        .spawn();
    let own = socket_directory(&world).join("runs");
    eventually("the run is announced where nobody else can write", || {
        fs::read_dir(&own).is_ok_and(|mut entries| entries.next().is_some())
    });
    drop(run.wait());
    assert!(kept.exists(), "somebody's file was removed");
    let names = |directory: &Path| fs::read_dir(directory).unwrap().count();
    assert_eq!((names(&planted), names(kept.parent().unwrap())), (1, 1));
}
