//! What a program does with several threads, descriptors and processes of its own behaves under the broker as it does
//! bare: no race ends in a refusal, nothing of a closed file stays behind, and no other sandbox is in the way (FS-9).

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use palisade_testkit::{Output, World, am_root, patiently};
use rustix::process::{Pid, Signal, kill_process};

const PYTHON: &str = "/usr/bin/python3";
const NO_FLAGS: [&str; 0] = [];
const TIMEOUT: Duration = Duration::from_secs(240);

/// Runs a script beside the project in it, bare and inside; both must print the same, and end well.
#[track_caller]
fn same(content: &str, words: &[&str]) -> Output {
    let world = World::new();
    let path = world.write("home/scripts/script.py", content).to_string_lossy().into_owned();
    let bare = world.bare(PYTHON).arg(&path).args(words).deadline(TIMEOUT).run();
    bare.assert_code(0);
    for entry in fs::read_dir(world.project()).unwrap().flatten() {
        let _ = fs::remove_dir_all(entry.path());
        let _ = fs::remove_file(entry.path());
    }
    let command = [PYTHON, &path].into_iter().chain(words.iter().copied());
    let inside = world.sandbox_run(["--ro", "~/scripts"], command).deadline(TIMEOUT).run();
    inside.assert_code(0);
    assert_eq!(inside.out(), bare.out(), "{}", inside.err());
    inside
}

/// Proves: FS-9 threads, COMPAT-1 threads
#[test]
fn threads_that_make_the_same_tree_are_never_refused() {
    same(include_str!("thread_races.py"), &["4"]);
}

/// Proves: FS-9 closed-is-closed
#[test]
fn a_program_that_was_just_written_can_be_executed() {
    // Where an exec is not shown to the broker, which would so be done with the file.
    let world = World::new();
    let script = include_str!("descriptor_ends.py");
    world.write("home/scripts/script.py", script);
    let path = world.home().join("scripts/script.py").to_string_lossy().into_owned();
    let command = [PYTHON, &path, "program", "300"];
    let inside =
        world.sandbox_run(["--static", "--ro", "~/scripts"], command).deadline(TIMEOUT).run();
    inside.assert_code(0);
    assert_eq!(inside.out(), "well\n", "{}", inside.err());
}

/// Proves: FS-9 closed-is-closed
#[test]
fn a_lock_ends_with_its_descriptor() {
    same(include_str!("descriptor_ends.py"), &["lock", "2000"]);
}

/// Proves: FS-9 closed-is-closed
#[test]
fn a_watcher_hears_of_a_closed_file_at_once() {
    same(include_str!("descriptor_ends.py"), &["watched", "2000"]);
}

/// Proves: FS-9 closed-is-closed
#[test]
fn a_pipe_has_no_writer_once_its_writer_closed_it() {
    same(include_str!("descriptor_ends.py"), &["pipe", "100"]);
}

const SOCKETS: &str = r#"
import multiprocessing.connection as connection, os, socket, threading
def name_of(address):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        told = server.getsockname()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
        with open("/proc/net/unix") as table:
            known = any(line.split()[-1] == told for line in table)
        os.unlink(address)
        return told.replace(os.getcwd(), "@"), known
os.makedirs("dir/below")
os.symlink("dir", "link")
for address in ["sock", "./sock", "dir/sock", "dir//below/sock", os.path.abspath("dir/sock")]:
    print(address.replace(os.getcwd(), "@"), *name_of(address))
# Through a link or upwards: the real path, which is as good to connect to.
for address in ["link/sock", "dir/../sock"]:
    name_of(address)
os.chdir("dir/below")
print(*name_of("sock"))
os.chdir("../..")
listener = connection.Listener("dir/manager")
def serve():
    listener.accept().send("hello")
threading.Thread(target=serve).start()
print(listener.address, connection.Client(listener.address).recv())
"#;

/// Proves: FS-9 socket-names
#[test]
fn a_socket_in_the_project_knows_the_name_it_was_given() {
    let inside = same(SOCKETS, &[]);
    let report = inside.report.unwrap();
    assert!(!report["socketsMade"].as_array().unwrap().is_empty(), "{report}");
}

const UNNAMED: &str = r#"
import errno, os
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(fd, b"content")
os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=0, follow_symlinks=True)
print(oct(os.stat("named").st_mode), open("named").read())
again = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o600)
os.write(again, b"more")
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.linkat(again, b"", -100, b"empty-path", 0x1000), open("empty-path").read())
print(libc.linkat(again, b"", -100, b"named", 0x1000), errno.errorcode[ctypes.get_errno()])
alone = os.open(".", os.O_TMPFILE | os.O_EXCL | os.O_RDWR, 0o600)
print(libc.linkat(-100, f"/proc/self/fd/{alone}".encode(), -100, b"never", 0x400), errno.errorcode[ctypes.get_errno()])
for flags in [os.O_TMPFILE, os.O_TMPFILE | os.O_RDWR | os.O_CREAT]:
    print(libc.openat(-100, b".", flags, 0o600), errno.errorcode[ctypes.get_errno()])
