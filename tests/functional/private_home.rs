//! The private home (FS-3): what is not granted is askable where somebody can be asked and absent where nobody
//! can, for every call alike; what is written there is the run's own, and told at the end.

use palisade_testkit::{Output, World};
use serde_json::Value;

use crate::gate::{Client, asking};
use crate::inside::inside;

/// Each of the three ways to touch one directory, with the errno it gets.
const THREE_WAYS: &str = r#"
import errno, os
home = os.environ["HOME"]
def tried(name, call):
    try:
        call()
        print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
tried("list", lambda: os.listdir(home + "/.e"))
tried("below", lambda: os.mkdir(home + "/.e/x"))
tried("write", lambda: open(home + "/.e/f", "w"))
tried("rename", lambda: os.rename("here", home + "/.e/here"))
tried("itself", lambda: os.mkdir(home + "/.e"))
tried("deep", lambda: os.makedirs(home + "/.e/x/y"))
tried("again", lambda: os.listdir(home + "/.e"))
"#;

fn world() -> World {
    let world = World::new();
    world.write("home/.e/config", "of the host\n");
    world.write_in_project("here", "");
    world.write_in_project("ways.py", THREE_WAYS);
    world
}

fn discarded(output: &Output) -> &Value {
    &output.report.as_ref().unwrap()["discardedFiles"]
}

/// Proves: GATE-1 writes-wait, GATE-5 nobody-to-ask
#[test]
fn with_nobody_to_ask_a_directory_is_absent_for_every_call_until_the_command_makes_its_own() {
    for flags in [&[][..], &["--on-ask", "deny"]] {
        let world = world();
        let output = world.sandbox_run(flags, ["python3", "ways.py"]).run();
        output.assert_code(0);
        assert_eq!(
            output.out(),
            "list ENOENT\nbelow ENOENT\nwrite ENOENT\nrename ENOENT\nitself ok\ndeep ok\nagain ok\n",
            "{flags:?}: {}",
            output.err()
        );
        assert!(!world.home().join(".e/x").exists());
        let told = format!("{} (allow", world.home().join(".e").display());
        assert!(output.err().contains(&told), "{}", output.err());
    }
}

/// Proves: GATE-1 own-directories
#[test]
fn what_the_host_has_below_a_directory_of_the_commands_own_stays_absent() {
    let world = world();
    let script = "mkdir ~/.e && cat ~/.e/config; echo mine > ~/.e/config && cat ~/.e/config";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    assert_eq!(output.out(), "mine\n");
    assert!(output.err().contains("No such file"), "{}", output.err());
    assert!(!output.err().contains(".e/config (allow"), "{}", output.err());
}

/// A write to a granted file, and an open that creates nothing, say nothing about whose directory it is.
///
/// Proves: GATE-1 own-directories
#[test]
fn a_directory_is_the_commands_while_it_has_a_file_there_and_only_then() {
    for (created, is_offered) in [("true", true), (": > ~/.e/own", false)] {
        let world = world();
        world.write("home/.e/second", "second\n");
        let script = format!(
            "cat ~/.e/config; python3 -c 'import os; os.open(\"'$HOME'/.e/none\", os.O_RDWR)'; \
             {created}; echo x >> ~/.e/config; cat ~/.e/second"
        );
        let run = asking(&world, &[], &["sh", "-c", &script]).spawn();
        let mut client = Client::connect(&world);
        let path = |name: &str| world.home().join(name).to_string_lossy().into_owned();
        let question = client.question_about(&path(".e/config"));
        client.allow(&question, "session");
        let question = client.question_about(&path(".e/config"));
        assert_eq!(question["access"], "write", "{question}");
        client.deny(&question, "once");
        let question = client.question_about(&path(".e/second"));
        assert_eq!(!question["directory"].is_null(), is_offered, "{created}: {question}");
        client.allow(&question, "session");
        let output = run.wait();
        assert_eq!(output.out(), "of the host\nsecond\n", "{}", output.err());
        assert!(output.err().contains("FileNotFoundError"), "{}", output.err());
    }
}

