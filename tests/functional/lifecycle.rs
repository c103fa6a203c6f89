//! A run from its start to its end, and that nothing of it is left (LIFE-1, FS-3, PROC-1, LIFE-4).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Running, World, am_root, landlock_abi};
use rustix::process::Signal;

use crate::inside::{below, eventually, inside, lives, tree};

/// A child that has left its parent, its session and its terminal.
const DETACHED: &str = "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' \
                        >/dev/null 2>&1 </dev/null &);";

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

/// Everything below the world and in the shared directories that could be ours.
fn traces(world: &World) -> Vec<String> {
    let shared = ["/tmp", "/var/tmp", "/dev/shm", "/run"].into_iter().flat_map(|directory| {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
    });
    let mut found = tree(world.path());
    let ours = ["sandbox-", "palisade-overlay", "palisade-root", "palisade-run"];
    found.extend(
        shared
            .map(|path| path.display().to_string())
            .filter(|path| ours.iter().any(|name| path.contains(name))),
    );
    found
}

/// Starts a command that leaves a detached child behind, and returns when both are there.
fn started(world: &World, flags: &[&str], then: &str) -> (Running, Vec<u32>) {
    let script = format!("{DETACHED} echo ready; {then}");
    let run = world.sandbox_run(flags, ["sh", "-c", &script]).keep_stdin_open().spawn();
    run.wait_for_stdout("ready");
    eventually("the detached child", || below(&run).len() >= 3);
    let processes = below(&run);
    (run, processes)
}

/// Proves: PROC-1 dies-together, FS-3 removed
#[test]
fn nothing_is_left_of_a_run_that_ended() {
    let world = World::new();
    world.write("home/settings/file", "");
    // The state directory comes with the first run and stays, and what runs are found by with the first that lasts.
    inside(&world, &[], "sleep 0.3").assert_code(0);
    for flags in [&["--overlay", "~/settings"][..], &["--level", "1"]] {
        let before = (mounts(), traces(&world));
        let (mut run, processes) = started(&world, flags, "read go; exit 3");
        run.send(b"go\n");
        run.wait().assert_code(3);
        eventually("all processes gone", || !processes.iter().any(|pid| lives(*pid)));
        assert_eq!(mounts(), before.0);
        let left: Vec<_> =
            traces(&world).into_iter().filter(|path| !before.1.contains(path)).collect();
        assert_eq!(left, [""; 0]);
    }
}

/// Proves: FS-3 removed-after-kill, LIFE-4 crash, PROC-1 dies-together
#[test]
fn nothing_is_left_when_the_supervisor_is_killed() {
    let world = World::new();
    world.write("home/settings/file", "");
    inside(&world, &[], "sleep 0.3").assert_code(0);
    for flags in [&["--overlay", "~/settings"][..], &["--level", "1"]] {
        let before = (mounts(), traces(&world));
        let (run, processes) = started(&world, flags, "sleep 1000");
        run.signal(Signal::KILL);
        run.wait().assert_code(137);
        eventually("all processes gone", || !processes.iter().any(|pid| lives(*pid)));
        assert_eq!(mounts(), before.0);
        // Files of runs that nobody stands behind any more are removed by who looks for runs; one that is still
        // empty a little later, for somebody could be about to write it.
        eventually("nothing left", || {
            world.sandbox(["top", "--json"]).run().assert_code(0);
            traces(&world).into_iter().all(|path| before.1.contains(&path))
        });
        // What the killed run had written to the log does not spoil it.
        world.sandbox(["audit", "verify"]).run().assert_code(0);
    }
}

/// Who of a world's runs lives: ours carry its path among their words, and so does the command. A
/// command line, unlike the rest of /proc, can be read of a process that is closed to inspection.
fn alive(world: &World) -> Vec<String> {
    let mark = world.path().display().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.contains(&mark))
        .collect()
}

