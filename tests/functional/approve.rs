//! `sandbox approve` and the protocol behind it: a run waits, somebody else answers (GATE-4 to GATE-6,
//! TOOL-2).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use palisade_testkit::{Output, Running, World, patiently};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::approve_support;
use crate::tmux::Tmux;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A file that no view shows and the user could read.
fn hidden_file(world: &World, name: &str) -> String {
    world.write(format!("home/papers/{name}"), "read me\n").to_string_lossy().into_owned()
}

fn waiting_run(world: &World, command: &[&str]) -> Running {
    world.sandbox(["run", "--quiet", "--on-ask", "wait", "--"]).args(command).spawn()
}

fn approve(world: &World, arguments: &[&str]) -> Output {
    world.sandbox(["approve"]).args(arguments).run()
}

/// The open questions, as soon as there are so many.
#[track_caller]
fn questions(world: &World, count: usize) -> Vec<Value> {
    approve_support::questions(count, || approve(world, &["--json"]))
}

fn sockets(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/run")
}

const PYTHON_CLIENT: &str = include_str!("../clients/approve_client.py");

/// Proves: TOOL-2 socket
#[test]
fn nobody_asks_is_an_empty_list_and_no_answer() {
    let world = World::new();
    assert_eq!(questions(&world, 0), [Value::Null; 0]);
    let refused = approve(&world, &["--yes", "1"]);
    refused.assert_code(1);
    assert!(refused.err().contains("no question 1 is open"), "{}", refused.err());
    let no_terminal = approve(&world, &[]);
    no_terminal.assert_code(125);
    assert!(no_terminal.err().contains("--json"), "{}", no_terminal.err());
}

/// Proves: GATE-1 blocks-and-asks, GATE-1 approve-continues, GATE-4 once, TOOL-2 socket
#[test]
fn a_yes_lets_the_same_call_succeed_once() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let script = format!("cat {file}; cat {file}");
    let run = waiting_run(&world, &["sh", "-c", &script]);
    let asked = &questions(&world, 1)[0];
    assert_eq!(asked["path"], file.as_str());
    assert_eq!((&asked["access"], &asked["isSecret"]), (&"read".into(), &false.into()));
    assert!(asked["exe"].as_str().unwrap().ends_with("/cat"), "{asked}");
    let address = asked["address"].as_str().unwrap().to_owned();
    let yes = approve(&world, &["--yes", &address]);
    yes.assert_code(0);
    assert_eq!(yes.out(), format!("allowed once: {file}\n"));
    // The second one asks again.
    let again = questions(&world, 1)[0]["address"].as_str().unwrap().to_owned();
    assert_ne!(again, address);
    approve(&world, &["--yes", &address]).assert_code(1);
    approve(&world, &["--no", &again, "--once"]).assert_code(0);
    let output = run.wait();
    output.assert_code(1);
    assert_eq!(output.out(), "read me\n");
    assert!(output.err().contains("Permission denied"), "{}", output.err());
}

/// Proves: GATE-4 session, GATE-4 tree
#[test]
fn a_directory_is_allowed_for_the_session() {
    let world = World::new();
    let first = hidden_file(&world, "one");
    let second = hidden_file(&world, "two");
    let run = waiting_run(&world, &["cat", &first, &second]);
    let asked = &questions(&world, 1)[0];
    assert_eq!(asked["directory"], world.home().join("papers").to_str().unwrap());
    approve(&world, &["--yes", "1", "--directory"]).assert_code(0);
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "read me\nread me\n");
}

/// Proves: GATE-1 deny-eacces, GATE-4 session
#[test]
fn a_no_holds_for_the_session() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let run = waiting_run(&world, &["cat", &file, &file]);
    questions(&world, 1);
    let no = approve(&world, &["--no", "1"]);
    no.assert_code(0);
    assert_eq!(no.out(), format!("denied for the session: {file}\n"));
    let output = run.wait();
    output.assert_code(1);
    assert_eq!(output.err().matches("Permission denied").count(), 2, "{}", output.err());
}

