//! What follows an attempt to break out: warnings, the end of the run, what is rolled back, kept and quarantined (ESC-1).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use palisade_testkit::{Invocation, Output, World, sandbox_program};
use serde_json::Value;

use crate::inside::{below, eventually};

const NO_FLAGS: [&str; 0] = [];
const PAGE: &str = include_str!("../../docs/escape-response.md");

#[cfg(target_arch = "x86_64")]
pub(crate) const SETNS: u32 = 308;
#[cfg(target_arch = "aarch64")]
pub(crate) const SETNS: u32 = 268;
#[cfg(target_arch = "x86_64")]
const UNSHARE: u32 = 272;
#[cfg(target_arch = "aarch64")]
const UNSHARE: u32 = 97;

/// Writes to the project, leaves a process behind, makes the call, and goes on for longer than any test.
fn calling(number: u32) -> String {
    format!(
        "import ctypes, subprocess, time\n\
         open('written', 'w').write('by the attack')\n\
         subprocess.Popen(['sleep', '1000'], start_new_session=True)\n\
         print('started', flush=True)\n\
         ctypes.CDLL(None).syscall({number}, 0x10000000, 0x10000000, 0, 0, 0, 0)\n\
         time.sleep(1000)\n"
    )
}

/// The same, but it ends well at once.
pub(crate) fn calling_and_ending(number: u32) -> String {
    format!("import ctypes; ctypes.CDLL(None).syscall({number}, 0x10000000, 0x10000000)")
}

pub(crate) fn policy(world: &World, escape: &str) -> String {
    let path = world.write("policy.yaml", format!("version: 1\nescape: {{ {escape} }}\n"));
    path.display().to_string()
}

pub(crate) fn run(world: &World, escape: &str, flags: &[&str], command: &[&str]) -> Output {
    running(world, escape, flags, command).run()
}

pub(crate) fn running(world: &World, escape: &str, flags: &[&str], command: &[&str]) -> Invocation {
    let policy = policy(world, escape);
    let flags: Vec<&str> = ["--policy", &policy].iter().chain(flags).copied().collect();
    world.sandbox_run(&flags, command.iter().copied())
}

fn state(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade")
}

pub(crate) fn events(world: &World, event: &str) -> Vec<Value> {
    let shown = world.sandbox(["audit", "show", "--json"]).run();
    let records =
        shown.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    records
        .into_iter()
        .filter(|record| record["event"] == event)
        .map(|it| it["details"].clone())
        .collect()
}

pub(crate) fn quarantined(world: &World) -> Vec<Value> {
    let listed = world.sandbox(["quarantine", "ls", "--json"]).run();
    let listed: Value = serde_json::from_str(&listed.assert_code(0).out()).unwrap();
    listed["quarantined"].as_array().unwrap().clone()
}

pub(crate) fn escape_of(output: &Output) -> &Value {
    &output.report.as_ref().expect("a report")["escape"]
}

pub(crate) fn ids(output: &Output) -> Vec<String> {
    let seen = escape_of(output)["indicators"].as_array().cloned().unwrap_or_default();
    seen.iter().map(|seen| seen["id"].as_str().unwrap().to_owned()).collect()
}

