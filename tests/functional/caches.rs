//! Caches of the sandboxes' own: kept for later sandboxes of the same project, never read by the host (FS-5).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use palisade_testkit::{Output, World};
use rustix::process::Signal;

use crate::inside::inside;
use crate::sessions_support::Sessions;

/// Left by a run that wrote nothing, for the next one.
const SPARE: &str = "spare";
const WRITE: &str = "echo kept > ~/.cargo/registry/kept";

/// With a cache that the host filled.
fn warm() -> World {
    let world = World::new();
    world.git_init();
    world.write("home/.cargo/registry/warm", "of the host\n");
    fs::create_dir_all(world.home().join(".cache/pip")).unwrap();
    world
}

fn store(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/caches")
}

/// How many projects' caches there are. Beside them lie the empty directories for the next run.
fn stores(world: &World) -> usize {
    let Ok(entries) = fs::read_dir(store(world)) else { return 0 };
    entries.flatten().filter(|entry| entry.file_name() != SPARE).count()
}

/// Everything in a directory, by its path from there.
fn all_below(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let is_directory = entry.file_type().unwrap().is_dir();
        let below = if is_directory { all_below(&entry.path()) } else { Vec::new() };
        found.extend(below.into_iter().map(|below| format!("{name}/{below}")));
        found.push(name);
    }
    found.sort();
    found
}

/// That of earlier runs there are only the directories that the next one uses, and nothing in them.
fn assert_nothing_but_directories(runs: &Path) {
    let found = all_below(runs);
    assert_eq!(found[0], SPARE, "{found:?}");
    for path in &found[1..] {
        let names: Vec<&str> = path.split('/').collect();
        let is_ours = matches!(names[..], [SPARE, _] | [SPARE, _, "work"]);
        assert!(is_ours, "{path} in {found:?}");
    }
}

fn sandbox(world: &World, words: &[&str]) -> Output {
    world.sandbox(words).run()
}

/// Proves: FS-10 own
#[test]
fn what_is_written_is_there_for_the_next_run_and_not_for_the_host() {
    let world = warm();
    let script = "set -e; cat ~/.cargo/registry/warm; echo new > ~/.cargo/registry/new; \
                  rm ~/.cargo/registry/warm; echo wheel > ~/.cache/pip/wheel";
    assert_eq!(inside(&world, &[], script).assert_code(0).out(), "of the host\n");
    let registry = world.home().join(".cargo/registry");
    assert_eq!(fs::read_to_string(registry.join("warm")).unwrap(), "of the host\n");
    assert!(!registry.join("new").exists() && !world.home().join(".cache/pip/wheel").exists());
    let second = inside(&world, &[], "ls ~/.cargo/registry; cat ~/.cache/pip/wheel");
    assert_eq!(second.assert_code(0).out(), "new\nwheel\n");
}

/// Proves: FS-10 own
#[test]
fn another_project_sees_the_hosts_cache_only() {
    let world = warm();
    inside(&world, &[], WRITE).assert_code(0);
    let other = world.outside().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    let words = ["run", "--cwd", other.to_str().unwrap(), "--", "sh", "-c", "ls ~/.cargo/registry"];
    let seen = world.sandbox(words).cwd(&other).run();
    assert_eq!(seen.assert_code(0).out(), "warm\n", "{}", seen.err());
}

/// Two overlays on one upper layer would diverge.
///
/// Proves: FS-10 own
#[test]
fn runs_beside_each_other_keep_what_each_of_them_wrote() {
    let world = warm();
    // All of them run at the same time: each waits for the files of the others in the project.
    let script = |number: usize| {
        format!(
            "echo {number} > ~/.cargo/registry/by-{number}; touch here-{number}; \
             while [ $(ls here-* | wc -l) -lt 4 ]; do sleep 0.01; done"
        )
    };
    thread::scope(|scope| {
        for number in 0..4 {
            let (world, script) = (&world, script(number));
            scope.spawn(move || {
                inside(world, &[], &script).assert_code(0);
            });
        }
    });
    let seen = inside(&world, &[], "cat ~/.cargo/registry/by-*");
    assert_eq!(seen.assert_code(0).out(), "0\n1\n2\n3\n");
    // The last to leave made one layer of all.
    let project = fs::read_dir(store(&world)).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_dir(project.join("layers")).unwrap().count(), 1);
    assert_nothing_but_directories(&project.join("runs"));
}

