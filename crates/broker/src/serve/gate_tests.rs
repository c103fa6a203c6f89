use crate::BrokerMessage;
use crate::test_sandbox::{TestSandbox, mount_tmpfs};
use palisade_bpf::{Arch, BaselineOptions};
use palisade_gate::{AccessReply, PathAccess, Wants};
use palisade_sys::mounts::MountAttrs;
use palisade_sys::proc::{self, Status, sig};
use palisade_sys::test_child::in_child;
use palisade_sys::{Mode, OFlags};
use rustix::fs::{AtFlags, CWD, accessat, open, openat, readlinkat, statat};
use rustix::io::Errno;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
const PLAIN: Wants = Wants::Open { directory: false, path_only: false };

fn read(path: &Path) -> Result<String, Errno> {
    let file = open(path, READ, Mode::empty())?;
    let mut text = [0; 64];
    let length = rustix::io::read(&file, &mut text)?;
    Ok(String::from_utf8(text[..length].to_vec()).unwrap())
}

fn stat(path: &Path) -> Result<(), Errno> {
    statat(CWD, path, AtFlags::empty()).map(drop)
}

fn told(request: &PathAccess) -> (&Path, Wants, bool) {
    (Path::new(std::ffi::OsStr::from_bytes(&request.path)), request.wants, request.follow)
}

/// Proves: GATE-1 blocks-and-asks, GATE-1 approve-continues
#[test]
fn a_call_on_something_missing_waits_and_finds_it_once_it_is_there() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("sdk/include/x.h");
        let run = sandbox.play(|| assert_eq!(read(&file).as_deref(), Ok("granted")));
        let request = run.request();
        assert_eq!(told(&request), (file.as_path(), PLAIN, true));
        assert_eq!(request.pid, run.pid.as_raw_nonzero().get().unsigned_abs());
        assert_eq!(request.cwd, std::env::current_dir().unwrap().as_os_str().as_bytes());
        assert!(request.call.starts_with("open"), "{}", request.call);
        assert!(request.executable.starts_with(b"/"), "{:?}", request.executable);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "granted").unwrap();
        run.reply(AccessReply::Continue { request: request.id });
        run.end();
    });
}

/// Proves: GATE-1 deny-eacces
#[test]
fn a_refusal_is_what_the_call_returns() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        let run = sandbox.play(|| {
            assert_eq!(read(&file), Err(Errno::ACCESS));
            assert_eq!(stat(&file), Err(Errno::ACCESS));
        });
        for _ in 0..2 {
            let request = run.request().id;
            run.reply(AccessReply::Fail { request, errno: 13 });
        }
        run.end();
    });
}

/// Proves: GATE-4 once
#[test]
fn a_file_can_be_handed_over_by_itself() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        let granted = sandbox.behind.join("x");
        std::fs::write(&granted, "once").unwrap();
        let run = sandbox.play(|| {
            assert_eq!(read(&file).as_deref(), Ok("once"));
            let kept = open(&file, OFlags::RDONLY, Mode::empty()).unwrap();
            assert!(
                !rustix::io::fcntl_getfd(&kept).unwrap().contains(rustix::io::FdFlags::CLOEXEC)
            );
            assert_eq!(stat(&file), Err(Errno::ACCESS), "a file is no answer to a look");
        });
        for _ in 0..3 {
            let request = run.request().id;
            run.give(request, std::os::fd::AsFd::as_fd(&std::fs::File::open(&granted).unwrap()));
        }
        run.end();
    });
}

