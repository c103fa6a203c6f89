//! Recordings of terminals, and what they may do when they are shown again (LIFE-6).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use palisade_record::cast::{CastKind, CastReader};
use palisade_testkit::World;

use crate::inside::inside;
use crate::sessions_support::{Sessions, wait_until};
use crate::tmux::Tmux;

#[track_caller]
fn events(path: &Path) -> Vec<(CastKind, String)> {
    let mut reader = CastReader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap()).map(|it| (it.kind, it.text)).collect()
}

fn text(path: &Path, wanted: CastKind) -> String {
    events(path).into_iter().filter(|(kind, _)| *kind == wanted).map(|(_, text)| text).collect()
}

fn runs(world: &World) -> Vec<PathBuf> {
    let all = world.home().join(".local/state/palisade/recordings");
    fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Proves: LIFE-6 output, LIFE-6 private, LIFE-6 replay
#[test]
fn a_run_without_a_terminal_is_recorded_with_both_of_its_outputs() {
    let world = World::new();
    let file = world.project().join("run.cast");
    let option = format!("--record={}", file.display());
    let script = "echo to out; echo to err >&2; exit 3";
    let output = inside(&world, &[&option], script);
    output.assert_code(3);
    assert_eq!(output.out(), "to out\n");
    assert!(output.err().contains("to err"), "{}", output.err());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let recorded = text(&file, CastKind::Output);
    assert!(recorded.contains("to out\n") && recorded.contains("to err\n"), "{recorded}");
    let replayed = world.sandbox(["replay", file.to_str().unwrap()]).run();
    replayed.assert_code(0);
    assert_eq!(replayed.out(), recorded);
    if let Ok(shown) = Command::new("asciinema").arg("cat").arg(&file).output() {
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("to out"), "{shown}");
    }
    assert!(runs(&world).is_empty(), "it has its own place");
}

