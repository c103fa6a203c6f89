//! The gate when something goes wrong: a process dies, signals arrive, clients misbehave. Denied or an error; no hang, no
//! leak, never a yes that nobody said (GATE-5).

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use palisade_testkit::{Running, World, am_root, gate_is_fuse, sandbox_program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::gate::{Client, asking, asking_script, connect, hidden, socket, socket_directory};
use crate::inside::{below, eventually, lives};

fn pid_of(question: &Value) -> Pid {
    Pid::from_raw(i32::try_from(question["pid"].as_u64().unwrap()).unwrap()).unwrap()
}

/// Proves: GATE-5 dead-supervisor, LIFE-4 crash
#[test]
fn nothing_is_left_when_the_supervisor_is_killed_while_a_call_waits() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = asking_script(&world, &format!("cat {file}; echo went on"));
    let mut client = Client::connect(&world);
    client.question_about(&file);
    let processes = below(&run);
    assert!(processes.len() > 3, "{processes:?}");
    run.signal(Signal::KILL);
    let output = run.wait();
    output.assert_code(137);
    // Its call may have come back before it was ended itself, with an error and nothing else.
    assert!(!output.out().contains("content"), "{}", output.out());
    eventually("all processes gone", || !processes.iter().any(|pid| lives(*pid)));
    assert_eq!(client.next(), None);
}

/// Proves: GATE-5 killed-while-waiting
#[test]
fn a_question_is_withdrawn_with_the_process_that_waited() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let script = format!("cat {file}; echo ended $?; read line; true");
    let run = asking(&world, &[], &["sh", "-c", &script]).keep_stdin_open().spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    kill_process(pid_of(&question), Signal::KILL).unwrap();
    assert_eq!(client.event("event.withdrawn")["id"], question["id"]);
    let late = json!({"type": "cmd.approve", "id": question["id"]});
    assert_eq!(client.command(late)["code"], "not_open");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "ended 137\n");
}

/// One call with a handler for SIGUSR1 that restarts calls or does not; the byte in `handled` is the handler's.
const SIGNALLED: &str = r#"
import ctypes, errno, os, platform, signal, sys
restart, path = sys.argv[1] == "restart", sys.argv[2]
number = {"x86_64": 262, "aarch64": 79}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
signal.set_wakeup_fd(os.open("handled", os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK))
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.siginterrupt(signal.SIGUSR1, not restart)
result = libc.syscall(number, -100, os.fsencode(path), ctypes.create_string_buffer(512), 0)
print("ok" if result == 0 else errno.errorcode[ctypes.get_errno()])
"#;

fn signalled(world: &World, how: &str, file: &str) -> Running {
    world.write_in_project("signalled.py", SIGNALLED);
    asking(world, &[], &["python3", "signalled.py", how, file]).spawn()
}

fn is_handled(world: &World) -> bool {
    fs::metadata(world.project().join("handled")).is_ok_and(|file| file.len() > 0)
}

/// A file system cannot have a call made again, and an `EINTR` would reach programs that asked for a restart. There,
/// handlers wait for the answer.
///
/// Proves: GATE-1 signals
#[test]
fn a_signal_ends_the_waiting_with_eintr() {
    if gate_is_fuse() {
        return;
    }
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = signalled(&world, "interrupt", &file);
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    kill_process(pid_of(&question), Signal::USR1).unwrap();
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "EINTR\n");
    assert!(is_handled(&world));
}

/// A handler that asks for no restart, and a timer: outside, no file is ever opened with `EINTR`.
const WITH_A_TIMER: &str = r#"
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
opened = libc.open(os.fsencode(sys.argv[1]), 0)
number = ctypes.get_errno()
signal.setitimer(signal.ITIMER_REAL, 0)
print("opened" if opened >= 0 else number)
"#;