/// Proves: ESC-1 terminate, ESC-1 roll-back, ESC-1 alert, ESC-1 trace, ESC-1 quarantine
#[test]
fn a_critical_attempt_ends_rolls_back_keeps_and_quarantines() {
    let world = World::new();
    world.write_in_project("kept", "kept\n");
    let script = calling(SETNS);
    let command = ["python3", "-c", &script];
    let output = run(&world, "onCritical: quarantine", &["--transaction"], &command);
    output.assert_code(137);
    assert_eq!(output.out(), "started\n");
    assert!(output.err().contains("its changes were discarded"), "{}", output.err());
    assert!(!world.project().join("written").exists());
    assert!(!world.sandbox(["diff"]).run().out().contains("written"));
    let escape = escape_of(&output);
    assert_eq!(escape["action"], "quarantine");
    assert_eq!(escape["response"]["rollBack"], "discarded");
    assert_eq!(escape["response"]["indicator"], "syscall.blocked");
    assert_eq!(escape["indicators"][0]["severity"], "CRITICAL");

    // Everybody who looks finds it.
    assert_eq!(events(&world, "QUARANTINED").len(), 1);
    assert_eq!(events(&world, "ESCAPE_RESPONSE")[0]["action"], "quarantine");
    world.sandbox(["audit", "verify"]).run().assert_code(0);
    let entries = quarantined(&world);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["tool"], "python3");

    // The second start is refused, whatever the policy says now, and other commands are not.
    let again = world.sandbox_run(NO_FLAGS, command).run();
    again.assert_code(126);
    assert!(again.err().contains("sandbox quarantine release"), "{}", again.err());
    assert_eq!(again.report.as_ref().unwrap()["outcome"], "refused");
    world.sandbox_run(NO_FLAGS, ["python3", "-c", "print(1)"]).run().assert_code(0);
    for words in [&["run", "--keep", "--"][..], &["create", "--"]] {
        let refused = world.sandbox(words.iter().copied().chain(command)).run();
        refused.assert_code(126);
        assert!(refused.err().contains("is quarantined"), "{}", refused.err());
    }
    assert_eq!(world.sandbox(["ps"]).run().out().lines().count(), 1, "a session was left");

    let id = entries[0]["id"].as_str().unwrap();
    world.sandbox(["quarantine", "release", &id[24..]]).run().assert_code(0);
    assert_eq!(events(&world, "RELEASED")[0]["quarantine"], *id);
    let released = world.sandbox_run(["--timeout", "1s"], command).run();
    released.assert_code(124);
}

/// Proves: ESC-1 trace
#[test]
fn the_bundle_is_private_bounded_and_says_what_happened() {
    let world = World::new();
    let name = "\u{1b}[2J\u{202e}evil\n{\"event\":\"forged\"}";
    let script = format!(
        "import os, sys\n\
         for n in range(3000):\n    \
             try: open('.envrc' if n == 0 else f'd{{n}}/.envrc', 'w')\n    \
             except OSError: pass\n\
         open('/proc/self/comm', 'w').write('x) R 1 (y')\n\
         {}",
        calling(SETNS)
    );
    let program = world.write_in_project("attack.py", &script);
    let program = program.display().to_string();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let command = ["python3", &program, "--token", secret, name];
    let output = run(&world, "onCritical: kill", &[], &command);
    output.assert_code(137);
    assert!(output.err().contains("what it wrote was not rolled back"), "{}", output.err());
    assert_eq!(escape_of(&output)["response"]["rollBack"], "not-rolled-back");
    assert!(quarantined(&world).is_empty(), "it was killed, and no more");

    let session = output.report.as_ref().unwrap()["sessionId"].as_str().unwrap().to_owned();
    let bundle = state(&world).join("incidents").join(&session);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bundle), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&bundle).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(mode(&path), 0o600, "{path:?}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() <= 512 << 10, "{path:?}: {}", text.len());
        assert!(!text.contains(secret), "{path:?} has the secret");
        assert!(!text.contains('\u{1b}'), "{path:?} has a control character");
        for line in text.lines() {
            assert!(!line.starts_with("{\"event\":\"forged\"}"), "{path:?}");
        }
    }
    names.sort_unstable();
    let expected = [
        "calls.json",
        "events.jsonl",
        "incident.json",
        "policy.json",
        "processes.json",
        "report.json",
    ];
    assert_eq!(names, expected);
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(bundle.join(name)).unwrap()).unwrap()
    };
    let processes = read("processes.json");
    let processes = processes.as_array().unwrap();
    let by_name = |name: &str| processes.iter().any(|process| process["name"] == name);
    assert!(by_name("sleep") && by_name("x) R 1 (y"), "{processes:?}");
    assert_eq!(read("calls.json").as_array().unwrap().last().unwrap()["name"], "setns");
    assert_eq!(read("incident.json")["attempt"]["id"], "syscall.blocked");
    let lines = fs::read_to_string(bundle.join("events.jsonl")).unwrap();
    for event in ["SANDBOX_CREATED", "ESCAPE_ATTEMPT", "SANDBOX_EXITED", "ESCAPE_RESPONSE"] {
        assert!(lines.contains(event), "{event}");
    }
}

/// Proves: ESC-1 terminate
#[test]
fn nothing_of_the_sandbox_is_left() {
    let world = World::new();
    let waiting =
        "import os, time\nopen('up', 'w')\nwhile not os.path.exists('go'): time.sleep(.01)\n";
    let script = format!("{waiting}{}", calling(SETNS));
    let run = running(&world, "onCritical: kill", &[], &["python3", "-c", &script]).spawn();
    eventually("the command runs", || world.project().join("up").exists());
    let all = below(&run);
    assert!(all.len() > 1, "{all:?}");
    world.write_in_project("go", "");
    run.wait().assert_code(137);
    for pid in all {
        assert!(!PathBuf::from(format!("/proc/{pid}")).exists(), "{pid} is left");
    }
}

