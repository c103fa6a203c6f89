//! The keeper against the real kernel: what is shown, how, and what is left when it is taken away.

use crate::message::{FileKind, KeeperEvent, KeeperRequest, What};
use crate::test_sandbox::{am_root, identity, list, open_for_writing, play, read, said, tmpfs};
use palisade_sys::{At as _, mounts};
use rustix::fs::{Access, AtFlags, CWD};
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

/// Proves: GATE-1 approve-continues
#[test]
fn a_granted_file_is_there_read_only_and_alone() {
    let command = |host: &Path, question| {
        let path = host.join("deep/er/file");
        match question {
            0 => list(host),
            1 => read(path),
            2 => open_for_writing(path),
            3 => said(fs::set_permissions(path, Permissions::from_mode(0o777)).map(|()| "set")),
            4 => said(fs::remove_file(path).map(|()| "removed")),
            5 => list(host.join("deep/er")),
            6 => {
                let file = fs::File::open(path).unwrap();
                open_for_writing(format!("/proc/self/fd/{}", file.as_raw_fd()))
            }
            _ => said(fs::write("/new", "x").map(|()| "written")),
        }
    };
    play(command, |sandbox| {
        let directory = sandbox.host.join("deep/er");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("file"), "content").unwrap();
        fs::write(directory.join("other"), "not granted").unwrap();
        assert_eq!(sandbox.command(0), "bound home");
        let graft = sandbox.graft(directory.join("file"));
        assert_eq!(sandbox.command(1), "content");
        assert_eq!(sandbox.command(2), "EROFS");
        assert_eq!(sandbox.command(3), "EROFS");
        assert_ne!(sandbox.command(4), "removed");
        assert_eq!(sandbox.command(5), "file");
        assert_eq!(sandbox.command(6), "EROFS", "through its descriptor");
        assert_eq!(sandbox.command(7), "EROFS", "the scaffolding cannot be written");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(0), "bound home", "the directories on the way are gone as well");
        assert_eq!(list(&sandbox.host), "bound deep home");
        assert_eq!(list(&directory), "file other", "nothing happened on the host");
    });
}

/// Proves: GATE-10 session, GATE-10 not-asked, GATE-10 once
#[test]
fn what_is_granted_for_writing_can_be_written_and_nothing_beside_it() {
    let command = |host: &Path, question| match question {
        0 => said(fs::write(host.join("deep/file"), "written").map(|()| "written")),
        1 => said(fs::write(host.join("deep/new"), "written").map(|()| "written")),
        _ => said(fs::write(host.join("tree/new"), "written").map(|()| "written")),
    };
    play(command, |sandbox| {
        for directory in ["deep", "tree", "bare/objects", "bare/refs"] {
            fs::create_dir_all(sandbox.host.join(directory)).unwrap();
        }
        let open = Permissions::from_mode(0o777);
        for directory in ["deep", "tree"] {
            fs::set_permissions(sandbox.host.join(directory), open.clone()).unwrap();
        }
        for file in ["deep/file", "bare/config", "deep/sealed"] {
            fs::write(sandbox.host.join(file), "content").unwrap();
            let mode = if file == "deep/sealed" { 0o444 } else { 0o666 };
            fs::set_permissions(sandbox.host.join(file), Permissions::from_mode(mode)).unwrap();
        }
        let unwritable = |sandbox: &mut crate::test_sandbox::TestSandbox, path: &str| match sandbox
            .look_to_write(&sandbox.host.join(path))
        {
            KeeperEvent::Found(found) => (found.token, found.unwritable),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(unwritable(sandbox, "deep/sealed").1, Some(13));
        assert_eq!(unwritable(sandbox, "bare/config").1, Some(13), "git would read it");
        let (file, refused) = unwritable(sandbox, "deep/file");
        assert_eq!(refused, None);
        sandbox.graft_to_write(file);
        assert_eq!(sandbox.command(0), "written");
        assert_eq!(fs::read_to_string(sandbox.host.join("deep/file")).unwrap(), "written");
        assert_eq!(sandbox.command(1), "EROFS");
        let (tree, refused) = unwritable(sandbox, "tree");
        assert_eq!(refused, None);
        let (event, lent) = sandbox.request(&KeeperRequest::Lend { token: tree, parent: false });
        assert_eq!(event, KeeperEvent::Opened { token: tree });
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE;
        // The broker has the command's ids.
        let made = identity().as_command(|| {
            rustix::fs::openat(lent.as_ref().unwrap(), "lent", flags, 0o600.into()).call("openat")
        });
        made.unwrap();
        assert!(sandbox.host.join("tree/lent").exists());
        assert_ne!(sandbox.command(2), "written", "it is attached nowhere");
        sandbox.graft_to_write(tree);
        assert_eq!(sandbox.command(2), "written");
    });
}

/// Proves: GATE-4 tree
#[test]
fn a_granted_directory_is_whole_and_does_not_lead_out() {
    let command = |host: &Path, question| {
        let tree = host.join("sdk/tree");
        match question {
            0 => list(&tree),
            1 => read(tree.join("below/file")),
            2 => list(tree.join("..")),
            3 => {
                std::env::set_current_dir(&tree).unwrap();
                let seen = list("..");
                std::env::set_current_dir("/").unwrap();
                seen
            }
            4 => said(fs::create_dir(tree.join("new")).map(|()| "made")),
            _ => list(host),
        }
    };
    play(command, |sandbox| {
        let tree = sandbox.host.join("sdk/tree");
        fs::create_dir_all(tree.join("below")).unwrap();
        fs::write(tree.join("below/file"), "content").unwrap();
        fs::write(sandbox.host.join("sdk/secret"), "not granted").unwrap();
        let found = sandbox.look(tree.join("below/file"));
        let directory = What::Directory(tree.clone());
        let graft = sandbox.graft_found(found.token, directory, false).unwrap();
        assert_eq!(sandbox.command(0), "below");
        assert_eq!(sandbox.command(1), "content");
        assert_eq!(sandbox.command(2), "tree");
        assert_eq!(sandbox.command(3), "tree");
        assert_eq!(sandbox.command(4), "EROFS");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(5), "bound home");
    });
}

