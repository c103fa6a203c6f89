//! What an answer covers, and what it does not: one call, a session, a directory, for good (GATE-4, GATE-5).

use std::fs;
use std::os::unix::fs::symlink;

use palisade_testkit::World;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::gate::{Client, asking, asking_script, hidden};
use crate::helper_death::wait_for_helper;

/// Starts threads that all do `touch(number)` and prints what came of each kind, counted.
const THREADS: &str = r#"
import collections, errno, os, sys, threading
count, paths = int(sys.argv[1]), sys.argv[2:]
results = collections.Counter()
def touch(number):
    try:
        os.stat(paths[number % len(paths)])
        results["ok"] += 1
    except OSError as error:
        results[errno.errorcode[error.errno]] += 1
threading.stack_size(65536)
threads = [threading.Thread(target=touch, args=(n,)) for n in range(count)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(dict(results))
"#;

/// Runs it until all of them wait.
fn threads(world: &World, count: usize, paths: &[&str]) -> palisade_testkit::Running {
    world.write_in_project("threads.py", THREADS);
    let count = count.to_string();
    asking(world, &[], &[&["python3", "threads.py", &count], paths].concat()).spawn()
}

/// Reads until so many calls wait for this question.
fn wait_for_requests(client: &mut Client, asked: &Value, count: usize) {
    let mut question = asked.clone();
    while question["id"] != asked["id"] || question["requests"].as_array().unwrap().len() < count {
        question = client.event("event.fs_request");
    }
}

/// So many threads wait for one file, and one answer lets them all go on.
fn one_yes_serves_all(count: usize, lifetime: &str) -> Client {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = threads(&world, count, &[&file]);
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    wait_for_requests(&mut client, &question, count);
    client.allow(&question, lifetime);
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{{'ok': {count}}}\n"));
    client
}

/// Proves: GATE-5 asked-once, GATE-5 bounded, GATE-1 approve-continues
#[test]
fn one_question_is_asked_for_two_thousand_threads() {
    let client = one_yes_serves_all(2000, "session");
    assert_eq!(client.answer_all(&json!({})).len(), 0, "something else was asked");
}

/// Proves: GATE-5 asked-once, GATE-4 once
#[test]
fn one_yes_for_once_is_for_all_who_wait() {
    one_yes_serves_all(40, "once");
}

/// Proves: GATE-4 tree, GATE-5 asked-once
#[test]
fn a_directory_answers_every_question_below_it() {
    let world = World::new();
    let files: Vec<String> = (0..20).map(|n| hidden(&world, &format!("many/{n}"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = threads(&world, files.len(), &files);
    let mut client = Client::connect(&world);
    let questions: Vec<_> = files.iter().map(|_| client.question()).collect();
    let directory = world.outside().join("many");
    assert_eq!(questions[0]["directory"], directory.to_str().unwrap());
    client.allow_directory(&questions[7]);
    let answered = questions.iter().map(|_| client.event("event.audit"));
    assert!(answered.into_iter().all(|audit| audit["decision"] == "allow"));
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{{'ok': {}}}\n", files.len()));
}

/// Three hundred paths at once: more than are asked about at a time. The others wait for their turn, and nobody is denied
/// unasked.
///
/// Proves: GATE-5 bounded
#[test]
fn a_flood_of_questions_is_asked_in_turn() {
    let world = World::new();
    let files: Vec<String> = (0..300).map(|n| hidden(&world, &format!("{n}/file"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = threads(&world, files.len(), &files);
    let mut client = Client::connect(&world);
    let first: Vec<Value> = (0..256).map(|_| client.question()).collect();
    client.deny(&first[0], "once");
    let turn = client.question();
    assert!(!first.iter().any(|question| question["path"] == turn["path"]), "{turn}");
    client.deny(&turn, "once");
    for question in &first[1..] {
        client.allow(question, "session");
    }
    let last = client.answer_all(&crate::gate::yes("session"));
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(first.len() + 1 + last.len(), files.len());
    for part in ["'ok': 298", "'EACCES': 2"] {
        assert!(output.out().contains(part), "{}", output.out());
    }
    assert!(!output.err().contains("without asking"), "{}", output.err());
}

/// Six hundred names in one directory: the answer for the directory is theirs, also of those that were not asked about yet.
///
/// Proves: GATE-5 bounded, GATE-4 tree
#[test]
fn an_answer_for_a_directory_serves_those_in_line() {
    let world = World::new();
    let files: Vec<String> = (0..600).map(|n| hidden(&world, &format!("many/{n}"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = threads(&world, files.len(), &files);
    let mut client = Client::connect(&world);
    let questions: Vec<Value> = (0..256).map(|_| client.question()).collect();
    client.allow_directory(&questions[200]);
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{{'ok': {}}}\n", files.len()), "{}", output.err());
    assert_eq!(client.answer_all(&crate::gate::no("once")).len(), 0, "something else was asked");
}

/// More requests than the socket to the keeper has room for: they are sent when there is room, and none of what is granted
/// fails.
///
/// Proves: GATE-5 bounded
#[test]
fn a_flood_of_granted_paths_is_granted() {
    let world = World::new();
    let files: Vec<String> = (0..800).map(|n| hidden(&world, &format!("{n}/file"))).collect();
    let missing: Vec<String> = (0..800)
        .map(|n| world.outside().join(format!("{n}/missing")).to_str().unwrap().to_owned())
        .collect();
    let paths: Vec<&str> = files.iter().chain(&missing).map(String::as_str).collect();
    world.write_in_project("threads.py", THREADS);
    world.write_in_project("paths", paths.join("\n"));
    let script = "exec python3 threads.py 1600 $(cat paths)";
    let output = world.sandbox_run(["--on-ask", "allow"], ["sh", "-c", script]).run();
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    assert!(output.out().contains("'ok': 800"), "{} {}", output.out(), report["notes"]);
    assert!(output.out().contains("'ENOENT': 800"), "{}", output.out());
}

/// A keeper that does nothing for a while, as one does that searches a large directory: its socket is full then. What it
/// is asked meanwhile is sent later, and nothing is refused for that.
///
/// Proves: GATE-5 bounded
#[test]
fn what_finds_no_room_at_a_busy_keeper_is_asked_later() {
    let world = World::new();
    let files: Vec<String> = (0..600).map(|n| hidden(&world, &format!("{n}/file"))).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = threads(&world, files.len(), &files);
    let mut client = Client::connect(&world);
    let first: Vec<Value> = (0..256).map(|_| client.question()).collect();
    let keeper = wait_for_helper(&run, "sandbox-keeper");
    kill_process(keeper, Signal::STOP).unwrap();
    let deny = |question: &Value| {
        let command = json!({"type": "cmd.deny", "id": question["id"], "lifetime": "once"});
        format!("{command}\n")
    };
    // All at once: each of them is something that the keeper may forget.
    client.send(first.iter().map(deny).collect::<String>().as_bytes());
    for _ in &first {
        client.event("event.audit");
    }
    kill_process(keeper, Signal::CONT).unwrap();
    client.answer_all(&crate::gate::yes("session"));
    let output = run.wait();
    output.assert_code(0);
    for part in ["'ok': 344", "'EACCES': 256"] {
        assert!(output.out().contains(part), "{} {}", output.out(), output.err());
    }
    let notes = output.report.as_ref().unwrap()["notes"].to_string();
    assert!(!notes.contains("could not be looked at"), "{notes}");
}

const LOOK_ONCE: &str = r#"
import os, sys, time
path = sys.argv[1]
os.stat(path)
def shown():
    with open("/proc/self/mountinfo") as mounts:
        return any("/outside" in line for line in mounts)
end = time.monotonic() + 10
while shown() and time.monotonic() < end: time.sleep(0.01)
print("gone" if not shown() else "still there", os.path.exists(os.path.dirname(path)))
"#;

/// Proves: GATE-4 short-lived
#[test]
fn what_was_shown_for_one_call_is_gone_after_it() {
    let world = World::new();
    let file = hidden(&world, "only/once");
    world.write_in_project("look.py", LOOK_ONCE);
    let run = asking(&world, &[], &["python3", "look.py", &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question();
    client.allow(&question, "once");
    // The directory it lies in is a question of its own.
    let above = client.question();
    assert_eq!(above["isDirectory"], true);
    client.deny(&above, "once");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "gone False\n");
}

const REOPEN: &str = r#"
import errno, os, sys
path = sys.argv[1]
def attempt(what, act):
    try:
        act()
        print(what, "done")
    except OSError as error:
        print(what, errno.errorcode[error.errno])
fd = os.open(path, os.O_RDONLY)
print(os.read(fd, 100))
own = f"/proc/self/fd/{fd}"
attempt("rdwr", lambda: os.open(own, os.O_RDWR))
attempt("trunc", lambda: os.open(own, os.O_WRONLY | os.O_TRUNC))
attempt("fchmod", lambda: os.fchmod(fd, 0o777))
attempt("utime", lambda: os.utime(fd))
attempt("link", lambda: os.link(own, "stolen", follow_symlinks=True))
attempt("read", lambda: os.open(own, os.O_RDONLY))
attempt("above", lambda: os.open("..", os.O_RDONLY, dir_fd=fd))
attempt("again", lambda: os.open(path, os.O_WRONLY))
"#;

/// Proves: GATE-4 once, GATE-4 session, GATE-1 writes-wait
#[test]
fn a_granted_file_cannot_be_reopened_for_writing() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        let file = hidden(&world, "precious");
        world.write_in_project("reopen.py", REOPEN);
        let run = asking(&world, &[], &["python3", "reopen.py", &file]).spawn();
        let mut client = Client::connect(&world);
        let question = client.question_about(&file);
        client.allow(&question, lifetime);
        // By its path it is asked about again.
        let writing = client.question();
        assert_eq!(writing["access"], "write");
        client.deny(&writing, "once");
        let output = run.wait();
        output.assert_code(0);
        let said = output.out();
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("b'content of precious\\n'"), "{said}");
        for line in lines {
            let (what, result) = line.split_once(' ').unwrap();
            assert_eq!(result == "done", what == "read", "{lifetime}: {line}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "content of precious\n");
        assert!(!world.project().join("stolen").exists());
    }
}

/// Proves: GATE-4 tree, GATE-1 grounds
#[test]
fn nothing_but_the_directory_is_seen_of_its_surroundings() {
    let world = World::new();
    let file = hidden(&world, "given/a");
    let beside = hidden(&world, "beside/b");
    let given = world.outside().join("given").to_string_lossy().into_owned();
    let script = format!(
        "cat {file}; ls {given}/..; cd {given} && ls ../..; cat ../beside/b; echo x >{given}/new"
    );
    let run = asking_script(&world, &script);
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow_directory(&question);
    let question = client.question_about(&beside);
    client.deny(&question, "once");
    // A directory that may be read may not be written.
    let question = client.question_about(&given);
    assert_eq!(question["act"], "create");
    client.deny(&question, "once");
    let output = run.wait();
    output.assert_code(2);
    assert_eq!(output.out(), "content of given/a\ngiven\nhome\noutside\n");
    assert!(output.err().contains("Permission denied"), "{}", output.err());
    assert!(!world.outside().join("given/new").exists());
}

/// Proves: GATE-2 true-path
#[test]
fn a_planted_link_shows_where_it_leads() {
    let world = World::new();
    let file = hidden(&world, "harmless-name/../actual");
    let file = fs::canonicalize(file).unwrap().to_string_lossy().into_owned();
    symlink(&file, world.project().join("README")).unwrap();
    let run = asking(&world, &[], &["cat", "README"]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.deny(&question, "once");
    run.wait().assert_code(1);
}

/// Proves: GATE-4 always, GATE-4 stores
#[test]
fn a_yes_for_good_is_not_asked_again_by_the_next_run() {
    let world = World::new();
    let file = hidden(&world, "known");
    let run = asking(&world, &[], &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "always");
    run.wait().assert_code(0);
    let again = world.sandbox_run(["--on-ask", "deny"], ["cat", &file]).run();
    again.assert_code(0);
    assert_eq!(again.out(), "content of known\n");
}

/// Proves: FS-2 asked-in-red, GATE-4 directory-offered
#[test]
fn a_secret_is_asked_about_as_one_and_alone() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "key\n").to_string_lossy().into_owned();
    let run = asking(&world, &[], &["cat", &secret]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&secret);
    assert_eq!(question["isSecret"], true);
    assert!(question["directory"].is_null(), "{question}");
    let whole = json!({"type": "cmd.approve", "id": question["id"], "scope": "dir"});
    assert_eq!(client.command(whole)["code"], "not_offered");
    client.allow(&question, "once");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "key\n");
}

/// A client in another language: a no, and a directory.
///
/// Proves: GATE-6 messages, GATE-4 tree, TOOL-2 socket
#[test]
fn a_client_in_another_language_denies_and_allows_a_directory() {
    let world = World::new();
    let (first, second) = (hidden(&world, "a/first"), hidden(&world, "b/second"));
    let third = hidden(&world, "b/third");
    let client = world.write("approve_client.py", include_str!("../clients/approve_client.py"));
    let run = asking(&world, &[], &["cat", &first, &second, &third]).spawn();
    let python = |words: &[&str]| {
        let directory = crate::gate::socket_directory(&world);
        world.bare("python3").arg(&client).arg(directory).args(words).run().assert_code(0);
    };
    python(&["deny", &first, "--lifetime", "once"]);
    python(&["approve", &second, "--directory"]);
    let output = run.wait();
    output.assert_code(1);
    assert_eq!(output.out(), "content of b/second\ncontent of b/third\n");
    assert_eq!(output.err().matches("Permission denied").count(), 1, "{}", output.err());
}

/// Reads, lets a helper read, waits for an answer about something else, and reads again; then after a while.
const ONE_USE: &str = r"
import os, subprocess, sys, time
path, other = sys.argv[1:3]
os.stat(path)
open(path).read()
os.access(path, os.R_OK)
subprocess.run(['cat', path], check=True)
os.stat(other)
open(path).read()
time.sleep(6)
try: open(path)
except PermissionError: print('asked again', flush=True)
";

/// A person answers for a use, not for a system call: neither what the program does for it, nor the helpers it starts, nor the
/// time that it waits for another answer makes that a second one. Another process, and a later time, do.
///
/// Proves: GATE-4 once
#[test]
fn a_yes_for_once_is_for_one_use_of_a_file() {
    let world = World::new();
    let (file, other) = (hidden(&world, "notes"), hidden(&world, "other"));
    world.write_in_project("use.py", ONE_USE);
    let script = format!("python3 use.py {file} {other}; cat {file}");
    let run = asking(&world, &[], &["sh", "-c", &script]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "once");
    let question = client.question_about(&other);
    std::thread::sleep(std::time::Duration::from_secs(6));
    client.allow(&question, "once");
    for _ in ["a later time", "another process"] {
        let question = client.question_about(&file);
        client.deny(&question, "once");
    }
    let output = run.wait();
    assert_eq!(output.out(), "content of notes\nasked again\n", "{}", output.err());
}

/// What is no part of the use that was allowed: a process that ran before, the content of a directory that was entered, and what
/// another program starts that took the process over.
const OTHER_USES: &str = r"
import os, subprocess, sys, time
path, directory = sys.argv[1:3]
early = subprocess.Popen(['sh', '-c', 'read line; exec cat ' + path], stdin=subprocess.PIPE)
time.sleep(0.1)
open(path).read()
early.communicate(b'\n')
os.chdir(directory)
try: print(os.listdir(directory), flush=True)
except PermissionError: print('not listed', flush=True)
open(path).read()
os.execvp('sh', ['sh', '-c', 'cat ' + path + '; true'])
";

/// Proves: GATE-4 once
#[test]
fn a_yes_for_once_is_for_no_other_use() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let inner = hidden(&world, "directory/inner");
    let directory = inner.trim_end_matches("/inner").to_owned();
    world.write_in_project("other.py", OTHER_USES);
    let run = asking(&world, &[], &["python3", "other.py", &file, &directory]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "once");
    let question = client.question_about(&file);
    client.deny(&question, "once");
    let question = client.question_about(&directory);
    client.allow(&question, "once");
    let question = client.question_about(&directory);
    client.deny(&question, "once");
    let question = client.question_about(&file);
    client.deny(&question, "once");
    let output = run.wait();
    assert_eq!(output.out(), "not listed\n", "{}", output.err());
    assert_eq!(output.err().matches("cat: ").count(), 2, "{}", output.err());
}
