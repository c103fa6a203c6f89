//! Every call that names a path, and every form a path can have: asked about, and answered both ways (GATE-1, GATE-2).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use palisade_testkit::{Output, World};
use serde_json::Value;

use crate::gate::{Client, asking, no, yes};

const CALLS: &str = include_str!("gate_calls.py");
/// They follow no link in the last place, so the link itself is what they are about.
const OF_THE_LINK: [&str; 4] = ["newfstatat-nofollow", "readlinkat", "lstat", "readlink"];
const OF_THE_DIRECTORY: [&str; 3] = ["openat-directory", "openat-slash", "chdir"];
const EXECUTING: [&str; 2] = ["execve", "execveat"];
/// To look at a source for another name: it is seen, and cannot be moved off its mount.
const NAMING: [&str; 4] = ["linkat", "renameat2", "link", "rename"];

struct Cases {
    world: World,
    names: Vec<String>,
}

impl Cases {
    fn new() -> Self {
        let world = World::new();
        world.write_in_project("calls.py", CALLS);
        let listed = world.bare("python3").args(["calls.py", "-", "--names"]).run();
        listed.assert_code(0);
        let names: Vec<String> = listed.out().lines().map(str::to_owned).collect();
        for name in &names {
            let directory = world.outside().join(name);
            world.write(format!("outside/{name}/file"), "content\n");
            world.write(format!("outside/{name}/sub/deep"), "deep\n");
            let script = world.write(format!("outside/{name}/script"), "#!/bin/sh\nexit 77\n");
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
            symlink("file", directory.join("link")).unwrap();
            symlink(directory.join("file"), world.project().join(format!("leads-to-{name}")))
                .unwrap();
            symlink(&directory, world.project().join(format!("dir-of-{name}"))).unwrap();
        }
        Self { world, names }
    }

    fn run(&self, answer: &Value) -> (BTreeMap<String, String>, Vec<Value>, Output) {
        let outside = self.world.outside().to_string_lossy().into_owned();
        let run = asking(&self.world, &[], &["python3", "calls.py", &outside]).spawn();
        let asked = Client::connect(&self.world).answer_all(answer);
        let output = run.wait();
        output.assert_code(0);
        let said = results(&output);
        assert_eq!(said.len(), self.names.len(), "{}", output.out());
        (said, asked, output)
    }

    /// What a case must ask about, and what the call must have come to.
    fn path(&self, name: &str) -> String {
        let file = match name {
            _ if OF_THE_LINK.contains(&name) => "link",
            _ if OF_THE_DIRECTORY.contains(&name) => "sub",
            _ if EXECUTING.contains(&name) => "script",
            _ => "file",
        };
        self.world.outside().join(name).join(file).to_string_lossy().into_owned()
    }

    /// One question for each of them, about the file itself, for what is wanted of it.
    #[track_caller]
    fn expect_asked(&self, asked: &[Value]) {
        let mut paths: Vec<&str> = asked.iter().map(|q| q["path"].as_str().unwrap()).collect();
        let mut expected: Vec<String> = self.names.iter().map(|name| self.path(name)).collect();
        paths.sort_unstable();
        expected.sort_unstable();
        assert_eq!(paths, expected);
        for question in asked {
            let path = question["path"].as_str().unwrap();
            let access = if path.ends_with("/script") { "execute" } else { "read" };
            assert_eq!(question["access"], access, "{question}");
            assert_eq!(question["isDirectory"], path.ends_with("/sub"), "{question}");
            assert_eq!(question["isSecret"], false);
        }
    }
}

fn results(output: &Output) -> BTreeMap<String, String> {
    let out = output.out();
    let lines = out.lines().map(|line| line.split_once(" = ").unwrap());
    lines.map(|(name, result)| (name.to_owned(), result.to_owned())).collect()
}

/// The same call that waited comes back with what it was made for.
#[track_caller]
fn expect_success(said: &BTreeMap<String, String>) {
    for (name, result) in said {
        let expected = match name.as_str() {
            name if NAMING.contains(&name) => "EXDEV",
            name if EXECUTING.contains(&name) => "ran",
            "readlink" | "readlinkat" => "file",
            "chdir" => "['deep']",
            // Nothing but the way to it is around a granted directory.
            "openat-directory" | "openat-slash" => "['deep'] in 1",
            "openat-path" | "openat" | "open" => "content",
            name if name.contains("stat") || name.contains("access") || name.contains("xattr") => {
                "ok"
            }
            _ => "content",
        };
        assert_eq!(result, expected, "{name}");
    }
}

