//! Programs that a policy does not allow, started by a way around (K07, K08, K14).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use palisade_testkit::{Attack, Demonstration, World};

use crate::host::{probe, strings};
use crate::kernel::loader;

const BUSYBOX: &str = "/bin/busybox";

/// Flags for a policy with this process section.
fn policy(world: &World, process: &str) -> Vec<String> {
    let file = world.write("policy.yaml", format!("process: {process}\n"));
    vec!["--policy".into(), file.display().to_string()]
}

fn only_the_probe(world: &World) -> Vec<String> {
    policy(world, &format!("{{ allowedExecutables: ['{}'] }}", world.probe()))
}

/// What ran from memory reads a file of the project.
fn from_memory(world: &World) -> Vec<String> {
    world.write_in_project("note", "it ran");
    probe(world, &["run-from-memory", "read", "note"])
}

/// Landlock lets everything on an internal mount pass, and so the filter has to hold it.
///
/// Proves: PROC-2 executables
#[test]
fn k07_a_program_in_memory_is_on_no_list() {
    Attack::new("K07", "run a program from memory though only listed ones may run")
        .held_by(&["seccomp"])
        .flags(only_the_probe)
        .command(from_memory)
        .succeeded(|_, output| output.out().contains("it ran"))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

/// Proves: PROC-2 no-exec
#[test]
fn k07_no_program_in_memory_runs_where_exec_is_forbidden() {
    Attack::new("K07", "run a program from memory though no program may run any more")
        .held_by(&["seccomp"])
        .flags(|world| policy(world, "{ allowExec: false }"))
        .command(from_memory)
        .succeeded(|_, output| output.out().contains("it ran"))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

/// Proves: PROC-2 executables
#[test]
fn k08_a_program_that_is_not_listed_does_not_start() {
    Attack::new("K08", "run a copy of a program that is not listed")
        .held_by(&["landlock"])
        .flags(|world| policy(world, "{ allowedExecutables: [sh, cp] }"))
        .command(|_| strings(&["sh", "-c", "cp /bin/echo ~/copy; ~/copy it ran || echo held"]))
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}

/// Where nothing listed needs the loader, it is a program like any other.
///
/// Proves: PROC-2 executables
#[test]
fn k08_a_loader_that_nothing_listed_needs_starts_nothing() {
    Attack::new("K08", "run a program by its loader, where only static ones are listed")
        .needs("a loader at its usual place and a static busybox", can_do_without_loader())
        .held_by(&["landlock"])
        .flags(|world| policy(world, &format!("{{ allowedExecutables: [{BUSYBOX}] }}")))
        .command(|_| {
            let script = r#""$@" || echo held"#;
            let loader = loader().unwrap_or_default();
            strings(&[BUSYBOX, "sh", "-c", script, "loader", loader, "/bin/echo", "it ran"])
        })
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}

fn can_do_without_loader() -> bool {
    let is_static = || {
        let world = World::new();
        let list = ["plan", "--json"].map(str::to_owned).into_iter();
        let words = list.chain(policy(&world, &format!("{{ allowedExecutables: [{BUSYBOX}] }}")));
        let plan = world.sandbox(words.chain(strings(&["--", BUSYBOX]))).run();
        plan.code() == 0 && !plan.out().contains("\"needed\"")
    };
    loader().is_some() && is_static()
}

/// What the kernel cannot tell apart is called advice, with the way around it.
///
/// Proves: PROC-2 honest-backing
#[test]
fn k08_a_list_that_a_loader_gets_around_is_called_advice() {
    let Some(loader) = loader() else { return };
    let shown = Demonstration::of(
        "K08",
        "run a program that is not listed by the loader or interpreter of one that is",
        "the list is labelled as advice, and plan and report name both ways around it",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    world.write_in_project("script", "echo a script ran");
    let both = format!("{loader} /bin/echo a program ran; sh ./script");
    let ran = "a program ran\na script ran\n";
    assert_eq!(world.bare("sh").args(["-c", &both]).run().out(), ran);
    shown.worked_bare();
    let flags = policy(&world, "{ allowedExecutables: [sh] }");
    let output = world.sandbox_run(flags, ["sh", "-c", &both]).run();
    // If the kernel learns to hold it, the label has to change.
    assert_eq!(output.out(), ran, "{}", output.err());
    let report = output.report.as_ref().unwrap();
    let promises = report["promises"].as_array().unwrap();
    let listed = promises.iter().find(|promise| {
        promise["what"].as_str().unwrap().ends_with("listed programs are executed")
    });
    let listed = listed.unwrap();
    assert_eq!(listed["planned"], "advisory", "{listed}");
    let remark = report["relaxations"].to_string();
    for way in ["any program can be started by", "any script can be run by"] {
        assert!(remark.contains(way), "{remark}");
    }
    shown.held();
}

fn whole_policy(world: &World, text: &str) -> Vec<String> {
    let file = world.write("policy.yaml", text);
    vec!["--policy".into(), file.display().to_string()]
}

const NOTHING_WRITTEN: &str = "filesystem: { executeWritten: false }\n";

/// A program is copied there and started.
fn copy_in(place: &str) -> Vec<String> {
    let script = format!("cp /bin/echo {place}/copy && {place}/copy it ran || echo held");
    strings(&["sh", "-c", &script])
}

/// Wherever the command can write: its private home, its own file systems, the project and caches.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn k14_what_the_command_wrote_is_not_executed_where_the_policy_says_so() {
    for place in ["~", "/tmp", "/var/tmp", "/dev/shm", ".", "~/.cache/pip", "~/.cache/uv"] {
        Attack::new("K14", format!("run a program that was copied to {place}"))
            .held_by(&["noexec-mounts"])
            .prepare(|world| {
                world.write("home/.cache/pip/known", "");
                world.write("home/.cache/uv/known", "");
            })
            .flags(|world| whole_policy(world, NOTHING_WRITTEN))
            .command(move |_| copy_in(place))
            // Nothing is left behind on this machine.
            .bare_command(move |_| copy_in(if place.starts_with('/') { "~" } else { place }))
            .succeeded(|_, output| output.out() == "it ran\n")
            .contained(|_, output| output.out() == "held\n")
            .check();
    }
}

/// The kernel refuses to map it as code, so its loader gains nothing either.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn k14_the_loader_does_not_start_what_the_command_wrote() {
    Attack::new("K14", "run a program that was copied to the home directory by its loader")
        .needs("a loader at its usual place", loader().is_some())
        .held_by(&["noexec-mounts"])
        .flags(|world| whole_policy(world, NOTHING_WRITTEN))
        .command(|_| {
            let loader = loader().unwrap_or_default();
            let script = format!("cp /bin/echo ~/copy && {loader} ~/copy it ran || echo held");
            strings(&["sh", "-c", &script])
        })
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}

/// The probe itself may run: it is where programs are built.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn k14_a_program_in_memory_was_written_too() {
    Attack::new("K14", "run a program from memory though nothing that was written may run")
        .held_by(&["seccomp"])
        .flags(|world| {
            let text = "filesystem: { executeWritten: false, executableDirs: [target] }\n";
            whole_policy(world, text)
        })
        .command(|world| {
            let words = from_memory(world);
            let built = world.project().join("target/probe");
            fs::create_dir_all(built.parent().unwrap()).unwrap();
            fs::copy(&words[0], &built).unwrap();
            [vec![built.display().to_string()], words[1..].to_vec()].concat()
        })
        .succeeded(|_, output| output.out().contains("it ran"))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

/// Sealed against exec, a file in memory can still be mapped as code.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn k14_the_loader_starts_no_program_from_sealed_memory() {
    const SCRIPT: &str = "\
import os, sys
MFD_NOEXEC_SEAL = 8
try:
    program = os.memfd_create('program', MFD_NOEXEC_SEAL)
    os.write(program, open('/bin/echo', 'rb').read())
    os.set_inheritable(program, True)
    os.execv(sys.argv[1], [sys.argv[1], '/proc/self/fd/%d' % program, 'it', 'ran'])
except OSError:
    print('held')
";
    Attack::new("K14", "run a program from memory that is sealed against exec, by the loader")
        .needs("a loader at its usual place", loader().is_some())
        .held_by(&["seccomp"])
        .flags(|world| whole_policy(world, NOTHING_WRITTEN))
        .command(|_| strings(&["/usr/bin/python3", "-c", SCRIPT, loader().unwrap_or_default()]))
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}

