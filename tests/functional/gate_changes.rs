//! Removing, renaming and replacing outside what is granted, and private copies: the question names what happens, and nothing
//! else does (GATE-10).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use palisade_testkit::World;
use serde_json::{Value, json};

use crate::gate::{Client, asking, asking_script, hidden, no, yes};
use crate::gate_writes::{acts, content, expect};

#[track_caller]
fn expect_act(question: &Value, act: &str, path: &str) {
    assert_eq!((&question["act"], &question["access"]), (&act.into(), &"write".into()));
    assert_eq!(question["path"], path);
}

/// A file in the home directory that nothing grants.
pub(crate) fn at_home(world: &World, name: &str) -> String {
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
    // A removal happens once, and says nothing of what comes to stand there later.
    let longer = json!({"type": "cmd.approve", "id": removing["id"], "lifetime": "session"});
    assert_eq!(client.command(longer)["code"], "not_offered");
    client.allow(&removing, "once");
    let output = run.wait();
    let expected = "read content of old\nremove done\nread ENOENT\nremove ENOENT\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert!(!Path::new(&file).exists());
}

/// Proves: GATE-10 rename, GATE-10 not-asked
#[test]
fn a_rename_is_allowed_with_its_directory_and_never_in_one_that_holds_secrets() {
    let world = World::new();
    let (file, home) = (hidden(&world, "work/here"), at_home(&world, "here"));
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    let notes = at_home(&world, "notes/here");
    let words = ["rename", &file, "rename", &home, "rename", &notes];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect_act(&question, "rename", &work);
    assert_eq!(question["entry"], file.as_str());
    assert_eq!(question["newPath"], format!("{file}.renamed"));
    let once = json!({"type": "cmd.approve", "id": question["id"], "lifetime": "once"});
    assert_eq!(client.command(once)["code"], "not_offered");
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "rename", world.home().join("notes").to_str().unwrap());
    client.allow(&question, "session");
    let output = run.wait();
    let expected = "rename done\nrename EACCES\nrename done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert!(!output.err().contains("secret"), "{}", output.err());
    assert!(world.home().join("notes/here.renamed").exists());
    assert!(world.outside().join("work/here.renamed").exists());
    assert_eq!(content(&home), "content of here\n");
}