/// Proves: ESC-1 indicators
#[test]
fn by_default_every_layer_warns_and_the_command_goes_on() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    let script = format!(
        "cat ~/.ssh/id_ed25519; echo x > .envrc; ls ~/.local/state/palisade; \
         python3 -c '{}'; python3 -c '{}'; echo went on",
        calling_and_ending(SETNS),
        calling_and_ending(UNSHARE)
    );
    let output = world.sandbox_run(["--on-ask", "deny"], ["sh", "-c", &script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "went on\n");
    let ids = ids(&output);
    for id in [
        "filesystem.secret",
        "filesystem.protected-write",
        "filesystem.traversal",
        "syscall.blocked",
        "syscall.suspicious",
    ] {
        assert!(ids.iter().any(|seen| seen == id), "{id} is missing in {ids:?}");
    }
    assert_eq!(escape_of(&output)["action"], "warn");
    assert!(escape_of(&output).get("response").is_none());
    assert!(!state(&world).join("incidents").exists());
    let severities: Vec<_> = events(&world, "ESCAPE_ATTEMPT")
        .iter()
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["severity"].clone()))
        .collect();
    assert!(
        severities.contains(&("filesystem.traversal".to_owned(), "CRITICAL".into())),
        "{severities:?}"
    );
}

/// Each layer by itself: the command has no time to do another thing.
fn ends_for(world: &World, escape: &str, flags: &[&str], script: &str, id: &str) {
    let script = format!("{script}; sleep 1000");
    let command = ["sh", "-c", &script];
    let output = run(world, escape, flags, &command);
    output.assert_code(137);
    assert_eq!(escape_of(&output)["response"]["indicator"], id, "{}", output.err());
    assert_eq!(quarantined(world).last().unwrap()["indicator"], id);
    world.sandbox_run(flags, command).run().assert_code(126);
}

/// Proves: ESC-1 indicators, ESC-1 quarantine
#[test]
fn files_that_the_host_would_run_and_secrets_are_indicators() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    let escape = "onMedium: quarantine";
    ends_for(&world, escape, &[], "echo x > .envrc", "filesystem.protected-write");
    ends_for(&world, escape, &["--on-ask", "deny"], "cat ~/.ssh/id_ed25519", "filesystem.secret");
    let escape = "onCritical: quarantine";
    let traversal = "cat ~/.local/state/../state/palisade/quarantine.json";
    ends_for(&world, escape, &["--on-ask", "deny"], traversal, "filesystem.traversal");
}

/// Proves: ESC-1 indicators, ESC-1 quarantine
#[test]
fn a_program_that_is_not_listed_is_an_indicator() {
    let world = World::new();
    let path = world.write(
        "listed.yaml",
        "version: 1\nprocess: { allowedExecutables: [/bin/sh, /usr/bin/sleep, /bin/sleep] }\n\
         escape: { onCritical: quarantine }\n",
    );
    let path = path.display().to_string();
    let command = ["sh", "-c", "/usr/bin/id; sleep 1000"];
    let output = world.sandbox_run(["--policy", &path], command).run();
    output.assert_code(137);
    assert_eq!(escape_of(&output)["response"]["indicator"], "process.exec");
    world.sandbox_run(["--policy", &path], command).run().assert_code(126);
}

/// Proves: ESC-1 indicators, ESC-1 quarantine
#[test]
fn a_connection_that_is_not_allowed_is_an_indicator() {
    let world = World::new();
    let connect = "python3 -c 'import socket; socket.create_connection((\"169.254.169.254\", 80), 5).recv(1)'";
    let flags = ["--allow-host", "allowed.example", "--on-ask", "deny"];
    let output = run(&world, "onHigh: warn", &flags, &["sh", "-c", connect]);
    assert!(output.code() != 137, "{}", output.err());
    assert!(ids(&output).iter().any(|id| id == "network.metadata"), "{:?}", ids(&output));
    ends_for(&world, "onHigh: quarantine", &flags, connect, "network.metadata");
    let other =
        "python3 -c 'import socket; socket.create_connection((\"203.0.113.7\", 80), 5).recv(1)'";
    ends_for(&world, "onHigh: quarantine", &flags, other, "network.connection");
}

