//! Commands that would answer questions: the socket is in no view, and whoever comes from a sandbox is not heard there (H07).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use palisade_testkit::{Demonstration, Running, World, am_root};

use crate::answering::{WAIT, connect};
use crate::host::strings;

const SECRET: &str = "content that needs a yes";

/// Says yes to the first question of every session in a directory, and prints what it was told.
const SAY_YES: &str = r#"
import glob, os, socket, sys
os.chdir(sys.argv[1])
for name in glob.glob('*.sock'):
    session = socket.socket(socket.AF_UNIX)
    session.settimeout(10)
    try:
        session.connect(name)
        session.sendall(b'{"type": "cmd.approve", "id": 1, "lifetime": "once"}\n')
        print(name, session.recv(65536))
    except OSError as error:
        print(name, error.__class__.__name__)
"#;

/// Looks for the socket wherever it could be: by its path, through every process, by name and among its own descriptors.
const SEARCH: &str = r#"
import glob, os, sys
directory = sys.argv[1]
found = glob.glob(directory + '/*') + glob.glob('/proc/*/root' + directory + '/*')
found += [line for line in open('/proc/net/unix') if 'palisade' in line or '.sock' in line]
own = {fd: os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)}
found += [link for fd, link in own.items() if int(fd) > 2 and link.startswith('socket:')]
print('found', found)
"#;

/// A directory for sockets of this user's own.
fn runtime_directory(world: &World) -> PathBuf {
    let directory = world.outside().join("runtime");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    directory
}

/// A run that waits for the answer to its one question.
fn asking(world: &World, runtime: &Path) -> Running {
    let file = world.write("outside/wanted", SECRET);
    let run = world.sandbox_run(WAIT, [Path::new("cat"), &file]);
    let run = run.env("XDG_RUNTIME_DIR", runtime).spawn();
    assert!(connect(&runtime.join("palisade")).is_some(), "nothing was asked");
    run
}

/// Proves: GATE-6 socket
#[test]
fn h07_a_command_does_not_answer_for_another_run() {
    let shown = Demonstration::of(
        "H07",
        "say yes to the question of another run, at a socket that a grant shows",
        "a session hears whoever shares its user namespace, and no sandbox does",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let runtime = runtime_directory(&world);
    let run = asking(&world, &runtime);
    let sockets = runtime.join("palisade").to_string_lossy().into_owned();
    let say_yes = strings(&["/usr/bin/python3", "-c", SAY_YES, &sockets]);

    let granted = runtime.to_string_lossy().into_owned();
    let inside = world.sandbox_run(["--ro", &granted], &say_yes).run();
    assert!(inside.out().contains(".sock"), "{}{}", inside.out(), inside.err());
    assert!(!inside.out().contains("event."), "it was heard: {}", inside.out());
    if !am_root() {
        // Root in a user namespace of its own is nobody here.
        let own_root = world.bare("unshare").arg("--map-root-user").args(&say_yes).run();
        assert!(own_root.out().contains(".sock"), "{}{}", own_root.out(), own_root.err());
        assert!(!own_root.out().contains("event."), "it was heard: {}", own_root.out());
    }

    // The question is still open.
    let bare = world.bare(&say_yes[0]).args(&say_yes[1..]).run();
    assert!(bare.out().contains("event.hello"), "{}{}", bare.out(), bare.err());
    assert_eq!(run.wait().out(), SECRET);
    shown.worked_bare();
    shown.held();
}

/// Proves: GATE-6 socket, GATE-1 never-asked
#[test]
fn h07_a_command_does_not_find_the_socket_of_its_own_run() {
    let shown = Demonstration::of(
        "H07",
        "look for the socket where its own question can be answered",
        "the directory of the sockets is in no view, and no descriptor is passed on",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let runtime = runtime_directory(&world);
    let other = asking(&world, &runtime);
    let sockets = runtime.join("palisade").to_string_lossy().into_owned();
    let search = ["/usr/bin/python3", "-c", SEARCH, &sockets];
    let bare = world.bare(search[0]).args(&search[1..]).run();
    assert!(bare.out().contains(".sock"), "{}{}", bare.out(), bare.err());
    shown.worked_bare();

    let inside = world.sandbox_run([""; 0], search).env("XDG_RUNTIME_DIR", &runtime).run();
    assert_eq!(inside.out(), "found []\n", "{}", inside.err());
    world.bare("/usr/bin/python3").args(["-c", SAY_YES, &sockets]).run().assert_code(0);
    other.wait().assert_code(0);
    shown.held();
}