/// Proves: TOOL-2 the-one-meant, FS-2 asked-in-red
#[test]
fn a_secret_is_allowed_by_its_full_name_and_in_so_many_words() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let run = waiting_run(&world, &["cat", &secret]);
    let asked = &questions(&world, 1)[0];
    let address = asked["address"].as_str().unwrap();
    let session = asked["session"].as_str().unwrap();
    assert_eq!(address, format!("{}:1", &session[session.len() - 8..]));
    for (words, why) in [
        (&["--yes", "1"][..], "is about a secret"),
        (&["--yes", "1", "--secret"], "is about a secret"),
        (&["--no", "1"], "is about a secret"),
        (&["--yes", address], "--secret"),
        (&["--yes", &format!("{}:1", &session[..8]), "--secret"], "no question"),
    ] {
        let refused = approve(&world, words);
        refused.assert_code(1);
        assert!(refused.err().contains(why), "{words:?}: {}", refused.err());
    }
    approve(&world, &["--yes", address, "--secret"]).assert_code(0);
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "the key\n");
}

/// Proves: TOOL-2 the-one-meant
#[test]
fn a_number_alone_answers_nothing_while_two_sessions_ask() {
    let world = World::new();
    let (first, second) = (hidden_file(&world, "one"), hidden_file(&world, "two"));
    let runs = [waiting_run(&world, &["cat", &first]), waiting_run(&world, &["cat", &second])];
    let asked = questions(&world, 2);
    let refused = approve(&world, &["--yes", "1"]);
    refused.assert_code(1);
    assert!(refused.err().contains("say which session"), "{}", refused.err());
    for question in &asked {
        approve(&world, &["--yes", question["address"].as_str().unwrap()]).assert_code(0);
    }
    for run in runs {
        run.wait().assert_code(0);
    }
}

/// Proves: GATE-6 socket, GATE-6 messages
#[test]
fn a_client_in_another_language_lists_and_approves() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let run = waiting_run(&world, &["cat", &file]);
    questions(&world, 1);
    let client = world.write("approve_client.py", PYTHON_CLIENT);
    let python = |arguments: &[&str]| {
        world.bare("python3").arg(&client).arg(sockets(&world)).args(arguments).run()
    };
    let listed = python(&["list"]);
    listed.assert_code(0);
    let question: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&question["path"], &question["id"]), (&file.as_str().into(), &1.into()));
    let answered = python(&["approve", &file, "--lifetime", "session"]);
    answered.assert_code(0);
    let audit: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(audit["source"], "socket");
    assert_eq!(audit["by"]["name"], "approve_client.py");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "read me\n");
}

/// A run that has nobody to ask waits for whoever says to be there; `--watch` does.
///
/// Proves: GATE-6 socket, TOOL-2 socket
#[test]
fn whoever_watches_is_waited_for() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let alone = world.sandbox(["run", "--quiet", "--", "cat", &file]).run();
    alone.assert_code(1);
    let watch = world.sandbox(["approve", "--json", "--watch"]).spawn();
    let end = Instant::now() + patiently(TIMEOUT);
    while !sockets(&world).join("approver.lock").exists() {
        assert!(Instant::now() < end, "nobody attends");
        std::thread::yield_now();
    }
    let run = world.sandbox(["run", "--quiet", "--", "cat", &file]).spawn();
    watch.wait_for_stdout("\"event.fs_request\"");
    approve(&world, &["--yes", "1"]).assert_code(0);
    run.wait().assert_code(0);
    watch.wait_for_stdout("\"session.vanished\"");
    watch.signal(Signal::TERM);
    let output = watch.wait();
    let types: Vec<String> = output
        .out()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().into())
        .collect();
    assert_eq!(types, ["session.appeared", "event.fs_request", "event.audit", "session.vanished"]);
}

