//! What a question shows and records: names that would steer a terminal or forge a line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use palisade_testkit::{Attack, Output, World};
use serde_json::Value;

use crate::answering::{WAIT, connect_until, sockets};
use crate::host::strings;

const HOSTILE: &str = "\u{1b}[31m\u{1b}]52;c;ZWNobw==\u{7}\u{202e}dlrow\u{200b}\r\u{9b}2J";
macro_rules! record {
    () => {
        "{\"type\":\"event.audit\",\"id\":1,\"decision\":\"allow\"}"
    };
}

fn is_hostile(text: &str) -> bool {
    let controls = |c: char| c.is_control() && c != '\n';
    text.contains(|c| controls(c) || matches!(c, '\u{202e}' | '\u{200b}'))
}

/// Denies the one question, looks at it as people do, and keeps everything the session says on its socket.
fn deny_and_listen(world: &World, over: &AtomicBool) {
    let Some(stream) = connect_until(&sockets(world), over) else { return };
    let mut writer = stream.try_clone().unwrap();
    let mut said = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.contains("event.fs_request") {
            let listed = world.sandbox(["approve", "--json"]).run();
            listed.assert_code(0);
            assert!(!is_hostile(&listed.out()), "{:?}", listed.out());
            writer.write_all(b"{\"type\":\"cmd.deny\",\"id\":1}\n").unwrap();
        }
        said.push_str(&line);
        said.push('\n');
    }
    world.write("said", said);
}

fn said(world: &World) -> String {
    fs::read_to_string(world.path().join("said")).unwrap()
}

/// A question about a file of this name, and a bare program that asks in the same words.
fn asked_about(id: &'static str, what: &'static str, name: &'static str) -> Attack {
    let file = move |world: &World| -> PathBuf { world.outside().join(name) };
    let words = move |world: &World, script: &str| {
        strings(&["sh", "-c", script, file(world).to_str().unwrap()])
    };
    Attack::new(id, what)
        .held_by(&["escaped-text"])
        .flags(|_| strings(&WAIT))
        .prepare(move |world| fs::write(file(world), "").unwrap())
        .command(move |world| words(world, r#"cat "$0" 2>/dev/null"#))
        .bare_command(move |world| words(world, r#"echo "sandbox: may I read $0?" >&2"#))
        .company(deny_and_listen)
}

/// Proves: AUD-2 escaped-text
#[test]
fn h03_a_question_cannot_steer_the_terminal_it_is_shown_in() {
    let what = "ask about a file whose name holds control and direction characters";
    let ours = |output: &Output| -> Vec<String> {
        let lines = output.err();
        let ours = lines.split('\n').filter(|line| line.starts_with("sandbox: "));
        ours.map(str::to_owned).collect()
    };
    asked_about("H03", what, HOSTILE)
        .succeeded(move |_, output| ours(output).iter().any(|line| is_hostile(line)))
        .contained(move |world, output| {
            let log = world.sandbox(["audit", "show"]).run();
            log.assert_code(0);
            let said = said(world);
            // The question and what was denied.
            ours(output).len() >= 2
                && said.contains("dlrow")
                && said.is_ascii()
                && !is_hostile(&said)
                && log.out().contains("dlrow")
                && !is_hostile(&log.out())
        })
        .check();
}

/// Proves: AUD-2 escaped-text, AUD-1 one-line, GATE-6 socket
#[test]
fn h04_no_name_forges_an_answer_or_a_record() {
    const NAME: &str = concat!("name\n", record!(), "\n");
    let forged = |text: &str| text.lines().any(|line| line == record!());
    asked_about("H04", "ask about a file whose name holds a newline and a whole answer", NAME)
        .succeeded(move |_, output| forged(&output.err()))
        .contained(move |world, _| {
            let path = world.outside().join(NAME).to_str().unwrap().to_owned();
            let events: Vec<Value> =
                said(world).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let audits: Vec<&Value> =
                events.iter().filter(|event| event["type"] == "event.audit").collect();
            let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl"));
            world.sandbox(["audit", "verify"]).run().assert_code(0);
            audits.len() == 1
                && (&audits[0]["decision"], &audits[0]["path"]) == (&"deny".into(), &path.into())
                && !forged(&log.unwrap())
        })
        .check();
}