/// Proves: LIFE-6 replay, LIFE-6 removed
#[test]
fn a_run_without_a_file_is_found_by_its_id_until_it_is_pruned() {
    let world = World::new();
    let output = inside(&world, &["--record"], "echo here");
    output.assert_code(0);
    let [path] = runs(&world).try_into().unwrap();
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(output.err().contains(&format!("sandbox replay {id}")), "{}", output.err());
    assert_eq!(world.sandbox(["replay", &id[24..]]).run().out(), "here\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    world.sandbox(["prune", "--older-than", "1h"]).run().assert_code(0);
    assert!(path.exists(), "it is younger");
    world.sandbox(["prune"]).run().assert_code(0);
    assert!(!path.exists());
    let gone = world.sandbox(["replay", &id]).run();
    gone.assert_code(125);
    assert!(gone.err().contains("no recording"), "{}", gone.err());
    inside(&world, &[], "echo here").assert_code(0);
    assert!(runs(&world).is_empty(), "it is off by default");
}

/// Proves: LIFE-6 failure
#[test]
fn a_recording_that_cannot_begin_keeps_the_command_from_starting() {
    let world = World::new();
    let output = inside(&world, &["--record=/etc/passwd/file"], "touch ran");
    output.assert_code(125);
    assert!(output.err().contains("/etc/passwd/file"), "{}", output.err());
    assert!(!world.project().join("ran").exists());
}

/// Proves: LIFE-6 limit
#[test]
fn a_recording_ends_at_its_limit_and_the_command_goes_on() {
    let world = World::new();
    let file = world.project().join("run.cast");
    let option = format!("--record={}", file.display());
    let script = "i=0; while [ $i -lt 500 ]; do echo a line of some length $i; i=$((i+1)); done";
    let output = inside(&world, &[&option, "--record-limit", "8k"], script);
    output.assert_code(0);
    assert!(output.out().contains("length 499"), "{}", output.out());
    assert!(fs::metadata(&file).unwrap().len() <= 8192);
    let (kind, last) = events(&file).pop().unwrap();
    assert!(kind == CastKind::Marker && last.contains("limit of 8192 bytes"), "{last}");
}

/// Proves: LIFE-6 markers
#[test]
fn decisions_stand_in_the_recording_as_markers() {
    let world = World::new();
    let secret = world.home().join("notes.txt");
    fs::write(&secret, "private").unwrap();
    let file = world.project().join("run.cast");
    let option = format!("--record={}", file.display());
    let script = format!("cat {}; echo done", secret.display());
    inside(&world, &[&option, "--on-ask", "deny"], &script).assert_code(0);
    let markers = text(&file, CastKind::Marker);
    assert!(markers.contains("denied") && markers.contains("notes.txt"), "{markers}");
    let shown = world.sandbox(["replay", "--markers", file.to_str().unwrap()]).run();
    assert!(shown.out().contains("notes.txt"), "{}", shown.out());
}

/// Who records a command does not matter: the supervisor (`-d`), or the client with streams of its own.
///
/// Proves: LIFE-6 markers
#[test]
fn decisions_stand_in_the_recordings_of_a_sessions_commands() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--record", "--on-ask", "deny", "--name", "s"]);
    let unrecorded = sessions.create(&["--on-ask", "deny", "--name", "unrecorded"]);
    let look = |name: &str| {
        let secret = world.home().join(name);
        fs::write(&secret, "private").unwrap();
        format!("cat {}; echo done", secret.display())
    };
    sessions.sandbox(&["exec", "s", "--", "sh", "-c", &look("own.txt")]).assert_code(0);
    sessions.sandbox(&["exec", "-d", "s", "--", "sh", "-c", &look("held.txt")]).assert_code(0);
    let script = look("asked.txt");
    let exec = ["exec", "--record", "unrecorded", "--", "sh", "-c", &script];
    sessions.sandbox(&exec).assert_code(0);
    let recording = |id: &str, name: &str| sessions.directory(id).join("recordings").join(name);
    for (id, name, path) in [
        (&id, "1.cast", "own.txt"),
        (&id, "2.cast", "held.txt"),
        (&unrecorded, "1.cast", "asked.txt"),
    ] {
        let file = recording(id, name);
        wait_until(path, || {
            let marker = text(&file, CastKind::Marker);
            marker.contains("denied") && marker.contains(path)
        });
    }
    let shown = sessions.sandbox(&["replay", "--markers", "unrecorded"]);
    assert!(shown.out().contains("asked.txt"), "{}", shown.out());
}

/// Proves: LIFE-6 hostile
#[test]
fn a_replay_does_nothing_to_a_terminal_but_print() {
    let world = World::new();
    let file = world.project().join("run.cast");
    let option = format!("--record={}", file.display());
    let script = r"printf 'a\033]52;c;ZXZpbA==\007b\033[c\033[6n\033]0;title\033\\c\033[?1000h\033[31md\302\2336n\n'";
    inside(&world, &[&option], script).assert_code(0);
    assert!(text(&file, CastKind::Output).contains("\u{1b}]52;"), "the recording has all of it");
    let replayed = world.sandbox(["replay", file.to_str().unwrap()]).run();
    assert_eq!(replayed.out(), "abc\u{1b}[31md6n\n");
    let names = ["not a recording", "{\"version\":2,\"width\":80,\"height\":24}\n[0,\"o\"]\n"];
    for wrong in names {
        fs::write(&file, wrong).unwrap();
        world.sandbox(["replay", file.to_str().unwrap()]).run().assert_code(125);
    }
}

/// Nothing of what was there is taken for what comes.
fn clear(tmux: &Tmux<'_>) {
    tmux.line("clear");
    tmux.wait_until("an empty screen", |screen| !screen.contains("first"));
}