/// Only root can mount on the host, in a namespace of its own.
#[test]
fn what_is_mounted_below_a_directory_shows_too_and_is_read_only() {
    let command = |host: &Path, question| match question {
        0 => read(host.join("tree/below/file")),
        1 => open_for_writing(host.join("tree/below/file")),
        _ => list(host.join("tree/below")),
    };
    play(command, |sandbox| {
        if !am_root() {
            return;
        }
        let below = sandbox.host.join("tree/below");
        fs::create_dir_all(&below).unwrap();
        mounts::move_mount(tmpfs("0755"), CWD, &below).unwrap();
        fs::write(below.join("file"), "content").unwrap();
        let graft = sandbox.graft(sandbox.host.join("tree"));
        assert_eq!(sandbox.command(0), "content");
        assert_eq!(sandbox.command(1), "EROFS");
        // Cut off from the host: neither what is mounted nor what is unmounted there comes through.
        mounts::detach(&below).unwrap();
        assert_eq!(sandbox.command(2), "file");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(2), "ENOENT");
    });
}

/// Proves: GATE-4 once
#[test]
fn a_file_opened_once_cannot_be_opened_again_for_writing() {
    play(
        |host, _| list(host),
        |sandbox| {
            let path = sandbox.host.join("file");
            fs::write(&path, "content").unwrap();
            let token = sandbox.look(&path).token;
            let read_only = rustix::fs::OFlags::NOFOLLOW.bits();
            let (event, file) = sandbox.request(&KeeperRequest::Open { token, flags: read_only });
            assert_eq!(event, KeeperEvent::Opened { token });
            let mut file = fs::File::from(file.unwrap());
            let mut content = String::new();
            file.read_to_string(&mut content).unwrap();
            assert_eq!(content, "content");
            let again = format!("/proc/self/fd/{}", file.as_raw_fd());
            assert_eq!(open_for_writing(&again), "EROFS");
            assert_eq!(read(&again), "content");
            let flags = rustix::fs::fcntl_getfl(&file).unwrap();
            assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
            assert_eq!(sandbox.command(0), "bound home", "nothing was shown");
            for (flags, errno) in [(1, 30), (2, 30), (0o100, 30), (0o1000, 30), (0o200_000, 20)] {
                let (event, file) = sandbox.request(&KeeperRequest::Open { token, flags });
                assert!(
                    matches!(event, KeeperEvent::Failed { errno: said, .. } if said == errno),
                    "{event:?}"
                );
                assert!(file.is_none());
            }
            let token = sandbox.look(sandbox.host.clone()).token;
            let (event, _) = sandbox.request(&KeeperRequest::Open { token, flags: 0 });
            assert!(
                matches!(event, KeeperEvent::Failed { errno: 13, .. }),
                "a directory: {event:?}"
            );
        },
    );
}