/// Proves: GATE-1 signals-by-themselves
#[test]
fn a_program_with_a_timer_can_be_answered() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    world.write_in_project("timer.py", WITH_A_TIMER);
    let run = asking(&world, &[], &["python3", "timer.py", &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    // Many times the timer's interval, in which a call that is looked after is looked after more than once.
    let until = Instant::now() + Duration::from_millis(400);
    eventually("the timer to have gone off", || Instant::now() > until);
    client.allow(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "opened\n");
}

/// Proves: GATE-1 signals, GATE-5 asked-once
#[test]
fn a_restarted_call_joins_the_same_question() {
    if gate_is_fuse() {
        return;
    }
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = signalled(&world, "restart", &file);
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    for _ in 0..3 {
        kill_process(pid_of(&question), Signal::USR1).unwrap();
        eventually("the handler", || is_handled(&world));
        fs::File::create(world.project().join("handled")).unwrap();
        // The call is made again, and waits again.
        let again = client.event("event.fs_request");
        assert_eq!(again["id"], question["id"]);
    }
    client.allow(&question, "once");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "ok\n");
}

/// Proves: GATE-1 never-asked, GATE-5 undisturbed
#[test]
fn what_is_no_file_does_not_exist_and_nobody_is_asked() {
    let world = World::new();
    let fifo = world.outside().join("fifo");
    world.bare("mkfifo").arg(&fifo).run().assert_code(0);
    let listener = std::os::unix::net::UnixListener::bind(world.outside().join("sock")).unwrap();
    let script =
        format!("cd {}; cat fifo; cat {}; stat {1}", world.path().display(), fifo.display());
    let script = format!("{script}; stat {}", world.outside().join("sock").display());
    let output = asking(&world, &[], &["sh", "-c", &script]).run();
    output.assert_code(1);
    // The first of the four is not there under any name.
    assert_eq!(output.err().matches("No such file").count(), 4, "{}", output.err());
    drop(listener);
}

/// Proves: GATE-5 undisturbed
#[test]
fn a_call_that_waits_keeps_nobody_else_waiting() {
    let world = World::new();
    let (first, second) = (hidden(&world, "first"), hidden(&world, "second"));
    let script = format!(
        "cat {first} & i=0; while [ $i -lt 300 ]; do i=$((i + 1)); test -e /etc/passwd; done
         echo passed; cat {second}; wait"
    );
    let run = asking_script(&world, &script);
    run.wait_for_stdout("passed\n");
    let mut client = Client::connect(&world);
    let questions = [client.question(), client.question()];
    let about = |path: &str| questions.iter().find(|q| q["path"] == path).unwrap();
    client.allow(about(&second), "once");
    run.wait_for_stdout("content of second\n");
    client.deny(about(&first), "once");
    run.wait().assert_code(0);
}

/// Proves: GATE-5 undisturbed
#[test]
fn a_sandbox_inside_the_sandbox_is_refused_and_the_outer_one_still_asks() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let program = sandbox_program();
    let place = program.parent().unwrap().to_string_lossy().into_owned();
    let script = format!("{} run -- true; echo nested $?; cat {file}", program.display());
    let run = asking(&world, &["--ro", &place], &["sh", "-c", &script]).spawn();
    let mut client = Client::connect(&world);
    // The inner one looks around.
    let mut question = client.question();
    while question["path"] != file.as_str() {
        client.deny(&question, "session");
        question = client.question();
    }
    client.allow(&question, "once");
    let output = run.wait();
    output.assert_code(0);
    let refused =
        ["nested 125\n", "nested 126\n"].iter().any(|words| output.out().starts_with(words));
    assert!(refused && output.out().ends_with("content of wanted\n"), "{}", output.out());
}