/// Proves: TOOL-2 terminal, GATE-4 once
#[test]
fn the_list_in_another_terminal_answers_with_one_key() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let secret = world.write("home/.ssh/id_ed25519", "key\n").to_string_lossy().into_owned();
    let tmux = Tmux::new(&world);
    tmux.resize(60, 30);
    tmux.line("sandbox approve --no-notify");
    tmux.wait_until("an empty list", |_| tmux.visible().contains("no questions"));
    let run = waiting_run(&world, &["cat", &file, &secret]);
    for text in [
        "1 question in 1 session",
        "wanted by   /",
        "command     cat",
        "why asked",
        "y once   s session",
    ] {
        tmux.wait_until(text, |_| tmux.visible().contains(text));
    }
    press_until(&tmux, "y", &format!("allowed once: {}", tail_of(&file)));
    tmux.wait_until("the secret", |_| tmux.visible().contains("THIS IS A SECRET"));
    // One key is not enough; the word is, and Enter.
    press_until(&tmux, "y", "then Enter: y");
    tmux.keys(&["Escape"]);
    questions(&world, 1);
    type_until(&tmux, "no", "denied for the session");
    let output = run.wait();
    output.assert_code(1);
    assert_eq!(output.out(), "read me\n");
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// Proves: GATE-4 stores, TOOL-2 terminal
#[test]
fn a_key_in_the_list_saves_what_was_answered() {
    let world = World::new();
    let (first, second) = (hidden_file(&world, "first"), hidden_file(&world, "second"));
    let tmux = Tmux::new(&world);
    tmux.line("sandbox approve --no-notify");
    tmux.wait_until("an empty list", |_| tmux.visible().contains("no questions"));
    let run = waiting_run(&world, &["cat", &first, &second]);
    press_until(&tmux, "s", &format!("allowed for the session: {}", tail_of(&first)));
    tmux.wait_until("the next question", |_| tmux.visible().contains("w save"));
    press_until(&tmux, "w", "press Enter to confirm");
    let file = world.home().join(".config/palisade/policy.yaml");
    assert!(!file.exists());
    tmux.keys(&["Enter"]);
    tmux.wait_until("it is saved", |_| tmux.visible().contains("answers are saved"));
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.contains(&first) && !saved.contains(&second), "{saved}");
    press_until(&tmux, "n", "denied for the session");
    run.wait().assert_code(1);
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// Proves: TOOL-2 terminal-restored
#[test]
fn who_is_told_to_end_puts_the_terminal_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let world = World::new();
        let tmux = Tmux::new(&world);
        tmux.line("echo written before");
        tmux.wait_for_line("written before");
        // Not by the shell at the prompt, which would put the terminal back by itself.
        let own = "echo $$ > approve.pid; exec sandbox approve --no-notify";
        tmux.line(&format!("sh -c 'sh -c \"$0\"; echo ended $?; stty -a' '{own}'"));
        tmux.wait_until("the list", |_| tmux.visible().contains("no questions"));
        assert!(!tmux.visible().contains("written before"), "it has a screen of its own");
        let pid = std::fs::read_to_string(world.project().join("approve.pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        tmux.wait_for_line(&format!("ended {code}"));
        tmux.wait_until("the settings", |_| tmux.visible().contains("icanon"));
        let shown = tmux.visible();
        assert!(shown.contains("written before"), "the other screen is back:\n{shown}");
        for wanted in ["icanon", "echo", "isig", "icrnl", "opost"] {
            let is_set = shown.split_whitespace().any(|word| word.trim_end_matches(';') == wanted);
            assert!(is_set, "{wanted} is off:\n{shown}");
        }
    }
}