/// Proves: GATE-2 relative
#[test]
fn links_on_the_way_are_links_inside() {
    let command = |host: &Path, question| match question {
        0 => read(host.join("sdk/bin/tool")),
        1 => said(fs::read_link(host.join("sdk")).map(|text| text.display().to_string())),
        2 => list(host),
        _ => list(host.join("versions/sdk-1.2")),
    };
    play(command, |sandbox| {
        let real = sandbox.host.join("versions/sdk-1.2");
        fs::create_dir_all(real.join("libexec")).unwrap();
        fs::write(real.join("libexec/tool"), "tool").unwrap();
        symlink("versions/sdk-1.2", sandbox.host.join("sdk")).unwrap();
        symlink(real.join("libexec"), real.join("bin")).unwrap();
        let found = sandbox.look(sandbox.host.join("sdk/bin/tool"));
        assert_eq!((&found.path, found.kind), (&real.join("libexec/tool"), FileKind::File));
        let expected = [
            (sandbox.host.join("sdk"), "versions/sdk-1.2".into()),
            (real.join("bin"), real.join("libexec")),
        ];
        assert_eq!(found.links, expected);
        let graft = sandbox.graft_found(found.token, What::Found, false).unwrap();
        assert_eq!(sandbox.command(0), "tool");
        assert_eq!(sandbox.command(1), "versions/sdk-1.2");
        let again = sandbox.graft_found(found.token, What::Found, false).unwrap();
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(0), "tool", "another graft still needs them");
        sandbox.ungraft(again);
        assert_eq!(sandbox.command(2), "bound home");
        // The links alone, and those in a directory that is shown whole.
        let links = sandbox.graft_found(found.token, What::Links, false).unwrap();
        assert_eq!(sandbox.command(3), "bin");
        sandbox.ungraft(links);
        let tree = What::Directory(real.clone());
        let tree = sandbox.graft_found(found.token, tree, false).unwrap();
        assert_eq!(sandbox.command(3), "bin libexec");
        sandbox.ungraft(tree);
        assert_eq!(sandbox.command(2), "bound home");
    });
}

#[test]
fn a_directory_can_be_shown_without_what_is_in_it() {
    let command = |host: &Path, _| list(host.join("wide"));
    play(command, |sandbox| {
        let wide = sandbox.host.join("wide");
        fs::create_dir(&wide).unwrap();
        fs::write(wide.join("secret"), "secret").unwrap();
        let found = sandbox.look(wide);
        let name = sandbox.graft_found(found.token, What::Name, false).unwrap();
        assert_eq!(sandbox.command(0), "");
        sandbox.ungraft(name);
        let whole = sandbox.graft_found(found.token, What::Found, false).unwrap();
        assert_eq!(sandbox.command(0), "secret");
        sandbox.ungraft(whole);
    });
}

/// Proves: FS-2 asked-in-red
#[test]
fn a_directory_with_a_secret_or_a_door_in_it_is_not_shown_whole() {
    play(
        |host: &Path, _| list(host.join("tree")),
        |sandbox| {
            let tree = sandbox.host.join("tree");
            fs::create_dir_all(tree.join("a/b")).unwrap();
            fs::write(tree.join("a/b/.env.example"), "shared").unwrap();
            let found = sandbox.look(tree.clone());
            let whole = sandbox.graft_found(found.token, What::Found, false).unwrap();
            assert_eq!(sandbox.command(0), "a");
            sandbox.ungraft(whole);
            fs::write(tree.join("a/b/.env"), "KEY=1").unwrap();
            assert!(sandbox.is_not_whole(found.token));
            fs::remove_file(tree.join("a/b/.env")).unwrap();
            let socket = std::os::unix::net::UnixListener::bind(tree.join("a/socket")).unwrap();
            assert!(sandbox.is_not_whole(found.token));
            drop(socket);
        },
    );
}

