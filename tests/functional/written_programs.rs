//! `filesystem.executeWritten: false`, as far as it is not mounts: what reaches the command as a stream.

use std::fs;

use palisade_testkit::{Output, World, sandbox_program};

use crate::sessions_support::Sessions;

/// The words of a shell, with our program as `$@`.
fn redirected(world: &World, redirection: &str, words: &[&str]) -> Output {
    let line = format!("exec \"$@\" {redirection}");
    let shell = world.bare("sh").args(["-c", &line, "sh"]).arg(sandbox_program());
    shell.args(words).run()
}

fn nothing_written(world: &World) -> String {
    let file = world.write("policy.yaml", "filesystem: { executeWritten: false }\n");
    file.display().to_string()
}

/// A file that the caller redirects to is on the caller's mount, where programs may be executed.
///
/// Proves: FS-1 mount-flags, CARGO-1 no-executables
#[test]
fn no_stream_of_the_command_is_a_file() {
    let world = World::new();
    let policy = nothing_written(&world);
    world.write_in_project("note", "a note\n");
    let told = ["readlink", "/proc/self/fd/1"];
    let output = || fs::read_to_string(world.project().join("out")).unwrap();
    redirected(&world, ">out", &[&["run", "--"], &told[..]].concat()).assert_code(0);
    assert!(output().ends_with("/out\n"), "{}", output());
    let strict = [&["run", "--policy", &policy, "--"], &told[..]].concat();
    for redirection in [">out", ">out 2>&1"] {
        redirected(&world, redirection, &strict).assert_code(0);
        assert!(output().starts_with("pipe:"), "{redirection}: {}", output());
    }

    let refused = redirected(&world, "<note", &["run", "--policy", &policy, "--", "cat"]);
    refused.assert_code(125);
    assert!(refused.err().contains("executeWritten") && refused.err().contains("use a pipe"));
    let piped = world.sandbox(["run", "--policy", &policy, "--", "cat"]).stdin("piped\n").run();
    assert_eq!(piped.out(), "piped\n", "{}", piped.err());
}

/// Proves: FS-1 mount-flags
#[test]
fn no_stream_of_a_sessions_command_is_a_file() {
    let world = World::new();
    let policy = nothing_written(&world);
    world.write_in_project("note", "a note\n");
    let sessions = Sessions::new(&world);
    let session = sessions.create(&["--policy", &policy]);
    let refused = redirected(&world, ">out", &["exec", &session, "--", "echo", "it ran"]);
    assert_ne!(refused.code(), 0);
    assert!(refused.err().contains("executeWritten"), "{}", refused.err());
    assert_eq!(fs::read_to_string(world.project().join("out")).unwrap(), "");
    // The client itself reads a file and passes it on.
    let passed = redirected(&world, "<note", &["exec", "-i", &session, "--", "cat"]);
    assert_eq!(passed.out(), "a note\n", "{}", passed.err());
}
