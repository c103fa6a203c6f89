//! Programs that a policy does not allow, started by a way around (K07, K08).

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
