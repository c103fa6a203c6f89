//! What may be started: no further process, no further program, or only those on a list (PROC-2).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::{Output, World, am_root};
use serde_json::Value;

const NO_FORK: &str = "process: { allowFork: false }\n";
const NO_EXEC: &str = "process: { allowExec: false }\n";

fn under(world: &World, flags: &[&str], policy: &str, command: &[&str]) -> Output {
    let file = world.write("policy.yaml", policy).display().to_string();
    let flags = [&["--policy", &file], flags].concat();
    world.sandbox_run(flags, command).run()
}

/// The ways to be kept in that have a filter and are open to this caller.
fn levels() -> Vec<&'static [&'static str]> {
    let mut levels: Vec<&[&str]> = vec![&[], &["--level", "1"]];
    if !am_root() {
        levels.push(&["--level", "1", "--no-userns"]);
    }
    levels
}

/// What the report says of a promise about programs.
fn promise(output: &Output, what: &str) -> Value {
    let promises = &output.report.as_ref().unwrap()["promises"];
    let promises = promises.as_array().unwrap().iter();
    let mut of_programs = promises.filter(|promise| promise["id"] == "PROC-2");
    of_programs.find(|promise| promise["what"].as_str().unwrap().contains(what)).unwrap().clone()
}

fn script(world: &World, path: &str, content: &str) {
    let script = world.write_in_project(path, content);
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Proves: PROC-2 no-fork
#[test]
fn where_fork_is_forbidden_threads_still_start() {
    let program = "import os, threading\n\
                   thread = threading.Thread(target=lambda: print('a thread ran'))\n\
                   thread.start(); thread.join()\n\
                   try: os.fork()\nexcept OSError as error: print('fork:', error.errno)\n";
    for level in levels() {
        let world = World::new();
        let output = under(&world, level, NO_FORK, &["/usr/bin/python3", "-c", program]);
        output.assert_code(0);
        assert_eq!(output.out(), "a thread ran\nfork: 1\n", "{level:?}");
        let promise = promise(&output, "no new processes");
        assert_eq!(
            (&promise["planned"], &promise["layers"][0]),
            (&"held".into(), &"seccomp".into())
        );
    }
}

/// Proves: PROC-2 no-exec, POL-2 first-exec
#[test]
fn where_exec_is_forbidden_the_command_itself_starts_and_nothing_after_it() {
    for level in levels() {
        let world = World::new();
        let command = ["sh", "-c", "echo started; ls; echo $?; exec /bin/echo again"];
        let output = under(&world, level, NO_EXEC, &command);
        output.assert_code(126);
        assert_eq!(output.out(), "started\n126\n", "{level:?}");
        let report = output.report.as_ref().unwrap();
        let tried = report["refusedExecutions"].as_array().unwrap();
        let last = tried.iter().find(|tried| tried["path"] == "/bin/echo").unwrap();
        assert_eq!((&last["rule"], &last["call"]), (&"process.allowExec".into(), &"execve".into()));
        assert!(report.get("protectedWrites").is_none(), "{report}");
        let log = world.sandbox(["audit", "show", "--json"]).run();
        let logged = log.out().lines().any(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["event"] == "POLICY_VIOLATION"
                && event["details"]["rule"] == "process.allowExec"
                && event["details"]["path"] == "/bin/echo"
        });
        assert!(logged, "{}", log.out());
        assert_eq!(promise(&output, "the command itself")["planned"], "held");
    }
}

/// It is looked for in several directories and may be a script, whose interpreter is no second program.
///
/// Proves: POL-2 first-exec
#[test]
fn the_first_exec_may_take_several_tries() {
    let world = World::new();
    script(&world, "tools/greet", "#!/bin/sh\necho hello\n");
    script(&world, "tools/plain", "echo plain\n");
    let path =
        format!("PATH=/no/such:/etc/passwd:{}:/usr/bin", world.project().join("tools").display());
    for (command, says) in [("greet", "hello\n"), ("plain", "plain\n")] {
        let output = under(&world, &["--env", &path], NO_EXEC, &[command]);
        output.assert_code(0);
        assert_eq!(output.out(), says);
    }
    under(&world, &["--env", &path], NO_EXEC, &["nowhere"]).assert_code(127);
}