/// Proves: GATE-1 blocks-and-asks, GATE-1 approve-continues, GATE-2 open-family, GATE-2 stat-family, GATE-2 chdir
/// Proves: GATE-2 link-sources, GATE-2 exec, GATE-2 relative, GATE-2 true-path, GATE-4 once
#[test]
fn every_call_and_form_is_asked_about_and_goes_on_once() {
    let cases = Cases::new();
    let (said, mut asked, _) = cases.run(&yes("once"));
    expect_success(&said);
    // To enter a directory once shows nothing of what is in it: its list is another question.
    let entered = cases.path("chdir");
    let is_list = |q: &mut Value| q["path"] == entered.as_str() && q["act"] == "read";
    assert_eq!(asked.extract_if(.., is_list).count(), 1);
    // The directory above is the way to what was granted until the call has returned. Who looks at it later is asked.
    let above = OF_THE_DIRECTORY.map(|name| cases.world.outside().join(name));
    let is_late_look = |q: &mut Value| {
        q["act"] == "see" && above.iter().any(|above| q["path"] == *above.to_string_lossy())
    };
    assert!(asked.extract_if(.., is_late_look).count() <= above.len());
    cases.expect_asked(&asked);
}

/// Proves: GATE-1 approve-continues, GATE-2 relative, GATE-4 session
#[test]
fn every_call_and_form_goes_on_for_the_session() {
    let cases = Cases::new();
    let (said, asked, output) = cases.run(&yes("session"));
    expect_success(&said);
    cases.expect_asked(&asked);
    let report = output.report.unwrap();
    assert_eq!(report["grantedPaths"].as_array().unwrap().len(), cases.names.len());
    assert!(report["deniedPaths"].is_null(), "{report}");
}

/// Proves: GATE-1 deny-eacces, GATE-2 open-family, GATE-2 stat-family, GATE-2 chdir, GATE-2 link-sources, GATE-2 exec
/// Proves: GATE-2 relative
#[test]
fn every_call_and_form_is_denied() {
    let cases = Cases::new();
    let (said, asked, output) = cases.run(&no("once"));
    cases.expect_asked(&asked);
    for (name, result) in &said {
        assert_eq!(result, "EACCES", "{name}");
    }
    let report = output.report.unwrap();
    assert_eq!(report["deniedPaths"].as_array().unwrap().len(), cases.names.len());
    assert!(report["grantedPaths"].is_null(), "{report}");
}

/// Each asks about what it would change: the file, or the directory that something is made in.
///
/// Proves: GATE-1 writes-wait, GATE-1 deny-eacces, GATE-10 asks-for-writing, GATE-10 session
#[test]
fn every_call_that_writes_is_asked_about_and_writes_only_if_it_may() {
    for (answer, is_allowed) in [(yes("session"), true), (no("session"), false)] {
        let cases = Cases::new();
        let listed = cases.world.bare("python3").args(["calls.py", "-", "--writing-names"]).run();
        let names: Vec<String> = listed.out().lines().map(str::to_owned).collect();
        assert!(names.len() > 8, "{names:?}");
        for name in &names {
            cases.world.write(format!("outside/{name}/file"), "as it was\n");
        }
        let outside = cases.world.outside().to_string_lossy().into_owned();
        let run =
            asking(&cases.world, &[], &["python3", "calls.py", &outside, "--writing"]).spawn();
        let asked = Client::connect(&cases.world).answer_all(&answer);
        let output = run.wait();
        output.assert_code(0);
        for (name, result) in results(&output) {
            let expected = match name.as_str() {
                // From a mount into another, which is not asked about.
                "link-into" => Some("EXDEV"),
                _ if !is_allowed => Some("EACCES"),
                // There is still no directory to make one in.
                "mkdir-deep" => Some("ENOENT"),
                _ => None,
            };
            match expected {
                Some(expected) => assert_eq!(result, expected, "{name}"),
                None => {
                    assert!(!["EACCES", "EROFS"].contains(&result.as_str()), "{name}: {result}");
                }
            }
        }
        let mut paths: Vec<&str> = asked.iter().map(|q| q["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        let is_of_file = |name: &str| matches!(name, "create-over" | "write" | "open-truncate");
        let of = |name: &String| match is_of_file(name) {
            true => format!("{outside}/{name}/file"),
            false => format!("{outside}/{name}"),
        };
        let is_asked = |name: &&String| *name != "link-into";
        let mut expected: Vec<String> = names.iter().filter(is_asked).map(of).collect();
        expected.sort_unstable();
        assert_eq!(paths, expected);
        for name in names.iter().filter(is_asked) {
            let is_read = name == "mkdir-deep";
            let of_it = |question: &&Value| question["path"] == of(name).as_str();
            let access = if is_read { "read" } else { "write" };
            assert_eq!(asked.iter().find(of_it).unwrap()["access"], access, "{name}");
            let directory = cases.world.outside().join(name);
            let is_truncated = is_allowed && name == "open-truncate";
            let text = if is_truncated { "" } else { "as it was\n" };
            assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), text, "{name}");
            let is_made = is_allowed && !is_read && !is_of_file(name);
            let made = directory.join("made").symlink_metadata().is_ok();
            assert_eq!(made, is_made, "{name}");
        }
    }
}

