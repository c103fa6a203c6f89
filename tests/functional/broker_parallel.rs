//! Commands whose processes make files at once: the broker serves them in several threads, with the results that they have
//! bare, and nothing that is protected slips through between two of them (FS-9).

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use palisade_testkit::{Running, World, patiently};
use rustix::process::{Signal, kill_process};

use crate::helper_death::wait_for_helper;

const PYTHON: &str = "/usr/bin/python3";
const TIMEOUT: Duration = Duration::from_secs(240);
const ONE_CPU: [&str; 3] = ["taskset", "-c", "0"];

fn script(world: &World, content: &str) -> String {
    world.write("home/scripts/script.py", content).to_string_lossy().into_owned()
}

fn threads_of_broker(run: &Running) -> usize {
    let broker = wait_for_helper(run, "sandbox-broker").as_raw_pid();
    fs::read_dir(format!("/proc/{broker}/task")).unwrap().count()
}

fn processors() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Proves: FS-9 threads, COMPAT-1 threads
#[test]
fn processes_that_make_files_at_once_are_answered_as_bare() {
    let starters: [&[&str]; 2] = [&[], &ONE_CPU];
    for starter in starters {
        let world = World::new();
        let path = script(&world, include_str!("parallel_calls.py"));
        let rounds = "150";
        let outside = world.path().join("home/bare");
        fs::create_dir(&outside).unwrap();
        let bare = world.bare(PYTHON).args([path.as_str(), rounds]).cwd(outside);
        let bare = bare.deadline(TIMEOUT).run();
        bare.assert_code(0);
        let starter: Vec<String> = starter.iter().map(|word| (*word).to_owned()).collect();
        let inside = world.sandbox_run(["--ro", "~/scripts"], [PYTHON, path.as_str(), rounds]);
        let inside = inside.started_by(&starter).deadline(TIMEOUT).keep_stdin_open();
        let mut run = inside.spawn();
        run.wait_for_stdout("done");
        let threads = threads_of_broker(&run);
        run.send(b"\n");
        let output = run.wait();
        output.assert_code(0);
        assert_eq!(output.out(), bare.out(), "{}", output.err());
        assert!(bare.out().starts_with("[]\n"), "{}", bare.out());
        match (starter.is_empty(), processors()) {
            // The first one attends to them.
            (true, 2..) => assert!((3..=5).contains(&threads), "{threads} threads"),
            _ => assert_eq!(threads, 1, "one processor is one thread's"),
        }
    }
}

/// What the host finds of what the script tried: nothing. The script itself looks for a git directory with a setting.
fn assert_nothing_is_planted(project: &Path) {
    let read = |path: &str| fs::read_to_string(project.join(path)).unwrap_or_default();
    assert_eq!(read(".git/hooks/pre-commit"), "");
    assert!(!read(".git/config").contains("evil"));
    // The directory that is older than the run, wherever it was moved, by what is in it. It is held, because it may be
    // moved between the looks.
    for name in ["old", "was-old", "fresh"] {
        let Ok(held) = fs::File::open(project.join(name)) else { continue };
        let directory = format!("/proc/self/fd/{}", held.as_raw_fd());
        let is_old = Path::new(&directory).join("older").exists();
        assert!(!is_old || read(&format!("{directory}/.envrc")).is_empty(), "{name}/.envrc");
    }
}

/// Proves: FS-9 created-names, FS-9 threads
#[test]
fn parallel_calls_get_no_protected_name_from_each_other() {
    let world = World::new();
    world.git_init();
    let _ = fs::remove_dir_all(world.project().join(".git/hooks"));
    world.write_in_project("old/older", "");
    let path = script(&world, include_str!("parallel_races.py"));
    let inside = world.sandbox_run(["--ro", "~/scripts"], [PYTHON, &path, "12"]);
    let mut run = inside.deadline(TIMEOUT).keep_stdin_open().spawn();
    // The host looks while they are at it, too.
    while !run.prints("done") {
        assert_nothing_is_planted(&world.project());
        std::thread::sleep(Duration::from_millis(5));
    }
    if processors() > 1 {
        assert!(threads_of_broker(&run) > 1);
    }
    run.send(b"\n");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "done\n", "{}", output.err());
    assert_nothing_is_planted(&world.project());
}

/// Proves: FS-9 git-in-place, FS-9 threads
#[test]
fn repositories_are_made_beside_other_files() {
    let world = World::new();
    let script = r#"
noise() { for i in $(seq 400); do mkdir -p noise-$1/$i; : > noise-$1/$i/file; done; }
repository() {
    git init --quiet --initial-branch=main repo-$1; cd repo-$1
    for value in one two three name-$1; do git config user.name $value; done
    printf '[user]\n\temail = mail-%s\n' $1 >> .git/config
    test "$(git config user.email)" = mail-$1 || echo not in place
    echo content > file; git add file
    git commit --quiet -m one
    printf '[core]\n\tfsmonitor = evil\n' >> .git/config
    cp .git/config copied
    cp copied .git/config
    cd ..
}
for i in 1 2 3; do noise $i & done
for i in 1 2 3 4 5 6; do repository $i & noises="$noises $!"; done
for each in $noises; do wait $each || echo failed; done
wait
echo made
"#;
    let output = world.sandbox_run([""; 0], ["bash", "-c", script]).deadline(TIMEOUT).run();
    output.assert_code(0);
    assert_eq!(output.out(), "made\n", "{}", output.err());
    for number in 1..=6 {
        let git = |words: &[&str]| {
            let directory = world.project().join(format!("repo-{number}"));
            world.bare("git").args(words).cwd(directory).run().out().trim().to_owned()
        };
        assert_eq!(git(&["config", "--get", "user.name"]), format!("name-{number}"));
        assert_eq!(git(&["config", "--get", "user.email"]), format!("mail-{number}"));
        assert_eq!(git(&["config", "--get", "core.fsmonitor"]), "");
        assert_eq!(git(&["log", "--format=%s"]), "one");
    }
    let report = output.report.unwrap();
    assert!(report["protectedWrites"].to_string().contains("config"), "{report}");
}

/// Proves: LIFE-4 helper-death, FS-9 undisturbed
#[test]
fn a_broker_of_several_threads_that_is_killed_fails_the_run() {
    let world = World::new();
    let busy = "import os, itertools
for _ in range(3): os.fork()
for number in itertools.count(): open(f'{os.getpid()}-{number % 100}', 'w').close()";
    let run = world.sandbox_run([""; 0], [PYTHON, "-c", busy]).deadline(TIMEOUT).spawn();
    let deadline = std::time::Instant::now() + patiently(Duration::from_secs(20));
    while threads_of_broker(&run) < processors().min(2) {
        assert!(std::time::Instant::now() < deadline, "the broker has one thread");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(wait_for_helper(&run, "sandbox-broker"), Signal::KILL).unwrap();
    let output = run.wait();
    assert_eq!(output.code(), 125, "{}", output.err());
    assert_eq!(output.report.unwrap()["outcome"], "failed");
}
