//! Hundreds of sessions at once and one after the other: made, used, and ended in every way. Nothing of them is left
//! (LIFE-4). `PALISADE_SESSIONS=N` makes it N.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use palisade_testkit::{World, patiently};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fault_points::{groups_of, mounts_of, names_in, state, unfinished_files};
use crate::sessions_support::{Sessions, descendants, wait_for_end, wait_until};

const SESSIONS: u32 = 500;
const AT_ONCE: usize = 4;
/// Of those that end by themselves: enough to be used before that, also while other tests run.
const EXPIRY: Duration = Duration::from_secs(3);

/// What there was of a session while it lived.
struct Seen {
    id: String,
    processes: Vec<u32>,
}

/// Makes a session, uses it, and ends it: one of three has so short a time that it ends by itself.
fn live(sessions: &Sessions<'_>, number: u32) -> Seen {
    let time = if number.is_multiple_of(3) { patiently(EXPIRY) } else { patiently(EXPIRY * 1000) };
    let id = sessions.create(&["--ttl", &time.as_secs().to_string()]);
    let text = number.to_string();
    assert_eq!(sessions.output_of(&id, &["echo", &text]).trim(), text);
    let record = fs::read(sessions.directory(&id).join("session.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let supervisor = record["supervisor"].as_u64().map(|pid| u32::try_from(pid).unwrap());
    let processes = supervisor.map_or(Vec::new(), |pid| [vec![pid], descendants(pid)].concat());
    match number % 6 {
        0 | 3 => {}
        1 | 4 => drop(sessions.sandbox(&["stop", &id]).assert_code(0)),
        2 => drop(sessions.sandbox(&["kill", &id]).assert_code(0)),
        _ => {
            let pid = Pid::from_raw(supervisor.unwrap().try_into().unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
    }
    Seen { id, processes }
}

/// Proves: LIFE-4 crash, LIFE-4 ttl, LIFE-3 kill
#[test]
fn hundreds_of_sessions_that_expire_are_stopped_or_killed_leave_nothing() {
    let many = std::env::var("PALISADE_SESSIONS").ok().and_then(|many| many.parse().ok());
    // Fewer on a machine that is slower by an order of magnitude.
    let slower = u32::try_from(patiently(Duration::from_secs(1)).as_secs()).unwrap();
    let many = many.unwrap_or(SESSIONS / slower);
    let world = World::new();
    let sessions = Sessions::new(&world);
    let (next, seen) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= many {
                        return;
                    }
                    let lived = live(&sessions, number);
                    seen.lock().unwrap().push(lived);
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), usize::try_from(many).unwrap());
    let processes: Vec<u32> = seen.iter().flat_map(|seen| seen.processes.clone()).collect();
    assert!(processes.len() > seen.len() * 2, "{}", processes.len());
    // Namespaces are gone with their processes, as nothing on the host holds one of them.
    wait_for_end(&processes);
    assert_eq!(mounts_of(&world), 0);

    // Any command sweeps some of those that were killed.
    let all = || -> Value {
        let all = sessions.sandbox(&["ps", "--all", "--json"]);
        serde_json::from_slice(&all.assert_code(0).stdout).unwrap()
    };
    wait_until("every session is over", || {
        let all = all();
        let all = all["sessions"].as_array().unwrap();
        assert_eq!(all.len(), seen.len());
        all.iter().all(|session| session["endedAt"].is_string() && session["isRunning"] == false)
    });
    let states = all();
    let count = |state: &str| {
        let all = states["sessions"].as_array().unwrap();
        u32::try_from(all.iter().filter(|session| session["state"] == state).count()).unwrap()
    };
    assert_eq!(count("Timeout"), many.div_ceil(3));
    assert_eq!(count("Error"), many / 6);

    sessions.sandbox(&["audit", "verify"]).assert_code(0);
    let log = fs::read_to_string(state(&world).join("audit.jsonl")).unwrap();
    let of_kind = |kind: &str| -> BTreeSet<String> {
        let records = log.lines().filter(|line| line.contains(kind));
        let records = records.map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.map(|record| record["sandboxId"].as_str().unwrap().to_owned()).collect()
    };
    let ids: BTreeSet<String> = seen.iter().map(|seen| seen.id.clone()).collect();
    assert_eq!(of_kind("\"SANDBOX_CREATED\""), ids);
    assert_eq!(of_kind("\"SANDBOX_DESTROYED\""), ids);

    sessions.sandbox(&["prune"]).assert_code(0);
    assert_eq!(names_in(&state(&world).join("sessions")), ["names.lock"]);
    assert_eq!(unfinished_files(&state(&world)), Vec::<PathBuf>::new());
    let ids: Vec<String> = ids.into_iter().collect();
    wait_until("starts have swept what was left", || {
        let next = sessions.create(&[]);
        sessions.sandbox(&["rm", "--force", &next]).assert_code(0);
        groups_of(&ids).is_empty() && names_in(&state(&world).join("run/runs")).is_empty()
    });
}
