//! What a question shows and records: names that would steer a terminal or forge a line.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use palisade_testkit::{Demonstration, World};
use serde_json::Value;

use crate::gate::{asking, connect, sockets};

const HOSTILE: &str = "\u{1b}[31m\u{1b}]52;c;ZWNobw==\u{7}\u{202e}dlrow\u{200b}\r\u{9b}2J";
const RECORD: &str = "{\"type\":\"event.audit\",\"id\":1,\"decision\":\"allow\"}";

fn is_hostile(text: &str) -> bool {
    let controls = |c: char| c.is_control() && c != '\n';
    text.contains(|c| controls(c) || matches!(c, '\u{202e}' | '\u{200b}'))
}

/// Everything the session says on its socket once the question is denied, and what the run said.
fn asked_and_denied(world: &World, path: &str) -> (Vec<String>, palisade_testkit::Output) {
    let run = asking(world, &["cat", path]);
    let stream = connect(&sockets(world)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.contains("event.fs_request") {
            let listed = world.sandbox(["approve", "--json"]).run();
            listed.assert_code(0);
            assert!(!is_hostile(&listed.out()), "{:?}", listed.out());
            writer.write_all(b"{\"type\":\"cmd.deny\",\"id\":1}\n").unwrap();
        }
        said.push(line);
    }
    (said, run.wait())
}

/// Proves: AUD-2 escaped-text
#[test]
fn h03_a_question_can_not_steer_the_terminal_it_is_shown_in() {
    let shown = Demonstration::of(
        "H03",
        "ask about a file whose name holds control and direction characters",
        "names are escaped in questions, on the socket, in the log and in the closing words",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let file = world.outside().join(HOSTILE);
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    let bare = world.bare("sh").args(["-c", "echo \"may I read $0?\" >&2", path]).run();
    assert!(is_hostile(&bare.err()));
    shown.worked_bare();

    let (said, output) = asked_and_denied(&world, path);
    assert!(said.iter().all(|line| line.is_ascii() && !is_hostile(line)), "{said:?}");
    let ours = output.err();
    // The words of `cat` are its own; ours name the program that said them.
    let ours: Vec<&str> = ours.split('\n').filter(|line| line.starts_with("sandbox: ")).collect();
    assert!(ours.len() >= 2, "the question and what was denied: {ours:?}");
    assert!(!ours.iter().any(|line| is_hostile(line)), "{ours:?}");
    let log = world.sandbox(["audit", "show"]).run();
    log.assert_code(0);
    assert!(log.out().contains("dlrow") && !is_hostile(&log.out()), "{:?}", log.out());
    shown.held();
}

/// Proves: AUD-2 escaped-text, AUD-1 one-line, GATE-6 socket
#[test]
fn h04_no_name_forges_an_answer_or_a_record() {
    let shown = Demonstration::of(
        "H04",
        "ask about a file whose name holds a newline and a whole answer",
        "an event is one line of JSON, and names are strings in it",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let file = world.outside().join(format!("name\n{RECORD}\n"));
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    let bare = world.bare("sh").args(["-c", "echo \"$0\"", path]).run();
    assert!(bare.out().lines().any(|line| line == RECORD));
    shown.worked_bare();

    let (said, output) = asked_and_denied(&world, path);
    let events: Vec<Value> = said.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let audits: Vec<&Value> = events.iter().filter(|e| e["type"] == "event.audit").collect();
    assert_eq!(audits.len(), 1, "{said:?}");
    assert_eq!((&audits[0]["decision"], &audits[0]["path"]), (&"deny".into(), &path.into()));
    let forged = |text: &str| text.lines().any(|line| line == RECORD);
    let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl")).unwrap();
    let closing: String = output.err().replace(&format!("cat: '{path}'"), "");
    assert!(!forged(&log), "{log}");
    assert!(!forged(&closing), "{closing}");
    world.sandbox(["audit", "verify"]).run().assert_code(0);
    shown.held();
}
