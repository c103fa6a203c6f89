#![allow(clippy::unwrap_used, reason = "a test may fail")]

use super::*;
use crate::stage::{Actor, MIB};

/// Looks as told until the verdict is "over" or `enough` looks were taken.
fn watch(watchdog: &mut Watchdog, enough: u32) -> Option<Exceeded> {
    for _ in 0..enough {
        match watchdog.look(0).unwrap().verdict {
            UsageVerdict::Over(exceeded) => return Some(exceeded),
            UsageVerdict::Within(pause) => std::thread::sleep(pause.unwrap()),
        }
    }
    None
}

fn memory(limit: u64) -> Bounds {
    Bounds { memory: Some(limit), cpu_time: None, cpus: 2 }
}

/// Proves: RES-1 memory, RES-1 overshoot
#[test]
fn a_program_that_fills_memory_is_caught() {
    let mut actor = Actor::ready(
        "
ready()
hoard = []
while True:
    hoard.append(bytearray(b'1') * (1 << 20))
    time.sleep(0.002)
",
    );
    let limit = 100 * MIB;
    let mut watchdog = Watchdog::new(actor.pid(), memory(limit)).unwrap();
    actor.go_on();
    let Some(Exceeded::Memory { used, .. }) = watch(&mut watchdog, 1000) else {
        panic!("not seen")
    };
    actor.end();
    // It fills at most 0.5 MiB a millisecond, and near the limit there is a look every 5 to 20 ms.
    assert!(used > limit && used < 2 * limit, "{used}");
    assert_eq!(watchdog.peaks().memory_bytes, used);
}

/// Proves: RES-1 memory
#[test]
fn memory_files_are_caught_too() {
    let mut actor = Actor::ready(
        "
ready()
file = os.memfd_create('hoard')
while True:
    os.write(file, b'x' * (1 << 20))
    time.sleep(0.002)
",
    );
    let mut watchdog = Watchdog::new(actor.pid(), memory(100 * MIB)).unwrap();
    actor.go_on();
    let seen = watch(&mut watchdog, 1000);
    actor.end();
    assert!(matches!(seen, Some(Exceeded::Memory { .. })), "{seen:?}");
}

/// Proves: RES-1 memory
#[test]
fn workers_that_share_their_memory_are_let_be() {
    let actor = Actor::ready(
        "
memory = bytearray(b'1') * (64 << 20)
for _ in range(5):
    child()
await_children(5)
ready()
",
    );
    let mut watchdog = Watchdog::new(actor.pid(), memory(128 * MIB)).unwrap();
    assert_eq!(watch(&mut watchdog, 6), None);
    let looked = watchdog.look(0).unwrap();
    assert!(looked.sample.memory_bytes > 5 * 64 * MIB, "{looked:?}");
    assert!(looked.memory_bytes < 128 * MIB, "{looked:?}");
}

/// Proves: RES-2 cpu-time, RES-1 overshoot
#[test]
fn a_busy_tree_is_caught_soon_after_its_time_is_up() {
    let mut actor = Actor::ready(
        "
ready()
for _ in range(2):
    child(lambda: burn(100))
burn(100)
",
    );
    let limit = Duration::from_millis(600);
    let bounds = Bounds { memory: None, cpu_time: Some(limit), cpus: 2 };
    let mut watchdog = Watchdog::new(actor.pid(), bounds).unwrap();
    actor.go_on();
    let Some(Exceeded::CpuTime { used, .. }) = watch(&mut watchdog, 1000) else {
        panic!("not seen")
    };
    actor.end();
    assert!(used > limit && used < limit + Duration::from_millis(300), "{used:?}");
}
