//! The level for hosts that forbid user namespaces: Landlock and seccomp, by explicit choice
//! (PROC-7).

use std::fs;

use palisade_testkit::{World, am_root, landlock_abi};

use crate::inside::inside;

const FLAGS: [&str; 3] = ["--level", "1", "--no-userns"];

/// Whether this user can have that level; root cannot, which has a test of its own.
fn available() -> bool {
    let available = !am_root() && landlock_abi() > 0;
    if !available {
        eprintln!("skipped: needs an ordinary user and Landlock");
    }
    available
}

/// Proves: PROC-7 no-userns
#[test]
fn files_nobody_granted_can_be_neither_read_nor_written() {
    if !available() {
        return;
    }
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("outside/private", "private\n");
    world.write("outside/granted/file", "granted\n");
    let granted = world.outside().join("granted");
    let script = format!(
        "cat ~/.ssh/id {0}/private 2>/dev/null; cat {0}/granted/file; \
         touch {0}/granted/new 2>/dev/null && echo wrote; echo made > made; cat made; \
         touch ~/new 2>/dev/null && echo wrote home; id -u",
        world.outside().display()
    );
    let flags = [&FLAGS[..], &["--ro", granted.to_str().unwrap()]].concat();
    let output = inside(&world, &flags, &script);
    output.assert_code(0);
    let own = rustix::process::getuid().as_raw();
    assert_eq!(output.out(), format!("granted\nmade\n{own}\n"));
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "made\n");
}

/// Proves: PROC-7 no-userns, SYS-1 no-inet, PROC-6 no-new-privs
#[test]
fn neither_network_nor_new_privileges_are_to_be_had() {
    if !available() {
        return;
    }
    let world = World::new();
    let program = "import socket\n\
                   for family in (socket.AF_INET, socket.AF_INET6):\n\
                   \x20   try:\n\
                   \x20       socket.socket(family, socket.SOCK_STREAM); print('socket')\n\
                   \x20   except OSError as error:\n\
                   \x20       print(error.errno)\n";
    let output = world.sandbox_run(FLAGS, ["/usr/bin/python3", "-c", program]).run();
    output.assert_code(0);
    assert!(!output.out().contains("socket"), "{}", output.out());
    let status = inside(&world, &FLAGS, "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status");
    assert_eq!(status.out(), "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

/// They are the host's here, so a repository in them could be one that somebody enters later.
///
/// Proves: FS-9 writable-trees, FS-9 programs
#[test]
fn directories_for_everybody_can_be_used_and_hold_nothing_that_the_host_would_run() {
    if !available() {
        return;
    }
    let world = World::new();
    let program = "import multiprocessing, os, tempfile\n\
                   with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as file:\n\
                   \x20   file.write(b'x')\n\
                   \x20   open(place + '/a', 'w').write('x')\n\
                   \x20   os.rename(place + '/a', place + '/b')\n\
                   \x20   print(os.listdir(place))\n\
                   with multiprocessing.Lock(): print('locked')\n";
    let output = world.sandbox_run(FLAGS, ["/usr/bin/python3", "-c", program]).run();
    output.assert_code(0);
    assert_eq!(output.out(), "['b']\nlocked\n", "{}", output.err());
    for area in ["/tmp", "/var/tmp", "/dev/shm"] {
        let script = format!(
            "dir=$(mktemp -d -p {area}); cd $dir; git init -q . && echo made; \
             echo x > .git/hooks/pre-commit; echo x > .envrc; git config core.fsmonitor ./x; \
             ls .git/hooks/pre-commit .envrc; git config core.fsmonitor; rm -r $dir; echo gone"
        );
        let output = inside(&world, &FLAGS, &script);
        assert_eq!(output.out(), "made\ngone\n", "{area}: {}", output.err());
    }
}

/// A service outside would do what it is told, outside: the session bus, a container engine.
///
/// Proves: FS-2 sockets, PROC-7 no-userns
#[test]
fn no_service_outside_can_be_asked_for_a_favour() {
    if !available() {
        return;
    }
    let world = World::new();
    let path = world.outside().join("engine.sock");
    let _engine = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let program = format!(
        "import socket\nsocket.socketpair()\n\
         try:\n s=socket.socket(socket.AF_UNIX); s.connect('{}'); print('connected')\n\
         except OSError as error: print(error.errno)\n",
        path.display()
    );
    let bare = world.bare("/usr/bin/python3").args(["-c", &program]).run();
    assert_eq!(bare.out(), "connected\n");
    for network in ["none", "host"] {
        let flags = [&FLAGS[..], &["--network", network]].concat();
        let output = world.sandbox_run(flags, ["/usr/bin/python3", "-c", &program]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "13\n", "{}", output.err());
    }
}

/// Proves: PROC-7 never-less
#[test]
fn what_is_weaker_is_said_and_what_cannot_be_held_is_refused() {
    if !available() {
        return;
    }
    let world = World::new();
    let output = inside(&world, &FLAGS, "true");
    output.assert_code(0);
    assert!(output.err().contains("no namespaces"), "{}", output.err());
    let report = output.report.unwrap();
    let promises = report["promises"].as_array().unwrap();
    let pids = promises.iter().find(|promise| promise["id"] == "PROC-1").unwrap();
    assert_eq!(pids["planned"], "absent");
    // Level 2 is every namespace; there is no such thing without them.
    inside(&world, &["--no-userns"], "true").assert_code(125);
    inside(&world, &["--level", "1", "--no-userns", "--overlay", "."], "true").assert_code(125);
}

/// Proves: PROC-7 never-less
#[test]
fn root_is_refused_as_nothing_would_take_its_rights_away() {
    if !am_root() {
        eprintln!("skipped: about root");
        return;
    }
    let world = World::new();
    let output = inside(&world, &FLAGS, "touch ran");
    output.assert_code(125);
    assert!(output.err().contains("root"), "{}", output.err());
    assert!(!world.project().join("ran").exists());
}
