//! Writing outside what is granted is a question of its own, and a yes gives what it says and no more (GATE-10).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use palisade_testkit::{Output, Running, World};
use serde_json::{Value, json};

use crate::gate::{Client, asking, hidden};
use crate::inside::eventually;

/// Does what each word says, in order, and prints how it went.
const ACTS: &str = r#"
import errno, os, sys
def act(what, path):
    if what == "append":
        with open(path, "a") as file: file.write("more\n")
    elif what == "read":
        with open(path) as file: return file.read().strip()
    elif what == "mkdir": os.mkdir(path)
    elif what == "new": os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    elif what == "rename": os.rename(path, path + ".renamed")
    elif what == "remove": os.remove(path)
    elif what == "rmdir": os.rmdir(path)
    elif what == "list": return " ".join(sorted(os.listdir(path)))
    elif what == "save":
        with open(path + ".new", "w") as file: file.write("saved\n")
        os.rename(path + ".new", path)
    elif what == "move-in":
        with open("own", "w") as file: file.write("moved\n")
        os.rename("own", path)
    elif what == "run": return os.spawnv(os.P_WAIT, path, [path])
    elif what == "truncate": os.truncate(path, 2)
    elif what == "bind":
        import socket
        socket.socket(socket.AF_UNIX).bind(path)
    elif what == "link-in":
        with open("own", "w") as file: file.write("linked\n")
        os.link("own", path)
    elif what == "link": os.link(path, path + ".linked")
    elif what == "symlink-in":
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        os.symlink("anywhere", "link", dir_fd=held)
    elif what == "chmod": os.chmod(path, 0o750)
    elif what == "chmod-held": os.chmod(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", 0o750)
    elif what == "other-reads": return os.spawnvp(os.P_WAIT, "cat", ["cat", path])
    elif what == "await":
        import time
        while not os.path.exists(path): time.sleep(0.005)
    elif what == "enter": os.chdir(path)
    elif what == "chown": os.chown(path, os.getuid(), -1)
    elif what == "utime": os.utime(path, (86400, 86400))
    elif what == "xattr": os.setxattr(path, "user.palisade", b"set")
    elif what == "no-xattr": os.removexattr(path, "user.palisade")
    elif what == "stat": return oct(os.stat(path).st_mode & 0o777)
    elif what == "reopen":
        held = os.open(path, os.O_RDONLY)
        os.close(os.open(f"/proc/self/fd/{held}", os.O_WRONLY))
    return "done"
words = sys.argv[1:]
for what, path in zip(words[::2], words[1::2]):
    try: result = act(what, path)
    except OSError as error: result = errno.errorcode[error.errno]
    print(what, result, flush=True)
"#;

pub(crate) fn acts(world: &World, flags: &[&str], words: &[&str]) -> Running {
    world.write_in_project("acts.py", ACTS);
    asking(world, flags, &[&["python3", "acts.py"], words].concat()).spawn()
}

fn unattended(world: &World, words: &[&str]) -> Output {
    let command = [&["python3", "acts.py"], words].concat();
    world.sandbox_run(["--on-ask", "deny"], command).run()
}

pub(crate) fn content(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[track_caller]
pub(crate) fn expect(question: &Value, access: &str, path: &str) {
    assert_eq!((&question["access"], &question["path"]), (&access.into(), &path.into()));
}

/// Proves: GATE-10 asks-for-writing, GATE-10 session, GATE-10 read-is-not-write
#[test]
fn a_file_that_may_be_read_is_asked_about_again_before_it_is_written() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let other = hidden(&world, "other");
    let run =
        acts(&world, &[], &["read", &file, "append", &file, "append", &file, "append", &other]);
    let mut client = Client::connect(&world);
    let reading = client.question();
    expect(&reading, "read", &file);
    client.allow(&reading, "session");
    let writing = client.question();
    expect(&writing, "write", &file);
    client.allow(&writing, "session");
    let beside = client.question();
    expect(&beside, "write", &other);
    client.deny(&beside, "once");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "read content of notes\nappend done\nappend done\nappend EACCES\n");
    assert_eq!(content(&file), "content of notes\nmore\nmore\n");
    assert_eq!(content(&other), "content of other\n");
    let report = output.report.unwrap();
    let granted = report["grantedPaths"].as_array().unwrap();
    assert!(granted.iter().any(|path| path["access"] == "write"), "{granted:?}");
}

/// Proves: GATE-10 once
#[test]
fn a_yes_for_once_is_for_one_call_and_shows_nothing() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let new = world.outside().join("new").to_str().unwrap().to_owned();
    let run = acts(&world, &[], &["append", &file, "truncate", &file, "new", &new, "new", &new]);
    let mut client = Client::connect(&world);
    for (path, answer) in [(&file, "once"), (&file, "deny")] {
        let question = client.question();
        expect(&question, "write", path);
        if answer == "once" {
            client.allow(&question, "once");
        } else {
            client.deny(&question, "once");
        }
    }
    let outside = world.outside().to_str().unwrap().to_owned();
    let making = client.question();
    expect(&making, "write", &outside);
    assert_eq!((&making["entry"], &making["isDirectory"]), (&new.as_str().into(), &true.into()));
    client.allow(&making, "once");
    let output = run.wait();
    assert_eq!(output.out(), "append done\ntruncate EACCES\nnew done\nnew EEXIST\n");
    assert_eq!(content(&file), "content of notes\nmore\n");
    assert!(Path::new(&new).exists());
}