/// Proves: ESC-1 strict
#[test]
fn strict_acts_on_the_first_indicator_whatever_its_severity() {
    let world = World::new();
    ends_for(
        &world,
        "strict: true, onMedium: ignore",
        &[],
        "echo x > .envrc",
        "filesystem.protected-write",
    );
    let output = run(&world, "strict: true", &[], &["sh", "-c", "echo harmless"]);
    output.assert_code(0);
    assert!(output.report.as_ref().unwrap().get("escape").is_none());
}

/// Proves: ESC-1 indicators
#[test]
fn a_flood_of_mild_attempts_hides_no_severe_one() {
    let world = World::new();
    let script = format!(
        "import os\nfor n in range(2000):\n    os.mkdir(f'd{{n}}')\n    \
             \n    try: open(f'd{{n}}/.envrc', 'w')\n    except OSError: pass\n{}",
        calling(SETNS)
    );
    let output = run(&world, "onCritical: quarantine", &[], &["python3", "-c", &script]);
    output.assert_code(137);
    assert_eq!(escape_of(&output)["response"]["indicator"], "syscall.blocked");
    assert!(events(&world, "ESCAPE_ATTEMPT").len() < 50);
    assert!(escape_of(&output)["more"].as_u64().is_none_or(|more| more < 10_000));
}

/// Proves: ESC-1 quarantine
#[test]
fn a_tool_that_has_ended_before_it_could_be_killed_is_quarantined_all_the_same() {
    let world = World::new();
    for round in 0..5 {
        let script = format!("{}  # {round}", calling_and_ending(SETNS));
        let command = ["python3", "-c", &script];
        let output = run(&world, "onCritical: quarantine", &["--transaction=auto"], &command);
        output.assert_code(137);
        assert_eq!(quarantined(&world).len(), round + 1);
        world.sandbox_run(NO_FLAGS, command).run().assert_code(126);
    }
}

/// The tool's limits, as far as this host has them.
const BASH: [&str; 3] = ["--tool", "bash", "--best-effort-limits"];

/// Proves: ESC-1 quarantine
#[test]
fn a_declared_tool_is_quarantined_as_a_whole() {
    let world = World::new();
    let script = calling_and_ending(SETNS);
    run(&world, "onCritical: quarantine", &BASH, &["python3", "-c", &script]).assert_code(137);
    let other = world.sandbox_run(BASH, ["true"]).run();
    other.assert_code(126);
    assert!(other.err().contains("bash is quarantined"), "{}", other.err());
    world.sandbox_run(NO_FLAGS, ["true"]).run().assert_code(0);
    world.sandbox(["quarantine", "release", "bash"]).run().assert_code(0);
    world.sandbox_run(BASH, ["true"]).run().assert_code(0);
}

/// Proves: ESC-1 terminate, ESC-1 quarantine
#[test]
fn a_session_ends_with_all_its_commands_and_only_the_one_that_did_it_is_quarantined() {
    let world = World::new();
    let policy = policy(&world, "onCritical: quarantine");
    world
        .sandbox(["create", "--policy", &policy, "--transaction", "--name", "work"])
        .run()
        .assert_code(0);
    let other = ["exec", "-d", "work", "--", "sleep", "1000"];
    world.sandbox(other).run().assert_code(0);
    world.sandbox(["exec", "work", "--", "sh", "-c", "echo x > written"]).run().assert_code(0);
    let script = calling(SETNS);
    let evil = ["python3", "-c", &script];
    let ended = world.sandbox(["exec", "work", "--"].into_iter().chain(evil)).run();
    assert!(ended.code() != 0, "{}", ended.err());
    eventually("the session is over", || !world.sandbox(["ps"]).run().out().contains("work"));
    eventually("it is quarantined", || !quarantined(&world).is_empty());
    let entries = quarantined(&world);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["tool"], "python3");
    let inspected = world.sandbox(["inspect", "work", "--json"]).run();
    assert!(inspected.out().contains("attempt to break out"), "{}", inspected.out());
    let diff = world.sandbox(["diff", "work"]).run();
    assert!(!diff.out().contains("written"), "the changes are there: {}", diff.out());

    world.sandbox(["create", "--name", "next"]).run().assert_code(0);
    let refused = world.sandbox(["exec", "next", "--"].into_iter().chain(evil)).run();
    refused.assert_code(126);
    world.sandbox(["exec", "next", "--", "true"]).run().assert_code(0);
    world.sandbox(["kill", "next"]).run().assert_code(0);
}