/// Go makes the directories of its modules read-only.
///
/// Proves: FS-10 layers
#[test]
fn directories_that_are_closed_to_writing_are_kept_as_they_are() {
    let world = warm();
    let add = |name: &str| {
        format!(
            "set -e; cd ~/.cargo/registry; [ ! -d module ] || chmod 755 module; mkdir -p module/{name}; \
             echo {name} > module/{name}/file; chmod 555 module/{name} module"
        )
    };
    for name in ["one", "two", "three"] {
        inside(&world, &[], &add(name)).assert_code(0);
    }
    let seen = inside(&world, &[], "cd ~/.cargo/registry/module; cat */file; stat -c %a . one");
    assert_eq!(seen.assert_code(0).out(), "one\nthree\ntwo\n555\n555\n");
    sandbox(&world, &["cache", "clear", "--all"]).assert_code(0);
    assert_eq!(stores(&world), 0);
}

/// Proves: FS-10 own
#[test]
fn a_run_that_writes_nothing_there_leaves_nothing() {
    let world = warm();
    inside(&world, &[], "cat ~/.cargo/registry/warm").assert_code(0);
    assert_eq!(stores(&world), 0);
    assert_nothing_but_directories(&store(&world).join(SPARE).join("runs"));
}

/// The directories of a run that wrote nothing serve the next one, of whatever project, and carry nothing over.
///
/// Proves: FS-10 own
#[test]
fn what_a_run_leaves_to_the_next_carries_nothing_over() {
    let world = warm();
    let other = world.outside().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    let elsewhere =
        |script: &str| world.sandbox(["run", "--", "sh", "-c", script]).cwd(&other).run();
    let made = "cd ~/.cargo/registry; mkdir d; echo x > d/x; rm -r d; touch -d @0 .";
    for round in 0..3 {
        inside(&world, &[], made).assert_code(0);
        let look = "cd ~/.cargo/registry; ls -A; stat -c %Y .";
        let seen = elsewhere(look);
        let own: String = (0..round).map(|earlier| format!("{earlier}\n")).collect();
        let changed = seen.assert_code(0).out();
        let changed = changed.strip_prefix(&format!("{own}warm\n")).unwrap_or(&changed);
        assert!(changed.trim().parse::<u64>().unwrap() > 0, "round {round}: {changed}");
        elsewhere(&format!("echo {round} > ~/.cargo/registry/{round}")).assert_code(0);
        assert_eq!(inside(&world, &[], "ls -A ~/.cargo/registry").out(), "warm\n");
    }
    assert_eq!(elsewhere("cat ~/.cargo/registry/?").assert_code(0).out(), "0\n1\n2\n");
}

/// Proves: FS-10 own
#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let world = warm();
    let script = "echo x > ~/.cargo/registry/x; echo written; sleep 60";
    let run = world.sandbox_run(&[] as &[&str], ["sh", "-c", script]).spawn();
    run.wait_for_stdout("written");
    run.signal(Signal::KILL);
    assert_eq!(run.wait().code(), 137);
    let seen = inside(&world, &[], "ls ~/.cargo/registry");
    assert_eq!(seen.assert_code(0).out(), "warm\n");
    assert_eq!(stores(&world), 0);
}

