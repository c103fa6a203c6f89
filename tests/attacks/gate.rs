//! Against the gate: paths and files that change while a question is asked, answered and carried out, and more
//! questions than anybody could answer. What is granted is what was shown.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use palisade_testkit::{Attack, World, patiently, tries};

use crate::answering::{Answered, WAIT, Word, answer, yes_to};
use crate::host::{probe, strings};
use crate::races::{HARMLESS, SECRET, Seen, swap_while};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

const READS: u32 = 20_000;
/// Each of these is a question.
const ASKED_READS: u32 = 2000;
const SWAPPED_READS: u32 = 300;

fn harmless_in_project(world: &World) -> String {
    world.write_in_project("harmless-and-long-enough", HARMLESS).display().to_string()
}

/// The two names have to be equally long.
fn canary_as_long_as(world: &World, other: &str) -> String {
    let directory = world.outside().display().to_string();
    let name = "c".repeat(other.len() - directory.len() - 1);
    world.write(format!("outside/{name}"), SECRET).display().to_string()
}

/// A thread rewrites the path while the broker looks at it and while the kernel does.
///
/// Proves: GATE-3 path-buffer
#[test]
fn k09_a_path_rewritten_while_it_is_looked_at_reads_nothing() {
    Attack::new("K09", "rewrite a path during its notification, to read a canary outside")
        .proves(&["GATE-3 path-buffer"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .deadline(Duration::from_secs(120))
        .flags(|_| vec!["--on-ask".into(), "deny".into()])
        .command(|world| {
            let harmless = harmless_in_project(world);
            let canary = canary_as_long_as(world, &harmless);
            probe(world, &["race-read", &tries(READS).to_string(), &harmless, &canary])
        })
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The harmless file is asked about and granted, over and over; the other is always denied.
fn rewrite_while_people_answer(name: &'static str, lifetime: &'static str) {
    let harmless = |world: &World| world.outside().join("h/harmless");
    Attack::new("K09", name)
        .proves(&["GATE-3 path-buffer"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .deadline(Duration::from_secs(150))
        .flags(|_| strings(&WAIT))
        .command(|world| {
            let harmless = text(&world.write("outside/h/harmless", HARMLESS));
            let canary = text(&world.write("outside/c/canarycc", SECRET));
            probe(world, &["race-read", &tries(ASKED_READS).to_string(), &harmless, &canary])
        })
        .company(move |world, over| answer(world, over, lifetime, yes_to("/outside/h/harmless")))
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(move |world, output| {
            let answered = Answered::of(world);
            output.out().starts_with("refused 13 ")
                && answered.allowed_only(&harmless(world))
                && answered.denied.iter().all(|path| path.starts_with(&text(world.path())))
        })
        .check();
}

/// Proves: GATE-3 path-buffer
#[test]
fn k09_a_path_rewritten_while_people_answer_reads_nothing() {
    rewrite_while_people_answer("rewrite a path while it is asked about and granted once", "once");
}

/// Proves: GATE-3 path-buffer
#[test]
fn k09_a_path_rewritten_while_people_answer_for_long_reads_nothing() {
    rewrite_while_people_answer("rewrite a path while it is asked about and granted", "session");
}

/// Proves: GATE-2 true-path, GATE-3 path-buffer
#[test]
fn f02_what_is_granted_is_what_was_shown() {
    let swapped = |world: &World| -> PathBuf { world.outside().join("swapped") };
    Attack::new("F02", "swap a directory for a link while its file is asked about and granted")
        .proves(&["GATE-3 path-buffer"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .deadline(Duration::from_secs(150))
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            world.write("outside/denied/file", SECRET);
            world.write("outside/swapped/file", HARMLESS);
        })
        .command(move |world| {
            let script = r#"i=0; end=$(($(date +%s) + $2))
                while [ $i -lt "$1" ] && [ "$(date +%s)" -lt $end ]; do
                i=$((i + 1)); cat "$0"; stat "$0"; done; true"#;
            let file = text(&swapped(world).join("file"));
            let bounds = [tries(SWAPPED_READS).to_string(), seconds(RACE_TIMEOUT)];
            strings(&["sh", "-c", script, &file, &bounds[0], &bounds[1]])
        })
        .company(move |world, over| {
            std::thread::scope(|scope| {
                scope.spawn(|| answer(world, over, "once", yes_to("/outside/swapped/file")));
                swap_while(&swapped(world), &world.outside().join("denied"), || {
                    std::thread::sleep(Duration::from_millis(5));
                    if over.load(Ordering::Relaxed) { Seen::Enough } else { Seen::NotYet }
                });
            });
        })
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(move |world, output| {
            // What was allowed was read, so the attempts were in earnest.
            output.out().contains(HARMLESS)
                && Answered::of(world).allowed_only(&swapped(world).join("file"))
        })
        .check();
}

/// What `openat2` is to do lies in memory that another process changes all the time. A process and not a
/// thread: of the interpreter's threads one runs at a time, and changes over where a loop begins again.
const OTHER_FLAGS: &str = r#"
import ctypes, mmap, os, signal, sys, time
libc = ctypes.CDLL(None)
how = (ctypes.c_uint64 * 3).from_buffer(mmap.mmap(-1, 4096))
rewriter = os.fork()
while rewriter == 0:
    how[1] = 0o4755; how[0] = os.O_CREAT | os.O_WRONLY
    how[0] = os.O_RDONLY; how[1] = 0
left, seconds, start = int(sys.argv[1]), int(sys.argv[2]), time.monotonic()
def goes_on():
    # As often as said, and until the other process had its turns; on a busy machine no longer than said.
    passed = time.monotonic() - start
    return passed < 2 or left > 0 and passed < seconds
while libc.syscall(437, -100, b"left", how, 24) < 0 and goes_on(): left -= 1
os.kill(rewriter, signal.SIGKILL)
os.waitpid(rewriter, 0)
print("over")
"#;
const OPENINGS: u32 = 20_000;
/// On a busy machine each try can take a thousand times as long: no race goes on for longer.
const RACE_TIMEOUT: Duration = Duration::from_secs(40);

fn seconds(time: Duration) -> String {
    patiently(time).as_secs().to_string()
}

/// Without the guard, which would perform what creates a file, only the look at the flags stands against it.
///
/// Proves: FS-1 no-setid-file, GATE-3 path-buffer
#[test]
fn f14_flags_rewritten_while_they_are_looked_at_create_nothing() {
    Attack::new("F14", "leave a set-user-id file: rewrite the flags of openat2 while it waits")
        .held_by(&["seccomp"])
        .deadline(Duration::from_secs(120))
        .flags(|_| strings(&["--no-protect-names", "--on-ask", "deny"]))
        .prepare(|world| {
            world.write_in_project("race.py", OTHER_FLAGS);
        })
        .command(|_| {
            let bounds = [tries(OPENINGS).to_string(), seconds(RACE_TIMEOUT)];
            strings(&["python3", "race.py", &bounds[0], &bounds[1]])
        })
        .succeeded(|world, _| {
            let left = fs::metadata(world.project().join("left"));
            left.is_ok_and(|left| left.mode() & 0o4000 != 0)
        })
        .contained(|world, output| {
            output.out() == "over\n" && !world.project().join("left").exists()
        })
        .check();
}

const FLOOD: &str = r#"
import collections, errno, os, sys, threading
directory, count = sys.argv[1], int(sys.argv[2])
results = collections.Counter()
def touch(number):
    try: os.stat(f"{directory}/{number}/file")
    except OSError as error: results[errno.errorcode[error.errno]] += 1
threading.stack_size(65536)
threads = [threading.Thread(target=touch, args=(n,)) for n in range(count)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(dict(results))
"#;

/// Nobody answers: so many questions are asked at a time, the others in their turn, and each is denied in time.
///
/// Proves: GATE-5 bounded, GATE-5 timeout, GATE-5 undisturbed
#[test]
fn r05_a_flood_of_questions_ends_and_drowns_nobody() {
    const COUNT: usize = 1500;
    const MAX_QUESTIONS: usize = 256;
    Attack::new("R05", "ask about more paths at once than anybody could answer")
        .no_bare_run("a bare host asks nobody")
        .held_by(&["bounded-questions"])
        .deadline(Duration::from_secs(120))
        .flags(|_| strings(&["--on-ask", "wait", "--ask-timeout", "3"]))
        .prepare(|world| {
            for number in 0..COUNT {
                world.write(format!("outside/{number}/file"), "");
            }
            world.write_in_project("flood.py", FLOOD);
        })
        .command(|world| {
            let outside = text(&world.outside());
            strings(&["python3", "flood.py", &outside, &COUNT.to_string()])
        })
        .company(|world, over| answer(world, over, "once", |_| Word::Silence))
        .succeeded(|world, _| Answered::of(world).most_open > MAX_QUESTIONS)
        .contained(|world, output| {
            let log = world.home().join(".local/state/palisade/audit.jsonl");
            Answered::of(world).most_open > 0
                && output.out() == format!("{{'EACCES': {COUNT}}}\n")
                && fs::metadata(log).unwrap().len() < 4 * 1024 * 1024
        })
        .check();
}