/// As in the preset `cargo`: two layers, each of which suffices.
///
/// Proves: CARGO-1 no-executables, CARGO-1 executables
#[test]
fn k14_a_list_of_programs_is_a_second_layer() {
    Attack::new("K14", "run a copied program that is on no list and where nothing written may run")
        .held_by(&["noexec-mounts", "landlock"])
        .flags(|world| {
            let list = "process: { allowedExecutables: [sh, cp] }\n";
            whole_policy(world, &format!("{NOTHING_WRITTEN}{list}"))
        })
        .command(|_| copy_in("~"))
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}

/// A directory that is named is one that the kernel tells apart: what is moved out of it is not executed.
///
/// Proves: CARGO-1 no-executables
#[test]
fn k14_what_leaves_the_named_directory_does_not_run() {
    Attack::new(
        "K14",
        "run a program that was built in the one directory for that and moved out of it",
    )
    .held_by(&["noexec-mounts"])
    .flags(|world| {
        let text = "filesystem: { executeWritten: false, executableDirs: [target] }\n";
        whole_policy(world, text)
    })
    .prepare(|world| {
        world.write_in_project("target/kept", "");
    })
    .command(|_| {
        let script = "cp /bin/echo target/built && target/built first && mv target/built moved && \
                          ./moved it ran || echo held";
        strings(&["sh", "-c", script])
    })
    .succeeded(|_, output| output.out() == "first\nit ran\n")
    .contained(|_, output| output.out() == "first\nheld\n")
    .check();
}

