//! A process that is in a directory when the directory is granted finds there what was granted, by the names it
//! uses (GATE-4, GATE-10): the mount of a grant covers the directory that the process is in.

use std::fs;

use palisade_testkit::World;

use crate::gate::{Client, hidden, no};
use crate::gate_changes::at_home;
use crate::gate_writes::acts;

/// The directory of the hidden files.
fn work(world: &World) -> String {
    world.outside().join("work").to_str().unwrap().to_owned()
}

/// Proves: GATE-4 around-a-process, GATE-1 approve-continues
#[test]
fn a_directory_granted_around_a_process_reaches_its_relative_names() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    for name in ["work/second", "work/third", "work/deep/er"] {
        hidden(&world, name);
    }
    let work = work(&world);
    // The first file makes the directory visible: to enter it is no question.
    let words = [
        "read", &first, "enter", &work, "read", "second", "stat", "third", "read", "deep/er",
        "list", "deep", "list", ".", "read", "./third", "stat", "missing",
    ];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    client.allow(&question, "session");
    let question = client.question_about(&format!("{work}/second"));
    assert_eq!(question["directory"], work);
    client.allow_directory(&question);
    let output = run.wait();
    let expected = "read content of work/first\nenter done\nread content of work/second\n\
                    stat 0o644\nread content of work/deep/er\nlist er\nlist deep first second third\n\
                    read content of work/third\nstat ENOENT\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(client.answer_all(&no("once")).len(), 0, "something else was asked");
}

/// Proves: GATE-4 around-a-process, GATE-10 session
#[test]
fn a_directory_made_writable_around_a_process_takes_what_it_creates_there() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    hidden(&world, "work/second");
    let work = work(&world);
    let words = [
        "read",
        &first,
        "enter",
        &work,
        "new",
        "made",
        "append",
        "made",
        "append",
        "second",
        "mkdir",
        "sub",
        "new",
        "sub/file",
        "rename",
        "made",
        "remove",
        "second",
        "stat",
        "made.renamed",
    ];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    client.allow(&question, "session");
    let question = client.question_about(&work);
    assert_eq!(question["act"], "create");
    client.allow(&question, "session");
    let output = run.wait();
    let expected = "read content of work/first\nenter done\nnew done\nappend done\nappend done\n\
                    mkdir done\nnew done\nrename done\nremove done\nstat 0o755\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    let work = world.outside().join("work");
    assert_eq!(fs::read_to_string(work.join("made.renamed")).unwrap(), "more\n");
    assert!(work.join("sub/file").exists());
    assert!(!work.join("second").exists());
}

/// To enter a directory takes its name only, and lasts as long as the process is there: what is in it is asked about, the
/// list of its names, too.
///
/// Proves: GATE-4 once, GATE-4 around-a-process
#[test]
fn what_is_in_a_directory_that_was_entered_once_is_asked_about() {
    let world = World::new();
    hidden(&world, "work/first");
    hidden(&world, "work/second");
    let work = work(&world);
    let words = ["enter", &work, "read", "first", "list", ".", "read", "second", "list", "."];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&work);
    assert_eq!(question["act"], "enter");
    client.allow(&question, "once");
    let question = client.question_about(&format!("{work}/first"));
    client.allow(&question, "once");
    let question = client.question_about(&work);
    assert_eq!(question["act"], "read");
    client.allow(&question, "session");
    let output = run.wait();
    let expected = "enter done\nread content of work/first\nlist first second\n\
                    read content of work/second\nlist first second\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(client.answer_all(&no("once")).len(), 0, "something else was asked");
}

/// Proves: GATE-4 once, GATE-4 short-lived
#[test]
fn a_directory_that_was_entered_and_listed_once_keeps_its_content() {
    let world = World::new();
    hidden(&world, "work/first");
    let work = work(&world);
    let run = acts(&world, &[], &["enter", &work, "list", ".", "stat", "first"]);
    let mut client = Client::connect(&world);
    for act in ["enter", "read"] {
        let question = client.question_about(&work);
        assert_eq!(question["act"], act);
        client.allow(&question, "once");
    }
    let question = client.question_about(&format!("{work}/first"));
    client.deny(&question, "once");
    let output = run.wait();
    assert_eq!(output.out(), "enter done\nlist first\nstat EACCES\n", "{}", output.err());
}