/// Proves: LIFE-6 secrets, LIFE-6 resize, LIFE-6 replay
#[test]
fn what_is_typed_is_recorded_only_if_asked_for_and_never_a_password() {
    let world = World::new();
    let file = world.project().join("run.cast");
    let script = "echo first; read -r one; stty -echo; echo second; read -r two; stty echo; \
                  echo \"got ${#one} ${#two}\"; read -r three; stty size";
    fs::write(world.project().join("ask"), script).unwrap();
    let tmux = Tmux::new(&world);
    let record = |option: &str| {
        clear(&tmux);
        tmux.line(&format!("sandbox run {option} --record=run.cast -- bash ask"));
        tmux.wait_for_line("first");
        tmux.line("typed in sight");
        tmux.wait_for_line("second");
        tmux.line("hunter2");
        tmux.wait_for_line("got 14 7");
    };
    record("--record-input");
    tmux.resize(91, 26);
    tmux.line("go on");
    tmux.wait_for_line("26 91");
    tmux.wait_for_prompt();
    let whole = fs::read_to_string(&file).unwrap();
    assert!(!whole.contains("hunter2"), "{whole}");
    assert!(text(&file, CastKind::Input).contains("typed in sight"), "{whole}");
    assert!(text(&file, CastKind::Output).contains("typed in sight"), "{whole}");
    assert!(text(&file, CastKind::Resize).contains("91x26"), "{whole}");
    clear(&tmux);
    tmux.line("sandbox replay --speed 1000 run.cast; echo replayed $?");
    tmux.wait_for_line("replayed 0");
    tmux.wait_for_line("26 91");
    record("");
    tmux.line("go on");
    tmux.wait_for_prompt();
    assert_eq!(text(&file, CastKind::Input), "");
}

/// Proves: LIFE-6 sessions, LIFE-6 removed
#[test]
fn the_commands_of_a_session_are_recorded_each_in_its_file() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "s", "--record"]);
    assert_eq!(sessions.inspect("s")["recording"]["input"], false);
    assert!(sessions.sandbox(&["ps"]).out().contains("recorded"));
    let recording =
        |number: u32| sessions.directory(&id).join("recordings").join(format!("{number}.cast"));
    // With its client's streams.
    let output = sessions.sandbox(&["exec", "s", "--", "sh", "-c", "echo one; echo two >&2"]);
    assert_eq!((output.out().as_ref(), output.err().as_ref()), ("one\n", "two\n"));
    let recorded = text(&recording(1), CastKind::Output);
    assert!(recorded.contains("one\n") && recorded.contains("two\n"), "{recorded}");
    // With streams that the supervisor holds.
    sessions.sandbox(&["exec", "-d", "s", "--", "echo", "in the background"]).assert_code(0);
    wait_until("it is written", || {
        text(&recording(2), CastKind::Output).contains("in the background")
    });
    // In a terminal, by whoever is attached.
    let tmux = Tmux::new(&world);
    tmux.line("sandbox exec -t s -- sh -c 'echo in a terminal; tty; sleep 0.2'");
    tmux.wait_for("in a terminal");
    tmux.expect_status(0);
    wait_until("it is written", || {
        text(&recording(3), CastKind::Output).contains("in a terminal\r\n")
    });
    for number in 1..=3 {
        let mode = fs::metadata(recording(number)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let shown = |words: &[&str]| {
        let output = sessions.sandbox(&[&["replay", "s"][..], words].concat());
        output.assert_code(0);
        output.out().into_owned()
    };
    assert!(shown(&[]).contains("in a terminal"));
    assert!(shown(&["--command", "1"]).contains("one"));
    sessions.sandbox(&["replay", "s", "--command", "9"]).assert_code(125);
    sessions.sandbox(&["rm", "--force", "s"]).assert_code(0);
    assert!(!recording(1).exists());
}

/// Proves: LIFE-6 sessions
#[test]
fn one_command_of_a_session_is_recorded_if_asked_for() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "s"]);
    sessions.output_of("s", &["echo", "not recorded"]);
    sessions.sandbox(&["exec", "--record", "s", "--", "echo", "recorded"]).assert_code(0);
    let all = sessions.directory(&id).join("recordings");
    let names: Vec<_> = fs::read_dir(&all).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["2.cast"]);
    assert_eq!(text(&all.join("2.cast"), CastKind::Output), "recorded\n");
    let refused = sessions.sandbox(&["exec", "-d", "--record", "s", "--", "true"]);
    refused.assert_code(125);
    assert!(refused.err().contains("--record"), "{}", refused.err());
}
