//! `--metrics-file`: what runs add up to, as text that a scraper reads (TEL-1).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{Output, World, patiently};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sessions_support::{Sessions, adopt_orphans, wait_for_end, wait_until};

/// Everything in a text, by series, after checking it against the exposition format 0.0.4: each family has
/// its help, then its type, then its samples in one piece; none is there twice.
#[track_caller]
fn exposition(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    let (mut helped, mut current) = (String::new(), String::new());
    assert!(text.ends_with('\n') || text.is_empty(), "the last line has no end");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(!families.contains_key(name) && !words.is_empty(), "{line}");
            helped = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, helped, "the help comes right before the type");
            assert!(["counter", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            families.insert(name.to_owned(), kind.to_owned());
            current = name.to_owned();
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let family = match families[&current].as_str() {
                "counter" => name,
                _ => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|suffix| name.strip_suffix(suffix))
                    .unwrap(),
            };
            assert_eq!(family, current, "samples stand below their type");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let labels = labels.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap();
                for label in labels.split(',') {
                    let (name, value) = label.split_once('=').unwrap();
                    assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{line}");
                    let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                    assert!(!value.unwrap().contains(['"', '\\']), "{line}");
                }
            }
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert_eq!(samples.insert(series.to_owned(), value), None, "twice: {line}");
        }
    }
    for (family, kind) in families.iter().filter(|(_, kind)| *kind == "histogram") {
        assert_eq!(samples[&format!("{family}_bucket{{le=\"+Inf\"}}")], {
            samples[&format!("{family}_count")]
        });
        assert!(samples.contains_key(&format!("{family}_sum")), "{family}, a {kind}");
    }
    samples
}

pub(crate) fn read(path: &Path) -> BTreeMap<String, f64> {
    exposition(&fs::read_to_string(path).unwrap())
}

/// A run that adds to a file, and what the file says then.
fn counted(world: &World, flags: &[&str], command: &[&str]) -> (Output, BTreeMap<String, f64>) {
    let file = world.path().join("palisade.prom");
    let output = world
        .sandbox(["run", "--quiet", "--metrics-file"])
        .arg(&file)
        .args(flags)
        .arg("--")
        .args(command)
        .run();
    (output, read(&file))
}

#[cfg(target_arch = "x86_64")]
const MOUNT: &str = "165";
#[cfg(target_arch = "aarch64")]
const MOUNT: &str = "40";

/// Tries what each wall hears of, and works a little.
const BUSY: &str = "import ctypes, sys, time\n\
    libc = ctypes.CDLL(None)\n\
    for _ in range(3): libc.syscall(int(sys.argv[1]), 0, 0, 0, 0, 0)\n\
    for path in ['.envrc', sys.argv[2]]:\n\
    \x20 try: open(path, 'w' if path == '.envrc' else 'r')\n\
    \x20 except OSError: pass\n\
    until = time.process_time() + 0.2\n\
    while time.process_time() < until: pass\n";