#[test]
fn a_directory_may_cover_files_that_were_shown_before() {
    let command = |host: &Path, _| list(host.join("sdk"));
    play(command, |sandbox| {
        let sdk = sandbox.host.join("sdk");
        fs::create_dir(&sdk).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(sdk.join(name), name).unwrap();
        }
        let file = sandbox.graft(sdk.join("a"));
        assert_eq!(sandbox.command(0), "a");
        let tree = sandbox.graft(&sdk);
        assert_eq!(sandbox.command(0), "a b c");
        sandbox.ungraft(tree);
        assert_eq!(sandbox.command(0), "a");
        let tree = sandbox.graft(&sdk);
        sandbox.ungraft(file);
        assert_eq!(sandbox.command(0), "a b c", "taken away below the directory");
        sandbox.ungraft(tree);
        assert_eq!(sandbox.command(0), "ENOENT");
        sandbox.ungraft(tree);
    });
}

/// Proves: GATE-2 exec
#[test]
fn a_program_granted_for_reading_can_be_granted_for_executing() {
    let command = |host: &Path, _| {
        let may = |name| {
            let path = host.join(name);
            said(
                rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::empty())
                    .map_or_else(|errno| Err(errno.into()), |()| Ok("yes")),
            )
        };
        [may("tool"), may("tree/tool")].join(" ")
    };
    play(command, |sandbox| {
        fs::create_dir(sandbox.host.join("tree")).unwrap();
        for name in ["tool", "tree/tool"] {
            let path = sandbox.host.join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let tool = sandbox.host.join("tool");
        let readable = sandbox.graft(&tool);
        sandbox.graft(sandbox.host.join("tree"));
        assert_eq!(sandbox.command(0), "EACCES EACCES");
        let executable = sandbox.try_graft(&tool, true).unwrap();
        let in_tree = sandbox.try_graft(sandbox.host.join("tree/tool"), true).unwrap();
        assert_eq!(sandbox.command(0), "yes yes");
        // What stands on it is granted still.
        sandbox.ungraft(readable);
        sandbox.ungraft(in_tree);
        assert_eq!(sandbox.command(0), "yes EACCES");
        sandbox.ungraft(executable);
        assert_eq!(sandbox.command(0), "ENOENT EACCES");
    });
}

#[test]
fn what_the_plan_shows_is_never_covered() {
    let command = |host: &Path, _| list(host.join("bound"));
    play(command, |sandbox| {
        fs::write(sandbox.host.join("bound/file"), "the project's").unwrap();
        let bound = sandbox.host.join("bound");
        for path in [sandbox.host.clone(), bound.clone(), "/".into()] {
            assert_eq!(sandbox.try_graft(&path, false).unwrap_err(), "move_mount EBUSY");
        }
        assert_eq!(sandbox.try_graft(bound.join("file"), false).unwrap_err(), "move_mount EXDEV");
        // Gone inside, as it is the host's own directory, but still held.
        let held = sandbox.look(bound.join("file"));
        fs::remove_file(bound.join("file")).unwrap();
        let refused = sandbox.graft_found(held.token, What::Found, false).unwrap_err();
        assert_eq!(refused, "openat2 EXDEV");
        assert_eq!(sandbox.command(0), "");
        assert_eq!(list(&bound), "", "nothing was made in the host's directory");
    });
}

