use super::*;
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn memory(limit: u64) -> Bounds {
    Bounds { memory: Some(limit), cpu_time: None, cpus: 2 }
}

fn cpu(limit: Duration, cpus: u32) -> Bounds {
    Bounds { memory: None, cpu_time: Some(limit), cpus }
}

fn holds(bytes: u64) -> Observation {
    Observation { memory_bytes: bytes, ..Observation::default() }
}

fn ran(time: Duration) -> Observation {
    Observation { cpu_time: time, ..Observation::default() }
}

fn next(bounds: &Bounds, seen: &Observation) -> Duration {
    match decide(bounds, seen, Duration::ZERO) {
        UsageVerdict::Within(Some(next)) => next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_to_hold_needs_no_look() {
    let seen = Observation { was_cut: true, ..holds(u64::MAX) };
    assert_eq!(decide(&Bounds::default(), &seen, Duration::ZERO), UsageVerdict::Within(None));
}

/// Proves: RES-1 overshoot
#[test]
fn looks_get_closer_as_memory_fills() {
    let bounds = memory(GIB);
    assert_eq!(next(&bounds, &holds(0)), Duration::from_millis(100));
    let near = next(&bounds, &holds(GIB - 100_000_000));
    assert_eq!(near, Duration::from_millis(20));
    assert_eq!(next(&bounds, &holds(GIB)), Duration::from_millis(5));
}

/// Proves: RES-1 overshoot
#[test]
fn who_does_nothing_is_looked_at_less_often_but_often_enough() {
    let bounds = memory(100_000_000);
    let after = |idle_looks| next(&bounds, &Observation { idle_looks, ..holds(0) });
    let pauses: Vec<Duration> = [0, 1, 2, u32::MAX].map(after).to_vec();
    assert_eq!(pauses, [20, 40, 50, 50].map(Duration::from_millis));
    // Where there is much room, nothing has to be put off.
    let far = Observation { idle_looks: 9, ..holds(0) };
    assert_eq!(next(&memory(GIB), &far), Duration::from_millis(100));
}

#[test]
fn one_byte_over_is_over() {
    let over = UsageVerdict::Over(Exceeded::Memory { used: GIB + 1, limit: GIB });
    assert_eq!(decide(&memory(GIB), &holds(GIB + 1), Duration::ZERO), over);
}

#[test]
fn doubtful_memory_brings_the_next_look_closer_and_ends_nothing() {
    let seen = Observation { doubtful_bytes: 2 * GIB, ..holds(10) };
    assert_eq!(next(&memory(GIB), &seen), Duration::from_millis(5));
}

/// Four processors use four seconds a second.
/// Proves: RES-1 overshoot, RES-2 cpu-time
#[test]
fn cpu_time_is_looked_at_when_it_could_be_used_up() {
    let limit = Duration::from_secs(1);
    let left = |left: u64| ran(limit - Duration::from_millis(left));
    assert_eq!(next(&cpu(limit, 4), &left(400)), Duration::from_millis(100));
    assert_eq!(next(&cpu(limit, 1), &left(100)), Duration::from_millis(100));
    assert_eq!(next(&cpu(limit, 0), &left(900)), Duration::from_millis(250));
    assert_eq!(next(&cpu(limit, 4), &left(0)), Duration::from_millis(5));
    let used = limit + Duration::from_millis(10);
    let over = UsageVerdict::Over(Exceeded::CpuTime { used, limit });
    assert_eq!(decide(&cpu(limit, 4), &ran(used), Duration::ZERO), over);
}

#[test]
fn who_cannot_be_counted_cannot_be_held() {
    let seen = Observation { was_cut: true, ..holds(1) };
    let verdict = decide(&memory(GIB), &seen, Duration::ZERO);
    assert_eq!(verdict, UsageVerdict::Over(Exceeded::Uncountable));
}

#[test]
fn a_dear_look_is_taken_less_often() {
    let bounds = memory(GIB);
    let after = |cost| decide(&bounds, &holds(GIB), Duration::from_millis(cost));
    assert_eq!(after(4), UsageVerdict::Within(Some(Duration::from_millis(200))));
    assert_eq!(after(400), UsageVerdict::Within(Some(Duration::from_secs(1))));
}

proptest! {
    /// Whatever is seen: over exactly if above, never a look sooner than the shortest or later than the
    /// longest pause, and never one that costs more than its share.
    /// Proves: RES-1 overshoot
    #[test]
    fn every_look_is_judged(
        limit in 0..4 * GIB,
        used in 0..8 * GIB,
        cpu_limit in 0..100_000_u64,
        cpu_used in 0..200_000_u64,
        cpus in 0..256_u32,
        cost_us in 0..100_000_u64,
    ) {
        let (cpu_limit, cpu_used) = (Duration::from_millis(cpu_limit), Duration::from_millis(cpu_used));
        let bounds = Bounds { memory: Some(limit), cpu_time: Some(cpu_limit), cpus };
        let seen = Observation { memory_bytes: used, cpu_time: cpu_used, ..Observation::default() };
        let cost = Duration::from_micros(cost_us);
        match decide(&bounds, &seen, cost) {
            UsageVerdict::Over(Exceeded::Memory { .. }) => prop_assert!(used > limit),
            UsageVerdict::Over(Exceeded::CpuTime { .. }) => prop_assert!(cpu_used > cpu_limit),
            UsageVerdict::Over(Exceeded::Uncountable) | UsageVerdict::Within(None) => prop_assert!(false),
            UsageVerdict::Within(Some(next)) => {
                prop_assert!(used <= limit && cpu_used <= cpu_limit);
                prop_assert!(next >= MIN_INTERVAL && next <= MAX_PAUSE);
                prop_assert!(next >= (cost * COST_FACTOR).min(MAX_PAUSE));
            }
        }
    }

    /// More in use never means looking later.
    /// Proves: RES-1 overshoot
    #[test]
    fn more_use_means_no_later_look(limit in 1..4 * GIB, one in 0..4 * GIB, another in 0..4 * GIB) {
        let (less, more) = (one.min(another).min(limit), one.max(another).min(limit));
        let bounds = memory(limit);
        prop_assert!(next(&bounds, &holds(more)) <= next(&bounds, &holds(less)));
    }
}
