//! The streams of a command of a session. A file that is only read is more than a stream: its name in `/proc` can be opened
//! once more, and the file emptied, on whatever mount of the host it is (FS-1).

use std::fs;
use std::os::fd::AsFd as _;

use palisade_testkit::control::interface::{Refusal, Request, Response};
use palisade_testkit::{Session, World};

use crate::inside::host_script;
use crate::sessions_support::Sessions;

/// Tries every way to empty the file that is the standard input, and says what it reads.
const EMPTY_INPUT: &str = "import os, sys\n\
    path = '/proc/self/fd/0'\n\
    for how in [os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC, os.O_RDWR, os.O_TRUNC | 3]:\n\
    \x20try: os.close(os.open(path, how))\n\
    \x20except OSError: pass\n\
    try: os.truncate(path, 0)\n\
    except OSError: pass\n\
    sys.stdout.write(sys.stdin.read())\n";

/// Proves: FS-1 read-only
#[test]
fn what_a_command_of_a_session_reads_is_not_emptied() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let script = world.write_in_project("empty.py", EMPTY_INPUT);
    let input = world.write("outside/input", "content\n");
    let bare = host_script(&world, "python3 empty.py < ../../outside/input").cwd(world.project());
    bare.run().assert_code(0);
    assert_eq!(fs::read(&input).unwrap(), b"", "without a sandbox it is emptied");
    for options in [&["--transaction"][..], &["--transaction", "--static"]] {
        world.write("outside/input", "content\n");
        let session = sessions.create(options);
        let command = format!(
            "\"$PALISADE\" exec -i {session} -- python3 {} < {}",
            script.display(),
            input.display()
        );
        let output = host_script(&world, &command).run();
        assert_eq!(output.out(), "content\n", "{options:?}: it is read: {}", output.err());
        assert_eq!(fs::read(&input).unwrap(), b"content\n", "{options:?}");
    }
}

/// A client that passes such a file by itself is told what to do.
///
/// Proves: FS-1 read-only
#[test]
fn a_file_that_is_only_read_is_no_stream_of_a_further_command() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let file = fs::File::open(world.write("outside/input", "content\n")).unwrap();
    let null = fs::File::open("/dev/null").unwrap();
    let streams = [file.as_fd(), null.as_fd(), null.as_fd()];
    let request = Request::StartCommand(Session::request(&["cat"]));
    match session.client.ask(&request, &streams).unwrap().0 {
        Response::Refused(Refusal { message, .. }) => {
            assert!(message.contains("pass a pipe"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(session.output_of(&["echo", "goes on"]), "goes on\n");
}