#[test]
fn what_the_command_has_put_in_its_home_is_not_replaced() {
    let command = |host: &Path, question| {
        let home = host.join("home");
        match question {
            0 => {
                fs::write(home.join("file"), "the command's").unwrap();
                symlink(host.join("bound"), home.join("link")).unwrap();
                symlink("nowhere", home.join("data")).unwrap();
                list(home)
            }
            1 => read(home.join("file")),
            2 => read(home.join("fine/file")),
            _ => list(home),
        }
    };
    play(command, |sandbox| {
        let home = sandbox.host.join("home");
        for name in ["file", "data", "link/file", "fine/file"] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "the host's").unwrap();
        }
        assert_eq!(sandbox.command(0), "data file link");
        assert_eq!(sandbox.try_graft(home.join("file"), false).unwrap_err(), "move_mount EEXIST");
        assert_eq!(sandbox.try_graft(home.join("data"), false).unwrap_err(), "move_mount EEXIST");
        assert_eq!(sandbox.try_graft(home.join("link/file"), false).unwrap_err(), "openat2 ELOOP");
        assert_eq!(sandbox.command(1), "the command's");
        assert_eq!(list(sandbox.host.join("bound")), "");
        let graft = sandbox.graft(home.join("fine/file"));
        assert_eq!(sandbox.command(2), "the host's");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(3), "data file link");
    });
}

/// The command swaps the directory on the way for a link into a directory of the host that it may write.
#[test]
fn a_race_in_the_home_makes_nothing_anywhere_else() {
    let command = |host: &Path, question| {
        let home = host.join("home");
        match question {
            0 => {
                symlink(host.join("bound"), home.join("link")).unwrap();
                fs::create_dir(home.join("way")).unwrap();
                std::thread::spawn(move || {
                    loop {
                        let flags = rustix::fs::RenameFlags::EXCHANGE;
                        let (way, link) = (home.join("way"), home.join("link"));
                        // What the keeper could not take back while its directory was away stays there.
                        let _ = fs::remove_file(way.join("file"));
                        let _ = rustix::fs::renameat_with(CWD, way, CWD, link, flags);
                    }
                });
                "racing".to_owned()
            }
            _ => list(host.join("bound")),
        }
    };
    play(command, |sandbox| {
        let way = sandbox.host.join("home/way");
        fs::create_dir(&way).unwrap();
        fs::write(way.join("file"), "content").unwrap();
        sandbox.command(0);
        let token = sandbox.look(way.join("file")).token;
        let mut shown = 0;
        let mut refused = 0;
        let deadline = Instant::now() + Duration::from_secs(60);
        let is_race = |shown, refused| shown > 0 && refused > 0;
        while shown + refused < 2000 || !is_race(shown, refused) && Instant::now() < deadline {
            match sandbox.graft_found(token, What::Found, false) {
                Ok(graft) => {
                    shown += 1;
                    sandbox.ungraft(graft);
                }
                Err(_) => refused += 1,
            }
        }
        assert_eq!(sandbox.command(1), "");
        assert_eq!(list(sandbox.host.join("bound")), "");
        assert!(is_race(shown, refused), "no race: {shown} shown, {refused} refused");
    });
}

/// A file of the caller's that only the caller may read is the command's to read once it is granted.
#[test]
fn a_private_file_can_be_granted() {
    let command = |host: &Path, _| read(host.join("private"));
    play(command, |sandbox| {
        let path = sandbox.host.join("private");
        fs::write(&path, "content").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        sandbox.graft(&path);
        assert_eq!(sandbox.command(0), "content");
        let token = sandbox.look(&path).token;
        let (event, file) = sandbox.request(&KeeperRequest::Open { token, flags: 0 });
        assert_eq!((event, file.is_some()), (KeeperEvent::Opened { token }, true));
    });
}

#[test]
fn what_was_found_is_shown_even_if_another_file_has_its_name_by_then() {
    let command = |host: &Path, _| read(host.join("file"));
    play(command, |sandbox| {
        let path = sandbox.host.join("file");
        fs::write(&path, "asked about").unwrap();
        let token = sandbox.look(&path).token;
        fs::rename(&path, sandbox.host.join("old")).unwrap();
        fs::write(&path, "another").unwrap();
        sandbox.graft_found(token, What::Found, false).unwrap();
        assert_eq!(sandbox.command(0), "asked about");
    });
}

