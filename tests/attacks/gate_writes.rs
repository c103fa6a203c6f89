//! Against what people allow to be written: a path that changes while the question stands, a protected name in a directory that
//! was granted, a file that was granted for reading, a private copy that would reach the host.

use std::fs;
use std::time::Duration;

use palisade_testkit::{Attack, Output, World, tries};

use crate::answering::{Answered, WAIT, Word, answer, yes_to};
use crate::files::TO_WRITE_OUTSIDE;
use crate::host::strings;
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

const UNTOUCHED: &str = "as it was\n";
const ASKED_WRITES: u32 = 400;

/// Opens to write by a path that another process changes all the time, and writes a letter.
const REWRITTEN: &str = r#"
import ctypes, mmap, os, signal, sys, time
libc = ctypes.CDLL(None)
harmless, canary = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
page = mmap.mmap(-1, 4096)
path = (ctypes.c_char * 4096).from_buffer(page)
path.raw = harmless.ljust(4096, b"\0")
rewriter = os.fork()
while rewriter == 0:
    path.raw = canary.ljust(4096, b"\0")
    path.raw = harmless.ljust(4096, b"\0")
number = 257 if os.uname().machine == "x86_64" else 56
left, start = int(sys.argv[3]), time.monotonic()
def goes_on():
    # As often as said, and until the other process had its turns; on a busy machine no longer than a while.
    passed = time.monotonic() - start
    return passed < 2 or left > 0 and passed < 40
while goes_on():
    left -= 1
    file = libc.syscall(number, -100, ctypes.byref(path), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    if file >= 0:
        os.write(file, b"x"); os.close(file)
os.kill(rewriter, signal.SIGKILL)
os.waitpid(rewriter, 0)
print("over")
"#;

fn content(world: &World, name: &str) -> String {
    fs::read_to_string(world.outside().join(name)).unwrap_or_default()
}

fn rewrite_while_people_answer(name: &'static str, lifetime: &'static str) {
    Attack::new("K09", name)
        .proves(&["GATE-10 shown-is-written"])
        .held_by(TO_WRITE_OUTSIDE)
        .deadline(Duration::from_secs(150))
        .flags(|_| strings(&WAIT))
        .command(|world| {
            let harmless = world.write("outside/h/harmless", UNTOUCHED).display().to_string();
            let canary = world.write("outside/c/canarycc", UNTOUCHED).display().to_string();
            let count = tries(ASKED_WRITES).to_string();
            strings(&["python3", "-c", REWRITTEN, &harmless, &canary, &count])
        })
        .company(move |world, over| answer(world, over, lifetime, yes_to("/outside/h/harmless")))
        .succeeded(|world, _| content(world, "c/canarycc") != UNTOUCHED)
        .contained(|world, output| {
            output.out().contains("over")
                && content(world, "c/canarycc") == UNTOUCHED
                // What was allowed was written, so the attempts were in earnest.
                && content(world, "h/harmless") != UNTOUCHED
                && Answered::of(world).allowed_only(&world.outside().join("h/harmless"))
        })
        .check();
}

/// Proves: GATE-10 shown-is-written
#[test]
fn k09_a_path_rewritten_while_people_allow_one_write_writes_nothing_else() {
    rewrite_while_people_answer("rewrite a path while writing it is asked about, once", "once");
}

/// Proves: GATE-10 shown-is-written
#[test]
fn k09_a_path_rewritten_while_people_allow_writing_writes_nothing_else() {
    rewrite_while_people_answer("rewrite a path while writing it is asked about", "session");
}

fn planted(world: &World, _: &Output) -> bool {
    world.outside().join("entered/.envrc").exists()
}

/// Who allows a directory to be written did not mean what the host would run from it.
///
/// Proves: GATE-10 guarded
#[test]
fn h01_a_directory_that_people_made_writable_takes_no_startup_file() {
    Attack::new("H01", "plant a start-up file in a directory that was granted for writing")
        .proves(&["GATE-10 guarded"])
        .held_by(TO_WRITE_OUTSIDE)
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            world.write("outside/entered/file", UNTOUCHED);
        })
        .command(|world| {
            let script = r#"cd "$0" 2>/dev/null; : >"$0/plain"; echo evil >"$0/.envrc"
                echo evil >"$0/other" && mv "$0/other" "$0/.envrc"; ln "$0/plain" "$0/.envrc"
                ln -s plain "$0/.envrc"; echo over"#;
            strings(&["sh", "-c", script, &world.outside().join("entered").display().to_string()])
        })
        .company(|world, over| answer(world, over, "session", |_| Word::Yes))
        .succeeded(planted)
        .contained(|world, output| {
            let is_made = world.outside().join("entered/plain").exists();
            output.out().contains("over") && is_made && !planted(world, output)
        })
        .check();
}

