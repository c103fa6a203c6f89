//! The root the command lives in: what is mounted there, and what is its own (FS-3, FS-7).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use palisade_testkit::{World, am_root};

use crate::inside::{inside, private_mounts};

/// Proves: FS-3 approved-mounts, FS-3 pivot-root
#[test]
fn only_planned_mounts_are_there_and_the_old_root_is_not() {
    let world = World::new();
    let table = inside(&world, &[], "cat /proc/self/mountinfo");
    let plan = world.sandbox(["plan", "--json", "--", "true"]).run();
    plan.assert_code(0);
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    let planned: BTreeSet<PathBuf> = plan["confinement"]["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| PathBuf::from(step["target"].as_str().unwrap()))
        .collect();
    assert!(planned.len() > 10, "{planned:?}");
    let below_host_mounts = host_mount_points();
    let mut seen_root = false;
    for line in table.out().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let place = Path::new(fields[4]);
        if place == Path::new("/") {
            // A file system of the sandbox's own, and nothing of the host below or beside it.
            let own = [" - tmpfs ", " - fuse.palisade "];
            assert!(own.iter().any(|kind| line.contains(kind)), "{line}");
            assert!(!seen_root, "two roots: {}", table.out());
            seen_root = true;
        } else {
            let came_along = below_host_mounts.contains(place)
                && place.ancestors().any(|above| planned.contains(above));
            assert!(planned.contains(place) || came_along, "not planned: {line}");
        }
    }
    assert!(seen_root, "{}", table.out());
}

fn host_mount_points() -> BTreeSet<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect()
}

/// Proves: FS-3 no-propagation
#[test]
fn what_root_mounts_meanwhile_does_not_show_inside() {
    if !am_root() {
        eprintln!("skipped: only root can mount on the host");
        return;
    }
    let world = World::new();
    fs::create_dir(world.project().join("place")).unwrap();
    let script = r#"
        mount --bind . . && mount --make-shared .
        cd "$PWD"
        mkfifo ready go
        timeout 50 "$PALISADE" run -- sh -c 'echo > ready; read x < go; ls place' &
        read x < ready
        mount -t tmpfs none place && touch place/from-outside && ls place
        echo > go
        wait $!
    "#;
    let output = private_mounts(&world, script).run();
    output.assert_code(0);
    assert_eq!(output.out(), "from-outside\n", "{}", output.err());
}

/// Proves: FS-7 private-proc, PROC-1 pid-namespace
#[test]
fn proc_shows_own_processes_only() {
    let world = World::new();
    let script = "cd /proc; for entry in [0-9]*; do cat $entry/comm 2>/dev/null; done; \
                  test -d /proc/$1 && echo host-process";
    let supervisor_like = std::process::id().to_string();
    let flags = [""; 0];
    let output = world.sandbox_run(flags, ["sh", "-c", script, "sh", &supervisor_like]).run();
    let mut names: Vec<_> = output.out().lines().map(str::to_owned).collect();
    names.retain(|name| name != "sh" && name != "cat");
    assert!(names.len() <= 1, "{names:?}");
    let first = inside(&world, &[], "cat /proc/self/stat | cut -d' ' -f4; ls -d /proc/1");
    assert!(first.out().ends_with("/proc/1\n"), "{}", first.out());
}

/// Proves: FS-7 minimal-dev, FS-7 devpts
#[test]
fn dev_holds_what_programs_need_and_no_more() {
    let world = World::new();
    let output = inside(&world, &[], "ls -A /dev; ls -A /dev/pts");
    output.assert_code(0);
    let expected =
        "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero ptmx";
    assert_eq!(output.out().split_whitespace().collect::<Vec<_>>().join(" "), expected);
    let works = "echo x > /dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; \
                 (echo x > /dev/full) 2>/dev/null || echo full; echo out > /dev/stdout";
    assert_eq!(inside(&world, &[], works).out(), "4\n4\nfull\nout\n");
}

/// Proves: FS-7 devpts
#[test]
fn a_program_can_have_terminals_of_its_own() {
    let world = World::new();
    let program = "import os; m, s = os.openpty(); print(os.ttyname(s)); os.write(m, b'x\\n'); \
                   print(os.read(s, 2))";
    let output = world.sandbox_run([""; 0], ["/usr/bin/python3", "-c", program]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "/dev/pts/0\nb'x\\n'\n");
}

/// Proves: FS-7 older-names
#[test]
fn the_older_names_of_run_lead_to_it() {
    let older = [("/var/run", "/run"), ("/var/lock", "/run/lock")];
    let world = World::new();
    for (name, place) in older {
        if !fs::canonicalize(name).is_ok_and(|found| found == Path::new(place)) {
            println!("not tried: {name} is no link to {place} here");
            continue;
        }
        let script = format!("echo own >{name}/made.pid && cat {place}/made.pid");
        for flags in [&[][..], &["--static"], &["--view", "minimal"]] {
            let output = inside(&world, flags, &script);
            assert_eq!(output.out(), "own\n", "{flags:?}: {}", output.err());
        }
        assert!(!Path::new(place).join("made.pid").exists(), "it is the host's");
    }
}