/// Looking for a program in `PATH` is no try to execute what is not there.
///
/// Proves: PROC-2 refusals-told
#[test]
fn refused_programs_are_told_and_names_that_were_not_found_are_not() {
    let world = World::new();
    let path = "PATH=/no/such:/etc:/usr/bin";
    let list = "process: { allowedExecutables: [sh] }\n";
    for (policy, rule) in [(NO_EXEC, "process.allowExec"), (list, "process.allowedExecutables")] {
        let tried = "uname; uname; no-such-program; echo went on";
        let output = under(&world, &["--env", path], policy, &["sh", "-c", tried]);
        output.assert_code(0);
        assert_eq!(output.out(), "went on\n");
        let told = &output.report.as_ref().unwrap()["refusedExecutions"];
        assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
        assert_eq!((&told[0]["rule"], &told[0]["count"]), (&rule.into(), &2.into()), "{told}");
        assert!(told[0]["path"].as_str().unwrap().ends_with("/bin/uname"), "{told}");
        let words = format!("2 executions denied by `{rule}`: ");
        assert!(output.err().contains(&words), "{}", output.err());
    }
}

/// Proves: PROC-2 refusals-told
#[test]
fn listed_programs_and_what_they_need_are_not_told() {
    let world = World::new();
    script(&world, "tools/greet", "#!/bin/sh\necho hello\n");
    let list = "process: { allowedExecutables: [sh, ls, ./tools] }\n";
    let output = under(&world, &[], list, &["sh", "-c", "ls -d /usr; ./tools/greet"]);
    output.assert_code(0);
    assert_eq!(output.out(), "/usr\nhello\n");
    assert!(output.report.as_ref().unwrap().get("refusedExecutions").is_none());
    assert_eq!(output.err(), "");
}

/// Proves: PROC-2 refusals-told
#[test]
fn refused_processes_are_told() {
    let world = World::new();
    let output = under(&world, &[], NO_FORK, &["sh", "-c", "/bin/echo one; echo no"]);
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["blockedCalls"][0]["rule"], "process.allowFork", "{report}");
    assert!(output.err().contains("denied by `process.allowFork`: "), "{}", output.err());
}

/// A file in memory could be executed, and no list has it.
///
/// Proves: PROC-2 refusals-told
#[test]
fn files_in_memory_are_told_among_the_programs() {
    let world = World::new();
    let list = "process: { allowedExecutables: [python3] }\n";
    let make = "import os\ntry: os.memfd_create('x')\nexcept OSError as e: print(e.errno)";
    let output = under(&world, &[], list, &["python3", "-c", make]);
    output.assert_code(0);
    assert_eq!(output.out(), "13\n");
    let report = output.report.as_ref().unwrap();
    assert_eq!(report["refusedExecutions"][0]["call"], "memfd_create", "{report}");
    assert!(report.get("blockedCalls").is_none(), "{report}");
}

/// Proves: PROC-2 executables
#[test]
fn only_listed_programs_are_executed() {
    for level in levels() {
        let world = World::new();
        let list = "process: { allowedExecutables: [sh, ls, /usr/bin/env] }\n";
        let try_all = "ls -d /usr; env ls -d /usr; cat /dev/null; echo $?; ./copy; echo $?";
        world.bare("cp").args(["/bin/echo", "copy"]).run().assert_code(0);
        let output = under(&world, level, list, &["sh", "-c", try_all]);
        output.assert_code(0);
        assert_eq!(output.out(), "/usr\n/usr\n126\n126\n", "{level:?}: {}", output.err());
    }
}

/// Proves: PROC-2 executables
#[test]
fn a_command_that_is_not_listed_is_refused_by_its_real_name() {
    let world = World::new();
    let list = "process: { allowedExecutables: [ls] }\n";
    let refused = under(&world, &[], list, &["cat", "/etc/passwd"]);
    refused.assert_code(126);
    assert!(
        refused.err().contains("/cat is not among `process.allowedExecutables`"),
        "{}",
        refused.err()
    );
    assert_eq!(refused.report.as_ref().unwrap()["outcome"], "refused");
}

