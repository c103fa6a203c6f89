//! Who the command is on the host, and whose its files are (PROC-6, FS-1).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use palisade_testkit::{World, am_root};

use crate::inside::{below, eventually, inside, status_field, tree};

/// Proves: PROC-6 not-root-outside
#[test]
fn the_host_sees_no_process_of_roots_inside() {
    let world = World::new();
    for flags in [&[][..], &["--level", "1"]] {
        let mut run = world
            .sandbox_run(flags, ["sh", "-c", "echo ready; read go; :"])
            .keep_stdin_open()
            .spawn();
        run.wait_for_stdout("ready");
        eventually("the command's processes", || below(&run).len() >= 2);
        let own = rustix::process::getuid().as_raw();
        for pid in below(&run) {
            if is_server(pid) {
                continue;
            }
            let ids = status_field(pid, "Uid").unwrap();
            for id in ids.split_whitespace() {
                let id: u32 = id.parse().unwrap();
                assert_ne!(id, 0, "{flags:?}: process {pid} has {ids}");
                assert!(am_root() || id == own, "{flags:?}: process {pid} has {ids}");
            }
            let groups = status_field(pid, "Groups").unwrap();
            assert!(!am_root() || groups.is_empty(), "{flags:?}: process {pid} is in {groups}");
        }
        run.send(b"go\n");
        run.wait().assert_code(0);
    }
}

/// Whether it serves the gate's file system, outside: started by root, it acts as root and as the command in turns.
fn is_server(pid: u32) -> bool {
    status_field(pid, "Name").as_deref() == Some("sandbox-gatefs")
}

/// Servers look up the accounts that their settings name.
///
/// Proves: PROC-6 names
#[test]
fn accounts_of_the_host_are_found_by_name_and_the_own_one_by_id() {
    let world = World::new();
    let script = "getent passwd daemon; getent group daemon; getent passwd $(id -u) | cut -d: -f3";
    let bare = world.bare("sh").args(["-c", script]).run();
    let output = inside(&world, &[], script);
    output.assert_code(0);
    let accounts = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(accounts(&output.out()), accounts(&bare.out()));
    assert_eq!(accounts(&output.out()).len(), 2, "{}", bare.out());
    let own = inside(
        &world,
        &[],
        "id -un && id -gn && python3 -c 'import os; print(os.path.expanduser(\"~\"))'",
    );
    own.assert_code(0);
    let home = world.home().display().to_string();
    assert!(own.out().lines().count() == 3 && own.out().contains(&home), "{}", own.out());
}

/// ping(8), setpriv(1) and servers that change their id ask for it when they start.
///
/// Proves: PROC-6 securebits
#[test]
fn programs_may_ask_to_keep_the_capabilities_they_do_not_have() {
    let world = World::new();
    let output = inside(&world, &[], "setpriv --no-new-privs grep CapEff /proc/self/status");
    output.assert_code(0);
    assert_eq!(output.out(), "CapEff:\t0000000000000000\n", "{}", output.err());
}

/// Proves: PROC-6 capabilities-empty, PROC-6 bounding-set, PROC-6 securebits
#[test]
fn no_capability_is_left_and_none_can_be_gained() {
    let world = World::new();
    let script = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status";
    for flags in [&[][..], &["--level", "1"]] {
        let output = inside(&world, flags, script);
        output.assert_code(0);
        let fields: Vec<_> = output.out().split_whitespace().map(str::to_owned).collect();
        let none = "0000000000000000";
        assert_eq!(
            fields,
            [
                "CapInh:",
                none,
                "CapPrm:",
                none,
                "CapEff:",
                none,
                "CapBnd:",
                none,
                "CapAmb:",
                none,
                "NoNewPrivs:",
                "1",
                "Seccomp:",
                "2"
            ],
            "{flags:?}"
        );
    }
    let bits = "import ctypes; print(ctypes.CDLL(None).prctl(27, 0, 0, 0, 0))";
    let output = world.sandbox_run([""; 0], ["/usr/bin/python3", "-c", bits]).run();
    let bits: u32 = output.out().trim().parse().unwrap();
    // SECBIT_NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock: securebits.h.
    assert_eq!(bits & 0b1100_1111, 0b1100_1111, "{bits:#b}");
}

/// Proves: PROC-6 not-root-outside
#[test]
fn names_and_ids_inside_fit_together() {
    let world = World::new();
    let output = inside(&world, &[], "id -u; id -un; id -g; echo $HOME; stat -c %u .");
    output.assert_code(0);
    let lines: Vec<_> = output.out().lines().map(str::to_owned).collect();
    let expected = if am_root() {
        ["1000".to_owned(), "sandbox".to_owned()]
    } else {
        let outside = world.bare("sh").args(["-c", "id -u; id -un"]).run();
        let outside: Vec<_> = outside.out().lines().map(str::to_owned).collect();
        [outside[0].clone(), outside[1].clone()]
    };
    assert_eq!(lines[..2], expected);
    assert_eq!(lines[3], world.home().display().to_string());
    assert_eq!(lines[4], lines[0], "the project is the command's own");
}

