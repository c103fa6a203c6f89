//! Kept states of a session's project: kept, compared, brought back and forked (LIFE-5).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use palisade_testkit::{World, sandbox_program};
use rustix::process::{Pid, Signal, kill_process};

use crate::inside::{inside, tree};
use crate::sessions_support::{Sessions, adopt_orphans, descendants, wait_for_end, wait_until};

/// What commands see of the project: names, types, modes, times, links, contents, attributes.
const LOOK: &str = "find . -path ./.git -prune -o -printf '%p %y %m %T@ %n %l\\n' | sort; \
     find . -type f | sort | xargs -d '\\n' cat; \
     python3 -c 'import os\nfor n in sorted(os.listdir(\".\")): print(ascii(n), \
     [(a, os.getxattr(n, a)) for a in os.listxattr(n)] if not os.path.islink(n) else 0)'";

fn look(sessions: &Sessions<'_>, session: &str) -> String {
    sessions.output_of(session, &["sh", "-c", LOOK])
}

#[track_caller]
pub(crate) fn script(sessions: &Sessions<'_>, session: &str, text: &str) {
    sessions.output_of(session, &["sh", "-ec", text]);
}

#[track_caller]
pub(crate) fn keep(sessions: &Sessions<'_>, session: &str) -> String {
    let kept = sessions.sandbox(&["checkpoint", session]);
    kept.assert_code(0);
    kept.out().trim().to_owned()
}

fn everything(directory: &Path) -> Vec<String> {
    let describe = |path: String| {
        let found = fs::symlink_metadata(&path).unwrap();
        let content = fs::read(&path).unwrap_or_default();
        format!("{path} {:o} {} {content:?}", found.mode(), found.mtime())
    };
    tree(directory).into_iter().map(describe).collect()
}

pub(crate) fn project(world: &World) {
    world.write_in_project("kept", "kept\n");
    world.write_in_project("changed", "one\ntwo\nthree\n");
    world.write_in_project("dir/deep/file", "deep\n");
}

const FIRST: &str = "sed -i s/two/2/ changed; rm -r dir; mkdir -p new/a; echo x > new/a/b; \
     ln new/a/b linked; ln -s kept link; mkfifo fifo; touch -d @1000000000.5 new/a; \
     python3 -c 'import os; os.setxattr(\"kept\", \"user.note\", b\"1\")'; chmod 750 new";
const SECOND: &str = "rm -r new linked; echo 3 > changed; mkdir dir; echo other > dir/file; rm fifo link; \
     mkdir link; chmod 600 kept; python3 -c 'import os; os.removexattr(\"kept\", \"user.note\")'; \
     printf 'x' > \"$(printf 'bell\\a\\n\\033[31m \\377')\"";