/// Proves: PROC-2 executables
#[test]
fn the_real_file_counts_and_each_of_its_names() {
    let world = World::new();
    world.bare("cp").args(["/bin/echo", "tool"]).run().assert_code(0);
    world.bare("ln").args(["tool", "hard"]).run().assert_code(0);
    world.bare("ln").args(["-s", "tool", "soft"]).run().assert_code(0);
    world.bare("cp").args(["tool", "copy"]).run().assert_code(0);
    for listed in ["tool", "hard", "soft"] {
        let list = format!("process: {{ allowedExecutables: [./{listed}, sh] }}\n");
        for name in ["./tool", "./hard", "./soft"] {
            let output = under(&world, &[], &list, &[name, "ran"]);
            output.assert_code(0);
            assert_eq!(output.out(), "ran\n", "{listed} {name}");
        }
        under(&world, &[], &list, &["./copy", "ran"]).assert_code(126);
        under(&world, &[], &list, &["sh", "-c", "./hard ran && exec ./copy ran"]).assert_code(126);
    }
}

/// Proves: PROC-2 executables
#[test]
fn a_directory_lists_everything_below_and_a_script_brings_its_interpreter() {
    let world = World::new();
    script(&world, "tools/deep/first", "#!/usr/bin/env sh\necho first; ./tools/second\n");
    script(&world, "tools/second", "#!/bin/sh\necho second; ./other\n");
    script(&world, "other", "#!/bin/sh\necho never\n");
    let list = "process: { allowedExecutables: [./tools] }\n";
    let output = under(&world, &[], list, &["./tools/deep/first"]);
    output.assert_code(126);
    assert_eq!(output.out(), "first\nsecond\n", "{}", output.err());
}

/// Proves: PROC-2 honest-backing
#[test]
fn a_list_with_a_loader_is_called_advice_and_a_static_one_enforced() {
    let world = World::new();
    let list = "process: { allowedExecutables: [ls] }\n";
    let output = under(&world, &[], list, &["ls"]);
    let advice = promise(&output, "listed programs are executed");
    assert_eq!(advice["planned"], "advisory");
    let relaxations = output.report.as_ref().unwrap()["relaxations"].to_string();
    assert!(relaxations.contains("any program can be started by"), "{relaxations}");
    let file = world.path().join("policy.yaml").display().to_string();
    let shown = world.sandbox(["plan", "--full", "--policy", &file, "--", "ls"]).run();
    let shown = shown.out();
    assert!(shown.lines().any(|line| line.contains("PROC-2  advisory")), "{shown}");
    assert!(shown.contains("(to start those)"), "{shown}");

    // A static program that does one thing, by its name.
    let tools = world.write("outside/tools/readme", "");
    let tool = tools.with_file_name("true").display().to_string();
    world.bare("cp").args(["/bin/busybox", &tool]).run().assert_code(0);
    let list = format!("process: {{ allowedExecutables: ['{tool}'] }}\n");
    let output = under(&world, &["--ro", &tool], &list, &[&tool]);
    output.assert_code(0);
    assert_eq!(promise(&output, "listed programs are executed")["planned"], "held");
}

/// Whoever opened the file for it must have let go of it: what is open for writing is not executed.
#[test]
fn a_program_that_was_just_written_can_be_executed() {
    let world = World::new();
    for _ in 0..10 {
        let script = "rm -f copy; cp /bin/echo copy; ./copy it ran";
        let output = world.sandbox_run([""; 0], ["sh", "-c", script]).run();
        assert_eq!(output.out(), "it ran\n", "{}", output.err());
    }
}

/// Proves: PROC-7 never-less
#[test]
fn without_isolation_none_of_it_is_pretended() {
    let world = World::new();
    for policy in [NO_FORK, NO_EXEC, "process: { allowedExecutables: [sh] }\n"] {
        let flags = ["--level", "0", "--approve-no-isolation", "a test"];
        let output = under(&world, &flags, policy, &["sh", "-c", "touch ran"]);
        output.assert_code(126);
        assert!(output.err().contains("has no effect at LEVEL_0"), "{}", output.err());
    }
    assert!(!world.project().join("ran").exists());
}