/// What was granted for reading is changed by none of the ways there are, while people say no to writing.
///
/// Proves: GATE-10 read-is-not-write
#[test]
fn f02_what_people_let_be_read_is_neither_written_nor_removed() {
    let is_changed = |world: &World| {
        let names = ["open", "moved", "removed", "renamed", "linked"];
        names.into_iter().any(|name| content(world, &format!("read/{name}")) != UNTOUCHED)
    };
    Attack::new("F02", "change files in a directory that was granted for reading")
        .proves(&["GATE-10 read-is-not-write"])
        .held_by(TO_WRITE_OUTSIDE)
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            for name in ["open", "moved", "removed", "renamed", "linked"] {
                world.write(format!("outside/read/{name}"), UNTOUCHED);
            }
        })
        .command(|world| {
            let script = r#"cat "$0/open"; ls "$0"; cd "$0"; echo x >>open; echo x >/proc/self/cwd/open
                exec 3<open; echo x >/proc/self/fd/3; truncate -s 0 open
                echo y >"$OLDPWD/own"; mv -f "$OLDPWD/own" moved; rm -f removed; unlink removed
                mv -T renamed gone; ln linked "$OLDPWD/link" && echo x >>"$OLDPWD/link"; echo over"#;
            strings(&["sh", "-c", script, &world.outside().join("read").display().to_string()])
        })
        .company(|world, over| {
            answer(world, over, "session", |question| match question["access"].as_str() {
                Some("read") => Word::Yes,
                _ => Word::No,
            });
        })
        .succeeded(move |world, _| is_changed(world))
        .contained(move |world, output| {
            output.out().contains(UNTOUCHED.trim()) && output.out().contains("over") && !is_changed(world)
        })
        .check();
}

const SECRET: &str = "put there by the host\n";

/// Makes a file and uses it; then, when the host has put another one in its place, tries every way to that one.
const USES_AGAIN: &str = r#"
import os, sys
path = sys.argv[1]
def attempt(what, act):
    try: print(what, act())
    except OSError as error: print(what, os.strerror(error.errno))
def make():
    with open(path, "x") as file: file.write("own\n")
    with open(path) as file: return file.read()
def read_by(flags):
    file = os.open(path, flags)
    try: return os.read(file, 100).decode()
    finally: os.close(file)
def linked():
    os.link(path, path + ".linked")
    return read_by(os.O_RDONLY)
attempt("made", make)
print("ready", flush=True)
sys.stdin.readline()
attempt("read", lambda: read_by(os.O_RDONLY))
attempt("written", lambda: read_by(os.O_RDWR))
attempt("created", lambda: read_by(os.O_RDWR | os.O_CREAT))
attempt("linked", linked)
attempt("moved", lambda: os.rename(path, path + ".moved"))
attempt("truncated", lambda: os.truncate(path, 0))
attempt("removed", lambda: os.remove(path))
print("over")
"#;

/// Who was allowed once to make a file has that file, and not whatever the host puts in its place.
fn replace_what_was_made_once(name: &'static str, replace: fn(&World)) {
    Attack::new("F02", name)
        .proves(&["GATE-10 made-once"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .flags(|_| strings(&WAIT))
        .prepare(|world| {
            world.write("outside/made/beside", UNTOUCHED);
        })
        .command(|world| {
            let new = world.outside().join("made/new").display().to_string();
            strings(&["python3", "-c", USES_AGAIN, &new])
        })
        .company(|world, over| {
            answer(world, over, "once", |question| match question["act"].as_str() {
                Some("create") => Word::Yes,
                _ => Word::No,
            });
        })
        .meanwhile(replace)
        .succeeded(|_, output| output.out().contains(SECRET.trim()))
        .contained(|world, output| {
            // It was made and used without another question, so what came then is not for lack of a grant.
            output.out().starts_with("made own\n")
                && output.out().ends_with("over\n")
                && content(world, "made/new") == SECRET
                && !Answered::of(world).denied.is_empty()
        })
        .check();
}

/// Proves: GATE-10 made-once
#[test]
fn f02_a_file_renamed_over_the_one_that_was_made_once_is_not_the_makers() {
    replace_what_was_made_once("read a file that the host renamed over one made once", |world| {
        let secret = world.write("outside/made/secret", SECRET);
        fs::rename(secret, world.outside().join("made/new")).unwrap();
    });
}

/// Proves: GATE-10 made-once
#[test]
fn f02_a_file_written_anew_where_one_was_made_once_is_not_the_makers() {
    // File systems use the number of a removed file again, and often at once.
    replace_what_was_made_once(
        "read a file that the host wrote anew where one was made once",
        |world| {
            // With some layers off it was not made.
            let _ = fs::remove_file(world.outside().join("made/new"));
            world.write("outside/made/new", SECRET);
        },
    );
}