/// Proves: FS-10 commands
#[test]
fn caches_are_listed_and_cleared() {
    let world = warm();
    inside(&world, &[], WRITE).assert_code(0);
    let listed = sandbox(&world, &["cache", "ls", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.assert_code(0).out()).unwrap();
    let entry = &listed["caches"][0];
    assert_eq!(entry["project"], world.project().to_str().unwrap());
    assert_eq!(entry["isInUse"], false);
    assert!(entry["bytes"].as_u64().unwrap() >= 4096, "{entry}");
    let table = sandbox(&world, &["cache", "ls", "--verbose"]);
    assert!(table.out().contains(world.home().join(".cargo").to_str().unwrap()), "{}", table.out());
    let cleared = sandbox(&world, &["cache", "clear"]);
    assert!(cleared.assert_code(0).err().contains("the caches of 1 project"), "{}", cleared.err());
    assert_eq!(inside(&world, &[], "ls ~/.cargo/registry").out(), "warm\n");
    assert_eq!(stores(&world), 0);
}

/// A path of ours becomes longer than one can be when the layer is put aside for later runs.
///
/// Proves: FS-10 size
#[test]
fn what_cannot_be_measured_is_listed_and_removed_all_the_same() {
    let world = warm();
    let deep = "cd ~/.cargo/registry; python3 -c '
import os
for _ in range(40):
    os.mkdir(\"d\" * 120)
    os.chdir(\"d\" * 120)
open(\"file\", \"w\").write(\"x\" * 100000)
'";
    inside(&world, &[], deep).assert_code(0);
    let other = world.outside().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    let write = "head -c 300000 /dev/zero > ~/.cargo/registry/large";
    world
        .write("home/.config/palisade/policy.yaml", "version: 1\nfilesystem:\n  cacheSize: 100k\n");
    world.sandbox(["run", "--", "sh", "-c", write]).cwd(&other).run().assert_code(0);
    sandbox(&world, &["cache", "ls"]).assert_code(0);
    sandbox(&world, &["cache", "clear", "--all"]).assert_code(0);
    assert_eq!(stores(&world), 0);
}

/// Proves: FS-10 size
#[test]
fn the_caches_that_were_not_used_for_longest_are_removed_when_all_are_too_large() {
    let world = warm();
    let write = "head -c 300000 /dev/zero > ~/.cargo/registry/large";
    let projects: Vec<PathBuf> = ["a", "b", "c"].map(|name| world.outside().join(name)).into();
    for project in &projects {
        fs::create_dir_all(project.join(".git")).unwrap();
        let policy = "version: 1\nfilesystem:\n  cacheSize: 700k\n";
        world.write("home/.config/palisade/policy.yaml", policy);
        let run = world.sandbox(["run", "--", "sh", "-c", write]).cwd(project).run();
        run.assert_code(0);
    }
    let listed = sandbox(&world, &["cache", "ls", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out()).unwrap();
    let left: Vec<&str> = listed["caches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["project"].as_str().unwrap())
        .collect();
    assert_eq!(left, [projects[1].to_str().unwrap(), projects[2].to_str().unwrap()]);
}

/// Proves: FS-10 own
#[test]
fn the_policy_chooses_whose_caches_are_written() {
    let world = warm();
    inside(&world, &["--caches", "host"], WRITE).assert_code(0);
    assert!(world.home().join(".cargo/registry/kept").exists());
    let off = inside(&world, &["--caches", "off"], "ls ~/.cargo/registry");
    assert_ne!(off.code(), 0, "{}", off.out());
    let wrong = inside(&world, &["--caches", "mine"], "true");
    assert!(wrong.err().contains("one of host, own, off"), "{}", wrong.err());
}

/// A command must find neither what others wrote to caches nor the store.
///
/// Proves: FS-10 own
#[test]
fn the_store_is_private_and_not_visible_inside() {
    let world = warm();
    inside(&world, &[], WRITE).assert_code(0);
    let mode = fs::metadata(store(&world)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let flags = ["--on-ask", "deny"];
    let seen =
        inside(&world, &flags, "ls ~/.local/state/palisade; find / -name '*%2F*' 2>/dev/null");
    assert_eq!(seen.out(), "", "{}", seen.err());
}

/// What is kept is on the host's disk, wherever it was written.
///
/// Proves: FS-6 kept
#[test]
fn the_limit_of_disk_space_counts_what_is_written_to_caches_and_in_a_transaction() {
    let world = warm();
    let flags = ["--disk", "5m", "--best-effort-limits", "--transaction"];
    for place in ["~/.cargo/registry/large", "large"] {
        let script = format!("head -c 20000000 /dev/zero > {place}; sleep 60");
        let output = inside(&world, &flags, &script);
        output.assert_code(137);
        assert!(output.err().contains("the limit is 5m"), "{}", output.err());
    }
}

/// A command may close what it wrote, and the cache itself where nothing lies above it.
///
/// Proves: FS-10 layers
#[test]
fn what_a_command_closed_does_not_keep_later_runs_from_leaving_something() {
    let world = warm();
    world.write("home/.ccache/warm", "");
    inside(&world, &[], "echo x > ~/.ccache/first; chmod 500 ~/.ccache").assert_code(0);
    inside(
        &world,
        &[],
        "mkdir ~/.ccache/closed; echo x > ~/.ccache/closed/x; chmod 0 ~/.ccache/closed",
    )
    .assert_code(0);
    inside(&world, &[], "echo x > ~/.ccache/last").assert_code(0);
    let seen = inside(&world, &[], "ls ~/.ccache");
    assert!(seen.assert_code(0).out().contains("first\nlast\nwarm\n"), "{}", seen.out());
    sandbox(&world, &["cache", "clear", "--all"]).assert_code(0);
    assert_eq!(stores(&world), 0);
}

/// Each end tries to be the last, and fails while others run.
///
/// Proves: FS-10 own
#[test]
fn runs_that_end_one_after_another_keep_what_each_of_them_wrote() {
    let world = warm();
    thread::scope(|scope| {
        for number in 0..8 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..3 {
                    let name = format!("by-{number}-{round}");
                    let script = format!(
                        "mkdir ~/.cargo/registry/{name}; echo x > ~/.cargo/registry/{name}/file"
                    );
                    let output = inside(world, &[], &script);
                    output.assert_code(0);
                    assert!(!output.err().contains("not kept"), "{}", output.err());
                }
            });
        }
    });
    let seen = inside(&world, &[], "cd ~/.cargo/registry; for d in by-*; do cat $d/file; done");
    let kept = seen.assert_code(0).out().lines().count();
    assert!(seen.err().is_empty() && kept == 24, "{kept}: {}", seen.err());
}

/// A session that lives keeps all layers from being merged, and a mount takes eight of them.
///
/// Proves: FS-10 own, FS-10 layers
#[test]
fn more_runs_than_a_mount_has_layers_keep_what_each_of_them_wrote() {
    let world = warm();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    for number in 0..12 {
        let script = format!("echo {number} > ~/.cargo/registry/by-{number}");
        let run = inside(&world, &[], &script);
        assert!(!run.assert_code(0).err().contains("not kept"), "{}", run.err());
    }
    // One that removes what is in a layer, and on the host. It sees what fits into a mount.
    let script = "cd ~/.cargo/registry; rm warm by-0; ls; echo x > by-2";
    let seen = inside(&world, &[], script);
    let eight: String = (1..8).map(|number| format!("by-{number}\n")).collect();
    assert_eq!(seen.assert_code(0).out(), eight);
    let project = fs::read_dir(store(&world)).unwrap().flatten().map(|entry| entry.path());
    let project = project.filter(|path| path.join("backlog").exists()).last().unwrap();
    assert_eq!(fs::read_dir(project.join("layers")).unwrap().count(), 8);
    // What waits is one layer, however many runs there were.
    assert_eq!(fs::read_dir(project.join("backlog")).unwrap().count(), 1);
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    let seen = inside(&world, &[], "cd ~/.cargo/registry; ls | sort -V | tr '\\n' ' '; cat by-2");
    let all: String = (1..12).map(|number| format!("by-{number} ")).collect();
    assert_eq!(seen.assert_code(0).out(), format!("{all}x\n"));
    assert!(!project.join("backlog").exists());
    assert!(world.home().join(".cargo/registry/warm").exists());
}

/// Proves: FS-10 size
#[test]
fn what_is_not_kept_for_want_of_room_is_said_and_recorded() {
    let world = warm();
    world.write("home/.config/palisade/policy.yaml", "version: 1\nfilesystem:\n  cacheSize: 2M\n");
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let write =
        |number: usize| format!("head -c 300000 /dev/urandom > ~/.cargo/registry/large-{number}");
    for number in 0..8 {
        let run = inside(&world, &[], &write(number));
        assert!(!run.assert_code(0).err().contains("not kept"), "{}", run.err());
    }
    let run = inside(&world, &[], &write(8));
    assert!(run.assert_code(0).err().contains("written to caches is not kept"), "{}", run.err());
    assert!(run.err().contains("filesystem.cacheSize"), "{}", run.err());
    let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl")).unwrap();
    assert!(log.contains("\"CACHE_WRITES_LOST\""));
    sandbox(&world, &["audit", "verify"]).assert_code(0);
}
