//! Removing, renaming and replacing outside what is granted, and private copies: the question names what happens, and nothing
//! else does (GATE-10).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use palisade_testkit::World;
use serde_json::Value;

use crate::gate::{Client, asking_script, hidden, yes};
use crate::gate_writes::{acts, content, expect};

#[track_caller]
fn expect_act(question: &Value, act: &str, path: &str) {
    assert_eq!((&question["act"], &question["access"]), (&act.into(), &"write".into()));
    assert_eq!(question["path"], path);
}

/// A file in the home directory that nothing grants.
fn at_home(world: &World, name: &str) -> String {
    let path = Path::new("home").join(name);
    world.write(path, format!("content of {name}\n")).to_string_lossy().into_owned()
}

/// Proves: GATE-10 remove, GATE-10 once
#[test]
fn removing_is_asked_about_as_that_and_removes_one_name() {
    let world = World::new();
    let (file, beside) = (hidden(&world, "work/old"), hidden(&world, "work/beside"));
    let directory = world.outside().join("work/empty").to_str().unwrap().to_owned();
    fs::create_dir(&directory).unwrap();
    let home = at_home(&world, "old");
    let words = ["remove", &file, "remove", &beside, "rmdir", &directory, "remove", &home];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    for (path, is_allowed) in [(&file, true), (&beside, false), (&directory, true), (&home, true)] {
        let question = client.question();
        expect_act(&question, "remove", path);
        match is_allowed {
            true => client.allow(&question, "once"),
            false => client.deny(&question, "once"),
        }
    }
    let output = run.wait();
    assert_eq!(output.out(), "remove done\nremove EACCES\nrmdir done\nremove done\n");
    let left = [&file, &beside, &directory, &home].map(|path| Path::new(path).exists());
    assert_eq!(left, [false, true, false, false]);
}

/// Proves: GATE-10 remove, GATE-10 read-is-not-write
#[test]
fn what_was_granted_and_is_removed_is_gone_inside_as_well() {
    let world = World::new();
    let file = hidden(&world, "old");
    let run = acts(&world, &[], &["read", &file, "remove", &file, "read", &file, "remove", &file]);
    let mut client = Client::connect(&world);
    let reading = client.question();
    expect(&reading, "read", &file);
    client.allow(&reading, "session");
    let removing = client.question();
    expect_act(&removing, "remove", &file);
    client.allow(&removing, "session");
    let output = run.wait();
    let expected = "read content of old\nremove done\nread ENOENT\nremove ENOENT\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert!(!Path::new(&file).exists());
}

/// Proves: GATE-10 rename, GATE-10 guarded
#[test]
fn renaming_once_gives_one_name_another_and_never_a_protected_one() {
    let world = World::new();
    let (file, home) = (hidden(&world, "work/here"), at_home(&world, "here"));
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    let trick = world.write("outside/trick/.envrc.renamed", "x\n");
    let words = ["rename", file.as_str(), "rename", home.as_str()];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect_act(&question, "rename", &work);
    assert_eq!(question["entry"], file.as_str());
    client.allow(&question, "once");
    // Of the home directory as a whole nobody is asked.
    let question = client.question();
    expect_act(&question, "rename", &home);
    client.allow(&question, "once");
    let output = run.wait();
    assert_eq!(output.out(), "rename done\nrename done\n", "{}", output.err());
    for path in [&file, &home] {
        assert!(!Path::new(path).exists() && Path::new(&format!("{path}.renamed")).exists());
    }
    let script = format!("mv -T {0}/.envrc.renamed {0}/.envrc", trick.parent().unwrap().display());
    let run = asking_script(&world, &script);
    let asked = Client::connect(&world).answer_all(&yes("once"));
    assert!(asked.iter().any(|question| question["act"] == "rename"), "{asked:?}");
    assert_ne!(run.wait().code(), 0);
    assert!(trick.exists() && !trick.with_file_name(".envrc").exists());
}