/// What was granted by itself stands on a mount of its own, which the kernel does not rename.
///
/// Proves: GATE-10 rename
#[test]
fn a_file_that_was_granted_by_itself_is_renamed_with_its_directory() {
    let world = World::new();
    let (file, home) = (hidden(&world, "work/here"), at_home(&world, "notes/here"));
    let run = acts(&world, &[], &["read", &file, "rename", &file, "read", &home, "rename", &home]);
    let mut client = Client::connect(&world);
    for path in [&file, &home] {
        let reading = client.question();
        expect(&reading, "read", path);
        client.allow(&reading, "session");
        let renaming = client.question();
        expect_act(&renaming, "rename", Path::new(path).parent().unwrap().to_str().unwrap());
        client.allow(&renaming, "session");
    }
    let output = run.wait();
    let expected =
        "read content of work/here\nrename done\nread content of notes/here\nrename done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert!(world.home().join("notes/here.renamed").exists());
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

/// What git of the host would run is judged only in trees that are known as a whole.
///
/// Proves: GATE-10 guarded
#[test]
fn nothing_is_moved_into_a_repository_that_nobody_judges() {
    let world = World::new();
    let repository = world.outside().join("clone");
    world.bare("git").args(["init", "-q", repository.to_str().unwrap()]).run().assert_code(0);
    let config = repository.join(".git/config");
    let before = content(&config);
    let script = format!(
        "printf '[core]\\n\\tfsmonitor = evil\\n' >own; D={}; \
         python3 -c 'import os,sys; os.rename(\"own\", sys.argv[1] + \"/.git/config\")' $D; \
         python3 -c 'import os,sys; os.rename(\"own\", sys.argv[1] + \"/.git/config.worktree\")' $D; \
         python3 -c 'import os,sys; os.rename(sys.argv[1] + \"/.git/config\", sys.argv[1] + \"/.git/x\")' $D",
        repository.display()
    );
    // Nobody is asked: whoever did would wait for ever.
    let output = asking(&world, &[], &["sh", "-c", &script]).run();
    assert_ne!(output.code(), 0);
    assert_eq!(content(&config), before);
    assert!(!repository.join(".git/config.worktree").exists());
}

/// Proves: GATE-10 shown-is-written
#[test]
fn a_slash_behind_a_link_removes_nothing_else() {
    let world = World::new();
    let victim = hidden(&world, "t/victim");
    fs::create_dir(world.outside().join("t/dir")).unwrap();
    fs::create_dir(world.outside().join("l")).unwrap();
    let link = world.outside().join("l/victim");
    std::os::unix::fs::symlink(world.outside().join("t/dir"), &link).unwrap();
    let script = format!(
        "python3 -c 'import os; os.unlink(\"{0}/\")'; python3 -c 'import os; os.unlink(\"{1}/..\")'; rmdir {1}/.",
        link.display(),
        world.outside().join("t").display()
    );
    assert_ne!(asking(&world, &[], &["sh", "-c", &script]).run().code(), 0);
    assert!(Path::new(&victim).exists() && world.outside().join("t/dir").exists());
}

/// Proves: GATE-10 guarded
#[test]
fn a_protected_name_is_one_also_behind_a_link() {
    let world = World::new();
    let real = world.write("outside/proj/.vscode/here", "");
    let link = world.outside().join("m");
    std::os::unix::fs::symlink(real.parent().unwrap(), &link).unwrap();
    let script =
        format!("echo evil >own; mv own {0}/tasks.json; echo evil >{0}/tasks.json", link.display());
    let output = asking(&world, &[], &["sh", "-c", &script]).run();
    assert_ne!(output.code(), 0);
    assert!(!real.with_file_name("tasks.json").exists());
}

/// Nothing of the old content is lost where the new one does not fit.
///
/// Proves: GATE-10 replace
#[test]
fn a_replacement_that_fails_leaves_the_file_as_it_was() {
    let world = World::new();
    let file = hidden(&world, "precious");
    // 100 blocks of 512 bytes.
    let script = format!(
        "head -c 200000 /dev/zero >own; ulimit -f 100; python3 -c 'import os; os.rename(\"own\", \"{file}\")'"
    );
    let run = asking_script(&world, &script);
    Client::connect(&world).answer_all(&yes("once"));
    let output = run.wait();
    assert_ne!(output.code(), 0);
    assert_eq!(content(&file), "content of precious\n");
    assert!(world.project().join("own").exists());
    // What is too large is not moved: programs then copy by themselves.
    let script = format!(
        "head -c 20000000 /dev/zero >own; python3 -c 'import os; os.rename(\"own\", \"{file}\")'"
    );
    let run = asking_script(&world, &script);
    Client::connect(&world).answer_all(&yes("once"));
    let output = run.wait();
    assert!(output.err().contains("cross-device"), "{}", output.err());
    assert_eq!(content(&file), "content of precious\n");
}

/// Proves: GATE-10 read-is-not-write, GATE-10 replace
#[test]
fn what_may_only_be_read_is_not_moved_into_what_may_be_written() {
    let world = World::new();
    let (from, beside) = (hidden(&world, "read/a"), hidden(&world, "read/b"));
    let target = hidden(&world, "written/b");
    let script = format!(
        "cat {from}; echo x >{target}.new; python3 -c 'import os; os.rename(\"{from}\", \"{target}\")'"
    );
    let run = asking_script(&world, &script);
    let mut client = Client::connect(&world);
    let reading = client.question();
    client.allow_directory(&reading);
    let making = client.question();
    expect_act(&making, "create", world.outside().join("written").to_str().unwrap());
    client.allow(&making, "session");
    let output = run.wait();
    assert!(output.err().contains("cross-device"), "{}", output.err());
    assert_eq!([&from, &beside].map(content), ["content of read/a\n", "content of read/b\n"]);
}

/// The programs people use, answered for the session: each does what it does outside.
///
/// Proves: GATE-10 session
#[test]
fn everyday_tools_do_what_was_allowed() {
    let scripts = [
        ("mv own $D/new", "new", "own\n"),
        ("cp own $D/new", "new", "own\n"),
        ("[ -e $D/new ] || echo own >$D/new", "new", "own\n"),
        ("cd $D && touch n && mv n new && echo own >new", "new", "own\n"),
        ("cd $D && sed -i s/here/there/ here", "here", "content of work/there\n"),
        ("mkdir -p $D/x/y && cp own $D/x/y/z", "x/y/z", "own\n"),
        ("install -m 600 own $D/new", "new", "own\n"),
        ("rm $D/here && cp own $D/here", "here", "own\n"),
        ("mv own $D/here", "here", "own\n"),
    ];
    for (script, name, expected) in scripts {
        let world = World::new();
        hidden(&world, "work/here");
        world.write_in_project("own", "own\n");
        let directory = world.outside().join("work");
        let run = asking_script(&world, &format!("D={}; {script}", directory.display()));
        let mut client = Client::connect(&world);
        let mut asked = Vec::new();
        while let Some(event) = client.next() {
            if event["type"] != "event.fs_request" {
                continue;
            }
            asked.push(format!("{} {}", event["act"], event["path"]));
            let lifetime = if event["act"] == "remove" { "once" } else { "session" };
            let yes = json!({"type": "cmd.approve", "id": event["id"], "lifetime": lifetime});
            client.send(format!("{yes}\n").as_bytes());
        }
        let output = run.wait();
        assert_eq!(output.code(), 0, "{script}: {} {asked:#?}", output.err());
        assert_eq!(content(directory.join(name)), expected, "{script} {asked:#?}");
    }
}

/// Where writing may be asked about, access(2) does not say that it is out of the question; where nobody is asked, it does.
///
/// Proves: GATE-10 access
#[test]
fn access_tells_what_a_write_would_find() {
    const TESTS: &str = "test -e \"$1\" && test -w \"$1\" && echo writable || echo read-only";
    let world = World::new();
    let (file, kept) = (hidden(&world, "file"), hidden(&world, "kept"));
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o444)).unwrap();
    for (path, expected) in [(&file, "writable\n"), (&kept, "read-only\n")] {
        let run = asking(&world, &[], &["sh", "-c", TESTS, "sh", path]).spawn();
        let mut client = Client::connect(&world);
        let question = client.question();
        client.allow(&question, "session");
        assert_eq!(run.wait().out(), expected, "{path}");
    }
    let command = ["sh", "-c", TESTS, "sh", &file];
    let output = world.sandbox_run(["--on-ask", "allow"], command).run();
    assert_eq!(output.out(), "read-only\n");
}