/// Proves: GATE-1 visible-unasked
#[test]
fn nothing_is_asked_about_what_is_there_or_missing_where_the_host_shows() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        std::fs::write(sandbox.ours.join("there"), "there").unwrap();
        std::fs::write(sandbox.theirs.join("there"), "there").unwrap();
        let run = sandbox.play(|| {
            for dir in [&sandbox.ours, &sandbox.theirs] {
                assert_eq!(read(&dir.join("there")).as_deref(), Ok("there"));
                assert_eq!(stat(&dir.join("there")), Ok(()));
                assert_eq!(stat(&dir.join("there/x")), Err(Errno::NOTDIR));
            }
            for missing in ["x", "x/y/z", "../theirs/x"] {
                assert_eq!(stat(&sandbox.theirs.join(missing)), Err(Errno::NOENT));
                assert_eq!(read(&sandbox.theirs.join(missing)), Err(Errno::NOENT));
            }
            for own in ["/proc/nothing", "/proc/self/nothing", "/sys/nothing", "/dev/nothing", ""] {
                assert_eq!(stat(Path::new(own)), Err(Errno::NOENT), "{own}");
            }
            assert_eq!(stat(&sandbox.ours.join("never")), Err(Errno::NOENT));
            assert_eq!(stat(&sandbox.ours.join("never/x")), Err(Errno::NOENT));
        });
        run.end();
    });
}

/// Proves: GATE-1 writes-wait
#[test]
fn what_is_to_be_made_is_told_with_the_directory_that_is_there() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let ours = sandbox.ours.as_os_str().len();
        let options =
            BaselineOptions { guard_writes: true, ..BaselineOptions::new(Arch::native()) };
        let mode = Mode::from_raw_mode(0o700);
        let run = sandbox.play_under(options, || {
            let new = OFlags::WRONLY | OFlags::CREATE;
            assert_eq!(rustix::fs::mkdir(sandbox.ours.join("d"), mode), Err(Errno::ACCESS));
            rustix::fs::mkdir(sandbox.ours.join("d"), mode).unwrap();
            // Made by the command, and known to be missing a moment ago.
            open(sandbox.ours.join("d/f"), new, mode).unwrap();
            assert_eq!(open(sandbox.ours.join("e/f/g"), new, mode).unwrap_err(), Errno::NOENT);
            let old = open(sandbox.ours.join("none"), OFlags::WRONLY, mode);
            assert_eq!(old.unwrap_err(), Errno::NOENT);
            rustix::fs::symlink("x", sandbox.theirs.join("link")).unwrap();
            open(sandbox.theirs.join("new"), new, mode).unwrap();
            assert_eq!(open(sandbox.theirs.join("x/y"), new, mode).unwrap_err(), Errno::NOENT);
            assert_eq!(
                rustix::fs::rename(sandbox.theirs.join("new"), sandbox.ours.join("r")),
                Err(Errno::ACCESS)
            );
        });
        let told = |name: &str, existing: usize| {
            let request = run.request();
            let wants = match request.call.as_str() {
                "mkdir" | "mkdirat" => Wants::Make,
                call if call.starts_with("rename") => Wants::Replace,
                _ if name == "none" => Wants::WriteExisting,
                _ => Wants::Write,
            };
            assert_eq!(request.wants, wants, "{request:?}");
            assert_eq!(request.path, sandbox.ours.join(name).as_os_str().as_bytes(), "{request:?}");
            assert_eq!(request.existing, existing, "{request:?}");
            request.id
        };
        let refused = |request| AccessReply::Fail { request, errno: 13 };
        run.reply(refused(told("d", ours)));
        run.reply(AccessReply::Absent { request: told("d", ours) });
        run.reply(AccessReply::Absent { request: told("d/f", ours + 2) });
        run.reply(AccessReply::Absent { request: told("e/f/g", ours) });
        run.reply(AccessReply::Absent { request: told("none", ours) });
        run.reply(refused(told("r", ours)));
        run.end();
    });
}

