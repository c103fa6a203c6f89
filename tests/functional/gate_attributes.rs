//! Modes, owners, times and extended attributes of what is not granted: a question as for writing (GATE-10).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use palisade_testkit::World;
use serde_json::json;

use crate::gate::{Client, hidden};
use crate::gate_writes::{acts, content, expect};

const CHANGES: [&str; 5] = ["chmod", "chown", "utime", "xattr", "no-xattr"];

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Nothing was granted before: each is asked about, and what was allowed once is done once.
///
/// Proves: GATE-10 attributes, GATE-10 once
#[test]
fn each_change_of_a_hidden_file_is_asked_about_and_done() {
    let world = World::new();
    let file = hidden(&world, "notes");
    // Its owner may change it, whoever may write it.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let mut words: Vec<&str> = CHANGES.iter().flat_map(|change| [*change, &file]).collect();
    words.extend(["chmod", &file]);
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    for _ in CHANGES {
        let question = client.question();
        expect(&question, "write", &file);
        assert_eq!(question["act"], "change", "{question}");
        client.allow(&question, "once");
    }
    let question = client.question();
    client.deny(&question, "once");
    let output = run.wait();
    let done: String = CHANGES.iter().map(|change| format!("{change} done\n")).collect();
    assert_eq!(output.out(), format!("{done}chmod EACCES\n"), "{}", output.err());
    assert_eq!((mode(&file), fs::metadata(&file).unwrap().mtime()), (0o750, 86400));
    assert_eq!(content(&file), "content of notes\n");
}

/// What may be read is not changed by that; for longer, it may be written, too.
///
/// Proves: GATE-10 attributes, GATE-10 read-is-not-write, GATE-10 session
#[test]
fn a_file_that_may_be_read_is_asked_about_before_it_is_changed() {
    let world = World::new();
    let file = hidden(&world, "notes");
    let words = [
        "read", &file, "chmod", &file, "utime", &file, "chown", &file, "xattr", &file, "append",
        &file,
    ];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let reading = client.question();
    expect(&reading, "read", &file);
    client.allow(&reading, "session");
    let changing = client.question();
    expect(&changing, "write", &file);
    assert_eq!((&changing["act"], &changing["op"]), (&json!("change"), &json!("chmod")));
    client.allow(&changing, "session");
    let output = run.wait();
    let expected =
        "read content of notes\nchmod done\nutime done\nchown done\nxattr done\nappend done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(mode(&file), 0o750);
    assert_eq!(content(&file), "content of notes\nmore\n");
}

/// Proves: GATE-10 attributes, GATE-10 private-copy, GATE-10 not-asked
#[test]
fn a_directory_is_changed_once_a_copy_for_the_run_and_what_is_not_there_is_not_asked_about() {
    let world = World::new();
    let (file, missing) = (hidden(&world, "work/notes"), world.outside().join("missing"));
    let missing = missing.to_str().unwrap();
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    fs::set_permissions(&work, fs::Permissions::from_mode(0o755)).unwrap();
    let before = mode(&file);
    let words = ["chmod", missing, "new", missing, "chmod", &work, "chmod", &file, "stat", &file];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let making = client.question();
    assert_eq!((&making["act"], &making["entry"]), (&json!("create"), &json!(missing)));
    client.allow(&making, "once");
    let question = client.question();
    expect(&question, "write", &work);
    let longer = json!({"type": "cmd.approve", "id": question["id"], "lifetime": "session"});
    assert_eq!(client.command(longer)["code"], "not_offered");
    client.allow(&question, "once");
    let question = client.question();
    expect(&question, "write", &file);
    client.allow_as(&question, "copy");
    let output = run.wait();
    let expected = "chmod ENOENT\nnew done\nchmod done\nchmod done\nstat 0o750\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!((mode(&work), mode(&file)), (0o750, before));
}

/// The directory it stands in, an open file by its number, a directory that only stands for one of the host: each is asked
/// about by its path. Who stands on the mount of before a yes gets what the yes gave.
///
/// Proves: GATE-10 attributes, GATE-10 read-is-not-write, GATE-10 once, GATE-10 session
#[test]
fn what_is_named_without_a_last_name_or_by_its_number_is_asked_about() {
    let world = World::new();
    let (notes, held) = (hidden(&world, "work/notes"), hidden(&world, "work/held"));
    let (work, above) = (world.outside().join("work"), world.outside());
    let (work, above) = (work.to_str().unwrap(), above.to_str().unwrap());
    for directory in [work, above] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let words = [
        "read",
        &notes,
        "enter",
        work,
        "chmod",
        ".",
        "chmod-held",
        "held",
        "utime",
        "notes",
        "chmod",
        "..",
    ];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let reading = client.question();
    expect(&reading, "read", &notes);
    client.allow_directory(&reading);
    for path in [work, &held] {
        let question = client.question();
        expect(&question, "write", path);
        assert_eq!(question["act"], "change", "{question}");
        client.allow(&question, if path == work { "once" } else { "session" });
    }
    let times = client.question();
    expect(&times, "write", &notes);
    client.allow_directory(&times);
    let parent = client.question();
    expect(&parent, "write", above);
    client.allow(&parent, "once");
    let output = run.wait();
    let expected = "read content of work/notes\nenter done\nchmod done\nchmod-held done\n\
                    utime done\nchmod done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!((mode(work), mode(&held), mode(above)), (0o750, 0o750, 0o750));
    assert_eq!(fs::metadata(&notes).unwrap().mtime(), 86400);
}