/// Proves: GATE-10 not-asked
#[test]
fn making_what_is_there_already_is_no_denied_write() {
    let world = World::new();
    hidden(&world, "work/file");
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    let run = asking(&world, &[], &["mkdir", "-p", &work]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question();
    client.allow(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    assert!(!output.err().contains("denied"), "{}", output.err());
}

/// Proves: GATE-10 remove
#[test]
fn a_tree_is_removed_with_one_answer_for_its_directory() {
    let world = World::new();
    let files = ["a", "b", "c"].map(|name| hidden(&world, &format!("work/tree/{name}")));
    let beside = hidden(&world, "work/beside");
    let tree = world.outside().join("work/tree").to_str().unwrap().to_owned();
    let words = ["remove", &files[0], "remove", &files[1], "remove", &files[2]];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect_act(&question, "remove", &files[0]);
    assert_eq!(question["directory"], tree.as_str());
    client.allow_directory(&question);
    let output = run.wait();
    assert_eq!(output.out(), "remove done\n".repeat(3), "{}", output.err());
    assert!(fs::read_dir(&tree).unwrap().next().is_none());
    assert!(Path::new(&beside).exists());
}

/// Proves: GATE-10 asks-for-writing, GATE-10 once
#[test]
fn a_socket_is_made_in_a_hidden_directory_after_a_question() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        hidden(&world, "work/here");
        let path = world.outside().join("work/s").to_str().unwrap().to_owned();
        let run = acts(&world, &[], &["bind", &path]);
        let mut client = Client::connect(&world);
        let question = client.question();
        expect_act(&question, "create", world.outside().join("work").to_str().unwrap());
        assert_eq!(question["entry"], path.as_str());
        client.allow(&question, lifetime);
        let output = run.wait();
        assert_eq!(output.out(), "bind done\n", "{}", output.err());
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        assert!(std::os::unix::fs::FileTypeExt::is_socket(&kind));
    }
}