/// Proves: LIFE-5 checkpoint, LIFE-5 rollback
#[test]
fn a_living_session_goes_back_and_forth_between_states_exactly() {
    let world = World::new();
    project(&world);
    let host = everything(&world.project());
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    let start = look(&sessions, "work");
    script(&sessions, "work", FIRST);
    assert_eq!(keep(&sessions, "work"), "1");
    let first = look(&sessions, "work");
    script(&sessions, "work", SECOND);
    let noted = sessions.sandbox(&["checkpoint", "work", "-m", "second\u{7}\u{1b}[31m\nline"]);
    assert_eq!(noted.out(), "2\n");
    let second = look(&sessions, "work");
    assert_ne!(first, second);

    let dry = sessions.sandbox(&["rollback", "--dry-run", "work", "1"]);
    assert!(dry.out().contains("M\tchanged\n"), "{}", dry.out());
    assert_eq!(look(&sessions, "work"), second, "a dry run changed something");

    let back = sessions.sandbox(&["rollback", "work", "1"]);
    back.assert_code(0);
    assert!(back.err().contains("the state before is checkpoint 3"), "{}", back.err());
    assert_eq!(look(&sessions, "work"), first);
    sessions.sandbox(&["rollback", "work", "3"]).assert_code(0);
    assert_eq!(look(&sessions, "work"), second, "a rollback is taken back by another one");
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    // The time of the project's directory is the host's then.
    let below = |seen: &str| seen.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!(below(&look(&sessions, "work")), below(&start));
    assert_eq!(sessions.sandbox(&["diff", "work"]).out(), "");
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    assert_eq!(look(&sessions, "work"), first);

    let listed = sessions.sandbox(&["checkpoints", "work"]);
    assert_eq!(listed.out().lines().count(), 7, "{}", listed.out());
    assert!(
        listed.out().contains(r"second\u{7}\u{1b}[31m\nline") || !listed.out().contains('\u{1b}')
    );
    let json = sessions.sandbox(&["checkpoints", "--json", "work"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["checkpoints"][1]["message"], "second\u{7}\u{1b}[31m\nline");
    assert_eq!(json["checkpoints"][2]["reason"], "beforeRollback");
    assert_eq!(everything(&world.project()), host, "the host's files changed");
    let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl")).unwrap();
    for event in ["CHECKPOINT_MADE", "ROLLED_BACK"] {
        let is_it = |line: &&str| line.contains(&id) && line.contains(event);
        assert!(log.lines().filter(is_it).count() > 3, "{event} is missing in {log}");
    }
    sessions.sandbox(&["audit", "verify"]).assert_code(0);
}

/// What is applied at the end is what the session showed, whatever was rolled back before.
///
/// Proves: LIFE-5 rollback, LIFE-2 apply
#[test]
fn a_session_that_was_rolled_back_is_applied_as_it_is_then() {
    let (world, bare) = (World::new(), World::new());
    project(&world);
    project(&bare);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "rm -r dir; mkdir dir; echo again > dir/file; echo 1 > made");
    keep(&sessions, "work");
    script(&sessions, "work", "rm -r dir made; mkdir .vscode; echo {} > .vscode/tasks.json");
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    let applied = sessions.sandbox(&["apply", "work"]);
    applied.assert_code(0);
    let edits = "rm -r dir; mkdir dir; echo again > dir/file; echo 1 > made";
    bare.bare("sh").args(["-ec", edits]).run().assert_code(0);
    let strip = |world: &World| -> Vec<String> {
        let top = world.project().display().to_string();
        let entries = tree(&world.project()).into_iter();
        entries.map(|path| path.replace(&top, "")).collect()
    };
    assert_eq!(strip(&world), strip(&bare));
    // Nothing is left that a second apply would do.
    sessions.sandbox(&["apply", "work"]).assert_code(125);
    assert!(world.project().join("dir/file").exists());
}

/// Proves: LIFE-5 checkpoint, LIFE-5 rollback
#[test]
fn a_session_that_is_over_has_states_too() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", FIRST);
    keep(&sessions, "work");
    script(&sessions, "work", SECOND);
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    let second = sessions.sandbox(&["diff", "work"]).out().into_owned();
    assert_eq!(keep(&sessions, "work"), "2");
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    let names = sessions.sandbox(&["diff", "--name-only", "work"]).out().into_owned();
    assert!(names.contains("new/a/b\n") && !names.contains("dir/file\n"), "{names}");
    assert_eq!(sessions.sandbox(&["diff", "--name-status", "work", "1"]).out(), "");
    sessions.sandbox(&["rollback", "work", "2"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "work"]).out(), second);
    sessions.sandbox(&["discard", "work"]).assert_code(0);
    for name in ["layers", "checkpoints"] {
        assert!(!sessions.directory(&id).join(name).exists(), "{name} is left");
    }

    // The changes of one run.
    inside(&world, &["--transaction"], "echo run > made").assert_code(0);
    let run = sessions.sandbox(&["ps", "--all", "--json"]);
    let run: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let ids = run["sessions"].as_array().unwrap().iter().map(|session| &session["id"]);
    let run = ids.filter_map(|id| id.as_str()).find(|found| *found != id).unwrap().to_owned();
    assert_eq!(keep(&sessions, &run), "1");
    sessions.sandbox(&["rollback", &run, "0"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", &run]).out(), "");
    sessions.sandbox(&["rollback", &run, "1"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "--name-status", &run]).out(), "A\tmade\n");
    sessions.sandbox(&["discard", &run]).assert_code(0);
    assert!(!sessions.directory(&run).exists());
}