/// Proves: GATE-10 once, GATE-10 guarded
#[test]
fn a_lent_descriptor_serves_one_call_and_names_stay_protected() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let options =
            BaselineOptions { guard_writes: true, ..BaselineOptions::new(Arch::native()) };
        let mode = Mode::from_raw_mode(0o700);
        let lent = sandbox.theirs.join("lent");
        std::fs::create_dir(&lent).unwrap();
        std::fs::write(lent.join("old"), "content").unwrap();
        let missing = sandbox.ours.join("lent");
        let run = sandbox.play_under(options, || {
            let new = OFlags::WRONLY | OFlags::CREATE;
            rustix::fs::mkdir(missing.join("made"), mode).unwrap();
            let file = open(missing.join("new"), new, mode).unwrap();
            rustix::io::write(&file, b"written").unwrap();
            assert_eq!(open(missing.join(".envrc"), new, mode).unwrap_err(), Errno::ACCESS);
            let old = open(missing.join("old"), OFlags::WRONLY | OFlags::TRUNC, mode).unwrap();
            rustix::io::write(&old, b"x").unwrap();
            assert!(!missing.exists(), "it became visible");
        });
        let path = |at: &Path| open(at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let lend = || {
            let request = run.request();
            run.lend(&request, path(&lent).as_fd());
            request.id
        };
        lend();
        let id = lend();
        assert!(matches!(run.next(), Some(BrokerMessage::Made { request, .. }) if request == id));
        lend();
        assert!(matches!(run.next(), Some(BrokerMessage::Protected(_))));
        run.lend(&run.request(), path(&lent.join("old")).as_fd());
        run.reply(AccessReply::Absent { request: run.request().id });
        run.end();
        assert!(lent.join("made").is_dir() && !lent.join(".envrc").exists());
        assert_eq!(std::fs::read_to_string(lent.join("new")).unwrap(), "written");
        assert_eq!(std::fs::read_to_string(lent.join("old")).unwrap(), "x");
    });
}

#[test]
fn where_writes_are_not_brokered_nothing_is_asked_about_them() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let run = sandbox.play(|| {
            let mode = Mode::from_raw_mode(0o600);
            for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::WRONLY | OFlags::TRUNC] {
                assert_eq!(open(sandbox.ours.join("x"), flags, mode).unwrap_err(), Errno::NOENT);
            }
            open(sandbox.ours.join("new"), OFlags::WRONLY | OFlags::CREATE, mode).unwrap();
            assert_eq!(rustix::fs::unlink(sandbox.ours.join("x")), Err(Errno::NOENT));
            rustix::fs::mkdir(sandbox.ours.join("d"), Mode::from_raw_mode(0o700)).unwrap();
        });
        run.end();
    });
}

/// Proves: GATE-2 stat-family, GATE-2 open-family, GATE-2 chdir, GATE-2 exec
#[test]
fn every_call_that_names_a_path_is_told_with_what_it_wants() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let x = sandbox.ours.join("x");
        let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let run = sandbox.play(|| {
            let gone = Err(Errno::NOENT);
            assert_eq!(open(&x, path_only, Mode::empty()).map(drop), gone);
            assert_eq!(statat(CWD, &x, AtFlags::SYMLINK_NOFOLLOW).map(drop), gone);
            assert_eq!(accessat(CWD, &x, rustix::fs::Access::READ_OK, AtFlags::empty()), gone);
            assert_eq!(readlinkat(CWD, &x, Vec::new()).map(drop), gone);
            assert_eq!(rustix::fs::statfs(&x).map(drop), gone);
            assert_eq!(rustix::fs::getxattr(&x, "user.x", &mut [0_u8; 8]).map(drop), gone);
            assert_eq!(rustix::fs::lgetxattr(&x, "user.x", &mut [0_u8; 8]).map(drop), gone);
            assert_eq!(rustix::fs::listxattr(&x, &mut [0_u8; 8]).map(drop), gone);
            assert_eq!(rustix::process::chdir(&x), gone);
            assert_eq!(exec(&x), Errno::NOENT);
        });
        let open = Wants::Open { directory: true, path_only: true };
        let look = Wants::Look;
        for (wants, follow) in [
            (open, false),
            (look, false),
            (look, true),
            (look, false),
            (look, true),
            (look, true),
            (look, false),
            (look, true),
            (Wants::Enter, true),
            (Wants::Execute, true),
        ] {
            let request = run.request();
            assert_eq!(told(&request), (x.as_path(), wants, follow), "{}", request.call);
            // Not `Absent`: that would be remembered.
            run.reply(AccessReply::Continue { request: request.id });
        }
        run.end();
    });
}

