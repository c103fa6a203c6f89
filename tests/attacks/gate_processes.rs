//! Against the gate: processes that die while they are asked about, and others in their place. Nobody gets what
//! somebody else was given.

use std::time::Duration;

use palisade_testkit::{Attack, World, am_root, tries};

use crate::answering::{Answered, WAIT, answer, sockets, yes_to};
use crate::host::{in_own_pid_namespace, strings};
use crate::races::{HARMLESS, SECRET};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

/// Children that wait are killed, and others that are denied take their place.
const STORM: &str = r#"
import os, random, signal, sys, time
wanted, canary = sys.argv[1:3]
for number in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        try: print(open(wanted).read(), flush=True)
        except OSError: pass
        os._exit(0)
    time.sleep(random.random() / 400)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    child = os.fork()
    if child == 0:
        try: print("stolen", open(canary).read(), flush=True)
        except OSError: pass
        os._exit(0)
    os.waitpid(child, 0)
print("over", flush=True)
try: print(open(wanted).read())
except OSError as error: print(error)
"#;

/// Proves: GATE-5 killed-while-waiting
#[test]
fn p09_an_answer_for_the_dead_goes_to_nobody() {
    let wanted = |world: &World| world.outside().join("w/wanted");
    Attack::new("P09", "have processes die while they wait for a yes, and others in their place")
        .proves(&["GATE-3 path-buffer"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .deadline(Duration::from_secs(150))
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            world.write("outside/w/wanted", HARMLESS);
            world.write("outside/c/canary", SECRET);
            world.write_in_project("storm.py", STORM);
        })
        .command(move |world| {
            let canary = world.outside().join("c/canary").display().to_string();
            let wanted = wanted(world).display().to_string();
            strings(&["python3", "storm.py", &wanted, &canary, &tries(300).to_string()])
        })
        .company(|world, over| answer(world, over, "once", yes_to("/outside/w/wanted")))
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(move |world, output| {
            let last = output.out().split("over\n").nth(1).map(str::to_owned);
            let Answered { allowed, denied, .. } = Answered::of(world);
            last.as_deref() == Some("nothing to hide\n")
                && allowed.len() == 1
                && denied.iter().any(|path| path.ends_with("/c/canary"))
        })
        .check();
}

/// A child reads and ends; once somebody on the host has seen to it, the next child gets the same number there.
const AGAIN: &str = r#"
import os, sys, time
directory, rounds = sys.argv[1], int(sys.argv[2])
def read(path, word):
    child = os.fork()
    if child == 0:
        try: print(word, open(path).read(), flush=True)
        except OSError as error: print(word, error.strerror, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
for number in range(rounds):
    path = f"{directory}/{number}/file"
    read(path, "asked:")
    open(f"ended-{number}", "w").close()
    end = time.monotonic() + 10
    while not os.path.exists(f"set-{number}") and time.monotonic() < end: time.sleep(0.001)
    read(path, "unasked:")
"#;
const ROUNDS: usize = 5;

/// Starts the command in a pid namespace where it can say which number comes next, answers each first question with yes,
/// and has the next process called like the one that was allowed.
const NUMBERING: &str = r#"
import ctypes, json, mmap, os, socket, struct, subprocess, sys, threading, time
sockets, rounds, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
last = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY)
allowed = mmap.mmap(-1, 4)
def connect():
    while True:
        names = os.listdir(sockets) if os.path.isdir(sockets) else []
        for name in names:
            if name.endswith(".sock"):
                end = socket.socket(socket.AF_UNIX)
                # It has its name before it is listened on.
                try: end.connect(f"/proc/self/fd/{os.open(sockets, os.O_PATH)}/{name}")
                except ConnectionRefusedError: continue
                return end
        time.sleep(0.002)
def answer():
    end, known = connect(), set()
    for line in end.makefile():
        asked = json.loads(line)
        if asked["type"] != "event.fs_request": continue
        is_first = asked["path"] not in known
        known.add(asked["path"])
        if is_first: allowed[:] = struct.pack("i", asked["pid"])
        elif asked["pid"] == struct.unpack("i", allowed[:])[0]: print("used again", flush=True)
        word = "cmd.approve" if is_first else "cmd.deny"
        end.sendall(json.dumps({"type": word, "id": asked["id"], "lifetime": "once"}).encode() + b"\n")
def number():
    for round in range(rounds):
        while not os.path.exists(f"ended-{round}"): time.sleep(0.001)
        number, = struct.unpack("i", allowed[:])
        if number: os.pwrite(last, str(number - 1).encode(), 0)
        open(f"set-{round}", "w").close()
numbering = os.fork()
if numbering == 0:
    try: number()
    finally: os._exit(0)
# Only who numbers may be mighty: answers are taken from people.
version = struct.pack("Ii", 0x20080522, 0)
if os.getuid() != 0 and ctypes.CDLL(None).capset(version, bytes(24)) != 0: raise OSError("capset")
threading.Thread(target=answer, daemon=True).start()
code = subprocess.run(command).returncode
os.kill(numbering, 9)
sys.exit(code)
"#;

/// What was allowed once is allowed for a moment, to that process: its number is given to another in that moment.
///
/// Proves: GATE-5 same-process
#[test]
fn p09_a_number_that_is_used_again_is_nobody_that_was_allowed() {
    Attack::new("P09", "take over the number of a process that was just allowed to read a file")
        .proves(&["GATE-5 same-process"])
        .held_by(&["known-callers"])
        .deadline(Duration::from_secs(120))
        .surroundings(|world| {
            let mut words = in_own_pid_namespace();
            if !am_root() {
                words.push("--keep-caps".into());
            }
            let (script, rounds) = (world.path().join("numbering.py"), ROUNDS.to_string());
            let (script, sockets) = (script.to_str().unwrap(), sockets(world));
            words.extend(strings(&["python3", script, sockets.to_str().unwrap(), &rounds]));
            words
        })
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            for number in 0..ROUNDS {
                world.write(format!("outside/{number}/file"), HARMLESS);
            }
            world.write_in_project("again.py", AGAIN);
            world.write("numbering.py", NUMBERING);
        })
        .command(|world| {
            let outside = world.outside().display().to_string();
            strings(&["python3", "again.py", &outside, &ROUNDS.to_string()])
        })
        .succeeded(|_, output| output.out().contains(&format!("unasked: {HARMLESS}")))
        .contained(|_, output| {
            let count = |text: &str| output.out().matches(text).count();
            count(&format!("asked: {HARMLESS}")) == ROUNDS && count("used again\n") > 0
        })
        .check();
}
