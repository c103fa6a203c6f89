//! Build directories (`--build-dir`): written by the command itself, as without a sandbox; everything else as ever.

use std::fs;

use palisade_testkit::{World, am_root};

/// Every way to make a name, in the build directory, into it and out of it.
const WORK: &str = r#"
set -eu
umask 027
echo 1 > target/new; echo 2 >> target/new; mkdir -p target/a/b; echo 3 > target/a/b/c
ln -s new target/link; ln target/new target/second; mkfifo target/pipe
mv target/a/b/c target/c; mv target/a target/d; echo 4 > target/link
ln -s ../src target/src; echo 5 > target/src/through; echo 6 > target/../src/up
mv target/c src/out; mv src/in target/in; mv src/dir target/dir; mv target/dir src/back
(cd target/d && echo 7 > seven && echo 8 > b/../eight && echo 9 > "$PWD/nine")
: > target/d/seven; truncate -s 3 target/d/seven
rm -r target/d; rm -r src/back
cp -r src target/copy
python3 - <<'END'
import os
held = os.open("target", os.O_PATH)
os.close(os.open("by-descriptor", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666, dir_fd=held))
os.mkdir("made", dir_fd=held)
os.write(os.open("target", os.O_TMPFILE | os.O_RDWR, 0o600), b"without a name")
try:
    os.rename("target", "elsewhere")
    os.rename("elsewhere", "target")
except OSError as error:
    print(error.strerror)
END
rm -r target/copy
find target src -printf '%P %y %m %s %l\n' | sort
rm -r target; mkdir target; echo anew > target/anew; cat target/anew
"#;

fn prepared() -> World {
    let world = World::new();
    world.git_init();
    for path in ["target/old", "src/in", "src/dir/file"] {
        world.write_in_project(path, "");
    }
    world
}

/// Proves: FS-9 build-dirs, FS-9 like-the-kernel
#[test]
fn a_build_directory_is_written_as_without_a_sandbox() {
    let bare = prepared();
    let expected = bare.bare("sh").args(["-c", WORK]).cwd(bare.project()).run();
    expected.assert_code(0);
    let kinds = [&[][..], &["--static"], &["--gate", "fuse"], &["--level", "1", "--no-userns"]];
    // Root has no sandbox without namespaces.
    for flags in kinds.into_iter().take(if am_root() { 3 } else { 4 }) {
        let world = prepared();
        let flags = [&["--build-dir", "target"], flags].concat();
        let output = world.sandbox_run(&flags, ["sh", "-c", WORK]).run();
        output.assert_code(0);
        // Only the directory itself keeps its name: its rights would go with it.
        let found = output.out().replace("Invalid cross-device link\n", "");
        assert_eq!(found, expected.out(), "{flags:?}: {}", output.err());
        assert_ne!(found, output.out(), "{flags:?}");
        assert!(world.project().join("target/anew").exists());
    }
}

/// The broker opens without following links, which the open file remembers.
///
/// Proves: FS-9 build-dirs
#[test]
fn only_in_a_build_directory_the_command_opens_files_itself() {
    let script = "for file in target/new src/new; do exec 3> $file; \
                  sed -n 's/^flags:.*\\(.\\).....$/\\1/p' /proc/self/fdinfo/3; done";
    let world = prepared();
    let flags_of = |options: &[&str]| -> Vec<String> {
        let output = world.sandbox_run(options, ["sh", "-c", script]).run();
        output.assert_code(0);
        output.out().lines().map(str::to_owned).collect()
    };
    let (itself, performed) = (flags_of(&["--build-dir", "target"]), flags_of(&[]));
    assert_ne!(itself[0], performed[0]);
    assert_eq!(itself[1], performed[1]);
}

/// Proves: FS-9 build-dirs
#[test]
fn names_are_protected_everywhere_else_and_the_plan_says_where_not() {
    let world = prepared();
    world.write_in_project(".venv/pyvenv.cfg", "home = /usr/bin\n");
    let flags = ["--build-dir", "target", "--build-dir", ".venv", "--build-dir", "missing"];
    let script = "echo x > target/.envrc; for name in .envrc src/.envrc .venv/pyvenv.cfg; do \
                  echo x > $name; done; ln target/.envrc src/.envrc; mv target/.envrc src/.envrc";
    let _ = world.sandbox_run(flags, ["sh", "-c", script]).run();
    let exists = |path: &str| world.project().join(path).exists();
    assert!(exists("target/.envrc") && !exists(".envrc") && !exists("src/.envrc"));
    assert!(!exists("missing"));
    let config = fs::read_to_string(world.project().join(".venv/pyvenv.cfg")).unwrap();
    assert_eq!(config, "home = /usr/bin\n");

    let plan = world.sandbox(["plan", "--full"]).args(flags).args(["--", "true"]).run();
    let page = plan.assert_code(0).out();
    let target = world.project().join("target");
    let said = format!("not protected, written without the broker: {}", target.display());
    assert!(page.contains(&said), "{page}");
    assert!(page.contains("it is a Python environment"), "{page}");
    assert!(!page.contains("missing"), "{page}");

    let words = ["why", "--build-dir", "target", "--write", "target/.envrc"];
    let why = world.sandbox(words).run();
    let said = why.assert_code(0).out();
    assert!(said.contains("a build directory, where no name is protected"), "{said}");
}