fn exec(program: &Path) -> Errno {
    Errno::from_io_error(&std::process::Command::new(program).exec()).unwrap()
}

/// Proves: GATE-2 relative
#[test]
fn a_path_is_told_as_the_kernel_would_find_it() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (ours, theirs) = (sandbox.ours.clone(), sandbox.theirs.clone());
        std::fs::create_dir_all(ours.join("a/b")).unwrap();
        symlink(ours.join("a/new/x"), theirs.join("planted")).unwrap();
        symlink("../ours/a", theirs.join("dir")).unwrap();
        symlink("planted", theirs.join("twice")).unwrap();
        symlink("loop", theirs.join("loop")).unwrap();
        let run = sandbox.play(|| {
            let dir =
                open(ours.join("a"), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            let number = std::os::fd::AsRawFd::as_raw_fd(&dir);
            let gone = |path: &str| assert_eq!(stat(Path::new(path)), Err(Errno::NOENT), "{path}");
            rustix::process::chdir(ours.join("a/b")).unwrap();
            gone("x");
            gone("./../x");
            gone("../c/../x");
            assert_eq!(openat(&dir, "b/x", READ, Mode::empty()).unwrap_err(), Errno::NOENT);
            gone("/proc/self/cwd/x");
            gone(&format!("/proc/{}/cwd/x", std::process::id()));
            gone(&format!("/proc/thread-self/root{}/a/x", ours.display()));
            gone(&format!("/proc/self/fd/{number}/x"));
            gone(&format!("/dev/fd/{number}/x"));
            for through in ["planted", "twice", "dir/x", "dir/new/x/"] {
                gone(theirs.join(through).to_str().unwrap());
            }
            // A link itself is there, one that leads to itself nowhere.
            statat(CWD, theirs.join("planted"), AtFlags::SYMLINK_NOFOLLOW).unwrap();
            assert_eq!(stat(&theirs.join("loop")), Err(Errno::LOOP));
            assert_eq!(openat(CWD, "", READ, Mode::empty()).unwrap_err(), Errno::NOENT);
            rustix::fs::fstat(&dir).unwrap();
        });
        for expected in [
            "a/b/x", "a/x", "a/c/../x", "a/b/x", "a/b/x", "a/b/x", "a/x", "a/x", "a/x", "a/new/x",
            "a/new/x", "a/x", "a/new/x/",
        ] {
            let request = run.request();
            assert_eq!(request.path, ours.join(expected).as_os_str().as_bytes(), "{request:?}");
            run.reply(AccessReply::Continue { request: request.id });
        }
        run.end();
    });
}

/// Proves: GATE-1 missing-unasked
#[test]
fn what_is_not_on_the_host_is_not_told_again_until_something_was_granted() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (absent, other) = (sandbox.ours.join("absent"), sandbox.ours.join("other"));
        let run = sandbox.play(|| {
            for _ in 0..3 {
                assert_eq!(stat(&absent), Err(Errno::NOENT));
            }
            assert_eq!(stat(&other), Err(Errno::NOENT));
            assert_eq!(stat(&absent), Err(Errno::NOENT));
        });
        for (path, reply) in [(&absent, "absent"), (&other, "granted"), (&absent, "absent")] {
            let request = run.request();
            assert_eq!(request.path, path.as_os_str().as_bytes());
            let request = request.id;
            run.reply(match reply {
                "absent" => AccessReply::Absent { request },
                _ => AccessReply::Continue { request },
            });
        }
        run.end();
    });
}

/// Proves: GATE-4 once
#[test]
fn a_call_that_was_let_go_on_for_once_is_told_when_it_has_returned() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (file, fifo) = (sandbox.ours.join("x"), sandbox.theirs.join("fifo"));
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let end = open(&fifo, OFlags::RDWR, Mode::empty()).unwrap();
        let run = sandbox.play(|| {
            assert_eq!(stat(&file), Ok(()));
            // It makes no other notified call: that it waits here is all there is to see.
            let _ = rustix::io::read(&end, &mut [0; 1]);
        });
        let request = run.request().id;
        std::fs::write(&file, "").unwrap();
        let before = Instant::now();
        run.reply(AccessReply::ContinueAndWatch { request });
        assert_eq!(run.next(), Some(BrokerMessage::Returned { request }));
        assert!(before.elapsed() < Duration::from_millis(500), "{:?}", before.elapsed());
        rustix::io::write(&end, b"x").unwrap();
        run.end();
    });
}

