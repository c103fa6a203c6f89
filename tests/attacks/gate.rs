//! Against the gate: paths, files and processes that change while a question is asked, answered and carried out. What is
//! granted is what was shown, and nobody else gets it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use palisade_testkit::{Attack, Demonstration, Output, Running, World, patiently, tries};
use serde_json::{Value, json};

use crate::host::probe;
use crate::races::{HARMLESS, SECRET, Seen, a_reader_is_fooled, while_swapping};
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

const NOBODY_ASKS: &str = "a bare host asks nobody";
const PATIENCE: Duration = Duration::from_secs(30);
const READS: u32 = 20_000;
/// Each of these is a question.
const ASKED_READS: u32 = 2000;

fn harmless_in_project(world: &World) -> String {
    world.write_in_project("harmless-and-long-enough", HARMLESS).display().to_string()
}

/// The two names have to be equally long.
fn canary_as_long_as(world: &World, other: &str) -> String {
    let directory = world.outside().display().to_string();
    let name = "c".repeat(other.len() - directory.len() - 1);
    world.write(format!("outside/{name}"), SECRET).display().to_string()
}

/// A thread rewrites the path while the broker looks at it and while the kernel does.
///
/// Proves: GATE-3 path-buffer
#[test]
fn k09_a_path_rewritten_while_it_is_looked_at_reads_nothing() {
    Attack::new("K09", "rewrite a path during its notification, to read a canary outside")
        .proves(&["GATE-3 path-buffer"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .deadline(Duration::from_secs(120))
        .flags(|_| vec!["--on-ask".into(), "deny".into()])
        .command(|world| {
            let harmless = harmless_in_project(world);
            let canary = canary_as_long_as(world, &harmless);
            probe(world, &["race-read", &tries(READS).to_string(), &harmless, &canary])
        })
        .succeeded(|_, output| output.out().contains(SECRET))
        .contained(|_, output| output.out().starts_with("refused 13 "))
        .check();
}

/// Whoever answers, in a thread: yes to what `is_allowed` says, no to everything else. Gives back the paths of both.
struct Answerer(std::thread::JoinHandle<(BTreeSet<String>, BTreeSet<String>)>);

impl Answerer {
    fn start(
        world: &World,
        lifetime: &'static str,
        is_allowed: impl Fn(&str) -> bool + Send + 'static,
    ) -> Self {
        let directory = sockets(world);
        Self(std::thread::spawn(move || {
            let (mut allowed, mut denied) = (BTreeSet::new(), BTreeSet::new());
            let Some(stream) = connect(&directory) else { return (allowed, denied) };
            let mut writer = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap();
                let (Some(path), "event.fs_request") =
                    (event["path"].as_str(), event["type"].as_str().unwrap_or_default())
                else {
                    continue;
                };
                let says_yes = is_allowed(path);
                let command = if says_yes { "cmd.approve" } else { "cmd.deny" };
                let answer = json!({"type": command, "id": event["id"], "lifetime": lifetime});
                if says_yes { &mut allowed } else { &mut denied }.insert(path.to_owned());
                // A run that has ended wants no answer.
                let _ = writer.write_all(format!("{answer}\n").as_bytes());
            }
            (allowed, denied)
        }))
    }

    fn finish(self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.0.join().unwrap()
    }
}

pub(crate) fn sockets(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/run")
}

/// To the one session there is; none if no one asked in time.
pub(crate) fn connect(directory: &Path) -> Option<UnixStream> {
    let end = Instant::now() + patiently(PATIENCE);
    while Instant::now() < end {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if let Some(name) = names.find(|name| name.ends_with(".sock")) {
            // An address has room for 107 bytes.
            let held = fs::File::open(directory).unwrap();
            let address = format!("/proc/self/fd/{}/{name}", held.as_raw_fd());
            if let Ok(stream) = UnixStream::connect(address) {
                return Some(stream);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

pub(crate) fn asking<C: AsRef<std::ffi::OsStr>>(world: &World, command: &[C]) -> Running {
    let run = world.sandbox_run(["--on-ask", "wait"], command);
    run.deadline(Duration::from_secs(150)).spawn()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The harmless file is asked about and granted, once, over and over; the other is always denied.
///
/// Proves: GATE-3 path-buffer
#[test]
fn k09_a_path_rewritten_while_people_answer_reads_nothing() {
    let shown = Demonstration::of(
        "K09",
        "rewrite a path while it is asked about, to read what was not allowed",
        "what is granted is the file that was shown, by its descriptor; the path is looked at once",
    );
    let Some(shown) = shown.no_bare_run(NOBODY_ASKS).begin() else { return };
    for lifetime in ["once", "session"] {
        let world = World::new();
        let harmless = text(&world.write("outside/h/harmless", HARMLESS));
        let canary = text(&world.write("outside/c/canarycc", SECRET));
        let command =
            probe(&world, &["race-read", &tries(ASKED_READS).to_string(), &harmless, &canary]);
        let expected = harmless.clone();
        let answerer = Answerer::start(&world, lifetime, move |path| path == expected);
        let output = asking(&world, &command).wait();
        let (allowed, denied) = answerer.finish();
        assert!(
            output.out().starts_with("refused 13 "),
            "{lifetime}: {}{}",
            output.out(),
            output.err()
        );
        assert!(!output.out().contains(SECRET));
        assert_eq!(allowed, BTreeSet::from([harmless]));
        assert!(denied.iter().all(|path| path.starts_with(&text(world.path()))), "{denied:?}");
    }
    shown.held();
}

/// Proves: GATE-2 true-path, GATE-3 path-buffer
#[test]
fn f02_what_is_granted_is_what_was_shown() {
    let shown = Demonstration::of(
        "F02",
        "swap a directory for a link to another while its file is asked about and granted",
        "the question shows the path of the very descriptor that is granted",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let denied = world.write("outside/denied/file", SECRET).parent().unwrap().to_owned();
    let swapped = world.write("outside/swapped/file", HARMLESS).parent().unwrap().to_owned();
    let file = swapped.join("file");
    a_reader_is_fooled(&swapped, &denied);
    shown.worked_bare();

    let script = format!(
        "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); cat {0}; stat -c %s {0}; done",
        file.display()
    );
    let attempt = |world: &World| -> Output {
        let expected = text(&file);
        let answerer = Answerer::start(world, "once", move |path| path == expected);
        let output = asking(world, &["sh", "-c", &script]).wait();
        answerer.finish();
        output
    };
    while_swapping(&swapped, &denied, || {
        let output = attempt(&world);
        assert!(!output.out().contains(SECRET), "{}\n{}", output.out(), output.err());
        Seen::NotYet
    });
    let output = attempt(&world);
    assert_eq!(output.out().matches(HARMLESS).count(), 40, "{}", output.err());
    shown.held();
}

/// Children that wait are killed, and others that are denied take their place.
const STORM: &str = r#"
import os, random, signal, sys, time
wanted, canary = sys.argv[1:3]
for number in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        try: print(open(wanted).read())
        except OSError: pass
        os._exit(0)
    time.sleep(random.random() / 400)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    child = os.fork()
    if child == 0:
        try: print("stolen", open(canary).read())
        except OSError: pass
        os._exit(0)
    os.waitpid(child, 0)
print("over", flush=True)
try: print(open(wanted).read())
except OSError as error: print(error)
"#;

/// Proves: GATE-5 killed-while-waiting
#[test]
fn p09_an_answer_for_the_dead_goes_to_nobody() {
    let shown = Demonstration::of(
        "P09",
        "have processes die while they wait for a yes, and others in their place",
        "an answer is for one call, which the kernel numbers once; who died is not answered",
    );
    let Some(shown) = shown.no_bare_run(NOBODY_ASKS).begin() else { return };
    let world = World::new();
    let wanted = text(&world.write("outside/w/wanted", HARMLESS));
    let canary = text(&world.write("outside/c/canary", SECRET));
    world.write_in_project("storm.py", STORM);
    let expected = wanted.clone();
    let answerer = Answerer::start(&world, "once", move |path| path == expected);
    let rounds = tries(300).to_string();
    let output = asking(&world, &["python3", "storm.py", &wanted, &canary, &rounds]).wait();
    let (allowed, denied) = answerer.finish();
    output.assert_code(0);
    assert!(!output.out().contains(SECRET), "{}", output.out());
    let last = output.out().split("over\n").nth(1).map(str::to_owned);
    assert_eq!(last.as_deref(), Some("nothing to hide\n"), "{}", output.err());
    assert!(allowed.contains(&wanted) && denied.contains(&canary), "{allowed:?} {denied:?}");
    shown.held();
}

/// Proves: GATE-5 undisturbed, GATE-2 true-path
#[test]
fn f15_a_pipe_in_the_place_of_a_file_stalls_nobody() {
    let shown = Demonstration::of(
        "F15",
        "put a pipe without a writer where a file was asked about, and where one is looked for",
        "only files and directories are granted, by the descriptor that was looked at",
    );
    let Some(shown) = shown.no_bare_run(NOBODY_ASKS).begin() else { return };
    let world = World::new();
    let (file, pipe) = (world.write("outside/f/file", HARMLESS), world.outside().join("pipe"));
    world.bare("mkfifo").arg(&pipe).run().assert_code(0);
    let script = format!(
        "cat {0} & cat {1}; i=0; while [ $i -lt 200 ]; do i=$((i + 1)); test -e /etc/passwd; done; echo passed; wait",
        file.display(),
        pipe.display()
    );
    let run = asking(&world, &["sh", "-c", &script]);
    let stream = connect(&sockets(&world)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let asked = lines.find(|line| line.contains("event.fs_request")).unwrap();
    assert!(asked.contains(file.to_str().unwrap()), "{asked}");
    // The pipe takes its place before the yes.
    fs::remove_file(&file).unwrap();
    fs::rename(&pipe, &file).unwrap();
    writer.write_all(b"{\"type\":\"cmd.approve\",\"id\":1}\n").unwrap();
    let output = run.wait();
    assert!(output.out().contains("passed\n"), "{}", output.out());
    assert!(output.out().contains(HARMLESS), "{}{}", output.out(), output.err());
    shown.held();
}

const FLOOD: &str = r#"
import collections, errno, os, sys, threading
directory, count = sys.argv[1], int(sys.argv[2])
results = collections.Counter()
def touch(number):
    try: os.stat(f"{directory}/{number}/file")
    except OSError as error: results[errno.errorcode[error.errno]] += 1
threading.stack_size(65536)
threads = [threading.Thread(target=touch, args=(n,)) for n in range(count)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(dict(results))
"#;

/// Proves: GATE-5 bounded, GATE-5 timeout, GATE-5 undisturbed
#[test]
fn r05_a_flood_of_questions_ends_and_drowns_nobody() {
    const COUNT: usize = 1500;
    let shown = Demonstration::of(
        "R05",
        "ask about more paths at once than anybody could answer",
        "open questions and calls that wait are bounded, and silence is a no after a while",
    );
    let Some(shown) = shown.no_bare_run(NOBODY_ASKS).begin() else { return };
    let world = World::new();
    for number in 0..COUNT {
        world.write(format!("outside/{number}/file"), "");
    }
    world.write_in_project("flood.py", FLOOD);
    let outside = text(&world.outside());
    let flags = ["--on-ask", "wait", "--ask-timeout", "3"];
    let command = ["python3", "flood.py", &outside, &COUNT.to_string()];
    let run = world.sandbox_run(flags, command).deadline(Duration::from_secs(120)).spawn();
    let stream = connect(&sockets(&world)).unwrap();
    stream.set_read_timeout(Some(patiently(PATIENCE))).unwrap();
    let open = BufReader::new(stream).lines().map_while(Result::ok);
    let asked = open.filter(|line| line.contains("event.fs_request")).count();
    assert!((1..=2 * 256).contains(&asked), "{asked} questions");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), format!("{{'EACCES': {COUNT}}}\n"));
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    let length = fs::metadata(log).unwrap().len();
    assert!(length < 4 * 1024 * 1024, "{length} bytes of log");
    shown.held();
}