/// A directory that was granted for writing is still guarded, and nothing in it can be started.
///
/// Proves: GATE-10 session, GATE-10 guarded, GATE-10 no-execution
#[test]
fn a_directory_granted_for_writing_keeps_its_protected_names() {
    let world = World::new();
    hidden(&world, "work/here");
    let script = world.write("outside/work/tool", "#!/bin/sh\nexit 7\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let of = |name: &str| world.outside().join("work").join(name).to_str().unwrap().to_owned();
    world.write("outside/work/.autoenv", "as it was\n");
    let paths =
        ["made", "made/file", "here", ".envrc", ".autoenv", ".autoenv", ".autoenv", "tool"].map(of);
    let acts_on = ["mkdir", "new", "rename", "new", "append", "truncate", "reopen", "run"];
    let acted = acts_on.iter().zip(&paths);
    let words: Vec<&str> = acted.flat_map(|(what, path)| [*what, path.as_str()]).collect();
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let making = client.question();
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    expect(&making, "write", &work);
    client.allow(&making, "session");
    let running = client.question();
    expect(&running, "execute", &of("tool"));
    client.deny(&running, "once");
    let output = run.wait();
    let said = output.out();
    let refused = "new EACCES\nappend EACCES\ntruncate EACCES\nreopen EACCES\n";
    let expected = format!("mkdir done\nnew done\nrename done\n{refused}");
    assert!(said.starts_with(&expected), "{said}");
    assert!(Path::new(&of("made/file")).exists() && Path::new(&of("here.renamed")).exists());
    assert!(!Path::new(&of(".envrc")).exists());
    assert_eq!(content(of(".autoenv")), "as it was\n");
    assert!(!said.contains("run 7"), "{said}");
}

/// Proves: GATE-10 not-asked
#[test]
fn what_a_yes_cannot_help_is_answered_at_once() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "key\n").to_str().unwrap().to_owned();
    let startup = world.write("outside/entered/.envrc", "\n").to_str().unwrap().to_owned();
    let config = world.write("outside/bare/config", "[core]\n").to_str().unwrap().to_owned();
    for name in ["objects/x", "refs/x", "HEAD"] {
        world.write(Path::new("outside/bare").join(name), "");
    }
    let words = ["append", secret.as_str(), "append", &startup, "append", &config];
    // Whoever asks would wait for ever.
    let output = acts(&world, &[], &words).wait();
    output.assert_code(0);
    assert_eq!(output.out(), "append EACCES\n".repeat(3));
    assert_eq!((content(&secret), content(&startup)), ("key\n".into(), "\n".into()));
    let report = output.report.unwrap();
    let by: Vec<&str> = report["deniedPaths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path["by"].as_str().unwrap())
        .collect();
    assert!(by.contains(&"secret") && by.contains(&"host"), "{by:?}");
    assert!(by.iter().any(|by| by.starts_with("protected-name")), "{by:?}");
}

/// Proves: GATE-10 not-asked
#[test]
fn what_the_host_does_not_let_be_written_is_not_asked_about() {
    let world = World::new();
    // As root, the command has another id, and neither owns what root keeps to itself.
    let file: PathBuf = world.write("outside/sealed/file", "sealed\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let output = acts(&world, &[], &["append", &file]).wait();
    assert_eq!(output.out(), "append EACCES\n");
    assert_eq!(content(&file), "sealed\n");
}

/// Proves: GATE-10 read-is-not-write, GATE-10 asks-for-writing
#[test]
fn renaming_in_a_directory_that_may_be_read_asks_to_write_the_directory() {
    let world = World::new();
    let file = hidden(&world, "work/here");
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    let run = acts(&world, &[], &["read", &file, "rename", &file]);
    let mut client = Client::connect(&world);
    let reading = client.question();
    client.allow_directory(&reading);
    let renaming = client.question();
    expect(&renaming, "write", &work);
    assert_eq!((&renaming["act"], &renaming["entry"]), (&"rename".into(), &file.as_str().into()));
    client.allow(&renaming, "session");
    let output = run.wait();
    assert_eq!(output.out(), "read content of work/here\nrename done\n");
    assert!(world.outside().join("work/here.renamed").exists());
}

/// Proves: GATE-10 rules
#[test]
fn an_answer_for_good_is_a_rule_for_writing_and_a_rule_for_reading_is_none() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let run = acts(&world, &[], &["append", &file]);
    let mut client = Client::connect(&world);
    let question = client.question();
    client.allow(&question, "always");
    run.wait().assert_code(0);
    let policy = world.home().join(".config/palisade/policy.yaml");
    let saved = content(&policy);
    assert!(saved.contains("access: write"), "{saved}");
    let output = unattended(&world, &["append", &file]);
    assert_eq!(output.out(), "append done\n", "{}", output.err());
    fs::write(&policy, saved.replace("access: write", "access: read")).unwrap();
    let output = unattended(&world, &["append", &file, "read", &file]);
    assert!(output.out().starts_with("append EROFS\nread content"), "{}", output.out());
    assert_eq!(content(&file), "content of notes\nmore\nmore\n");
}

