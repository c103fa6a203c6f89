//! What a person makes writable while a transaction runs is of the host: names stay protected there, also against a race (FS-9).

use std::fs;

use palisade_testkit::World;

use crate::gate::{Client, asking};

/// One thread lets a name be harmless and protected in turn, another creates it.
const RACE: &str = r"
import ctypes, os, sys, threading, time
good, bad = (path.encode() for path in sys.argv[1:])
os.makedirs(os.path.dirname(bad) + b'/made')
buffer = ctypes.create_string_buffer(max(len(good), len(bad)) + 1)
libc = ctypes.CDLL(None, use_errno=True)
end = time.monotonic() + 3
def swap():
    while time.monotonic() < end:
        ctypes.memmove(buffer, good + b'\0', len(good) + 1)
        ctypes.memmove(buffer, bad + b'\0', len(bad) + 1)
thread = threading.Thread(target=swap); thread.start()
tries = 0
while time.monotonic() < end:
    number = libc.open(buffer, os.O_CREAT | os.O_WRONLY, 0o644)
    tries += 1
    if number >= 0: os.close(number)
thread.join()
print('tried', tries > 100)
";

/// Proves: FS-9 home-names
#[test]
fn a_race_creates_no_protected_name_in_what_was_granted() {
    for decoy in ["/tmp/harmless", "harmless"] {
        let world = World::new();
        let granted = world.home().join("granted");
        fs::create_dir(&granted).unwrap();
        world.write_in_project("race.py", RACE);
        let bad = granted.join(".envrc");
        let command = ["python3", "race.py", decoy, bad.to_str().unwrap()];
        let run = asking(&world, &["--transaction"], &command).spawn();
        let client = Client::connect(&world);
        client.answer_all(&crate::gate::yes("session"));
        let output = run.wait();
        output.assert_code(0);
        assert_eq!(output.out(), "tried True\n", "{}", output.err());
        assert!(granted.join("made").is_dir(), "nothing was granted: {}", output.err());
        assert!(!bad.exists(), "the host would run it");
    }
}

/// A rename to another file system fails with EXDEV, and programs copy then.
#[test]
fn a_file_is_moved_from_a_transaction_to_the_private_home() {
    let world = World::new();
    world.write_in_project("file", "content\n");
    for flags in [&["--transaction"][..], &["--transaction=copy"], &["--no-protect-names"]] {
        let script = "cp file other && mv other ~/moved && cat ~/moved && mv ~/moved other && cat other && \
                      echo x > /tmp/x && mv /tmp/x ~/x && cat ~/x && rm -f other";
        let output = world.sandbox_run(flags, ["sh", "-ec", script]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "content\ncontent\nx\n", "{flags:?}: {}", output.err());
    }
}