/// Proves: FS-1 owner
#[test]
fn what_is_created_belongs_to_the_projects_owner() {
    let world = World::new();
    let script = "echo x > file; mkdir -p dir/sub; ln -s file link; mkfifo pipe; \
                  echo x > existing; mv existing renamed";
    let mut owners = vec![(rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())];
    if am_root() {
        owners.extend([(4321, 4322), (1001, 0)]);
    }
    for (uid, gid) in owners {
        world.write_in_project("existing", "");
        for path in [world.project(), world.project().join("existing")] {
            chown(path, Some(uid), Some(gid)).unwrap();
        }
        inside(&world, &[], script).assert_code(0);
        for name in ["file", "dir", "dir/sub", "link", "pipe", "renamed"] {
            let found = fs::symlink_metadata(world.project().join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (uid, gid), "{name}");
        }
        world.bare("sh").args(["-c", "rm -r ./*"]).run().assert_code(0);
    }
}

/// Proves: FS-1 owner
#[test]
fn what_is_created_in_other_grants_belongs_to_their_owner() {
    let world = World::new();
    let (uid, gid) = if am_root() { (4321, 4322) } else { own_ids() };
    let shared = world.outside().join("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(uid), Some(gid)).unwrap();
    let cache = world.write("home/.cargo/registry/index", "");
    let made = world.outside().join("made");
    let script = format!(
        "echo x > {}/file && echo x > {}/file && echo x > ~/.cargo/registry/file",
        shared.display(),
        made.display()
    );
    let (shared_flag, made_flag) = (shared.to_str().unwrap(), made.to_str().unwrap());
    let flags = ["--rw", shared_flag, "--rw", made_flag, "--caches", "host"];
    inside(&world, &flags, &script).assert_code(0);
    let owner = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (found.uid(), found.gid())
    };
    assert_eq!(owner(&shared.join("file")), (uid, gid));
    assert_eq!(owner(&made), own_ids());
    assert_eq!(owner(&made.join("file")), own_ids());
    assert_eq!(owner(&cache.with_file_name("file")), own_ids());
}

fn own_ids() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

/// Proves: FS-1 no-setid-file
#[test]
fn no_setuid_or_setgid_file_can_be_left_behind() {
    let world = World::new();
    let source = world.write("outside/source/tool", "#!/bin/sh\nid\n");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&source).unwrap().mode() & 0o6000, 0o6000);
    let pack = ["-C", source.parent().unwrap().to_str().unwrap(), "-cf", "tool.tar", "tool"];
    world.bare("tar").args(pack).run().assert_code(0);
    let ways = [
        "cp /bin/sh chmodded; chmod u+s chmodded; chmod g+s chmodded; chmod 6755 chmodded",
        "install -m 4755 /bin/sh installed",
        "cp -p $1 copied",
        "tar -xpf tool.tar; mv tool extracted",
        "mkdir -m 2755 made; mkdir plain; chmod g+s plain",
        "python3 -c 'import os; os.close(os.open(\"opened\", os.O_CREAT | os.O_WRONLY, 0o4755))'",
        "python3 -c 'import os; fd = os.open(\"changed\", os.O_CREAT); os.fchmod(fd, 0o4755)'",
        "python3 -c 'import os; os.mknod(\"node\", 0o104755)'",
    ];
    let source_directory = source.parent().unwrap().to_str().unwrap();
    let work = [source.to_str().unwrap()];
    for flags in [&[][..], &["--level", "1"]] {
        let flags = [flags, &["--ro", source_directory]].concat();
        for way in ways {
            let command = ["sh", "-c", way, "sh"].into_iter().chain(work);
            // Whether the program is told no or the bit is simply dropped is not the point.
            let _ = world.sandbox_run(&flags, command).run();
        }
        for path in tree(&world.project()) {
            let found = fs::symlink_metadata(&path).unwrap();
            // On a directory, the group's bit only says whose group new files get.
            let refused = if found.is_dir() { 0o4000 } else { 0o6000 };
            let mode = found.mode();
            assert_eq!(mode & refused, 0, "{flags:?}: {path} has mode {mode:o}");
        }
        assert!(world.project().join("chmodded").exists());
        assert!(world.project().join("plain").exists());
        let remove = "rm -rf chmodded installed copied extracted made plain";
        world.bare("sh").args(["-c", remove]).run().assert_code(0);
    }
}

/// Proves: PROC-6 not-root-outside
#[test]
fn roots_private_files_cannot_be_read() {
    let world = World::new();
    let mut private: Vec<String> = tree(Path::new("/etc"))
        .into_iter()
        .filter(|path| {
            fs::symlink_metadata(path).is_ok_and(|found| {
                found.is_file() && found.uid() == 0 && found.mode() & 0o077 & !0o040 == 0
            })
        })
        .collect();
    private.truncate(50);
    assert!(private.iter().any(|path| path == "/etc/shadow"), "{private:?}");
    let script = "for f; do cat \"$f\" > /dev/null 2>&1 && echo \"$f\"; done; true";
    for flags in [&[][..], &["--static"], &["--level", "1"], &["--ro", "/etc"]] {
        let command = ["sh", "-c", script, "sh"].into_iter().map(str::to_owned);
        let output = world.sandbox_run(flags, command.chain(private.iter().cloned())).run();
        output.assert_code(0);
        assert_eq!(output.out(), "", "{flags:?}");
    }
}