/// A hard link never crosses mounts: that is said at once. Beside the file it is a question about the directory, and a symbolic
/// link is one wherever it is made.
///
/// Proves: GATE-10 asks-for-writing, GATE-10 not-asked
#[test]
fn links_into_a_hidden_directory_are_asked_about_as_something_to_create() {
    let world = World::new();
    let file = hidden(&world, "work/here");
    let work = world.outside().join("work").to_str().unwrap().to_owned();
    let inside = format!("{work}/new");
    let words = ["link-in", &inside, "symlink-in", &work, "link", &file];
    let run = acts(&world, &[], &words);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect(&question, "read", &work);
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "create", &work);
    assert_eq!(question["entry"], format!("{work}/link"));
    client.allow(&question, "session");
    let output = run.wait();
    let expected = "link-in EXDEV\nsymlink-in done\nlink done\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(fs::read_link(format!("{work}/link")).unwrap(), Path::new("anywhere"));
    assert_eq!(content(format!("{file}.linked")), "content of work/here\n");
}

/// Proves: GATE-10 asks-for-writing
#[test]
fn a_hard_link_beside_a_hidden_file_is_asked_about_and_made() {
    let world = World::new();
    let file = hidden(&world, "work/here");
    let run = acts(&world, &[], &["link", &file]);
    let mut client = Client::connect(&world);
    let question = client.question();
    expect(&question, "read", &file);
    client.allow(&question, "session");
    let question = client.question();
    expect_act(&question, "create", world.outside().join("work").to_str().unwrap());
    client.allow(&question, "session");
    let output = run.wait();
    assert_eq!(output.out(), "link done\n", "{}", output.err());
    assert_eq!(content(format!("{file}.linked")), "content of work/here\n");
}

/// Who opened a directory that was allowed once holds it on a mount that is attached nowhere by then. What it makes there is asked
/// about by the path that the directory has.
///
/// Proves: GATE-10 asks-for-writing, GATE-10 once
#[test]
fn a_link_is_made_in_a_directory_that_was_opened_once() {
    for lifetime in ["once", "session"] {
        let world = World::new();
        hidden(&world, "work/here");
        let work = world.outside().join("work").to_str().unwrap().to_owned();
        let run = acts(&world, &[], &["symlink-in", &work]);
        let mut client = Client::connect(&world);
        let question = client.question();
        expect(&question, "read", &work);
        client.allow(&question, "once");
        let question = client.question();
        expect_act(&question, "create", &work);
        assert_eq!(question["entry"], format!("{work}/link"));
        client.allow(&question, lifetime);
        let output = run.wait();
        assert_eq!(output.out(), "symlink-in done\n", "{lifetime}: {}", output.err());
        assert!(!output.err().contains("--rw / "), "{}", output.err());
        assert_eq!(fs::read_link(format!("{work}/link")).unwrap(), Path::new("anywhere"));
    }
}

/// A tool that may not change a file looks at it again, to say what is wrong: that is no other question. Another process is
/// asked about.
///
/// Proves: GATE-10 refused-look
#[test]
fn who_was_refused_a_change_is_not_asked_for_a_look() {
    for change in ["mv $F $F.new", "mv $F ./own", "rm -f $F", "chmod 700 $F", "touch -c $F"] {
        let world = World::new();
        let file = hidden(&world, "work/file");
        let run = asking_script(&world, &format!("F={file}; {change}; stat $F"));
        let mut client = Client::connect(&world);
        let mut acts = Vec::new();
        let mut answered = Vec::new();
        while let Some(event) = client.next() {
            if event["type"] != "event.fs_request" || answered.contains(&event["id"]) {
                continue;
            }
            answered.push(event["id"].clone());
            acts.push(event["act"].as_str().unwrap().to_owned());
            // Some tools look before they change.
            let is_first_look = event["act"] == "see" && acts.len() == 1;
            let mut answer = if is_first_look { yes("once") } else { no("once") };
            answer["id"] = event["id"].clone();
            client.send(format!("{answer}\n").as_bytes());
        }
        let output = run.wait();
        assert_ne!(output.code(), 0, "{change}");
        let looks_first = acts[0] == "see";
        let expected = if looks_first { 3 } else { 2 };
        assert_eq!(acts.len(), expected, "{change}: {acts:?} {}", output.err());
        assert_eq!(acts.last().unwrap(), "see", "{change}: stat is another process");
        assert_eq!(content(&file), "content of work/file\n");
    }
}