/// Proves: FS-7 private-tmp, FS-7 private-var-tmp, FS-7 private-run, FS-7 private-shm
#[test]
fn temporary_directories_are_empty_writable_and_forgotten() {
    let world = World::new();
    let name = format!("palisade-test-{}", std::process::id());
    let mut shared = vec!["/tmp", "/var/tmp", "/dev/shm"];
    for directory in &shared {
        fs::write(Path::new(directory).join(&name), "").unwrap();
    }
    shared.push("/run");
    let script = format!(
        "for d in {}; do test -e $d/{name} && echo host; echo x > $d/{name}-inside && \
         cat $d/{name}-inside; done; stat -c %a /tmp /var/tmp /dev/shm",
        shared.join(" ")
    );
    let output = inside(&world, &[], &script);
    for directory in ["/tmp", "/var/tmp", "/dev/shm"] {
        fs::remove_file(Path::new(directory).join(&name)).unwrap();
    }
    output.assert_code(0);
    // The project may lie below one of them, so that they need not be empty.
    assert_eq!(output.out(), "x\nx\nx\nx\n1777\n1777\n1777\n");
    for directory in shared {
        assert!(!Path::new(directory).join(format!("{name}-inside")).exists(), "{directory}");
    }
}

/// Proves: FS-7 tmp-size, FS-7 var-tmp-size
#[test]
fn temporary_directories_of_tools_have_a_size() {
    let world = World::new();
    let script = "for d in /tmp /var/tmp; do echo $(($(stat -f -c '%b * %S' $d) / 1048576)); done; \
                  head -c 60m /dev/zero > /var/tmp/large || echo full";
    let output = inside(&world, &["--preset", "strict"], script);
    assert_eq!(output.out(), "100\n50\nfull\n", "{}", output.err());
}

/// Proves: FS-7 sys-read-only, FS-7 proc-sys-read-only
#[test]
fn kernel_settings_cannot_be_written() {
    let world = World::new();
    let script = "find /sys -mindepth 1 -maxdepth 3; nproc > /dev/null && echo nproc; \
                  for f in /proc/sys/kernel/hostname /proc/sys/kernel/ns_last_pid \
                  /proc/sysrq-trigger /sys/devices/system/cpu/cpu0/online \
                  /sys/kernel/mm/transparent_hugepage/enabled; do \
                  (echo 1 > $f) 2>/dev/null && echo wrote $f; done; \
                  cat /proc/kcore /proc/keys 2>/dev/null | head -c 1 | wc -c";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    let text = output.out();
    let (of_sys, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("/sys"));
    assert_eq!(rest, ["nproc", "0"]);
    // What the host has not is not there inside either.
    let mut known: Vec<&str> = [
        "/sys/devices",
        "/sys/devices/system",
        "/sys/devices/system/cpu",
        "/sys/devices/system/node",
        "/sys/kernel",
        "/sys/kernel/mm",
        "/sys/kernel/mm/transparent_hugepage",
    ]
    .into_iter()
    .filter(|path| of_sys.contains(path) || *path == "/sys/devices/system/cpu")
    .collect();
    known.sort_unstable();
    let mut found = of_sys;
    found.sort_unstable();
    assert_eq!(found, known);
}

/// Proves: FS-7 hostname, PROC-4 uts
#[test]
fn the_host_name_is_sandbox_or_the_chosen_one() {
    let world = World::new();
    assert_eq!(inside(&world, &[], "uname -n").out(), "sandbox\n");
    assert_eq!(inside(&world, &["--hostname", "elsewhere"], "uname -n").out(), "elsewhere\n");
    let level_1 = inside(&world, &["--level", "1", "--hostname", "elsewhere"], "uname -n");
    level_1.assert_code(125);
    assert!(level_1.err().contains("host name"), "{}", level_1.err());
}

/// Proves: FS-3 strange-paths
#[test]
fn strange_names_are_taken_literally() {
    let world = World::new();
    let names = ["--rw", "a,b:c=d", "two  blanks\t", "back\\slash", "lowerdir=x", "ümläut", "-"];
    let mut flags = Vec::new();
    for name in names {
        world.write(Path::new("outside").join(name).join("file"), format!("{name}\n"));
        let place = world.outside().join(name).display().to_string();
        let kind = if name.contains('=') { "--overlay" } else { "--ro" };
        flags.push(format!("{kind}={place}"));
    }
    let script =
        format!("cd '{}'; for d in *; do cat \"./$d/file\"; done", world.outside().display());
    let output = world.sandbox_run(&flags, ["sh", "-c", &script]).run();
    output.assert_code(0);
    let mut found: Vec<_> = output.out().lines().map(str::to_owned).collect();
    let mut expected: Vec<_> = names.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