/// Proves: GATE-10 denied-name
#[test]
fn a_no_to_one_name_is_not_one_to_the_others_in_its_directory() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    let second = hidden(&world, "work/second");
    let work = work(&world);
    let new = format!("{work}/new");
    let words = ["rename", &first, "rename", &first, "new", &new, "append", &second];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&work);
    assert_eq!(question["act"], "rename");
    client.deny(&question, "session");
    let question = client.question_about(&work);
    assert_eq!(
        (question["act"].as_str(), question["entry"].as_str()),
        (Some("create"), Some(&*new))
    );
    client.allow(&question, "once");
    let question = client.question_about(&second);
    client.allow(&question, "once");
    let output = run.wait();
    let expected = "rename EACCES\nrename EACCES\nnew done\nappend done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    let closing = format!("1 path was denied: {first}");
    assert!(output.err().contains(&closing), "{}", output.err());
}

/// Proves: GATE-10 private-copy
#[test]
fn a_private_copy_stays_on_top_of_a_directory_granted_later() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    let second = hidden(&world, "work/second");
    let words = ["append", &first, "read", &second, "append", &first, "read", &first];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    client.allow_as(&question, "copy");
    let question = client.question_about(&second);
    client.allow_directory(&question);
    let output = run.wait();
    let expected = "append done\nread content of work/second\nappend done\n\
                    read content of work/first\nmore\nmore\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(fs::read_to_string(first).unwrap(), "content of work/first\n");
}

/// Proves: GATE-4 denied-within
#[test]
fn of_a_directory_with_a_denied_file_only_the_name_is_offered() {
    let world = World::new();
    hidden(&world, "work/first");
    let denied = hidden(&world, "work/denied");
    let work = work(&world);
    let run = acts(&world, &[], &["read", &denied, "list", &work]);
    let mut client = Client::connect(&world);
    let question = client.question_about(&denied);
    client.deny(&question, "session");
    let question = client.question_about(&work);
    assert_eq!(question["isNameOnly"], true, "{question}");
    client.allow(&question, "once");
    assert_eq!(run.wait().out(), "read EACCES\nlist \n");
}

/// A name that was denied for good stays denied, and the directory can no longer be granted as a whole. Other names in it
/// can still be created, one at a time.
///
/// Proves: GATE-10 denied-name
#[test]
fn beside_a_name_that_was_denied_for_good_others_are_created_one_at_a_time() {
    let world = World::new();
    hidden(&world, "work/first");
    let work = work(&world);
    let (refused, new) = (format!("{work}/refused"), format!("{work}/new"));
    let run = acts(&world, &[], &["new", &refused, "new", &new, "new", &refused]);
    let mut client = Client::connect(&world);
    let question = client.question_about(&work);
    client.deny(&question, "always");
    let question = client.question_about(&work);
    assert_eq!(question["entry"], new);
    assert_eq!(question["isNameOnly"], true, "{question}");
    client.allow(&question, "once");
    assert_eq!(run.wait().out(), "new EACCES\nnew done\nnew EACCES\n");
    assert!(world.outside().join("work/new").exists());
}

/// Removing is not writing: a no to it is remembered for that, and leaves the rest to be asked about.
///
/// Proves: GATE-10 denied-name
#[test]
fn a_no_to_removing_is_remembered_and_says_what_would_allow_it() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    let run = acts(&world, &[], &["remove", &first, "remove", &first, "append", &first]);
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    assert_eq!(question["act"], "remove");
    client.deny(&question, "session");
    let question = client.question_about(&first);
    assert_eq!(question["act"], "write");
    client.allow(&question, "once");
    let output = run.wait();
    assert_eq!(output.out(), "remove EACCES\nremove EACCES\nappend done\n", "{}", output.err());
    let hint = format!("{first} (allow writing with --rw {})", work(&world));
    assert!(output.err().contains(&hint), "{}", output.err());
}