for path in ["missing", "named"]:
    print(libc.openat(-100, path.encode(), os.O_TMPFILE | os.O_RDWR, 0o600), errno.errorcode[ctypes.get_errno()])
"#;

/// Proves: FS-9 unnamed-files
#[test]
fn a_file_without_a_name_can_get_one() {
    same(UNNAMED, &[]);
}

/// Proves: FS-9 created-names, FS-9 unnamed-files
#[test]
fn a_file_without_a_name_gets_no_protected_one() {
    let world = World::new();
    world.git_init();
    let config = fs::read(world.project().join(".git/config")).unwrap();
    let script = r#"
import os
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b"[core]\n\tfsmonitor = evil\n")
for name in [".envrc", ".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".npmrc"]:
    try:
        if name == ".git/config":
            os.unlink(name)
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=0, follow_symlinks=True)
        print("named", name)
    except PermissionError:
        print("refused", name)
"#;
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out().matches("refused").count(), 5, "{}", output.out());
    let left = fs::read(world.project().join(".git/config"));
    assert!(left.is_err() || left.is_ok_and(|left| left == config));
}

const SHARED_DIRECTORIES: &str = r#"
import ctypes, errno, os, stat
libc = ctypes.CDLL(None, use_errno=True)
def told(value): return "ok" if value == 0 else errno.errorcode[ctypes.get_errno()]
def mode(path): return oct(os.stat(path).st_mode)
os.umask(0o022)
print(told(libc.mkdir(b"made", 0o2775)), mode("made"))
for name in ["chmod", "fchmod", "fchmodat", "link", "fd"]:
    os.mkdir(name)
os.symlink("link", "to-link")
print(told(libc.chmod(b"chmod", 0o2775)), mode("chmod"))
fd = os.open("fchmod", os.O_RDONLY)
print(told(libc.fchmod(fd, 0o2750)), mode("fchmod"))
print(told(libc.fchmodat(-100, b"fchmodat", 0o3777, 0)), mode("fchmodat"))
print(told(libc.chmod(b"to-link", 0o2700)), mode("link"))
fd = os.open("fd", os.O_PATH)
print(told(libc.fchmod(fd, 0o2700)), told(libc.chmod(f"/proc/self/fd/{fd}".encode(), 0o2711)), mode("fd"))
os.mkdir("fd/below")
print(bool(os.stat("fd/below").st_mode & stat.S_ISGID))
for path in [b"missing", b"missing/x", b"chmod/x/y", b"", b"n" * 300]:
    print(told(libc.chmod(path, 0o2755)))
"#;

