//! Pipes through a sandbox: what goes in comes out, byte for byte, and ends when it ends.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use palisade_testkit::{World, sandbox_program};

const MEBIBYTE: usize = 1024 * 1024;
const NO_FLAGS: [&str; 0] = [];

/// Bytes of every value in no order a terminal or a line buffer would leave alone.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(length)
    .collect()
}

/// Proves: PROC-3 pipes-exact
#[test]
fn ten_mebibytes_of_noise_pass_unchanged() {
    let world = World::new();
    let sent = noise(10 * MEBIBYTE);
    let output = world.sandbox_run(NO_FLAGS, ["cat"]).stdin(sent.clone()).run();
    output.assert_code(0);
    assert!(output.stdout == sent, "{} bytes came back of {}", output.stdout.len(), sent.len());
    assert_eq!(output.err(), "");
}

/// Proves: PROC-3 pipes-exact
#[test]
fn the_two_outputs_stay_apart() {
    let world = World::new();
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", "printf out; printf err >&2"]).run();
    output.assert_code(0);
    assert_eq!((&*output.out(), &*output.err()), ("out", "err"));
}

/// Proves: PROC-3 pipes-exact
#[test]
fn no_terminal_is_made_where_there_was_none() {
    let world = World::new();
    let script = "tty; for fd in 0 1 2; do test -t $fd && echo terminal $fd; done; \
                  (exec </dev/tty) 2>/dev/null && echo controlling";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run();
    assert_eq!(output.out(), "not a tty\n");
}

/// Proves: PROC-3 pipes-exact
#[test]
fn an_input_that_ends_is_seen_to_end() {
    let world = World::new();
    let output = world.sandbox_run(NO_FLAGS, ["wc", "-c"]).stdin("four").run();
    output.assert_code(0);
    assert_eq!(output.out().trim(), "4");
}

/// A command that closes its output has closed it for the reader, though it goes on running.
///
/// Proves: PROC-3 pipes-exact
#[test]
fn an_output_closed_inside_is_closed_outside() {
    let world = World::new();
    let mut command = world.host_command(sandbox_program().as_os_str());
    command.args(["run", "--", "sh", "-c", "echo last words; exec >&-; read -r _"]);
    let mut sandbox =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let said = std::io::read_to_string(sandbox.stdout.take().unwrap()).unwrap();
    assert_eq!(said, "last words\n");
    assert!(sandbox.try_wait().unwrap().is_none(), "it ended before its input did");
    drop(sandbox.stdin.take());
    sandbox.wait().unwrap();
}

/// `yes | head -1` with `yes` inside: SIGPIPE, not a hang.
///
/// Proves: PROC-3 pipes-exact, LIFE-3 exit-code
#[test]
fn a_reader_that_leaves_early_ends_the_writer() {
    let world = World::new();
    let mut writer = sandbox_command(&world, &["yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let from_writer: OwnedFd = writer.stdout.take().unwrap().into();
    let head = Command::new("head").arg("-1").stdin(from_writer).output().unwrap();
    assert_eq!(head.stdout, b"y\n");
    let ended = writer.wait().unwrap();
    assert_eq!(ended.signal(), Some(13), "as `yes` itself ends: a shell shows 141");
}

/// Proves: PROC-3 pipes-exact
#[test]
fn a_pipeline_of_sandboxes_works() {
    let world = World::new();
    let sandbox = sandbox_program();
    let script =
        format!("seq 100000 | {0} run -- sort -rn | {0} run -- head -1", sandbox.display());
    let output = world.bare("sh").args(["-c", &script]).deadline(Duration::from_secs(30)).run();
    output.assert_code(0);
    assert_eq!(output.out(), "100000\n");
}

fn sandbox_command(world: &World, command: &[&str]) -> Command {
    let mut sandbox = world.host_command(sandbox_program().as_os_str());
    sandbox.args(["run", "--"]).args(command).stdin(Stdio::null()).stderr(Stdio::null());
    sandbox
}

/// Proves: FS-1 read-only
#[test]
fn a_file_on_standard_input_cannot_be_emptied_through_its_descriptor() {
    let world = World::new();
    let file = world.write("outside/plain", "content\n");
    let script = format!(
        "{} run -- python3 -c 'import os; os.truncate(\"/proc/self/fd/0\", 0)' <{}",
        sandbox_program().display(),
        file.display()
    );
    world.bare("sh").args(["-c", &script]).run().assert_code(1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "content\n");
}

/// Proves: FS-1 read-only
///
/// Where Landlock holds truncation, every open costs a walk up the tree. A file that is only written can be truncated
/// anyway.
#[test]
fn truncation_is_held_for_what_is_read_from_a_file_and_not_for_output_into_one() {
    let world = World::new();
    let file = world.write("outside/plain", "content\n");
    let holds_truncation = |redirection: &str| {
        let script = format!("{} plan --json -- true {redirection}", sandbox_program().display());
        let output = world.bare("sh").args(["-c", &script]).run();
        output.assert_code(0);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        plan["landlock"]["refuseTruncation"].as_bool().unwrap()
    };
    assert!(holds_truncation(&format!("<{}", file.display())));
    assert!(!holds_truncation(&format!("2>>{}", file.display())));
}

/// Proves: FS-3 own-root
#[test]
fn a_directory_is_no_stream() {
    let world = World::new();
    world.write("outside/secret", "hidden\n");
    let sandbox = sandbox_program();
    let secret = "/proc/self/fd/0/secret <";
    let outside = world.outside();
    let script = format!("{} run -- cat {secret}{}", sandbox.display(), outside.display());
    let run = world.bare("sh").args(["-c", &script]).run();
    run.assert_code(125);
    assert_eq!(run.out(), "");
    assert!(run.err().contains("is a directory"), "{}", run.err());
}