/// Proves: LIFE-5 diff
#[test]
fn two_states_are_compared() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "echo first > made; rm kept");
    keep(&sessions, "work");
    script(&sessions, "work", "echo second > made; mkdir later; echo l > later/file");
    keep(&sessions, "work");
    script(&sessions, "work", "rm -r later; echo kept > kept; chmod 600 changed");
    let names = |states: &str| {
        let shown = sessions.sandbox(&["diff", "--name-status", "work", states]);
        shown.assert_code(0);
        shown.out().into_owned()
    };
    assert_eq!(names("1..2"), "A\tlater/file\nM\tmade\n");
    assert_eq!(names("2..1"), "D\tlater/file\nM\tmade\n");
    assert_eq!(names("2.."), "M\tchanged\nA\tkept\nD\tlater/file\n");
    assert_eq!(names("2"), names("2.."));
    assert_eq!(names("..1"), "D\tkept\nA\tmade\n");
    assert_eq!(names("1..1"), "");
    let text = sessions.sandbox(&["diff", "work", "1..2"]).out().into_owned();
    assert!(text.contains("-first\n+second\n"), "{text}");
    let path = sessions.sandbox(&["diff", "--name-only", "work", "1..2", "--", "later"]);
    assert_eq!(path.out(), "later/file\n");
    let unknown = sessions.sandbox(&["diff", "work", "1..9"]);
    unknown.assert_code(125);
    assert!(unknown.err().contains("no checkpoint 9"), "{}", unknown.err());
    sessions.sandbox(&["diff", "work", "one"]).assert_code(125);
}

/// Files change under a session as `git checkout` changes them, so no command may be in the middle of something.
///
/// Proves: LIFE-5 rollback
#[test]
fn commands_that_run_keep_a_rollback_from_happening_but_not_a_checkpoint() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction"]);
    let writer = "exec 3> open; echo begun >&3; cd dir; exec sleep 1000";
    sessions.sandbox(&["exec", "-d", "work", "--", "sh", "-c", writer]).assert_code(0);
    let upper = sessions.directory(sessions.inspect("work")["id"].as_str().unwrap());
    wait_until("the writer has begun", || {
        fs::read(upper.join("layers/1/upper/open")).is_ok_and(|text| text == b"begun\n")
    });
    assert_eq!(keep(&sessions, "work"), "1");
    let refused = sessions.sandbox(&["rollback", "work", "0"]);
    refused.assert_code(125);
    assert!(refused.err().contains("1 command of session work still run"), "{}", refused.err());
    assert_eq!(sessions.output_of("work", &["cat", "open"]), "begun\n");
    sessions.sandbox(&["rollback", "--kill", "work", "0"]).assert_code(0);
    sessions.sandbox(&["exec", "work", "--", "test", "-e", "open"]).assert_code(1);
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    assert_eq!(sessions.output_of("work", &["cat", "open"]), "begun\n");
    let unknown = sessions.sandbox(&["rollback", "work", "77"]);
    unknown.assert_code(125);
    assert!(unknown.err().contains("no checkpoint 77"), "{}", unknown.err());
}

/// Whoever stays in a directory keeps it: nothing is mounted anew.
///
/// Proves: LIFE-5 rollback
#[test]
fn a_process_in_the_background_keeps_its_working_directory_over_a_rollback() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction"]);
    keep(&sessions, "work");
    let waiting = "echo go > mark; (cd dir; while test -e ../mark; do sleep 0.05; done; \
                   echo late > late; pwd > where) > /dev/null 2>&1 &";
    script(&sessions, "work", waiting);
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    let wrote = |name: &str| {
        let path = format!("dir/{name}");
        sessions.sandbox(&["exec", "work", "--", "cat", &path]).out().into_owned()
    };
    wait_until("it has noticed", || !wrote("where").is_empty());
    assert_eq!(wrote("late"), "late\n");
    assert_eq!(wrote("where").trim(), world.project().join("dir").display().to_string());
}

