//! Against the gate: what is no file. Whoever opens a pipe, a device, a socket or a file that does not answer may wait
//! for ever, or talk to whoever is behind it; neither happens to the command, and nobody else waits.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{Attack, Demonstration, Running, World, am_root, patiently};
use rustix::process::Signal;

use crate::answering::{WAIT, Word, answer, asking, connect, sockets};
use crate::host::strings;
use crate::races::{HARMLESS, SECRET};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

/// Where the special file is.
fn special(world: &World) -> PathBuf {
    world.outside().join("special")
}

fn over_soon(over: &AtomicBool) -> bool {
    std::thread::sleep(Duration::from_millis(5));
    over.load(Ordering::Relaxed)
}

/// Reads what the host has at that place, through a file or a socket. Everybody says yes to everything.
fn read_special(name: &'static str, script: &'static str) -> Attack {
    Attack::new("F15", name)
        .proves(&["FS-3 own-root"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .flags(|_| strings(&WAIT))
        .command(move |world| strings(&["python3", "-c", script, special(world).to_str().unwrap()]))
        .succeeded(|_, output| output.out().contains("done"))
}

const OPEN: &str = r#"
import os, sys
try:
    file = os.open(sys.argv[1], os.O_RDONLY)
    print("done", os.read(file, 100))
except OSError as error:
    print("refused", error.errno)
"#;

const CONNECT: &str = r#"
import socket, sys
try:
    end = socket.socket(socket.AF_UNIX)
    end.connect(sys.argv[1])
    print("done", end.recv(100))
except OSError as error:
    print("refused", error.errno)
"#;

/// Proves: GATE-2 true-path
#[test]
fn f15_a_pipe_of_the_hosts_is_not_read() {
    read_special("read from a pipe that a program of the host writes to", OPEN)
        .prepare(|world| {
            world.bare("mkfifo").arg(special(world)).run().assert_code(0);
        })
        .company(|world, over| {
            // For reading as well: so it does not wait for a reader.
            let mut pipe = OpenOptions::new().read(true).write(true).open(special(world)).unwrap();
            pipe.write_all(SECRET.as_bytes()).unwrap();
            answer(world, over, "once", |_| Word::Yes);
            while !over_soon(over) {}
        })
        .contained(|_, output| output.out() == "refused 2\n")
        .check();
}

/// Proves: GATE-2 true-path
#[test]
fn f15_a_socket_of_the_hosts_is_not_reached() {
    read_special("connect to a socket that a program of the host listens on", CONNECT)
        .company(|world, over| {
            let listener = UnixListener::bind(special(world)).unwrap();
            listener.set_nonblocking(true).unwrap();
            while !over_soon(over) {
                if let Ok((mut stream, _)) = listener.accept() {
                    let _ = stream.write_all(SECRET.as_bytes());
                }
            }
        })
        .contained(|_, output| output.out() == "refused 2\n")
        .check();
}

/// A node for the device that gives zeros, in a place of the test's own.
fn make_device(world: &World, kind: &str, numbers: [&str; 2]) -> bool {
    let made = world.bare("mknod").args(["-m", "666"]).arg(special(world)).arg(kind).args(numbers);
    made.run().code() == 0
}

fn may_use_device(kind: &str, numbers: [&str; 2]) -> bool {
    let world = World::new();
    am_root()
        && make_device(&world, kind, numbers)
        && world
            .bare("python3")
            .args(["-c", OPEN])
            .arg(special(&world))
            .run()
            .out()
            .contains("done")
}

/// Proves: GATE-2 true-path, FS-7 no-device-nodes
#[test]
fn f15_no_device_is_opened() {
    for (kind, numbers, what) in [
        ("c", ["1", "5"], "open a character device that lies among files"),
        ("b", ["7", "0"], "open a block device that lies among files"),
    ] {
        read_special(what, OPEN)
            .held_by(&["mount-view", "mount-flags", "identity"])
            .only_as_root("only root can make one")
            .needs("devices that can be made and opened", may_use_device(kind, numbers))
            .prepare(move |world| assert!(make_device(world, kind, numbers)))
            .company(|world, over| answer(world, over, "once", |_| Word::Yes))
            .contained(|_, output| output.out() == "refused 2\n")
            .check();
    }
}

/// Proves: GATE-5 undisturbed, GATE-2 true-path
#[test]
fn f15_a_pipe_in_the_place_of_a_file_stalls_nobody() {
    let shown = Demonstration::of(
        "F15",
        "put a pipe without a writer where a file was asked about, and where one is looked for",
        "only files and directories are granted, by the descriptor that was looked at",
    );
    let Some(shown) = shown.no_bare_run("a bare host asks nobody").begin() else { return };
    let world = World::new();
    let (file, pipe) = (world.write("outside/f/file", HARMLESS), world.outside().join("pipe"));
    world.bare("mkfifo").arg(&pipe).run().assert_code(0);
    let script = format!(
        "cat {0} & cat {1}; i=0; while [ $i -lt 200 ]; do i=$((i + 1)); test -e /etc/passwd; done; echo passed; wait",
        file.display(),
        pipe.display()
    );
    let run = asking(&world, &["sh", "-c", &script]);
    let stream = connect(&sockets(&world)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let asked = lines.find(|line| line.contains("event.fs_request")).unwrap();
    assert!(asked.contains(file.to_str().unwrap()), "{asked}");
    // The pipe takes its place before the yes.
    fs::remove_file(&file).unwrap();
    fs::rename(&pipe, &file).unwrap();
    writer.write_all(b"{\"type\":\"cmd.approve\",\"id\":1}\n").unwrap();
    let output = run.wait();
    assert!(output.out().contains("passed\n"), "{}", output.out());
    assert!(output.out().contains(HARMLESS), "{}{}", output.out(), output.err());
    shown.held();
}

/// Holds a file so that whoever opens it waits until the kernel has lost patience, which takes 45 s.
const LEASE: &str = r#"
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"#;

/// Proves: GATE-5 undisturbed, GATE-5 failed-grant
#[test]
fn f15_a_file_that_keeps_its_reader_waiting_stalls_nobody() {
    let shown = Demonstration::of(
        "F15",
        "have a file opened whose owner keeps every reader waiting",
        "what is granted is opened without waiting, or not at all",
    );
    let Some(shown) = shown.no_bare_run("a bare host asks nobody").begin() else { return };
    let world = World::new();
    let slow = world.write("outside/s/slow", SECRET);
    let file = world.write("outside/f/file", HARMLESS);
    let lease = world.bare("python3").args(["-c", LEASE]).arg(&slow).keep_stdin_open().spawn();
    lease.wait_for_stdout("held\n");
    let script = format!("cat {}; cat {}", slow.display(), file.display());
    let begun = Instant::now();
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| answer(&world, &over, "once", |_| Word::Yes));
        asking(&world, &["sh", "-c", &script]).wait()
    });
    assert_eq!(output.out(), HARMLESS, "{}", output.err());
    assert!(begun.elapsed() < patiently(Duration::from_secs(20)), "{:?}", begun.elapsed());
    lease.wait().assert_code(0);
    shown.held();
}