/// A `.env` file has to be asked about by itself, so its directory is never granted with it: the question says so.
///
/// Proves: GATE-4 denied-within, GATE-4 directory-offered
#[test]
fn a_directory_with_a_dotenv_file_is_offered_by_its_name_alone() {
    let world = World::new();
    let first = hidden(&world, "work/first");
    hidden(&world, "work/deep/.env");
    let work = work(&world);
    let run = acts(&world, &[], &["enter", &work, "read", "first"]);
    let mut client = Client::connect(&world);
    let question = client.question_about(&work);
    assert_eq!(question["isNameOnly"], true, "{question}");
    assert!(question["directory"].is_null(), "{question}");
    client.allow(&question, "session");
    let question = client.question_about(&first);
    assert!(question["directory"].is_null(), "{question}");
    client.allow(&question, "session");
    let output = run.wait();
    assert_eq!(output.out(), "enter done\nread content of work/first\n", "{}", output.err());
}

/// Where the command has files of its own in its private home, one name is one file, whatever is granted beside it.
///
/// Proves: GATE-1 own-directories
#[test]
fn files_of_the_command_stay_its_own_beside_what_is_granted() {
    let world = World::new();
    let first = at_home(&world, "work/first");
    let second = at_home(&world, "work/second");
    let third = at_home(&world, "work/deep/third");
    let work = world.home().join("work").to_str().unwrap().to_owned();
    let own = format!("{work}/own");
    let words = [
        "read",
        &first,
        "append",
        &own,
        "enter",
        &work,
        "append",
        "own",
        "read",
        &second,
        "append",
        "own",
        "mkdir",
        "sub",
        "append",
        "sub/file",
        "read",
        &own,
        "append",
        &own,
        "read",
        "own",
        "list",
        ".",
        "list",
        &work,
        "read",
        "deep/third",
        "list",
        &work,
        "rename",
        "own",
        "remove",
        "own.renamed",
    ];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    assert_eq!(question["directory"], work, "nothing in it is private yet");
    client.allow(&question, "session");
    let question = client.question_about(&second);
    assert!(question["directory"].is_null(), "{question}");
    client.allow(&question, "session");
    let question = client.question_about(&third);
    assert_eq!(question["directory"], format!("{work}/deep"), "the command has nothing there");
    client.allow_directory(&question);
    let output = run.wait();
    let expected = "read content of work/first\nappend done\nenter done\nappend done\n\
                    read content of work/second\nappend done\nmkdir done\nappend done\n\
                    read more\nmore\nmore\nappend done\nread more\nmore\nmore\nmore\n\
                    list first own second sub\nlist first own second sub\n\
                    read content of work/deep/third\nlist deep first own second sub\n\
                    rename done\nremove done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(client.answer_all(&no("once")).len(), 0, "something else was asked");
    assert!(!std::path::Path::new(&own).exists());
}

/// Proves: GATE-1 own-directories
#[test]
fn a_directory_entered_by_name_lists_what_the_command_made_there() {
    let world = World::new();
    at_home(&world, "work/first");
    let work = world.home().join("work").to_str().unwrap().to_owned();
    let own = format!("{work}/own");
    let words = ["enter", &work, "append", "own", "list", ".", "list", &work, "append", &own];
    let run = acts(&world, &[], &[&words[..], &["read", "own", "read", "first"]].concat());
    let mut client = Client::connect(&world);
    let question = client.question_about(&work);
    assert_eq!(question["act"], "enter");
    client.allow(&question, "once");
    let question = client.question_about(&format!("{work}/first"));
    assert!(question["directory"].is_null(), "{question}");
    client.allow(&question, "once");
    let output = run.wait();
    let expected = "enter done\nappend done\nlist own\nlist own\nappend done\nread more\nmore\n\
                    read content of work/first\n";
    assert_eq!(output.out(), expected, "{}", output.err());
}