/// The line at the bottom shows the end of a long path.
fn tail_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Somebody types into a shell, the list opens over it, and every key asks for a rule.
///
/// Proves: GATE-11 armed, GATE-11 permanent-enter
#[test]
fn keys_that_were_meant_for_a_shell_answer_nothing() {
    let world = World::new();
    let file = hidden_file(&world, "letter");
    let run = waiting_run(&world, &["cat", &file]);
    questions(&world, 1);
    let tmux = Tmux::new(&world);
    tmux.line("sandbox approve --no-notify");
    let end = Instant::now() + patiently(TIMEOUT);
    let mut typed = 0;
    while typed < 20 || !tmux.visible().contains("key ignored: too fast") {
        assert!(Instant::now() < end, "no key was ignored:\n{}", tmux.visible());
        tmux.keys(&["a"]);
        typed += 1;
        std::thread::sleep(Duration::from_millis(150));
    }
    questions(&world, 1);
    assert!(!world.home().join(".config/palisade/policy.yaml").exists());
    press_until(&tmux, "n", "denied for the session");
    run.wait().assert_code(1);
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// The list for one session shows no other, and ends with it.
///
/// Proves: GATE-11 ask-in
#[test]
fn a_list_for_one_session_ends_with_it() {
    let world = World::new();
    let (first, second) = (hidden_file(&world, "first"), hidden_file(&world, "second"));
    let other = waiting_run(&world, &["cat", &second]);
    let session = questions(&world, 1)[0]["session"].as_str().unwrap().to_owned();
    let run = waiting_run(&world, &["cat", &first]);
    let both = questions(&world, 2);
    let mut own = both.iter().map(|asked| asked["session"].as_str().unwrap());
    let own = own.find(|name| *name != session).unwrap().to_owned();
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox approve --no-notify --only-session {own}"));
    tmux.wait_until("one question", |_| tmux.visible().contains("1 question in 1 session"));
    assert!(!tmux.visible().contains("papers/second"), "{}", tmux.visible());
    press_until(&tmux, "y", "ready>");
    run.wait().assert_code(0);
    tmux.expect_status(0);
    other.signal(Signal::TERM);
    let _ = other.wait();
}

/// Answers need a pause before them.
const PAUSE: Duration = Duration::from_millis(800);

/// Types a word letter by letter, and Enter, until the list shows what came of it.
#[track_caller]
fn type_until(tmux: &Tmux<'_>, word: &str, shown: &str) {
    let end = Instant::now() + patiently(TIMEOUT);
    while !tmux.visible().contains(shown) {
        assert!(Instant::now() < end, "`{shown}` never came:\n{}", tmux.visible());
        tmux.keys(&["Escape"]);
        for letter in word.chars() {
            std::thread::sleep(PAUSE);
            tmux.keys(&[&letter.to_string()]);
        }
        std::thread::sleep(PAUSE);
        tmux.keys(&["Enter"]);
        std::thread::sleep(PAUSE);
    }
}

/// Answers are not taken for a moment after a key or a change of the list.
#[track_caller]
fn press_until(tmux: &Tmux<'_>, key: &str, shown: &str) {
    let words: Vec<&str> = shown.split(": ").collect();
    let end = Instant::now() + patiently(TIMEOUT);
    while !words.iter().all(|word| tmux.visible().contains(word)) {
        assert!(Instant::now() < end, "`{shown}` never came:\n{}", tmux.visible());
        if !tmux.visible().contains("no questions") {
            tmux.keys(&[key]);
        }
        let looked = Instant::now();
        while looked.elapsed() < PAUSE && !words.iter().all(|word| tmux.visible().contains(word)) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Forty at once, on the two usual sizes of a window: the list, its help, a search, and one answer to all of them.
///
/// Proves: TOOL-2 many, TOOL-2 terminal, GATE-4 alike
#[test]
fn forty_questions_are_searched_and_answered_together() {
    for (columns, lines, least) in [(80, 24, 7), (120, 40, 20)] {
        let world = World::new();
        let file = |number: usize| hidden_file(&world, &format!("file-{number:02}"));
        let files: Vec<String> = (1..=40).map(file).collect();
        let run = waiting_run(
            &world,
            &["sh", "-c", "for f; do cat $f & done; wait", "sh"]
                .into_iter()
                .chain(files.iter().map(String::as_str))
                .collect::<Vec<_>>(),
        );
        questions(&world, 40);
        let tmux = Tmux::new(&world);
        tmux.resize(columns, lines);
        tmux.line("sandbox approve --no-notify");
        let shows = |text: &str| tmux.wait_until(text, |_| tmux.visible().contains(text));
        shows("40 questions in 1 session; 1 of 40");
        // The window may be looked at while it is drawn.
        tmux.wait_until("the list, its details and the keys", |_| {
            let visible = tmux.visible();
            let rows = visible.lines().filter(|line| line.contains("  read ")).count();
            rows >= least && visible.contains("wanted by   /") && visible.contains("? help")
        });

        tmux.keys(&["G"]);
        shows("40 of 40");
        tmux.keys(&["g"]);
        shows("1 of 40");
        tmux.keys(&["?"]);
        shows("first, last question");
        tmux.keys(&["y"]);
        shows("40 questions in 1 session");
        tmux.keys(&["/"]);
        tmux.keys(&["-l", "file-4"]);
        shows("1 with `file-4`");
        tmux.keys(&["Escape"]);
        shows(" of 40");

        tmux.keys(&["="]);
        shows("d 40 questions in directory ");
        shows("p 40 questions of program ");
        tmux.keys(&["d"]);
        shows("one answer to all of them");
        assert!(tmux.visible().lines().filter(|line| line.starts_with('*')).count() >= least);
        questions(&world, 40);
        press_until(&tmux, "s", "40 questions: allowed for the session");
        let output = run.wait();
        output.assert_code(0);
        assert_eq!(output.out(), "read me\n".repeat(40), "{}", output.err());
        tmux.keys(&["q"]);
        tmux.expect_status(0);
    }
}
