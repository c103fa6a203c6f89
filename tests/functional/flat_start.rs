//! What a start costs does not depend on how much there is on the host: counted in system calls, never in time.

use std::fs;
use std::path::Path;

use palisade_testkit::{World, am_root};

use crate::inside::{host_script, private_mounts};

/// More calls than this with many than with few of something is growth, and not chance.
const CHANCE: usize = 24;

/// Calls that name a path, list a directory or make a mount.
const TRACED: &str = "trace=%file,getdents64,open_tree,move_mount,mount_setattr,fsconfig";
/// By these the gate's file system answers.
const ANSWERS: &str = "trace=execve,writev";

/// Runs `true` under strace(1); `$FLAGS` are the sandbox's.
fn traced(calls: &str) -> String {
    format!(
        "strace -f -qq -e signal=none -e {calls} -o \"$TRACE\" \"$PALISADE\" run $FLAGS -- true"
    )
}

/// Of the sandbox and all its processes, before the command is executed.
fn calls_in(trace: &str) -> usize {
    let calls: Vec<&str> = trace.lines().filter(|line| !line.contains("resumed>")).collect();
    let is_command = |line: &&str| line.contains("execve(\"") && line.contains("/true\"");
    let command = calls.iter().position(is_command);
    command.unwrap_or_else(|| panic!("the command never ran:\n{trace}"))
}

fn trace_of(world: &World, calls: &str, flags: &str) -> String {
    let trace = world.path().join("trace");
    let flags = flags.replace('~', &world.home().display().to_string());
    let run = host_script(world, &traced(calls)).env("FLAGS", flags).env("TRACE", &trace).run();
    run.assert_code(0);
    fs::read_to_string(trace).unwrap()
}

fn calls(world: &World, flags: &str) -> usize {
    calls_in(&trace_of(world, TRACED, flags))
}

/// Requests to the gate's file system cost two changes of process each.
/// Proves: GATE-9 native
#[test]
fn names_that_are_mounted_on_at_the_top_of_the_home_are_looked_up_together() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: no /dev/fuse");
        return;
    }
    let world = World::new();
    let granted = |count: usize| {
        let names = (0..count).map(|number| format!("granted-{number}"));
        names.map(|name| format!("--ro ~/{name} ")).collect::<String>()
    };
    for number in 0..12 {
        world.write(format!("home/granted-{number}/file"), "text\n");
    }
    let answers = |flags: &str| {
        let trace = trace_of(&world, ANSWERS, flags);
        let lines = trace.lines().take(calls_in(&trace));
        lines.filter(|line| line.contains("writev(")).count()
    };
    let (few, many) = (answers(&granted(2)), answers(&granted(12)));
    assert!(many < few + 5, "{few} answers with 2 granted directories, {many} with 12");
}

/// A home with so many projects, all with secrets in them, and so many files in the one that is worked in.
fn developer(projects: usize, files: usize) -> World {
    let world = World::new();
    for number in 0..projects {
        for name in [".env", "src/main.rs", "node_modules/left-pad/index.js", ".git/HEAD"] {
            world.write(format!("home/project-{number}/{name}"), "text\n");
        }
        world.write(format!("home/.config/application-{number}/settings"), "text\n");
    }
    for number in 0..files {
        world.write_in_project(format!("src/{}/{number}", number % 8), "text\n");
    }
    world.write("home/.ssh/id", "key\n");
    world.write("home/.config/gh/hosts.yml", "token\n");
    world
}

/// Proves: GATE-7 flat-start, FS-2 flat-start, FS-6 flat-start
#[test]
fn a_start_makes_as_many_calls_with_many_files_as_with_few() {
    let (few, many) = (developer(3, 400), developer(100, 4000));
    for flags in ["", "--static", "--overlay .", "--disk 1G --best-effort-limits"] {
        let (few, many) = (calls(&few, flags), calls(&many, flags));
        assert!(many <= few + CHANCE, "{flags}: {few} calls with few files, {many} with many");
    }
}

/// A small directory is taken apart, a large one is an overlay in which every listed name is made once.
/// Proves: FS-2 flat-start
#[test]
fn a_home_that_is_granted_whole_costs_the_same_however_large_it_is() {
    let (few, many, more) = (developer(3, 10), developer(100, 10), developer(400, 10));
    for flags in ["--static --ro ~", "--ro ~"] {
        let [few, many, more] = [&few, &many, &more].map(|world| calls(world, flags));
        assert!(more <= many + CHANCE, "{flags}: {many} calls, and {more} with four times as many");
        assert!(many <= few + 400, "{flags}: {few} calls taken apart, {many} as an overlay");
    }
}

/// Proves: GATE-7 flat-start
#[test]
fn a_static_start_makes_no_more_calls_than_a_dynamic_one() {
    let world = developer(3, 10);
    let (dynamic, fixed) = (calls(&world, ""), calls(&world, "--static"));
    // A mount for each directory right below the root, and what is listed of /var.
    assert!(fixed <= dynamic + 120, "{dynamic} calls in dynamic mode, {fixed} in static mode");
}

/// Proves: GATE-7 flat-start, FS-2 flat-start
#[test]
fn a_start_makes_as_many_calls_with_many_accounts_and_mounts_as_with_few() {
    if !am_root() {
        eprintln!("skipped: only root can mount on the host");
        return;
    }
    let world = World::new();
    world.write("home/.ssh/id", "key\n");
    let counted = |number: usize, flags: &str| {
        let trace = world.path().join("trace");
        let script = format!(
            r#"
            cp /etc/passwd ../../passwd
            for i in $(seq {number}); do
                echo "person$i:x:$((2000 + i)):$((2000 + i))::/home/person$i:/bin/sh" >> ../../passwd
                mkdir -p ../../outside/mounted/$i
                mount --bind ~/.ssh ../../outside/mounted/$i
            done
            mount --bind ../../passwd /etc/passwd
            {}
            "#,
            traced(TRACED)
        );
        let run = private_mounts(&world, &script).env("FLAGS", flags).env("TRACE", &trace);
        run.run().assert_code(0);
        calls_in(&fs::read_to_string(trace).unwrap())
    };
    for flags in ["", "--static"] {
        let (few, many) = (counted(8, flags), counted(400, flags));
        assert!(many <= few + CHANCE, "{flags}: {few} calls with few, {many} with many");
    }
}