/// Everything a socket says until its other end is closed.
fn everything(stream: &mut std::os::unix::net::UnixStream) -> String {
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

/// Proves: GATE-6 socket, GATE-5 undisturbed
#[test]
fn clients_that_misbehave_are_told_or_hung_up_on_and_others_answer() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = asking(&world, &[], &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    let path = socket(&world);
    for (line, code) in [
        (&b"\xff\xfe no text\n"[..], "bad_message"),
        (b"{\"type\": \"cmd.approve\"}\n", "bad_message"),
        (b"{\"type\": \"cmd.approve\", \"id\": 1, \"id\": 2}\n", "bad_message"),
        (b"{\"type\": \"cmd.approve\", \"id\": 99}\n", "unknown"),
        (b"{\"type\": \"cmd.approve\", \"id\": -1}\n", "bad_message"),
        (b"{\"type\": \"cmd.whatever\"}\n", "unknown_command"),
    ] {
        client.send(line);
        assert_eq!(client.event("event.error")["code"], code, "{}", String::from_utf8_lossy(line));
    }
    let mut long = connect(&path).unwrap();
    let _ = long.write_all(&vec![b'x'; 64 * 1024]);
    let said = everything(&mut long);
    assert!(said.contains("too_long"), "{said}");
    let mut other_version = connect(&path).unwrap();
    other_version.write_all(b"{\"type\": \"cmd.hello\", \"protocol\": 99}\n").unwrap();
    assert!(everything(&mut other_version).contains("\"protocol\""));
    // Half a line, and gone; and more of them than there is room for, who never say a word.
    connect(&path).unwrap().write_all(b"{\"type\":").unwrap();
    let silent: Vec<_> = (0..100).filter_map(|_| connect(&path).ok()).collect();
    client.allow(&question, "once");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "content of wanted\n");
    drop(silent);
}

const AS_ANOTHER_USER: &str = r#"
import os, socket, sys
os.chdir(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
client.connect(sys.argv[2])
client.sendall(b'{"type": "cmd.approve", "id": 1}\n')
print(client.recv(100))
"#;

/// Even where somebody has opened the directory to all.
///
/// Proves: GATE-6 socket
#[test]
fn another_user_is_not_heard() {
    if !am_root() {
        println!("only root can be another user");
        return;
    }
    let world = World::new();
    let file = hidden(&world, "wanted");
    let run = asking(&world, &[], &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    let (directory, path) = (socket_directory(&world), socket(&world));
    for (open, mode) in [(&directory, 0o755), (&path, 0o777)] {
        fs::set_permissions(open, fs::Permissions::from_mode(mode)).unwrap();
    }
    let name = path.file_name().unwrap();
    let other = world.bare("python3").args(["-c", AS_ANOTHER_USER]).arg(&directory).arg(name).run();
    let is_closed = other.out() == "b''\n"
        || other.err().contains("ConnectionResetError")
        || other.err().contains("BrokenPipeError");
    assert!(is_closed, "{}{}", other.out(), other.err());
    client.deny(&question, "once");
    run.wait().assert_code(1);
}

/// Nothing that a run had open for its questions stays behind.
///
/// Proves: GATE-5 bounded
#[test]
fn many_questions_leave_no_descriptor_behind() {
    let world = World::new();
    let files: Vec<String> = (0..60).map(|n| hidden(&world, &format!("{n}/file"))).collect();
    let script = format!(
        "for f in {}; do cat $f; stat $f; done; echo done; read line; true",
        files.join(" ")
    );
    let run = asking(&world, &[], &["sh", "-c", &script]).keep_stdin_open().spawn();
    let mut client = Client::connect(&world);
    let open = || fs::read_dir(format!("/proc/{}/fd", run.pid())).map_or(0, Iterator::count);
    let first = client.question_about(&files[0]);
    let before = open();
    client.allow(&first, "once");
    // Reading and looking are questions of their own: each is by another process.
    let rest = files.iter().flat_map(|file| [file, file]).skip(1);
    for file in rest {
        let question = client.question_about(file);
        client.allow(&question, "once");
    }
    run.wait_for_stdout("done\n");
    // Those who were allowed something last are still held, and usage is looked at meanwhile: some for each of a
    // few processes, and not one for each of 120 questions.
    eventually("only some are open", || open() <= before + 30);
    run.wait().assert_code(0);
}