/// Set-up takes a few milliseconds, each with other helpers and half-made mounts.
///
/// Proves: FS-3 removed-after-kill, LIFE-4 crash
#[test]
fn nothing_is_left_when_the_supervisor_is_killed_during_set_up() {
    const RUNS: u32 = 100;
    const LATEST_KILL: Duration = Duration::from_millis(8);
    // Has no divisor in common with the number of runs: so every moment comes once, in no order.
    const STRIDE: u32 = 61;
    let world = World::new();
    world.write("home/settings/file", "");
    inside(&world, &[], "sleep 0.3").assert_code(0);
    let before = (mounts(), traces(&world));
    let mark = world.path().display().to_string();
    for run in 0..RUNS {
        let moment = LATEST_KILL * (run * STRIDE % RUNS) / RUNS;
        let flags = if run % 2 == 0 { &[][..] } else { &["--overlay", "~/settings"] };
        let script = "while :; do sleep 1; done";
        let started = world.sandbox_run(flags, ["sh", "-c", script, &mark]).spawn();
        std::thread::sleep(moment);
        started.signal(Signal::KILL);
        // Also fails where somebody still holds the caller's streams.
        started.wait().assert_code(137);
        eventually(&format!("nobody left of a run killed after {moment:?}"), || {
            alive(&world).is_empty()
        });
    }
    assert_eq!(mounts(), before.0);
    world.sandbox(["top", "--json"]).run().assert_code(0);
    let left: Vec<_> = traces(&world).into_iter().filter(|path| !before.1.contains(path)).collect();
    assert_eq!(left, [""; 0]);
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: PROC-1 reaping-init
#[test]
fn orphans_are_reaped_while_the_command_runs() {
    let world = World::new();
    let script = "for i in 1 2 3 4 5; do (sleep 0 &); done; \
                  n=0; while [ $n -lt 500 ]; do \
                  z=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ') ; \
                  [ $z = 0 ] && echo clean && exit; n=$((n + 1)); sleep 0.01; done; echo zombies: $z";
    assert_eq!(inside(&world, &[], script).out(), "clean\n");
}

/// Proves: PROC-1 reaping-init
#[test]
fn ten_thousand_orphans_leave_no_zombie_while_the_command_runs() {
    let world = World::new();
    // A child that forks and ends leaves its own children to pid 1.
    let script = r#"
        sub zombies { my $n = 0; for (glob "/proc/[0-9]*/stat") {
            open(my $f, "<", $_) or next; my $l = <$f> // ""; $n++ if $l =~ /\) Z /; } $n }
        my $most = 0;
        for my $i (1 .. 1_000) {
            my $child = fork() // die "fork: $!";
            if (!$child) { for (1 .. 10) { fork() // die "fork: $!" or POSIX::_exit(0) } POSIX::_exit(0) }
            waitpid($child, 0);
            die "a child could not fork" if $?;
            if ($i % 100 == 0) { my $n = zombies(); $most = $n if $n > $most }
        }
        for (1 .. 1000) { last if !zombies(); select(undef, undef, undef, 0.01) }
        print "left: ", zombies(), ", most: ", $most < 1000 ? "few" : $most, "\n";"#;
    let perl = ["/usr/bin/perl", "-MPOSIX", "-e", script];
    let output = world.sandbox_run([""; 0], perl).deadline(Duration::from_secs(180)).run();
    assert_eq!(output.out(), "left: 0, most: few\n", "{}", output.err());
}

/// Proves: LIFE-3 own-exit-codes
#[test]
fn ways_to_end_have_their_codes() {
    let world = World::new();
    inside(&world, &[], "exit 0").assert_code(0);
    inside(&world, &[], "exit 255").assert_code(255);
    inside(&world, &[], "kill -KILL $$").assert_code(137);
    inside(&world, &[], "kill -TERM $$").assert_code(143);
    inside(&world, &["--timeout", "200ms"], "sleep 60").assert_code(124);
    world.sandbox_run([""; 0], ["no-such-program"]).run().assert_code(127);
    world.sandbox_run([""; 0], ["/etc/passwd"]).run().assert_code(126);
}

/// A name with the byte 0x1f in it was reported as a command that had completed with 125.
///
/// Proves: LIFE-3 own-exit-codes
#[test]
fn a_command_that_is_not_there_ends_with_127_whatever_bytes_its_name_has() {
    let world = World::new();
    let every_byte: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    for name in [&b"no\x1fsuch\x1fprogram"[..], b"\x1f", b"/no/\x1e\n/program", &every_byte[..200]]
    {
        let output = world.sandbox_run([""; 0], [OsStr::from_bytes(name)]).run();
        output.assert_code(127);
        assert!(output.err().starts_with("sandbox: starting the command"), "{}", output.err());
        assert!(output.err().contains("ENOENT"), "{}", output.err());
    }
}

/// Proves: POL-1 level-2, POL-1 default-level
#[test]
fn a_plain_run_has_every_namespace() {
    let world = World::new();
    let own = namespaces_of(Path::new("/proc/self/ns"));
    let output = inside(&world, &[], "readlink /proc/self/ns/*");
    output.assert_code(0);
    for namespace in ["mnt", "pid", "net", "uts", "ipc", "cgroup", "user"] {
        let name = format!("{namespace}:[");
        let inside_it =
            output.out().lines().find(|line| line.starts_with(&name)).unwrap().to_owned();
        assert!(!own.contains(&inside_it), "{namespace} is the host's");
    }
    assert_eq!(output.report.unwrap()["walls"]["level"], "LEVEL_2");
}

/// Proves: POL-1 level-1
#[test]
fn level_1_has_its_own_processes_and_files_and_the_hosts_name() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    let own = namespaces_of(Path::new("/proc/self/ns"));
    let script = "readlink /proc/self/ns/*; uname -n; cat ~/.ssh/id 2>/dev/null; \
                  touch /usr/x 2>/dev/null && echo wrote; grep Seccomp: /proc/self/status; \
                  ls /proc/sys/kernel/shmmax";
    let output = inside(&world, &["--level", "1"], script);
    output.assert_code(0);
    let is_own = |namespace: &str| {
        let name = format!("{namespace}:[");
        output
            .out()
            .lines()
            .find(|line| line.starts_with(&name))
            .is_some_and(|line| !own.contains(&line.to_owned()))
    };
    for namespace in ["mnt", "pid", "net", "user"] {
        assert!(is_own(namespace), "{namespace} is the host's");
    }
    for namespace in ["uts", "ipc"] {
        assert!(!is_own(namespace), "{namespace} is not the host's");
    }
    let host_name = world.bare("uname").args(["-n"]).run().out().into_owned();
    assert!(output.out().contains(&format!("\n{host_name}Seccomp:\t2\n")), "{}", output.out());
}

/// Proves: POL-1 level-0-approval, POL-1 level-0-recorded
#[test]
fn level_0_needs_a_reason_and_keeps_it() {
    let world = World::new();
    let refused = inside(&world, &["--level", "0"], "touch ran");
    refused.assert_code(126);
    assert!(refused.err().contains("--approve-no-isolation REASON"), "{}", refused.err());
    assert!(!world.project().join("ran").exists());

    world.write("home/.ssh/id", "top secret\n");
    let flags = ["--level", "0", "--approve-no-isolation", "measuring the difference"];
    let output = inside(&world, &flags, "cat ~/.ssh/id; id -u; exit 4");
    output.assert_code(4);
    let own = rustix::process::getuid().as_raw();
    assert_eq!(output.out(), format!("top secret\n{own}\n"));
    let report = output.report.unwrap();
    assert_eq!(report["approvals"][0]["reason"], "measuring the difference");
    let log = world.sandbox(["audit", "show", "--json"]).run();
    assert!(log.out().lines().any(|line| {
        line.contains("APPROVAL_RECORDED") && line.contains("measuring the difference")
    }));
    let both = inside(&world, &["--level", "0", "--rw", "."], "true");
    both.assert_code(125);
}

/// Proves: POL-1 level-1-host-network, NET-1 host-approved, NET-1 none-default, NET-8 approval
#[test]
fn the_hosts_network_is_recorded_as_an_approval() {
    let world = World::new();
    let own = fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    for level in ["1", "2"] {
        let flags = ["--level", level, "--network", "host"];
        let output = inside(&world, &flags, "readlink /proc/self/ns/net");
        assert_eq!(output.out().trim(), own, "{}", output.err());
        assert!(output.err().contains("host's network"), "{}", output.err());
        assert_eq!(output.report.unwrap()["approvals"][0]["what"], "network:host");
    }
    assert_ne!(inside(&world, &[], "readlink /proc/self/ns/net").out().trim(), own);
    for (word, code) in [("host", 126), ("nat", 126), ("enabled", 0)] {
        let inherited = world.sandbox_run([""; 0], ["true"]).env("SANDBOX_NETWORK", word).run();
        inherited.assert_code(code);
    }
    let log = world.sandbox(["audit", "show", "--json"]).run();
    let recorded = |what: &str| log.out().matches(&format!("\"what\":\"{what}\"")).count();
    assert_eq!(recorded("network:host"), 2, "{}", log.out());
    assert_eq!(recorded("network:proxy"), 1, "{}", log.out());
}

/// Proves: PROC-4 time
#[test]
fn a_time_offset_moves_the_clocks_that_count_from_boot() {
    let world = World::new();
    let day = 86_400.0;
    let uptime = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    let outside = uptime(&fs::read_to_string("/proc/uptime").unwrap());
    let script = "cat /proc/uptime; /usr/bin/python3 -c 'import time; print(time.monotonic())'";
    let output = inside(&world, &["--time-offset", "86400"], script);
    output.assert_code(0);
    for line in output.out().lines() {
        let shift = uptime(line) - outside;
        assert!((day..day + 60.0).contains(&shift), "{line} outside {outside}");
    }
    inside(&world, &["--time-offset", "tomorrow"], "true").assert_code(125);
}

fn namespaces_of(directory: &Path) -> Vec<String> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
        .collect()
}

/// Without a pid namespace nobody's death takes the others along.
///
/// Proves: RES-2 wall-time, PROC-3 grace, PROC-1 dies-together
#[test]
fn who_is_ended_without_a_namespace_is_ended_with_all_its_processes() {
    let none = &["--level", "0", "--approve-no-isolation", "a test"][..];
    let landlock_alone = &["--level", "1", "--no-userns"][..];
    let levels = [Some(none), (!am_root() && landlock_abi() > 0).then_some(landlock_alone)];
    for level in levels.into_iter().flatten() {
        let world = World::new();
        let flags = [level, &["--timeout", "1s", "--grace", "100ms"]].concat();
        // Deaf to the first signal, with a child and a grandchild whose parent is gone.
        let script = "trap '' TERM HUP; (sleep 1000 & echo $! >>pids); sleep 1000 & echo $! >>pids; \
                      echo $$ >>pids; while :; do sleep 1; done";
        inside(&world, &flags, script).assert_code(124);
        let pids = fs::read_to_string(world.project().join("pids")).unwrap();
        let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), 3);
        eventually("all of them are gone", || !pids.iter().any(|pid| lives(*pid)));
    }
}
