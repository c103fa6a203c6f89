//! The host stays usable while a run does its worst (RES-4).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{World, patiently, pin};

use crate::limits_support::python;

const TICK: Duration = Duration::from_millis(10);
/// `cargo xtask bench limits` prints the figure; here other tests run at the same time.
const BOUND: Duration = Duration::from_millis(500);

/// Every child does the same.
const FORK_BOMB: &str = "import os\nwhile True:\n try: os.fork()\n except OSError: pass";
const MEMORY_BOMB: &str = "held = []\nwhile True: held.append(b'x' * (8 << 20))";

/// Set when it goes, so that a test that fails does not wait for its timer.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How late a timer on one CPU was at worst while this ran.
fn worst_drift(meanwhile: impl FnOnce()) -> Duration {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| {
            pin(0).unwrap();
            let mut worst = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let due = Instant::now() + TICK;
                std::thread::sleep(TICK);
                worst = worst.max(due.elapsed());
            }
            worst
        });
        let over = Over(&is_over);
        meanwhile();
        drop(over);
        timer.join().unwrap()
    })
}

/// Proves: RES-4 fork
#[test]
fn a_fork_bomb_does_not_take_the_host_down() {
    let world = World::new();
    let drift = worst_drift(|| {
        let flags = ["--pids", "64", "--timeout", "3s", "--grace", "1ms"];
        python(&world, &flags, FORK_BOMB).assert_code(124);
    });
    eprintln!("a timer was {drift:?} late at worst");
    assert!(drift < patiently(BOUND), "{drift:?}");
}

/// Proves: RES-4 memory
#[test]
fn a_memory_bomb_does_not_take_the_host_down() {
    let world = World::new();
    let drift = worst_drift(|| {
        for _ in 0..3 {
            python(&world, &["--memory", "64m"], MEMORY_BOMB).assert_code(137);
        }
    });
    eprintln!("a timer was {drift:?} late at worst");
    assert!(drift < patiently(BOUND), "{drift:?}");
}
