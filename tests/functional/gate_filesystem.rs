//! The gate as a file system (`--gate fuse`), where it differs from notified calls: its process can die, calls wait in
//! the kernel, and names have attributes and lists. Everything else is tested by the tests of the gate, with either
//! trigger (`cargo xtask test --gate fuse`).

use std::fs;
use std::time::{Duration, Instant};

use palisade_testkit::{Running, World, patiently};
use rustix::process::{Pid, Signal, kill_process};

use crate::gate::{Client, asking, hidden, no};
use crate::inside::eventually;

pub(crate) const FUSE: [&str; 2] = ["--gate", "fuse"];
const SERVER: &str = "sandbox-gatefs";

/// None where the file system cannot be mounted, which is said.
pub(crate) fn world() -> Option<World> {
    let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if device.is_err() {
        eprintln!("skipped: needs /dev/fuse, readable and writable");
    }
    device.ok().map(|_| World::new())
}

/// The process of the file system, a child of the supervisor.
pub(crate) fn server(run: &Running) -> Option<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", run.pid());
    let children = fs::read_to_string(path).ok()?;
    let is_it = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == SERVER)
    };
    Pid::from_raw(children.split_whitespace().find(is_it)?.parse().ok()?)
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_server_that_is_killed_while_a_call_waits_fails_the_run() {
    let Some(world) = world() else { return };
    let file = hidden(&world, "wanted");
    let run = asking(&world, &FUSE, &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    client.question_about(&file);
    kill_process(server(&run).unwrap(), Signal::KILL).unwrap();
    let begun = Instant::now();
    let output = run.wait();
    assert!(begun.elapsed() < Duration::from_secs(10), "the call hung");
    assert_eq!(output.code(), 125, "{}", output.err());
    assert!(output.err().contains("the gate's file system went away"), "{}", output.err());
    assert_eq!(output.report.as_ref().unwrap()["outcome"], "failed");
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_server_that_is_killed_at_any_moment_of_the_start_fails_the_run() {
    const KILLS: u32 = 20;
    let Some(world) = world() else { return };
    for kill in 0..KILLS {
        let command = ["sh", "-c", "echo ready; read line; exit 0"];
        let run = world.sandbox_run(FUSE, command).keep_stdin_open().spawn();
        eventually("the server", || server(&run).is_some());
        let begun = Instant::now();
        // The whole of a start takes some milliseconds. Without giving the processor away.
        while begun.elapsed() < Duration::from_millis(20) * kill / KILLS {}
        kill_process(server(&run).unwrap(), Signal::KILL).unwrap();
        let output = run.wait();
        assert_eq!(output.code(), 125, "kill {kill}: {}", output.err());
        assert_eq!(output.report.as_ref().unwrap()["outcome"], "failed", "kill {kill}");
    }
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_server_that_is_killed_at_any_moment_of_work_fails_the_run() {
    const KILLS: u32 = 12;
    let Some(world) = world() else { return };
    let file = hidden(&world, "some/wanted");
    let script = format!(
        "echo ready; while :; do cat {file}; ls /; mkdir -p ~/a/b; mv ~/a ~/b; rm -r ~/b; done"
    );
    for kill in 0..KILLS {
        let flags = [&FUSE[..], &["--on-ask", "deny"]].concat();
        let run = world.sandbox_run(flags, ["sh", "-c", &script]).spawn();
        run.wait_for_stdout("ready");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(30) * kill / KILLS {}
        kill_process(server(&run).unwrap(), Signal::KILL).unwrap();
        let killed = Instant::now();
        let output = run.wait();
        assert!(killed.elapsed() < patiently(Duration::from_secs(10)), "kill {kill}: it hung");
        assert_eq!(output.code(), 125, "kill {kill}: {}", output.err());
        assert_eq!(output.report.as_ref().unwrap()["outcome"], "failed", "kill {kill}");
    }
}

/// Proves: GATE-5 killed-while-waiting
#[test]
fn a_process_that_is_killed_while_it_waits_ends_at_once() {
    let Some(world) = world() else { return };
    let file = hidden(&world, "wanted");
    let script = format!("cat {file} & read line; kill -9 $!; wait $!; echo gone $?");
    let mut run = asking(&world, &FUSE, &["sh", "-c", &script]).keep_stdin_open().spawn();
    let mut client = Client::connect(&world);
    client.question_about(&file);
    run.send(b"go\n");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "gone 137\n");
}

/// A process that is below the mount of a grant reads the directory through the server.
///
/// Proves: GATE-4 around-a-process
#[test]
fn a_directory_of_fifty_thousand_names_is_listed_through_the_server() {
    const NAMES: usize = 50_000;
    let Some(world) = world() else { return };
    let many = world.outside().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..NAMES {
        fs::File::create(many.join(format!("name-{number}"))).unwrap();
    }
    let many = many.to_str().unwrap();
    let script = format!("import os\nos.chdir({many:?})\nprint(len(set(os.listdir('.'))))");
    let run = asking(&world, &FUSE, &["python3", "-c", &script]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(many);
    client.allow(&question, "once");
    let question = client.question_about(many);
    client.allow(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{NAMES}\n"));
    assert_eq!(client.answer_all(&no("once")).len(), 0, "a name was asked about");
}

/// The kernel keeps attributes, and tells them without asking us.
#[test]
fn what_is_not_granted_has_no_attributes_that_the_kernel_could_tell() {
    let Some(world) = world() else { return };
    let file = hidden(&world, "wanted");
    // statx(AT_FDCWD, …, AT_STATX_DONT_SYNC), and with AT_EMPTY_PATH, which does not mean that the path is empty.
    let script = r#"
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x4000, 0x5000):
    libc.syscall(332 if os.uname().machine == "x86_64" else 291, -100, sys.argv[1].encode(), flags, 0x7ff, bytes(256))
    print(errno.errorcode[ctypes.get_errno()])
"#;
    let flags = FUSE.iter().chain(&["--on-ask", "deny"]);
    let output = world.sandbox_run(flags, ["python3", "-c", script, &file]).run();
    assert_eq!(output.out(), "ENOSYS\nENOSYS\n", "{}", output.err());
}

/// A call that only looks a name up is asked about, too.
///
/// Proves: GATE-2 open-family
#[test]
fn a_name_that_is_only_looked_up_is_asked_about() {
    let Some(world) = world() else { return };
    let files = ["path", "watch", "handle"].map(|name| hidden(&world, name));
    let script = r#"
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def say(result): print(errno.errorcode[ctypes.get_errno()] if result < 0 else "done")
path, watched, handle = (name.encode() for name in sys.argv[1:])
try: os.close(os.open(path, os.O_PATH)); print("done")
except OSError as error: print(errno.errorcode[error.errno])
say(libc.inotify_add_watch(libc.inotify_init(), watched, 2))
say(libc.name_to_handle_at(-100, handle, bytes(256), bytes(8), 0))
"#;
    let [path, watched, handle] = &files;
    let run = asking(&world, &FUSE, &["python3", "-c", script, path, watched, handle]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(path);
    client.allow(&question, "session");
    let question = client.question_about(watched);
    client.allow(&question, "session");
    let question = client.question_about(handle);
    client.deny(&question, "session");
    let output = run.wait();
    assert_eq!(output.out(), "done\ndone\nEACCES\n", "{}", output.err());
}

/// Where nobody decides, a file that exists cannot be told from one that does not by any call that ends there.
///
/// Proves: GATE-5 nobody-to-ask, GATE-5 denials-told
#[test]
fn where_nobody_is_asked_a_file_looks_absent_to_every_call_that_ends_there() {
    let Some(world) = world() else { return };
    let there = hidden(&world, "there");
    let not_there = there.replace("there", "other");
    let script = r#"
import errno, os, sys
calls = [open, os.stat, lambda path: os.access(path, 0), lambda path: os.open(path, os.O_PATH),
    lambda path: os.getxattr(path, "user.x")]
for path in sys.argv[1:]:
    for call in calls:
        try: print(call(path), end=" ")
        except OSError as error: print(errno.errorcode[error.errno], end=" ")
    print()
"#;
    let flags = FUSE.iter().chain(&["--on-ask", "deny"]);
    let output = world.sandbox_run(flags, ["python3", "-c", script, &there, &not_there]).run();
    output.assert_code(0);
    let told: Vec<_> = output.out().lines().map(str::to_owned).collect();
    assert_eq!(told.len(), 2, "{}", output.err());
    assert_eq!(told[0], told[1]);
    let denied = output.report.as_ref().unwrap()["deniedPaths"].clone();
    assert_eq!(denied.as_array().map(Vec::len), Some(1), "{denied}");
    assert_eq!(denied[0]["path"], there.as_str());
}

/// What is served is what was granted at the path of that moment: a directory above it could be given the name of one that
/// holds a secret, and the same node would lead to that.
///
/// Proves: GATE-4 no-rule-no-grant
#[test]
fn a_grant_does_not_move_to_a_secret_with_a_directory_above_it() {
    let Some(world) = world() else { return };
    let in_home = |path: &str| world.home().join(path).to_str().unwrap().to_owned();
    for (directory, content) in [(".local/gh", "harmless"), (".config/gh", "secret")] {
        fs::create_dir_all(in_home(directory)).unwrap();
        fs::write(in_home(directory) + "/hosts.yml", content).unwrap();
    }
    let granted = in_home(".local/gh/hosts.yml");
    let script = r#"
import os, sys
os.chdir(os.path.expanduser("~"))
os.mkdir(".local")
stub = os.open(".local/gh/hosts.yml", os.O_PATH)
print(open(".local/gh/hosts.yml").read())
try: os.rename(".local", ".config")
except OSError as error: print(error.strerror)
try: print(open(f"/proc/self/fd/{stub}").read())
except OSError as error: print(error.strerror)
"#;
    let run = asking(&world, &FUSE, &["python3", "-c", script]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&granted);
    client.allow(&question, "session");
    let output = run.wait();
    assert_eq!(output.out(), "harmless\nDevice or resource busy\nharmless\n", "{}", output.err());
}

/// A private copy takes the place of a file of the host that is still open: changes of the one must not reach the other.
///
/// Proves: GATE-10 private-copy
#[test]
fn an_open_file_of_the_host_is_not_changed_in_place_of_its_copy() {
    let Some(world) = world() else { return };
    let file = world.home().join("wanted");
    fs::write(&file, "content").unwrap();
    let before = fs::metadata(&file).unwrap();
    let file = file.to_str().unwrap();
    let script = r#"
import os, sys
path = sys.argv[1]
stub = os.open(path, os.O_PATH)
os.close(os.open(path, os.O_RDONLY))
host = os.open(f"/proc/self/fd/{stub}", os.O_RDONLY)
with open(path, "a") as copy: copy.write("more")
os.unlink(path)
for change in (lambda: os.fchmod(host, 0o777), lambda: os.utime(host, (1, 1))):
    try: change(); print("changed")
    except OSError: print("refused")
"#;
    let run = asking(&world, &FUSE, &["python3", "-c", script, file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(file);
    client.allow(&question, "session");
    let question = client.question_about(file);
    client.allow_as(&question, "copy");
    let output = run.wait();
    assert_eq!(output.out(), "refused\nrefused\n", "{}", output.err());
    let after = fs::metadata(file).unwrap();
    assert_eq!(
        (after.permissions(), after.modified().unwrap()),
        (before.permissions(), before.modified().unwrap())
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "content");
}

/// Our own processes are told where links lead. Those of the command that build the view are known by a name, which any
/// process can take later.
#[test]
fn a_process_with_a_name_of_ours_is_not_told_where_a_secret_link_leads() {
    let Some(world) = world() else { return };
    fs::create_dir(world.home().join(".ssh")).unwrap();
    std::os::unix::fs::symlink("/far/away", world.home().join(".ssh/link")).unwrap();
    let script = r#"
import ctypes, os, time
link = os.path.expanduser("~/.ssh/link")
ctypes.CDLL(None).prctl(15, b"sandbox-setup", 0, 0, 0)
end = time.monotonic() + 2
while time.monotonic() < end:
    try: print(os.readlink(link)); break
    except OSError: time.sleep(0.1)
else: print("not told")
"#;
    let flags = FUSE.iter().chain(&["--on-ask", "deny"]);
    let output = world.sandbox_run(flags, ["python3", "-c", script]).run();
    assert_eq!(output.out(), "not told\n", "{}", output.err());
}

/// What a program keeps in its private home is on the same file system.
#[test]
fn files_in_the_private_home_behave_as_on_a_disk() {
    let Some(world) = world() else { return };
    let script = r#"
import mmap, os, tempfile
os.chdir(os.path.expanduser("~"))
os.makedirs("a/b")
with open("a/file", "wb") as file: file.write(b"x" * 100_000)
os.link("a/file", "a/linked"); os.symlink("file", "a/link"); os.rename("a/b", "c")
print(os.stat("a/file").st_nlink, os.readlink("a/link"), sorted(os.listdir("a")), os.path.isdir("c"))
with open("a/file", "r+b") as file:
    with mmap.mmap(file.fileno(), 0) as shared: shared[0:1] = b"y"
    os.truncate("a/file", 10)
print(open("a/linked", "rb").read())
gone = tempfile.TemporaryFile(dir=".")
gone.write(b"12345"); gone.flush()
print(os.fstat(gone.fileno()).st_size, os.fstat(gone.fileno()).st_nlink)
os.chmod("a/file", 0o600); os.utime("a/file", (1, 2))
print(oct(os.stat("a/file").st_mode), int(os.stat("a/file").st_mtime))
for number in range(2000): open(f"c/{number}", "w").close()
print(len(os.listdir("c")))
for name in os.listdir("c"): os.unlink("c/" + name)
os.rmdir("c")
print(os.path.exists("c"))
"#;
    let output = world.sandbox_run(FUSE, ["python3", "-c", script]).run();
    output.assert_code(0);
    let expected =
        "2 file ['file', 'link', 'linked'] True\nb'yxxxxxxxxx'\n5 0\n0o100600 2\n2000\nFalse\n";
    assert_eq!(output.out(), expected, "{}", output.err());
}

/// A link with a secret name is asked about by itself, also where it leads nowhere. The kernel would keep what one process was
/// told for all others.
///
/// Proves: GATE-4 once
#[test]
fn where_a_secret_link_leads_is_told_to_one_process_alone() {
    let Some(world) = world() else { return };
    fs::create_dir(world.home().join(".ssh")).unwrap();
    let link = world.home().join(".ssh/link");
    std::os::unix::fs::symlink("/far/away", &link).unwrap();
    let link = link.to_str().unwrap();
    let script = format!("readlink {link}; readlink {link}; true");
    let run = asking(&world, &FUSE, &["sh", "-c", &script]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(link);
    client.allow(&question, "once");
    let question = client.question_about(link);
    client.deny(&question, "once");
    let output = run.wait();
    assert_eq!(output.out(), "/far/away\n", "{}", output.err());
}

/// A directory moved below another makes paths that no call takes at once.
#[test]
fn what_is_deeper_than_a_path_can_be_long_is_removed() {
    let Some(world) = world() else { return };
    let script = r#"
import os, shutil
home = os.path.expanduser("~")
def deep(top):
    os.chdir(home)
    for name in [top] + ["d" * 200] * 14: os.mkdir(name); os.chdir(name)
    open("file", "w").close()
deep("one"); deep("two")
os.rename(home + "/one", "one")
os.chdir("one/" + "/".join(["d" * 200] * 14))
print(os.listdir("."), os.stat("file").st_size)
os.chdir(home)
shutil.rmtree("two")
print(os.path.exists("two"))
"#;
    let output = world.sandbox_run(FUSE, ["python3", "-c", script]).run();
    assert_eq!(output.out(), "['file'] 0\nFalse\n", "{}", output.err());
}

/// A process that starts a program first writes back what it had mapped: the server must not wait for it meanwhile.
///
/// Proves: GATE-4 short-lived
#[test]
fn a_call_that_was_allowed_once_is_watched_while_its_process_starts_a_program() {
    let Some(world) = world() else { return };
    let file = hidden(&world, "wanted");
    let script = r#"
import mmap, os, sys
path = os.path.expanduser("~/mapped")
with open(path, "wb") as file: file.truncate(48 << 20)
descriptor = os.open(path, os.O_RDWR)
mapped = mmap.mmap(descriptor, 0)
for page in range(0, len(mapped), 4096): mapped[page:page + 1] = b"x"
os.stat(sys.argv[1])
os.execvp("echo", ["echo", "done"])
"#;
    let run = asking(&world, &FUSE, &["python3", "-c", script, &file]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "once");
    let begun = Instant::now();
    let output = run.wait();
    assert!(begun.elapsed() < Duration::from_secs(20), "the server hung");
    assert_eq!(output.out(), "done\n", "{}", output.err());
}

/// Something else has taken the place of what was granted.
#[test]
fn a_name_that_could_not_be_granted_after_all_is_not_listed() {
    let Some(world) = world() else { return };
    let file = world.home().join("wanted");
    fs::write(&file, "content").unwrap();
    let run = asking(&world, &FUSE, &["sh", "-c", "cat ~/wanted; ls ~"]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(file.to_str().unwrap());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    client.allow(&question, "session");
    let output = run.wait();
    assert!(!output.out().contains("wanted"), "{} {}", output.out(), output.err());
}