/// Proves: GATE-1 missing-unasked, GATE-1 never-asked, GATE-1 visible-unasked
#[test]
fn what_is_nowhere_is_not_asked_about() {
    let cases = Cases::new();
    cases.world.write("outside/openat2-write/file", "as it was\n");
    let outside = cases.world.outside().to_string_lossy().into_owned();
    let command = ["python3", "calls.py", &outside, "--silent"];
    // Whoever asks would wait for ever.
    let output = asking(&cases.world, &[], &command).run();
    output.assert_code(0);
    for (name, result) in results(&output) {
        let expected = match name.as_str() {
            "openat2-write" => "ENOSYS",
            "fstat" | "fstatx" => "ok",
            "too-long" | "long-name" => "ENAMETOOLONG",
            "absent-below-file" => "ENOTDIR",
            "no-memory" => "EFAULT",
            _ => "ENOENT",
        };
        assert_eq!(result, expected, "{name}");
    }
    let report = output.report.unwrap();
    assert!(report["deniedPaths"].is_null(), "{report}");
}

/// A file made in the private home stands there, and nothing on the host is touched.
///
/// Proves: FS-3 home-writable
#[test]
fn what_is_made_in_the_private_home_is_private() {
    let world = World::new();
    let notes = world.write("home/notes/of-the-host", "kept\n");
    let script = "mkdir ~/notes && echo mine >~/notes/of-the-host && cat ~/notes/of-the-host";
    let output = world.sandbox_run([""; 0], ["sh", "-c", script]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "mine\n");
    assert_eq!(fs::read_to_string(notes).unwrap(), "kept\n");
}

/// What the broker opens in the caller's stead is what the kernel would have opened, or it says that it does not know the
/// call.
const OPENAT2: &str = r#"
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
NO_SYMLINKS, BENEATH, IN_ROOT = 4, 8, 16
def openat2(path, flags=0, mode=0, resolve=0, dir=-100, size=24, more=0):
    how = (ctypes.c_uint64 * 4)(flags, mode, resolve, more)
    fd = libc.syscall(437, dir, path.encode(), how, size)
    return errno.errorcode[ctypes.get_errno()] if fd < 0 else fd
def text(fd):
    return fd if isinstance(fd, str) else os.read(fd, 100).decode().strip()
os.mkdir("d"); open("d/file", "w").write("content"); os.symlink("file", "d/link"); os.symlink("/etc", "d/out")
os.mkfifo("pipe"); here = os.open("d", os.O_PATH)
flags = lambda fd: (os.get_inheritable(fd), os.get_blocking(fd))
print("read", text(openat2("d/file")), text(openat2("file", dir=here)), text(openat2("d/link", size=32)))
print("flags", flags(openat2("d/file")), flags(openat2("d/file", os.O_CLOEXEC | os.O_NONBLOCK)))
print("directory", os.listdir(openat2("d", os.O_DIRECTORY)) != [], openat2("d/file", os.O_DIRECTORY))
print("links", openat2("d/link", os.O_NOFOLLOW), openat2("d/link", resolve=NO_SYMLINKS))
print("bounds", openat2("../d/file", dir=here, resolve=BENEATH), openat2("out/passwd", dir=here, resolve=BENEATH))
print("root", text(openat2("/file", dir=here, resolve=IN_ROOT)))
print("missing", openat2("d/none"), openat2("/usr/none"), openat2("d/file/none"))
print("wrong", openat2("d/file", size=16), openat2("d/file", size=32, more=1), openat2("d/file", 1 << 40),
      openat2("d/file", resolve=1 << 20), openat2("d/file", mode=0o600), openat2("d/file", dir=99))
print("unknown", openat2("d/file", os.O_PATH), openat2("/proc/self/status"), openat2("pipe"), openat2("/dev/null"), openat2("d/file", os.O_RDWR),
      openat2("new", os.O_CREAT | os.O_WRONLY, 0o4755), openat2("/proc/1/mem"), openat2("1/mem", dir=os.open("/proc", os.O_PATH)))
"#;

/// Proves: GATE-2 open-family, FS-1 no-setid-file
#[test]
fn openat2_opens_for_reading_as_the_kernel_would() {
    let world = World::new();
    world.write_in_project("openat2.py", OPENAT2);
    let output = asking(&world, &[], &["python3", "openat2.py"]).run();
    output.assert_code(0);
    let expected = "\
read content content content
flags (True, True) (False, False)
directory True ENOTDIR
links ELOOP ELOOP
bounds EXDEV EXDEV
root content
missing ENOENT ENOENT ENOTDIR
wrong EINVAL E2BIG EINVAL EINVAL EINVAL EBADF
unknown ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS
";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert!(!world.project().join("new").exists());
}