/// What a program writes beside a file and renames over it arrives in the file.
///
/// Proves: GATE-10 replace
#[test]
fn a_file_that_is_saved_by_renaming_is_replaced() {
    let world = World::new();
    let (once, session) = (at_home(&world, "once"), at_home(&world, "session"));
    let moved = hidden(&world, "moved");
    let words =
        ["save", &once, "read", &session, "save", &session, "save", &session, "move-in", &moved];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect_act(&question, "replace", &once);
    client.allow(&question, "once");
    let question = client.question();
    expect(&question, "read", &session);
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "replace", &session);
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "replace", &moved);
    client.allow(&question, "once");
    let output = run.wait();
    let expected = "save done\nread content of session\nsave done\nsave done\nmove-in done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!([&once, &session, &moved].map(content), ["saved\n", "saved\n", "moved\n"]);
    assert!(!world.project().join("own").exists());
}

/// Proves: GATE-10 private-copy
#[test]
fn a_private_copy_is_changed_and_the_file_is_not() {
    let world = World::new();
    let (outside, home) = (hidden(&world, "notes"), at_home(&world, "notes"));
    let script = world.write("outside/work/tool", "#!/bin/sh\nexit 7\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for file in [&outside, &home] {
        let words = ["append", file, "append", file, "read", file, "truncate", file, "read", file];
        let run = acts(&world, &[], &words);
        let mut client = Client::connect(&world);
        let question = client.question();
        expect_act(&question, "write", file);
        assert_eq!(question["mayBeCopied"], true);
        client.allow_as(&question, "copy");
        let output = run.wait();
        let read = "read content of notes\nmore\nmore\n";
        let expected = format!("append done\nappend done\n{read}truncate done\nread co\n");
        assert_eq!(output.out(), expected, "{}", output.err());
        assert_eq!(content(file), "content of notes\n");
        // Nothing is lost in silence.
        assert!(output.err().contains(file.as_str()), "{}", output.err());
    }
}

/// Proves: GATE-10 private-copy
#[test]
fn a_copy_takes_the_place_of_what_was_granted_for_reading() {
    let world = World::new();
    let (alone, below) = (hidden(&world, "alone"), hidden(&world, "work/below"));
    let words =
        ["read", &alone, "append", &alone, "read", &alone, "read", &below, "append", &below];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "write", &alone);
    client.allow_as(&question, "copy");
    let question = client.question();
    client.allow_directory(&question);
    let question = client.question();
    expect_act(&question, "write", &below);
    client.allow_as(&question, "copy");
    let output = run.wait();
    let expected = "read content of alone\nappend done\nread content of alone\nmore\n\
                    read content of work/below\nappend done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(content(&alone), "content of alone\n");
    assert_eq!(content(&below), "content of work/below\n");
}

/// Proves: GATE-10 private-copy
#[test]
fn what_is_made_or_removed_privately_is_so_for_the_run_alone() {
    let world = World::new();
    let here = hidden(&world, "work/here");
    let of = |name: &str| world.outside().join("work").join(name).to_str().unwrap().to_owned();
    let (made, again) = (of("made"), of("again"));
    let gone = hidden(&world, "gone");
    let words = ["new", &made, "new", &again, "remove", &gone, "read", &gone];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect_act(&question, "create", world.outside().join("work").to_str().unwrap());
    client.allow_as(&question, "copy");
    let question = client.question();
    expect_act(&question, "remove", &gone);
    client.allow_as(&question, "copy");
    let output = run.wait();
    let expected = "new done\nnew done\nremove done\nread ENOENT\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    let left = [&made, &again, &here, &gone].map(|path| Path::new(path).exists());
    assert_eq!(left, [false, false, true, true]);
}

/// Proves: GATE-10 directory-without-execution
#[test]
fn a_directory_that_may_be_read_may_not_be_run_unless_the_answer_says_so() {
    for scope in ["dir", "dir-exec"] {
        let world = World::new();
        let file = hidden(&world, "tools/readme");
        let tool = world.write("outside/tools/tool", "#!/bin/sh\nexit 7\n");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let tool = tool.to_str().unwrap().to_owned();
        let run = acts(&world, &[], &["read", &file, "run", &tool]);
        let mut client = Client::connect(&world);
        let question = client.question();
        client.allow_as(&question, scope);
        if scope == "dir" {
            let question = client.question();
            assert_eq!(
                (&question["act"], &question["path"]),
                (&"execute".into(), &tool.as_str().into())
            );
            client.deny(&question, "once");
        }
        let output = run.wait();
        assert_eq!(
            output.out().contains("run 7"),
            scope == "dir-exec",
            "{scope}: {}",
            output.out()
        );
    }
}
