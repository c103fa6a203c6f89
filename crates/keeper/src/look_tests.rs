//! The keeper against the real kernel: what it finds on the host, what it does not, and what it holds.

use crate::message::{Change, FileKind, KeeperEvent, KeeperRequest, What};
use crate::test_sandbox::{am_root, list, play, read, said};
use palisade_sys::mounts::{self, FsOption, MountAttrs};
use rustix::fs::CWD;
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

#[test]
fn a_link_that_is_not_followed_is_shown_as_one() {
    let command = |host: &Path, question| match question {
        0 => said(fs::read_link(host.join("link")).map(|text| text.display().to_string())),
        _ => read(host.join("link")),
    };
    play(command, |sandbox| {
        fs::write(sandbox.host.join("file"), "content").unwrap();
        symlink("file", sandbox.host.join("link")).unwrap();
        let path = sandbox.host.join("link");
        let KeeperEvent::Found(found) = sandbox.try_look(&path, false) else { unreachable!() };
        assert_eq!((&found.path, found.kind), (&path, FileKind::Link));
        let graft = sandbox.graft_found(found.token, What::Found, false).unwrap();
        assert_eq!(sandbox.command(0), "file");
        assert_eq!(sandbox.command(1), "ENOENT", "only the link was granted");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(0), "ENOENT");
    });
}

#[test]
fn looking_finds_what_is_there_and_only_that() {
    play(
        |host, _| list(host),
        |sandbox| {
            let host = sandbox.host.clone();
            fs::create_dir(host.join("dir")).unwrap();
            fs::write(host.join("dir/file"), "").unwrap();
            symlink("loop", host.join("loop")).unwrap();
            symlink("/proc/self/environ", host.join("environ")).unwrap();
            symlink("../dir/../dir/./file", host.join("dir/around")).unwrap();
            rustix::fs::mkfifoat(CWD, host.join("pipe"), 0o600.into()).unwrap();
            for (name, kind) in [
                ("dir", FileKind::Directory),
                ("dir/", FileKind::Directory),
                ("dir/file", FileKind::File),
                (".//dir/../dir/./file", FileKind::File),
                ("dir/around", FileKind::File),
                ("pipe", FileKind::Special),
            ] {
                assert_eq!(sandbox.look(host.join(name)).kind, kind, "{name}");
            }
            assert_eq!(sandbox.look("/../..").path, Path::new("/"));
            let around = sandbox.look(host.join("dir/around"));
            assert_eq!(around.path, host.join("dir/file"));
            for path in ["loop", "environ", "dir/file/", "dir/file/..", "dir/missing", "missing/x"]
            {
                let event = sandbox.try_look(&host.join(path), true);
                assert!(matches!(event, KeeperEvent::Absent { .. }), "{path}: {event:?}");
            }
            let long = "x".repeat(300);
            for path in
                ["/proc/self/status", "/sys", "/dev/null", "/usr/../dev/null", "", "etc", &long]
            {
                let event = sandbox.try_look(Path::new(path), true);
                assert!(matches!(event, KeeperEvent::Absent { .. }), "{path}: {event:?}");
            }
            let refused = sandbox.try_graft(host.join("pipe"), false).unwrap_err();
            assert_eq!(refused, "grant EACCES");
        },
    );
}

/// A name of the command's choosing must not make the host reach out. The daemon here never answers: whoever
/// asked it for a mount would wait for ever.
#[test]
fn looking_mounts_nothing_on_demand() {
    play(
        |host, _| list(host),
        |sandbox| {
            if !am_root() {
                return;
            }
            let net = sandbox.host.join("net");
            fs::create_dir(&net).unwrap();
            let (mut daemon, kernel) = std::io::pipe().unwrap();
            let kernel_end = kernel.as_raw_fd().to_string();
            let options = [
                FsOption::Text("fd", &kernel_end),
                FsOption::Text("pgrp", "1"),
                FsOption::Text("minproto", "5"),
                FsOption::Text("maxproto", "5"),
                FsOption::Flag("indirect"),
            ];
            let Ok(autofs) = mounts::new_fs("autofs", &options, MountAttrs::NONE) else {
                return;
            };
            mounts::move_mount(&autofs, CWD, &net).unwrap();
            for path in ["net", "net/evil", "net/evil/file", "net/evil/../file"] {
                for follow in [true, false] {
                    let event = sandbox.try_look(&sandbox.host.join(path), follow);
                    assert!(matches!(event, KeeperEvent::Absent { .. }), "{path}: {event:?}");
                }
            }
            rustix::io::ioctl_fionbio(&daemon, true).unwrap();
            assert_eq!(said(daemon.read(&mut [0; 400])), "EAGAIN", "the daemon was not asked");
            mounts::detach(&net).unwrap();
        },
    );
}

#[test]
fn what_the_user_may_not_see_is_absent() {
    play(
        |host, _| list(host),
        |sandbox| {
            let closed = sandbox.host.join("closed");
            fs::create_dir(&closed).unwrap();
            fs::write(closed.join("file"), "").unwrap();
            fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
            let event = sandbox.try_look(&closed.join("file"), true);
            fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
            if am_root() {
                assert!(matches!(event, KeeperEvent::Found(_)), "{event:?}");
            } else {
                assert!(matches!(event, KeeperEvent::Absent { .. }), "{event:?}");
            }
        },
    );
}

/// Proves: GATE-2 exec
#[test]
fn a_program_tells_what_it_needs() {
    play(
        |host, _| list(host),
        |sandbox| {
            let script = sandbox.host.join("script");
            let interpreter = sandbox.host.join("interpreter");
            symlink("/bin/sh", &interpreter).unwrap();
            fs::write(&script, format!("#!{} -e\n", interpreter.display())).unwrap();
            let path = script.to_str().unwrap().as_bytes().to_vec();
            let request = KeeperRequest::Look {
                token: 1,
                path,
                follow: true,
                execute: true,
                change: Change::Nothing,
            };
            let KeeperEvent::Found(found) = sandbox.request(&request).0 else { unreachable!() };
            let shell = fs::canonicalize("/bin/sh").unwrap();
            assert_eq!(found.needs[0], shell);
            let loader = found.needs[1].file_name().unwrap().to_str().unwrap();
            assert!(loader.starts_with("ld-"), "{:?}", found.needs);
            assert_eq!(found.links[0], (interpreter, "/bin/sh".into()));
            assert_eq!(sandbox.look(&script).needs, [""; 0].map(std::path::PathBuf::from));
        },
    );
}

#[test]
fn only_so_much_is_held() {
    play(
        |host, _| list(host),
        |sandbox| {
            let path = sandbox.host.join("file");
            fs::write(&path, "content").unwrap();
            let first = sandbox.look(&path).token;
            let kept: Vec<u64> = (0..512).map(|_| sandbox.look(&path).token).collect();
            let stale = sandbox.graft_found(first, What::Found, false).unwrap_err();
            assert_eq!(stale, "token ESTALE");
            for token in [kept[0], kept[511]] {
                sandbox.graft_found(token, What::Found, false).unwrap();
            }
            sandbox.forget(kept[1]);
            let forgotten = sandbox.graft_found(kept[1], What::Found, false).unwrap_err();
            assert_eq!(forgotten, "token ESTALE");
        },
    );
}