/// Proves: LIFE-5 checkpoint
#[test]
fn a_state_is_kept_before_each_command_if_asked_for() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction", "--checkpoint-each"]);
    for number in 1..=53 {
        script(&sessions, "work", &format!("echo {number} > number"));
        if number == 2 {
            keep(&sessions, "work");
        }
    }
    let json = sessions.sandbox(&["checkpoints", "--json", "work"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let all = json["checkpoints"].as_array().unwrap();
    let numbers: Vec<u64> = all.iter().map(|one| one["number"].as_u64().unwrap()).collect();
    // Of 53 the last 50 are kept, and the one that somebody asked for.
    assert_eq!(numbers, [3].into_iter().chain(5..=54).collect::<Vec<_>>());
    assert_eq!(all[0]["reason"], "asked");
    assert_eq!(all[1]["reason"], "beforeCommand");
    sessions.sandbox(&["rollback", "work", "6"]).assert_code(0);
    // Before the command that wrote 5.
    let seen = sessions.output_of("work", &["cat", "number"]);
    assert_eq!(seen, "4\n");
}

/// Proves: LIFE-5 fork
#[test]
fn a_fork_begins_with_the_same_state_and_goes_its_own_way() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction", "--blacklist", "dir"]);
    script(&sessions, "work", "echo 1 > made; rm kept");
    keep(&sessions, "work");
    script(&sessions, "work", "echo 2 > made");
    let forked = sessions.sandbox(&["fork", "work", "--at", "1", "--name", "old"]);
    forked.assert_code(0);
    assert_eq!(forked.out().trim().len(), 36, "{}", forked.out());
    sessions.sandbox(&["fork", "work", "--name", "same"]).assert_code(0);
    assert_eq!(sessions.output_of("old", &["cat", "made"]), "1\n");
    assert_eq!(sessions.output_of("same", &["cat", "made"]), "2\n");
    sessions.sandbox(&["exec", "old", "--", "test", "-e", "kept"]).assert_code(1);
    // With the options of the session it comes from.
    assert!(!sessions.output_of("old", &["ls"]).contains("dir"));

    script(&sessions, "old", "echo old >> made; echo old > only-old");
    script(&sessions, "work", "echo work >> made; echo work > only-work");
    assert_eq!(sessions.output_of("old", &["cat", "made"]), "1\nold\n");
    assert_eq!(sessions.output_of("work", &["cat", "made"]), "2\nwork\n");
    assert_eq!(sessions.output_of("same", &["cat", "made"]), "2\n");
    for (session, other) in [("old", "only-work"), ("work", "only-old"), ("same", "only-old")] {
        sessions.sandbox(&["exec", session, "--", "test", "-e", other]).assert_code(1);
    }
    assert_eq!(
        sessions.sandbox(&["diff", "--name-status", "old"]).out(),
        "D\tkept\nA\tmade\nA\tonly-old\n"
    );
    // One that is over can be forked, too.
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    sessions.sandbox(&["fork", "work", "--at", "0", "--name", "fresh"]).assert_code(0);
    assert_eq!(sessions.output_of("fresh", &["cat", "kept"]), "kept\n");
    for words in [&["fork", "work", "--at", "9"][..], &["fork", "nobody"]] {
        sessions.sandbox(words).assert_code(125);
    }
    assert!(world.project().join("kept").exists() && !world.project().join("made").exists());
}

/// Proves: LIFE-5 crash
#[test]
fn a_supervisor_that_is_killed_takes_no_state_with_it() {
    adopt_orphans();
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "for i in $(seq 2000); do echo $i > f$i; done");
    let supervisor = sessions.supervisor("work");
    let mut all = descendants(supervisor);
    all.push(supervisor);
    let keeping = world.sandbox(["checkpoint", "work"]).spawn();
    kill_process(Pid::from_raw(supervisor.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for_end(&all);
    keeping.wait().assert_code(0);
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["diff", "work"]).out(), "");
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    let names = sessions.sandbox(&["diff", "--name-only", "work"]).out().into_owned();
    assert_eq!(names.lines().count(), 2000);
    sessions.sandbox(&["rm", "--force", "work"]).assert_code(0);
    assert!(!sessions.directory(&id).exists());
}

/// Killed at any moment, a checkpoint is there or is not, and a rollback is finished by whoever comes next.
///
/// Proves: LIFE-5 crash
#[test]
fn what_was_interrupted_is_never_half_done() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "for i in $(seq 500); do echo $i > f$i; done");
    assert_eq!(keep(&sessions, "work"), "1");
    script(&sessions, "work", "for i in $(seq 500); do echo other > g$i; rm f$i; done");
    for delay in [0, 2, 5, 10, 20, 40] {
        let keeping = world.sandbox(["checkpoint", "work"]).spawn();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        keeping.signal(Signal::KILL);
        let _ = keeping.wait();
        let json = sessions.sandbox(&["checkpoints", "--json", "work"]);
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        for checkpoint in &json["checkpoints"].as_array().unwrap()[1..] {
            assert_eq!(checkpoint["entries"], 500, "{checkpoint}");
        }
    }
    let complete = keep(&sessions, "work");
    let leftover = fs::read_dir(sessions.directory(&id).join("checkpoints")).unwrap().flatten();
    let leftover = leftover.filter(|entry| entry.file_name().to_string_lossy().starts_with("new"));
    assert_eq!(leftover.count(), 0, "something is left of an interrupted one");

    let count = |pattern: &str| {
        let text = format!("ls | grep -c ^{pattern} || true");
        sessions.output_of("work", &["sh", "-c", &text]).trim().to_owned()
    };
    for (delay, to) in [(10, "1"), (20, &*complete), (30, "1"), (50, &*complete), (80, "1")] {
        let rolling = world.sandbox(["rollback", "work", to]).spawn();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        rolling.signal(Signal::KILL);
        let _ = rolling.wait();
        // Whatever was begun is done before the next command sees anything.
        let seen = (count("f"), count("g"));
        assert!(
            seen == ("500".to_owned(), "0".to_owned())
                || seen == ("0".to_owned(), "500".to_owned()),
            "{seen:?}"
        );
        let temporary = count(".palisade");
        assert_eq!(temporary, "0");
    }
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    let rolling = world.sandbox(["rollback", "work", &complete]).spawn();
    std::thread::sleep(std::time::Duration::from_millis(40));
    rolling.signal(Signal::KILL);
    let _ = rolling.wait();
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    let names = sessions.sandbox(&["diff", "--name-only", "work"]).out().into_owned();
    let of = |letter: char| names.lines().filter(|name| name.starts_with(letter)).count();
    assert!(matches!((of('f'), of('g')), (500, 0) | (0, 500)), "{names}");
}