/// Proves: ESC-1 quarantine
#[test]
fn nothing_inside_sees_or_changes_the_list_and_a_damaged_one_stops_everything() {
    let world = World::new();
    let command = ["python3", "-c", &*calling_and_ending(SETNS)];
    run(&world, "onCritical: quarantine", &[], &command).assert_code(137);
    let store = state(&world).join("quarantine.json");
    let before = fs::read(&store).unwrap();
    let sandbox = sandbox_program();
    let script = format!(
        "cat {0}; rm -f {0}; echo '{{}}' > {0}; {1} quarantine release python3; echo done",
        store.display(),
        sandbox.display()
    );
    for flags in [&["--on-ask", "deny"][..], &["--static"], &["--rw", "~"]] {
        let output = world.sandbox_run(flags, ["sh", "-c", &script]).run();
        assert!(!output.out().contains("commandHash"), "{flags:?}: {}", output.out());
        assert_eq!(fs::read(&store).unwrap(), before, "{flags:?}");
    }
    world.sandbox_run(NO_FLAGS, command).run().assert_code(126);

    fs::write(&store, "{").unwrap();
    for words in [&["run", "--", "true"][..], &["create"], &["quarantine", "ls"]] {
        let output = world.sandbox(words.iter().copied()).run();
        output.assert_code(125);
        assert!(output.err().contains("move it away"), "{words:?}: {}", output.err());
    }
    fs::remove_file(&store).unwrap();
    world.sandbox_run(NO_FLAGS, ["true"]).run().assert_code(0);
}

/// Proves: ESC-1 strict
#[test]
fn an_untrusted_project_may_make_it_harder_but_quarantines_nothing() {
    let world = World::new();
    world.write_in_project(
        ".palisade/policy.yaml",
        "version: 1\nescape: { onMedium: kill, onCritical: quarantine, strict: true, webhook: 'https://evil.example/' }\n",
    );
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", "echo x > .envrc; sleep 1000"]).run();
    output.assert_code(137);
    assert_eq!(escape_of(&output)["action"], "kill", "{}", output.err());
    assert!(quarantined(&world).is_empty());
}

/// Proves: ESC-1 quarantine
#[test]
fn the_page_is_as_typed() {
    let world = World::new();
    world.write_in_project("attack.py", calling_and_ending(SETNS));
    world.write("home/policy.yaml", "version: 1\nescape: { onCritical: quarantine }\n");
    fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    let block = PAGE.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push((command, Vec::new())),
            None => steps.last_mut().unwrap().1.push(line),
        }
    }
    for (command, shown) in steps {
        let output = world
            .bare("bash")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .env("PATH", &path)
            .run();
        let said = output.out();
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said.len(), shown.len(), "$ {command}\nshown: {shown:#?}\nsaid: {said:#?}");
        for (shown, said) in shown.iter().zip(&said) {
            assert!(crate::readme::fits(shown, said), "$ {command}\nshown: {shown}\nsaid: {said}");
        }
    }
    let policy = PAGE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let file = world.write("example.yaml", policy).display().to_string();
    world.sandbox(["policy", "check", &file]).run().assert_code(0);
}

/// Something goes wrong in the last steps of a run, when nothing of it is left.
///
/// Proves: ESC-1 trace, ESC-1 quarantine, ESC-1 alert
#[test]
fn an_attempt_in_a_run_whose_end_fails_is_recorded_and_answered_all_the_same() {
    for script in [calling(SETNS), calling_and_ending(SETNS)] {
        let world = World::new();
        let command = ["python3", "-c", &script];
        let output = running(&world, "onCritical: quarantine", &["--transaction"], &command)
            .layers_off(&[])
            .env("PALISADE_FAULT_FAIL", "settling the end")
            .run();
        output.assert_code(125);
        let escape = escape_of(&output);
        assert_eq!(escape["response"]["indicator"], "syscall.blocked", "{escape}");
        assert_eq!(escape["response"]["rollBack"], "discarded");
        assert!(!events(&world, "ESCAPE_ATTEMPT").is_empty());
        assert_eq!(events(&world, "ESCAPE_RESPONSE").len(), 1);
        assert_eq!(events(&world, "SANDBOX_DESTROYED").len(), 1);
        assert_eq!(quarantined(&world).len(), 1);
        world.sandbox(["audit", "verify"]).run().assert_code(0);
    }
}