/// A copy is the sandbox's own: it has the content, can be written, and the host's file stays as it is.
///
/// Proves: GATE-10 private-copy
#[test]
fn a_copy_can_be_written_and_the_file_stays_as_it_was() {
    let command = |host: &Path, question| {
        let file = host.join("deep/er/file");
        match question {
            0 => read(&file),
            1 => said(fs::write(&file, "changed").map(|()| "written")),
            2 => said(fs::write(host.join("deep/own/new"), "made").map(|()| "written")),
            _ => list(host.join("deep/own")),
        }
    };
    play(command, |sandbox| {
        fs::create_dir_all(sandbox.host.join("deep/er")).unwrap();
        fs::create_dir_all(sandbox.host.join("deep/own")).unwrap();
        let file = sandbox.host.join("deep/er/file");
        fs::write(&file, "content").unwrap();
        fs::write(sandbox.host.join("deep/own/old"), "").unwrap();
        let copy = |sandbox: &mut crate::test_sandbox::TestSandbox, path: &Path| {
            let token = sandbox.look(path).token;
            sandbox.graft_found(token, What::Copy, false).unwrap()
        };
        let graft = copy(sandbox, &file);
        assert_eq!(sandbox.command(0), "content");
        assert_eq!(sandbox.command(1), "written");
        assert_eq!(sandbox.command(0), "changed");
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        let own = sandbox.host.join("deep/own");
        copy(sandbox, &own);
        assert_eq!(sandbox.command(2), "written");
        assert_eq!(sandbox.command(3), "new");
        assert!(!own.join("new").exists());
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(0), "ENOENT");
    });
}

/// A process that was in the directory before it was granted looks below the mount of the grant.
///
/// Proves: GATE-4 around-a-process
#[test]
fn what_a_grant_shows_is_shown_below_it_too_with_the_same_rights() {
    let command = |host: &Path, question| match question {
        0 => said(std::env::set_current_dir(host.join("deep")).map(|()| "entered")),
        1 => read("other"),
        2 => open_for_writing("other"),
        3 => read("er/file"),
        4 => list("."),
        _ => said(std::env::set_current_dir("/").map(|()| "left")),
    };
    play(command, |sandbox| {
        let directory = sandbox.host.join("deep");
        fs::create_dir_all(directory.join("er")).unwrap();
        for file in ["first", "other", "er/file"] {
            fs::write(directory.join(file), file).unwrap();
        }
        sandbox.graft(directory.join("first"));
        assert_eq!(sandbox.command(0), "entered");
        sandbox.graft(&directory);
        assert_eq!(sandbox.command(1), "ENOENT", "below the grant");
        let below = What::BelowCover(directory.clone());
        for (file, question, seen) in [("other", 1, "other"), ("er/file", 3, "er/file")] {
            let token = sandbox.look(directory.join(file)).token;
            sandbox.graft_found(token, below.clone(), false).unwrap();
            assert_eq!(sandbox.command(question), seen);
            sandbox.graft_found(token, below.clone(), false).unwrap();
        }
        assert_eq!(sandbox.command(2), "EROFS");
        assert_eq!(sandbox.command(4), "er first other", "what was asked for, and no more");
        let token = sandbox.look(sandbox.host.join("home")).token;
        let elsewhere = What::BelowCover(sandbox.host.clone());
        assert!(sandbox.graft_found(token, elsewhere, false).is_err(), "nothing covers that");
        assert_eq!(sandbox.command(5), "left");
    });
}

/// Proves: GATE-10 private-copy
#[test]
fn a_copy_stays_on_top_of_a_directory_that_is_granted_later() {
    let command = |host: &Path, question| {
        let path = host.join("deep/file");
        match question {
            0 => said(fs::write(path, "changed").map(|()| "written")),
            _ => read(path),
        }
    };
    play(command, |sandbox| {
        let directory = sandbox.host.join("deep");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("file"), "as it was").unwrap();
        fs::set_permissions(directory.join("file"), Permissions::from_mode(0o666)).unwrap();
        let token = sandbox.look(directory.join("file")).token;
        sandbox.graft_found(token, What::Copy, false).unwrap();
        assert_eq!(sandbox.command(0), "written");
        let graft = sandbox.graft(&directory);
        assert_eq!(sandbox.command(1), "changed");
        assert_eq!(sandbox.command(0), "written");
        sandbox.ungraft(graft);
        assert_eq!(sandbox.command(1), "changed");
        assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "as it was");
    });
}