/// Proves: TEL-1 six, TEL-1 prometheus, TEL-1 cleanup, TEL-1 decisions
#[test]
fn a_run_is_counted_in_every_family_and_the_next_one_adds_to_it() {
    let world = World::new();
    let hidden = world.write("home/papers/letter", "read me\n");
    let hidden = hidden.to_str().unwrap();
    let command = ["/usr/bin/python3", "-c", BUSY, MOUNT, hidden];
    for times in [1.0, 2.0] {
        let (output, samples) = counted(&world, &["--on-ask", "deny"], &command);
        output.assert_code(0);
        for (series, each) in [
            (r#"palisade_sandboxes_created_total{level="LEVEL_2"}"#, 1.0),
            ("palisade_sandbox_lifetime_seconds_count", 1.0),
            (r#"palisade_policy_violations_total{kind="protected-write"}"#, 1.0),
            (r#"palisade_escape_attempts_total{type="syscall",severity="medium"}"#, 1.0),
            ("palisade_sandbox_peak_memory_bytes_count", 1.0),
            (r#"palisade_blocked_syscalls_total{syscall="mount"}"#, 3.0),
            (r#"palisade_cleanups_total{result="done"}"#, 1.0),
            (r#"palisade_cleanups_total{result="failed"}"#, 0.0),
            (r#"palisade_decisions_total{decision="denied",source="on-ask"}"#, 1.0),
            ("palisade_questions_total", 0.0),
            (r#"palisade_runs_total{outcome="completed"}"#, 1.0),
        ] {
            assert_eq!(samples[series], each * times, "{series}\n{samples:#?}\n{}", output.err());
        }
        let cpu = samples[r#"palisade_cpu_seconds_total{mode="user"}"#]
            + samples[r#"palisade_cpu_seconds_total{mode="system"}"#];
        assert!(cpu >= 0.2 * times, "{samples:#?}");
        assert!(samples["palisade_sandbox_lifetime_seconds_sum"] >= 0.2 * times, "{samples:#?}");
        assert!(samples["palisade_sandbox_peak_memory_bytes_sum"] > 1e6 * times, "{samples:#?}");
        assert!(samples.keys().all(|series| !series.contains("letter")), "no path is a label");
    }
}

/// Proves: TEL-1 six
#[test]
fn runs_that_end_in_other_ways_are_counted_as_what_they_were() {
    let world = World::new();
    let (late, _) = counted(&world, &["--timeout", "2s", "--grace", "100ms"], &["sleep", "60"]);
    late.assert_code(124);
    let (refused, _) = counted(&world, &["--level", "0"], &["true"]);
    refused.assert_code(126);
    let (missing, samples) = counted(&world, &[], &["/no/such/program"]);
    missing.assert_code(127);
    for (series, count) in [
        (r#"palisade_runs_total{outcome="timeout"}"#, 1.0),
        (r#"palisade_runs_total{outcome="refused"}"#, 1.0),
        (r#"palisade_runs_total{outcome="failed"}"#, 1.0),
        (r#"palisade_limits_hit_total{limit="resources.timeout"}"#, 1.0),
        (r#"palisade_cleanups_total{result="failed"}"#, 0.0),
    ] {
        assert_eq!(samples[series], count, "{series}\n{samples:#?}");
    }
    let created = samples[r#"palisade_sandboxes_created_total{level="LEVEL_2"}"#];
    assert_eq!(samples[r#"palisade_cleanups_total{result="done"}"#], created, "{samples:#?}");
}

/// Waits for the one question there is, and answers it.
#[track_caller]
pub(crate) fn answer_the_question(world: &World, answer: &str) {
    let end = Instant::now() + patiently(Duration::from_secs(30));
    let address = loop {
        let listed = world.sandbox(["approve", "--json"]).run();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        if let Some(address) = listed["questions"][0]["address"].as_str() {
            break address.to_owned();
        }
        assert!(Instant::now() < end, "nothing was asked");
    };
    world.sandbox(["approve", answer, &address]).run().assert_code(0);
}

/// Proves: TEL-1 decisions
#[test]
fn a_question_and_its_answer_are_counted() {
    let world = World::new();
    let hidden = world.write("home/papers/letter", "read me\n");
    let file = world.path().join("palisade.prom");
    let run = world
        .sandbox(["run", "--quiet", "--on-ask", "wait", "--metrics-file"])
        .arg(&file)
        .args(["--", "cat"])
        .arg(&hidden)
        .spawn();
    answer_the_question(&world, "--yes");
    run.wait().assert_code(0);
    let samples = read(&file);
    assert_eq!(samples[r#"palisade_decisions_total{decision="allowed",source="socket"}"#], 1.0);
    assert_eq!(samples["palisade_questions_total"], 1.0);
}

/// Proves: TEL-1 prometheus
#[test]
fn two_hundred_runs_at_once_lose_no_count_and_no_reader_sees_half() {
    const AT_ONCE: usize = 20;
    const EACH: usize = 10;
    let world = World::new();
    let file = world.path().join("palisade.prom");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(text) = fs::read_to_string(&file) {
                    // Empty for the moment before the first count.
                    assert!(text.is_empty() || text.ends_with("# EOF\n"), "{text}");
                    exposition(&text);
                    seen += 1;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            seen
        });
        let runs: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let (output, _) = counted(&world, &[], &["true"]);
                        output.assert_code(0);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = runs.into_iter().map(|run| run.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        assert!(reader.join().unwrap() > 0);
    });
    let samples = read(&file);
    let all = (AT_ONCE * EACH) as f64;
    assert_eq!(samples[r#"palisade_runs_total{outcome="completed"}"#], all);
    assert_eq!(samples[r#"palisade_cleanups_total{result="done"}"#], all);
    assert_eq!(samples["palisade_sandbox_lifetime_seconds_count"], all);
    let beside = fs::read_dir(world.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = beside.filter(|name| name.to_string_lossy().contains(".prom.")).collect();
    assert_eq!(left, [".palisade.prom.lock"], "nothing else stays beside the file");
}

/// Proves: TEL-1 prometheus
#[test]
fn a_lock_that_somebody_keeps_costs_the_count_and_not_the_commands_own_result() {
    let world = World::new();
    let (first, _) = counted(&world, &[], &["true"]);
    first.assert_code(0);
    let lock = fs::File::open(world.path().join(".palisade.prom.lock")).unwrap();
    lock.lock().unwrap();
    let (held_up, samples) = counted(&world, &[], &["sh", "-c", "exit 7"]);
    held_up.assert_code(7);
    assert!(held_up.err().contains("this run is not counted"), "{}", held_up.err());
    assert_eq!(samples[r#"palisade_runs_total{outcome="completed"}"#], 1.0);
    drop(lock);
    let (next, samples) = counted(&world, &[], &["true"]);
    next.assert_code(0);
    assert_eq!(samples[r#"palisade_runs_total{outcome="completed"}"#], 2.0);
}

/// Proves: TEL-1 prometheus
#[test]
fn a_file_that_is_not_ours_stops_the_run_before_it_starts_and_stays_as_it_was() {
    let world = World::new();
    let theirs = world.write("node.prom", "node_load1 3\n");
    let directory = world.path().join("no/such/directory/palisade.prom");
    for (file, words) in [(&theirs, "no metrics file of ours"), (&directory, "ENOENT")] {
        let output = world
            .sandbox(["run", "--metrics-file"])
            .arg(file)
            .args(["--", "touch", "started"])
            .run();
        output.assert_code(125);
        assert!(output.err().contains(words), "{}", output.err());
        assert!(!world.project().join("started").exists());
    }
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "node_load1 3\n");
}

/// Proves: TEL-1 prometheus
#[test]
fn the_variable_names_the_file_too() {
    let world = World::new();
    let file = world.path().join("palisade.prom");
    let run = world.sandbox(["run", "--", "true"]).env("SANDBOX_METRICS_FILE", &file).run();
    run.assert_code(0);
    assert_eq!(read(&file)[r#"palisade_runs_total{outcome="completed"}"#], 1.0);
}

/// What a session did is counted when it ends, and what a killed supervisor left when somebody finds it.
///
/// Proves: LIFE-4 counted
#[test]
fn sessions_are_counted_at_their_end_and_killed_ones_when_they_are_found() {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let file = world.path().join("palisade.prom");
    let counted = file.to_str().unwrap();
    sessions.create(&["--name", "ended", "--metrics-file", counted]);
    sessions.output_of("ended", &["true"]);
    sessions.sandbox(&["exec", "ended", "--", "false"]).assert_code(1);
    sessions.sandbox(&["stop", "ended"]).assert_code(0);
    wait_until("the session is counted", || file.metadata().is_ok_and(|file| file.len() > 0));
    let samples = read(&file);
    for (series, count) in [
        (r#"palisade_sandboxes_created_total{level="LEVEL_2"}"#, 1.0),
        (r#"palisade_cleanups_total{result="done"}"#, 1.0),
        (r#"palisade_cleanups_total{result="failed"}"#, 0.0),
        ("palisade_sandbox_lifetime_seconds_count", 1.0),
        ("palisade_session_command_seconds_count", 2.0),
        (r#"palisade_sessions_swept_total{result="marked"}"#, 0.0),
    ] {
        assert_eq!(samples[series], count, "{series}: {samples:#?}");
    }

    sessions.create(&["--name", "killed", "--metrics-file", counted]);
    let supervisor = sessions.supervisor("killed");
    let pid = Pid::from_raw(supervisor.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_for_end(&[supervisor]);
    let run = world.sandbox(["run", "--quiet", "--metrics-file", counted, "--", "true"]).run();
    run.assert_code(0);
    let samples = read(&file);
    assert_eq!(samples[r#"palisade_sessions_swept_total{result="marked"}"#], 1.0, "{samples:#?}");
    // The run itself; a supervisor that was killed counts nothing.
    assert_eq!(samples[r#"palisade_sandboxes_created_total{level="LEVEL_2"}"#], 2.0);
}