/// Neither seen by the next call nor seen to go: that one waits until it is gone, and is asked about itself.
///
/// Proves: GATE-4 short-lived
#[test]
fn what_is_there_for_one_call_is_not_there_for_the_next() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        let run = sandbox.play(|| {
            assert_eq!(stat(&file), Ok(()));
            assert_eq!(stat(&file), Err(Errno::ACCESS));
        });
        let request = run.request().id;
        std::fs::write(&file, "").unwrap();
        run.reply(AccessReply::ContinueAndWatch { request });
        assert_eq!(run.next(), Some(BrokerMessage::Returned { request }));
        std::fs::remove_file(&file).unwrap();
        run.reply(AccessReply::Ended { request });
        run.reply(AccessReply::Fail { request: run.request().id, errno: 13 });
        run.end();
    });
}

/// Proves: GATE-2 exec
#[test]
fn what_a_program_needs_to_start_is_told_too() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (script, interpreter) =
            (sandbox.theirs.join("script"), sandbox.ours.join("interpreter"));
        let (second, tool) = (sandbox.theirs.join("second"), sandbox.ours.join("read/tool"));
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(&script, &format!("#!{}\n", second.display()));
        write(&second, &format!("#! {} -x\n", interpreter.display()));
        std::fs::create_dir(sandbox.ours.join("read")).unwrap();
        mount_tmpfs(&sandbox.ours.join("read"), MountAttrs::NOEXEC);
        write(&tool, "#!/bin/true\n");
        let run = sandbox.play(|| {
            assert_eq!(exec(&script), Errno::NOENT);
            assert_eq!(exec(&tool), Errno::ACCESS);
            assert_eq!(exec(Path::new("/bin/true")), Errno::NOENT, "unreached");
        });
        for path in [&interpreter, &tool] {
            let request = run.request();
            assert_eq!(told(&request), (path.as_path(), Wants::Execute, true));
            run.reply(AccessReply::Continue { request: request.id });
        }
        run.end();
    });
}

/// Proves: GATE-2 link-sources
#[test]
fn what_is_to_get_another_name_is_told_before_it_is_renamed_or_linked() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (old, new) = (sandbox.ours.join("old"), sandbox.ours.join("new"));
        let plain = BaselineOptions::new(Arch::native());
        let run = sandbox.play_under(BaselineOptions { guard_writes: true, ..plain }, || {
            assert_eq!(rustix::fs::rename(&old, &new), Err(Errno::ACCESS));
            assert_eq!(rustix::fs::link(&old, &new), Ok(()));
            assert_eq!(rustix::fs::rename(&old, sandbox.ours.join("newer")), Ok(()));
        });
        for is_granted in [false, true] {
            let request = run.request();
            // In one directory, a rename is a change of that.
            let wants = if is_granted { Wants::Source } else { Wants::Rename };
            assert_eq!(told(&request), (old.as_path(), wants, false));
            let request = request.id;
            if is_granted {
                std::fs::write(&old, "").unwrap();
                run.reply(AccessReply::ContinueAndWatch { request });
                assert_eq!(run.next(), Some(BrokerMessage::Returned { request }));
            } else {
                run.reply(AccessReply::Fail { request, errno: 13 });
            }
        }
        // The new name as well, where the old one is there or was granted.
        let newer = sandbox.ours.join("newer");
        for told_as in [(new.as_path(), Wants::Make, false), (&newer, Wants::Replace, false)] {
            let request = run.request();
            assert_eq!(told(&request), told_as);
            run.reply(AccessReply::Absent { request: request.id });
        }
        run.end();
        assert!(sandbox.ours.join("newer").exists());
    });
}