/// A file system of this program's own, with nothing in it. Stopped, it answers nobody any more.
const FAR: &str = r#"
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"far", sys.argv[1].encode(), b"fuse", 6, options.encode()) != 0:
    raise OSError(ctypes.get_errno(), "mount")
print("mounted", flush=True)
INIT, GETATTR, LOOKUP, FORGET, INTERRUPT, BATCH_FORGET = 26, 3, 1, 2, 36, 42
while True:
    request = os.read(fuse, 1 << 18)
    length, call, unique = struct.unpack_from("IIQ", request)
    if call in (FORGET, INTERRUPT, BATCH_FORGET): continue
    error, body = 0, b""
    if call == INIT: body = struct.pack("IIIIHHIIHHI28x", 7, 31, 4096, 0, 8, 8, 4096, 1, 1, 0, 0)
    elif call == GETATTR: body = struct.pack("QII6Q10I", 0, 0, 0, 1, *[0] * 8, 0o40755, 2, *[0] * 5)
    else: error = -errno.ENOENT if call == LOOKUP else -errno.ENOSYS
    os.write(fuse, struct.pack("IiQ", 16 + len(body), error, unique) + body)
"#;

/// With the program behind it the mount goes, too.
struct Far<'w> {
    world: &'w World,
    place: PathBuf,
    program: Option<Running>,
}

impl<'w> Far<'w> {
    fn mount(world: &'w World) -> Self {
        let place = world.outside().join("far");
        fs::create_dir(&place).unwrap();
        let program = world.bare("python3").args(["-c", FAR]).arg(&place).spawn();
        program.wait_for_stdout("mounted\n");
        Self { world, place, program: Some(program) }
    }

    fn stop(&self) {
        self.program.as_ref().unwrap().signal(Signal::STOP);
    }
}

impl Drop for Far<'_> {
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            program.signal(Signal::KILL);
            drop(program.wait());
        }
        drop(self.world.bare("umount").arg("--lazy").arg(&self.place).run());
    }
}

/// Proves: GATE-5 undisturbed
#[test]
fn f15_a_file_system_that_does_not_answer_stalls_nobody() {
    let shown = Demonstration::of(
        "F15",
        "touch a file system whose server has died, and go on elsewhere meanwhile",
        "what somebody else answers for is not looked at before the kernel goes on",
    );
    let shown = shown.only_as_root("only root can mount one");
    let shown = shown.no_bare_run("a bare host looks at nothing beforehand");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    let far = Far::mount(&world);
    let place = far.place.to_str().unwrap();
    // By its whole path, from within, and as a program.
    let script = r#"
        cd "$0"; echo ready; read -r go
        stat "$0/file" & stat file & "$0/program" &
        cd /; i=0; while [ $i -lt 100 ]; do i=$((i + 1)); test -e ~/nothing; done
        echo passed; kill -KILL $(jobs -p)"#;
    let run = world.sandbox_run(["--ro", place], ["sh", "-c", script, place]);
    let mut run = run.keep_stdin_open().spawn();
    run.wait_for_stdout("ready\n");
    far.stop();
    run.send(b"\n");
    run.wait_for_stdout("passed\n");
    drop(run.wait());
    shown.held();
}