/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn k14_a_planted_link_names_no_directory_to_execute_from() {
    let shown = Demonstration::of(
        "K14",
        "make the one directory to execute from a link to all others, for the next run",
        "such a directory is walked without links before anything starts, and refused",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let copy = copy_in(".");
    assert_eq!(world.bare(&copy[0]).args(&copy[1..]).run().out(), "it ran\n");
    shown.worked_bare();
    for points_to in ["..", "/", "../new"] {
        let plant = format!("rm -rf build && mkdir build && ln -s {points_to} build/out");
        world.sandbox_run([""; 0], ["sh", "-c", &plant]).run().assert_code(0);
        let text = "filesystem: { executeWritten: false, executableDirs: [build/out] }\n";
        let output = world.sandbox_run(whole_policy(&world, text), &copy).run();
        output.assert_code(126);
        assert!(output.err().contains("build/out, which"), "{points_to}: {}", output.err());
        assert!(!world.project().join("new").exists(), "{points_to}");
    }
    shown.held();
}

/// `PATH` may lead into the project, as direnv and npm have it.
///
/// Proves: PROC-2 executables
#[test]
fn k08_a_file_of_the_project_takes_no_name_of_the_list() {
    let bash = "/bin/bash";
    Attack::new("K08", "start an interpreter by a script with a listed name, in the project")
        .needs("a bash at its usual place", Path::new(bash).exists())
        .held_by(&["landlock"])
        .flags(|world| policy(world, "{ allowedExecutables: [sh, ar] }"))
        .prepare(move |world| {
            let script = world.write_in_project("bin/ar", format!("#!{bash}\n"));
            fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
        })
        .surroundings(|world| {
            let path = format!("PATH={}:/usr/bin:/bin", world.project().join("bin").display());
            strings(&["env", &path])
        })
        .command(move |_| strings(&["sh", "-c", &format!("{bash} -c 'echo it ran' || echo held")]))
        .succeeded(|_, output| output.out() == "it ran\n")
        .contained(|_, output| output.out() == "held\n")
        .check();
}