/// Proves: GATE-5 killed-while-waiting
#[test]
fn who_waits_keeps_nobody_waiting_and_who_dies_is_withdrawn() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let (file, other) = (sandbox.ours.join("x"), sandbox.ours.join("other"));
        let run = sandbox.play(|| {
            let mut reader = std::process::Command::new("/bin/cat").arg(&file).spawn().unwrap();
            for _ in 0..1000 {
                assert_eq!(stat(&sandbox.theirs), Ok(()));
            }
            assert_eq!(stat(&other), Err(Errno::ACCESS));
            reader.kill().unwrap();
            reader.wait().unwrap();
            assert_eq!(stat(&other), Err(Errno::ACCESS));
        });
        let (mut first, mut waits) = (None, None);
        for _ in 0..2 {
            let request = run.request();
            let is_first = request.path == file.as_os_str().as_bytes();
            *(if is_first { &mut first } else { &mut waits }) = Some(request.id);
        }
        run.reply(AccessReply::Fail { request: waits.unwrap(), errno: 13 });
        let mut last = None;
        let mut withdrawn = None;
        while last.is_none() || withdrawn.is_none() {
            match run.next() {
                Some(BrokerMessage::PathAccess(request)) => last = Some(request.id),
                Some(BrokerMessage::Withdrawn { request }) => withdrawn = Some(request),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(withdrawn, first);
        // An answer to somebody who is gone is no error.
        run.reply(AccessReply::Continue { request: first.unwrap() });
        run.reply(AccessReply::Fail { request: last.unwrap(), errno: 13 });
        run.end();
    });
}

/// Proves: GATE-1 signals
#[test]
fn a_signal_with_a_handler_interrupts_the_wait() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        let script = format!("trap 'exit 42' INT; read x < {}; exit 1", file.display());
        let run = sandbox.play(|| panic!("{}", exec_shell(&script)));
        let request = run.request();
        assert_eq!(request.path, file.as_os_str().as_bytes());
        proc::kill(run.pid, sig::SIGINT).unwrap();
        let mut said = Vec::new();
        while let Some(message) = run.next() {
            if let BrokerMessage::PathAccess(again) = &message {
                run.reply(AccessReply::Fail { request: again.id, errno: 13 });
            }
            said.push(message);
        }
        assert_eq!(run.wait(), Status::Exited(42), "{said:?}");
    });
}

fn exec_shell(script: &str) -> std::io::Error {
    std::process::Command::new("/bin/sh").args(["-c", script]).exec()
}

/// Proves: GATE-1 signals
#[test]
fn a_call_that_is_made_again_after_a_signal_is_told_before_the_first_is_withdrawn() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        // Stopping and going on runs no handler: the kernel makes the call again by itself.
        let run = sandbox.play(|| assert_eq!(read(&file), Err(Errno::ACCESS)));
        let first = run.request().id;
        proc::kill(run.pid, sig::SIGSTOP).unwrap();
        let flags = rustix::process::WaitOptions::UNTRACED;
        let (_, status) = rustix::process::waitpid(Some(run.pid), flags).unwrap().unwrap();
        assert!(status.stopped());
        proc::kill(run.pid, sig::SIGCONT).unwrap();
        let second = run.request().id;
        assert_ne!(second, first);
        assert_eq!(run.next(), Some(BrokerMessage::Withdrawn { request: first }));
        run.reply(AccessReply::Fail { request: second, errno: 13 });
        run.end();
    });
}

/// Proves: GATE-5 dead-supervisor
#[test]
fn without_a_broker_nothing_is_answered_with_success() {
    in_child(|| {
        let sandbox = TestSandbox::set();
        let file = sandbox.ours.join("x");
        let run = sandbox.play(|| {
            assert_eq!(stat(&file), Err(Errno::NOSYS));
            assert_eq!(stat(&sandbox.theirs), Err(Errno::NOSYS));
        });
        run.request();
        proc::kill(run.broker(), sig::SIGKILL).unwrap();
        assert_eq!(run.wait(), Status::Exited(0));
    });
}