/// Without a view of its own the project and what may only be read are on one mount.
///
/// Proves: FS-1 read-only
#[test]
fn a_file_that_may_only_be_read_is_neither_linked_nor_truncated() {
    if am_root() {
        return;
    }
    let world = World::new();
    let file = world.write("home/granted/file", "original");
    let script = format!(
        "import os
fd = os.open({:?}, os.O_RDONLY)
try:
    os.link(f'/proc/self/fd/{{fd}}', 'stolen', src_dir_fd=0, follow_symlinks=True)
    open('stolen', 'a').write('evil')
except OSError as error:
    print(error.errno)
try:
    os.truncate({:?}, 2)
except OSError as error:
    print(error.errno)",
        file.to_str().unwrap(),
        file.to_str().unwrap()
    );
    let flags = ["--level", "1", "--no-userns", "--ro", "~/granted"];
    let output = world.sandbox_run(flags, [PYTHON, "-c", &script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "18\n13\n", "EXDEV, EACCES: {}", output.err());
    assert_eq!(fs::read_to_string(file).unwrap(), "original");
}

/// Proves: FS-9 shared-directories
#[test]
fn a_directory_can_be_shared_with_its_group() {
    same(SHARED_DIRECTORIES, &[]);
    let world = World::new();
    let script = "mkdir -m 2775 made && cp -a made copy && install -d -m 2755 installed && mkdir -p tar/in \
                  && chmod g+s tar/in && tar cf - tar | (mkdir out && cd out && tar xpf -)";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-ec", script]).run();
    output.assert_code(0);
    for name in ["made", "copy", "installed", "out/tar/in"] {
        let mode = fs::metadata(world.project().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o6000, 0o2000, "{name}: {mode:o}");
    }
}

/// Proves: FS-1 no-setid-file
#[test]
fn on_a_file_the_set_group_id_bit_is_refused_and_told() {
    let world = World::new();
    let script = "touch file; chmod 2755 file && exit 1; chmod g+s file && exit 1; chmod 4755 file && exit 1; true";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run();
    output.assert_code(0);
    assert!(output.err().contains("Operation not permitted"), "{}", output.err());
    assert_eq!(fs::metadata(world.project().join("file")).unwrap().mode() & 0o6000, 0);
    let blocked = output.report.unwrap()["blockedCalls"].to_string();
    assert!(blocked.contains("chmod"), "{blocked}");
}

/// Proves: PROC-6 root-owner
#[test]
fn what_root_starts_can_give_its_own_files_to_root() {
    let world = World::new();
    let script = "touch file && install -o root -g root file installed && chown root file && chown 0:0 file \
                  && chown :root file && chown -h root:root file && chown $(id -u):$(id -g) file \
                  && cp -a file copy && tar cf - file | (mkdir out && cd out && tar --same-owner -xf -) && echo all";
    let output = world.sandbox_run(NO_FLAGS, ["sh", "-c", script]).run();
    if !am_root() {
        assert_ne!(output.code(), 0, "nobody else may give files to root");
        return;
    }
    output.assert_code(0);
    for name in ["file", "installed", "copy", "out/file"] {
        let found = fs::metadata(world.project().join(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (0, 0), "{name}");
    }
    let others = "chown root /etc/passwd; chown 12 file; chown root:13 file";
    let refused = world.sandbox_run(NO_FLAGS, ["sh", "-c", others]).run();
    assert_eq!(refused.err().matches("chown: ").count(), 3, "{}", refused.err());
    assert_eq!(fs::metadata(world.project().join("file")).unwrap().uid(), 0);
}

const DEEP: &str = r#"
import os, shutil
name, depth = "d" * 100, 300
top = os.open(".", os.O_RDONLY)
for level in range(depth):
    os.mkdir(name)
    os.chdir(name)
    if level % 50 == 49:
        with open("file", "w") as file:
            file.write("x")
        os.rename("file", "renamed")
        os.link("renamed", "linked")
        os.symlink("renamed", "symbolic")
        os.mkfifo("pipe")
        os.truncate("renamed", 0)
        print(level, sorted(os.listdir(".")), os.stat("linked").st_size)
os.fchdir(top)
shutil.rmtree(name)
print(os.listdir("."))
"#;

/// Proves: FS-9 deep-paths
#[test]
fn a_tree_may_be_deeper_than_a_path_is_long() {
    same(DEEP, &[]);
}

/// The child of the supervisor that is in no pid namespace of its own.
fn broker_of(supervisor: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let children = children.unwrap();
    let namespaces = |pid: &&str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("NSpid:")).unwrap().to_owned();
        line.split_whitespace().count()
    };
    let broker = children.split_whitespace().min_by_key(namespaces).unwrap();
    Pid::from_raw(broker.parse().unwrap()).unwrap()
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn a_stopped_sandbox_is_in_nobodys_way() {
    let world = World::new();
    let busy = "mkdir d; echo ready; while :; do : > d/file; mv d/file d/other; done";
    let stopped = world.sandbox_run(NO_FLAGS, ["sh", "-c", busy]).spawn();
    stopped.wait_for_stdout("ready");
    let broker = broker_of(stopped.pid());
    let other = world.path().join("home/other-project");
    fs::create_dir_all(&other).unwrap();
    // Stopped again and again, so that it is caught in the middle of a call too.
    for _ in 0..6 {
        kill_process(broker, Signal::STOP).unwrap();
        let begun = Instant::now();
        let script = "mkdir made && : > made/file && mv made/file made/other && rm -r made";
        let run = world.sandbox_run(NO_FLAGS, ["sh", "-ec", script]).cwd(&other).run();
        // Had it waited for a lock that the stopped one holds, that wait would have ended with EBUSY.
        run.assert_code(0);
        // In the same project it may have to wait, and not for ever.
        let same = world.sandbox_run(NO_FLAGS, ["sh", "-c", "echo x > mine"]).run();
        if same.code() != 0 {
            let notes = same.report.as_ref().unwrap()["notes"].to_string();
            assert!(notes.contains("EBUSY"), "{notes} {}", same.err());
        }
        assert!(begun.elapsed() < patiently(Duration::from_secs(20)), "{:?}", begun.elapsed());
        kill_process(broker, Signal::CONT).unwrap();
        std::thread::yield_now();
    }
    stopped.signal(Signal::KILL);
    stopped.wait().assert_code(137);
}

/// Proves: FS-9 created-names
#[test]
fn no_socket_makes_a_directory_a_repository_with_settings_nobody_judged() {
    let world = World::new();
    let script = r#"
import os, socket
os.mkdir("evil")
os.chdir("evil")
open("HEAD", "w").write("ref: refs/heads/main\n")
open("config", "w").write("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = evil\n")
made = 0
for name in ["objects", "refs"]:
    try:
        socket.socket(socket.AF_UNIX).bind(name)
        made += 1
    except PermissionError:
        pass
print(made)
"#;
    let output = world.sandbox_run(NO_FLAGS, [PYTHON, "-c", script]).run();
    output.assert_code(0);
    assert_ne!(output.out().trim(), "2");
    let left = |name: &str| fs::symlink_metadata(world.project().join("evil").join(name));
    let is_socket = |name| left(name).is_ok_and(|found| found.file_type().is_socket());
    assert!(!(is_socket("objects") && is_socket("refs")));
}