/// The documented commands, as typed.
///
/// Proves: LIFE-5 checkpoint, LIFE-5 rollback, LIFE-5 fork
#[test]
fn the_documented_example_works() {
    const PAGE: &str = include_str!("../../docs/transactions.md");
    let section = PAGE.split("## Checkpoints\n").nth(1).unwrap();
    let example =
        section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let world = World::new();
    let _sessions = Sessions::new(&world);
    fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    let output = world.bare("bash").args(["-ec", example]).env("PATH", path).run();
    output.assert_code(0);
    let said = output.out();
    // Whether it is on disk by then or not.
    let is_it = |line: &str| line.contains("  by hand") && line.ends_with(": a beginning");
    assert!(said.lines().any(is_it), "{said}");
    assert!(said.contains("-one\n+two\n"), "{said}");
    assert_eq!(said.lines().filter(|line| *line == "one").count(), 2, "{said}");
}

/// Proves: LIFE-5 checkpoint
#[test]
fn only_a_transaction_has_states() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "plain"]);
    for words in [
        &["checkpoint", "plain"][..],
        &["checkpoints", "plain"],
        &["rollback", "plain", "1"],
        &["fork", "plain"],
    ] {
        let refused = sessions.sandbox(words);
        refused.assert_code(125);
        assert!(refused.err().contains("a transaction has"), "{}", refused.err());
    }
}

/// What is mounted in the project is written at once, and is no part of its states.
///
/// Proves: LIFE-5 rollback
#[test]
fn a_writable_directory_in_the_project_is_left_alone() {
    let world = World::new();
    project(&world);
    fs::create_dir(world.project().join("live")).unwrap();
    let sessions = Sessions::new(&world);
    let flags = ["--name", "work", "--transaction", "--no-protect-names", "--rw", "live"];
    sessions.create(&flags);
    keep(&sessions, "work");
    script(&sessions, "work", "echo 1 > live/file; echo 1 > made");
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    sessions.sandbox(&["exec", "work", "--", "test", "-e", "made"]).assert_code(1);
    assert_eq!(fs::read_to_string(world.project().join("live/file")).unwrap(), "1\n");
    assert_eq!(sessions.output_of("work", &["cat", "live/file"]), "1\n");
}

/// What its owner cannot read is kept and comes back, too.
///
/// Proves: LIFE-5 rollback
#[test]
fn closed_directories_come_back_closed() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--transaction"]);
    script(&sessions, "work", "mkdir closed; echo x > closed/file; chmod 0 closed/file closed");
    keep(&sessions, "work");
    let upper = sessions.directory(&id).join("layers/1/upper/closed");
    let mode = || fs::symlink_metadata(&upper).map(|found| found.permissions().mode() & 0o777);
    assert_eq!(mode().unwrap(), 0);
    script(
        &sessions,
        "work",
        "chmod 700 closed; rm -f closed/file; echo y > closed/other; chmod 0 closed",
    );
    sessions.sandbox(&["rollback", "work", "1"]).assert_code(0);
    assert_eq!(mode().unwrap(), 0);
    script(
        &sessions,
        "work",
        "chmod 700 closed; test ! -e closed/other; chmod 600 closed/file; grep x closed/file",
    );
    sessions.sandbox(&["rollback", "work", "0"]).assert_code(0);
    assert!(mode().is_err() || !upper.is_dir());
}