/// Proves: GATE-1 writes-wait, GATE-1 deny-eacces
#[test]
fn a_no_is_eacces_for_every_call_and_there_is_one_question() {
    let world = world();
    let run = asking(&world, &[], &["python3", "ways.py"]).spawn();
    let mut client = Client::connect(&world);
    let path = world.home().join(".e").to_string_lossy().into_owned();
    let question = client.question_about(&path);
    client.deny(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    let refused = "list EACCES\nbelow EACCES\nwrite EACCES\nrename EACCES\nitself EACCES\ndeep EACCES\nagain EACCES\n";
    assert_eq!(output.out(), refused, "{}", output.err());
}

/// Proves: GATE-1 writes-wait, GATE-10 session
#[test]
fn a_yes_to_making_something_makes_the_directory_writable() {
    let world = world();
    let run = asking(&world, &[], &["sh", "-c", "mkdir ~/.e/x; cat ~/.e/config"]).spawn();
    let mut client = Client::connect(&world);
    let path = world.home().join(".e").to_string_lossy().into_owned();
    let question = client.question_about(&path);
    assert_eq!(question["access"], "write");
    client.allow(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "of the host\n");
    assert!(world.home().join(".e/x").exists());
}

/// Proves: GATE-10 asks-for-writing
#[test]
fn where_nobody_is_asked_a_yes_is_for_reading_and_the_end_names_the_flag_for_writing() {
    let world = world();
    let command = ["sh", "-c", "mkdir ~/.e/x; cat ~/.e/config"];
    let output = world.sandbox_run(["--on-ask", "allow"], command).run();
    output.assert_code(0);
    assert_eq!(output.out(), "of the host\n");
    assert!(output.err().contains("Read-only file system"), "{}", output.err());
    let path = world.home().join(".e").to_string_lossy().into_owned();
    let told = format!("{path} (allow writing with --rw {path})");
    assert!(output.err().contains(&told), "{}", output.err());
    assert!(!world.home().join(".e/x").exists());
}

/// Proves: FS-3 discarded-told
#[test]
fn what_was_written_is_told_at_the_end_with_the_option_that_keeps_it() {
    let world = World::new();
    world.write("home/.gitconfig", "[user]\n\tname = Me\n");
    world.write("home/.cargo/bin/tool", "");
    let quiet = inside(&world, &[], "cat ~/.gitconfig > /dev/null; mkdir -p ~/.local/share/empty");
    assert!(!quiet.err().contains("discarded"), "{}", quiet.err());
    assert!(discarded(&quiet).is_null());

    let script = "echo a > ~/.foorc; mkdir -p ~/.local/share/x/y ~/.cache/z; echo b > ~/.local/share/x/y/b; \
                  echo c > ~/.cache/z/c; echo d > ~/.python_history";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    let told = "2 files written to the private home were discarded: \
                ~/.foorc (keep with --rw ~/.foorc once it exists outside), \
                ~/.local/share/x/… (keep with --rw ~/.local/share/x)";
    assert!(output.err().contains(told), "{}", output.err());
    assert_eq!(
        (&discarded(&output)["count"], &discarded(&output)["leftovers"]),
        (&4.into(), &2.into())
    );
    assert!(!world.home().join(".foorc").exists());
    let silent = inside(&world, &["--quiet"], script);
    assert!(!silent.err().contains("discarded"), "{}", silent.err());

    // What it says is true.
    let kept = inside(&world, &["--rw", "~/.local/share/x"], script);
    kept.assert_code(0);
    assert!(world.home().join(".local/share/x/y/b").exists());
}

/// Programs change their settings in place, or by renaming a new file over them.
///
/// Proves: FS-3 settings-copied, FS-3 discarded-told
#[test]
fn settings_can_be_changed_and_the_callers_own_stay_as_they_are() {
    let world = World::new();
    world.write("home/.gitconfig", "[user]\n\tname = Me\n");
    world.write("home/.bashrc", "# mine\n");
    world.write("home/.config/git/ignore", "*.o\n");
    world.write("home/.config/bat/config", "--plain\n");
    let script = "git config --global user.name You && git config --global user.name && \
                  echo 'export A=1' >> ~/.bashrc && echo '*.a' >> ~/.config/git/ignore && cat ~/.config/git/ignore && \
                  mv ~/.config/bat/config ~/.config/bat/old && rm ~/.config/bat/old && ls ~/.config/bat";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    assert_eq!(output.out(), "You\n*.o\n*.a\n", "{}", output.err());
    let told = "3 files written to the private home were discarded: \
                ~/.bashrc (keep with --rw ~/.bashrc), \
                ~/.config/git/ignore (keep with --rw ~/.config/git/ignore), \
                ~/.gitconfig (keep with --rw ~/.gitconfig)";
    assert!(output.err().contains(told), "{}", output.err());
    for (path, content) in [
        (".gitconfig", "[user]\n\tname = Me\n"),
        (".bashrc", "# mine\n"),
        (".config/git/ignore", "*.o\n"),
        (".config/bat/config", "--plain\n"),
    ] {
        assert_eq!(std::fs::read_to_string(world.home().join(path)).unwrap(), content, "{path}");
    }
    // What it says is true.
    let kept = inside(&world, &["--rw", "~/.gitconfig"], "git config --global user.name You");
    kept.assert_code(0);
    assert!(std::fs::read_to_string(world.home().join(".gitconfig")).unwrap().contains("You"));
}

/// What stands beside granted parts of the home can be made: gpg, pipx and npx do.
///
/// Proves: FS-3 home-writable
#[test]
fn directories_beside_granted_ones_can_be_made_and_vanish() {
    let world = World::new();
    world.write("home/.local/share/uv/tool", "");
    world.write("home/.local/share/mise/tool", "");
    world.write("home/.gem/credentials", "token");
    world.write("home/.gem/ruby/x", "x\n");
    world.write("home/.npm/_cacache/x", "");
    world.write("home/.npm/_npx/old", "");
    let script = "set -e; mkdir -p ~/.local/share/pipx/venvs ~/.npm/_npx/new ~/.gem/made; \
                  echo x > ~/.gem/made/x; cat ~/.gem/ruby/x; ls ~/.npm/_npx; \
                  mkdir ~/.local/share/uv/x; \
                  ! echo y > ~/.gem/ruby/x; ! mkdir ~/.local/share/mise/x";
    let output = inside(&world, &[], script);
    output.assert_code(0);
    assert_eq!(output.out(), "x\nnew\n", "{}", output.err());
    for gone in [".local/share/pipx", ".local/share/uv/x", ".gem/made", ".npm/_npx/new"] {
        assert!(!world.home().join(gone).exists(), "{gone}");
    }
}

/// A program that walks upwards as pytest, uv and yarn do.
const WALKS_UP: &str = r#"
import os, pathlib
for directory in pathlib.Path.cwd().resolve().parents:
    for name in ("pyproject.toml", "tox.ini", "setup.cfg", ".yarnrc", "package.json", ".git", "node_modules"):
        path = directory / name
        if path.exists():
            print("exists", path)
        try:
            path.open().read()
            print("read", path)
        except FileNotFoundError:
            pass
"#;

/// Proves: GATE-1 above-project
#[test]
fn what_tools_look_for_above_the_project_does_not_exist() {
    let world = World::new();
    world.write("home/pyproject.toml", "not toml at all");
    world.write("home/package.json", "{}");
    world.write("home/.git/HEAD", "ref: x");
    world.write("tox.ini", "[pytest]");
    world.write("setup.cfg", "");
    world.write_in_project("walk.py", WALKS_UP);
    for flags in [&[][..], &["--on-ask", "wait"], &["--on-ask", "deny"]] {
        let output = world.sandbox_run(flags, ["python3", "walk.py"]).run();
        output.assert_code(0);
        assert_eq!(output.out(), "", "{flags:?}");
        assert!(!output.err().contains("denied"), "{flags:?}: {}", output.err());
    }
}

/// Proves: FS-2 settings-carried
#[test]
fn settings_of_tools_are_there_without_their_credentials() {
    let world = World::new();
    world.write(
        "home/.npmrc",
        "registry=https://npm.example/\n//npm.example/:_authToken=npm_topSecretTokenOfMine0\n",
    );
    world.write(
        "home/.config/pip/pip.conf",
        "[global]\nindex-url = https://me:hunter22@pypi.example/simple\n",
    );
    let output =
        inside(&world, &[], "cat ~/.npmrc ~/.config/pip/pip.conf; echo cache=/tmp/x >> ~/.npmrc");
    output.assert_code(0);
    assert_eq!(
        output.out(),
        "registry=https://npm.example/\n[global]\nindex-url = https://pypi.example/simple\n"
    );
    let whole = inside(&world, &["--ro", "~/.npmrc"], "cat ~/.npmrc");
    assert!(whole.out().contains("_authToken"), "{}", whole.err());
    let plan = world.sandbox(["plan", "--full", "--", "true"]).run();
    assert!(plan.out().contains("//npm.example/:_authToken"), "{}", plan.out());
    assert!(!plan.out().contains("topSecret"), "{}", plan.out());
}