/// Proves: GATE-10 shown-is-written
#[test]
fn a_file_that_vanishes_while_it_is_asked_about_is_not_written_in_vain() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        let (removed, replaced) = (hidden(&world, "removed"), hidden(&world, "replaced"));
        let run = acts(&world, &[], &["append", &removed, "append", &replaced]);
        let mut client = Client::connect(&world);
        let question = client.question();
        expect(&question, "write", &removed);
        fs::remove_file(&removed).unwrap();
        client.allow(&question, lifetime);
        let question = client.question();
        expect(&question, "write", &replaced);
        fs::write(world.outside().join("other"), "other\n").unwrap();
        fs::rename(world.outside().join("other"), &replaced).unwrap();
        client.allow(&question, lifetime);
        let output = run.wait();
        assert_eq!(output.out(), "append EACCES\nappend EACCES\n", "{}", output.err());
        assert!(!Path::new(&removed).exists());
        assert_eq!(content(&replaced), "other\n");
    }
}

/// Answers every question with yes, once, until the run ends, and gives what was asked about.
fn questions_of(world: &World, run: Running) -> (Vec<String>, Output) {
    let mut client = Client::connect(world);
    let mut asked = Vec::new();
    let mut seen = Vec::new();
    while let Some(event) = client.next() {
        if event["type"] != "event.fs_request" || seen.contains(&event["id"]) {
            continue;
        }
        seen.push(event["id"].clone());
        asked.push(format!("{} {} {}", event["act"], event["path"], event["entry"]));
        client.send(
            format!("{}\n", json!({"type": "cmd.approve", "id": event["id"], "lifetime": "once"}))
                .as_bytes(),
        );
    }
    (asked, run.wait())
}

/// Proves: GATE-10 made-once
#[test]
fn a_file_that_a_process_was_allowed_once_to_make_is_its_own() {
    let world = World::new();
    hidden(&world, "here");
    let new = world.outside().join("new").to_str().unwrap().to_owned();
    let own = ["new", "append", "read", "stat", "chmod", "truncate", "remove", "new", "append"];
    let mut words: Vec<&str> = own.iter().flat_map(|act| [*act, new.as_str()]).collect();
    words.extend(["other-reads", &new]);
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let making = client.question();
    assert_eq!((&making["act"], &making["entry"]), (&"create".into(), &new.as_str().into()));
    client.allow(&making, "once");
    let other = client.question();
    expect(&other, "read", &new);
    client.deny(&other, "once");
    let output = run.wait();
    let expected = "new done\nappend done\nread more\nstat 0o644\nchmod done\ntruncate done\n\
                    remove done\nnew done\nappend done\nother-reads 1\n";
    assert_eq!(output.out().replace("0o755", "0o644"), expected, "{}", output.err());
    assert_eq!(content(&new), "more\n");
}

/// Proves: GATE-10 made-once
#[test]
fn another_file_or_a_link_in_place_of_the_one_that_was_made_is_asked_about() {
    for put in ["file", "link"] {
        let world = World::new();
        hidden(&world, "here");
        let other = hidden(&world, "elsewhere/other");
        let new = world.outside().join("new");
        let made = new.to_str().unwrap();
        let words = ["new", made, "append", made, "await", "go", "read", made, "remove", made];
        let run = acts(&world, &[], &words);
        let mut client = Client::connect(&world);
        let making = client.question();
        client.allow(&making, "once");
        eventually("it to be written", || fs::read(&new).is_ok_and(|text| text == b"more\n"));
        let beside = world.outside().join("beside");
        match put {
            "file" => fs::write(&beside, "other\n").unwrap(),
            _ => symlink(&other, &beside).unwrap(),
        }
        fs::rename(&beside, &new).unwrap();
        world.write_in_project("go", "");
        for act in ["read", "remove"] {
            let question = client.question();
            assert_eq!(question["act"], act, "{put}: {question}");
            client.deny(&question, "once");
        }
        let output = run.wait();
        let expected = "new done\nappend done\nawait done\nread EACCES\nremove EACCES\n";
        assert_eq!(output.out(), expected, "{put}: {}", output.err());
        assert!(fs::symlink_metadata(&new).is_ok());
    }
}

/// Each question is answered with *once*.
///
/// Proves: GATE-10 made-once
#[test]
fn an_editor_is_not_asked_about_its_own_swap_file() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let command = ["vim", "-N", "-u", "NONE", "-i", "NONE", "-c", "qa!", &file];
    let run = asking(&world, &[], &command).spawn();
    let (asked, output) = questions_of(&world, run);
    output.assert_code(0);
    assert!(asked.len() <= 4, "{asked:#?}");
    let left = fs::read_dir(world.outside()).unwrap().count();
    assert_eq!(left, 1, "{asked:#?}");
}
