use super::*;
use proptest::prelude::*;

fn process(pid: i32) -> Identity {
    Identity { pid, start: 1 }
}

fn used(own: u64, collected: u64) -> Account {
    Account {
        total: Counters { user: own + collected, ..Counters::default() },
        collected: Counters { user: collected, ..Counters::default() },
    }
}

fn settle<const N: usize>(ledger: &mut Ledger, accounts: [(i32, Account); N]) -> u64 {
    ledger.settle(accounts.map(|(pid, account)| (process(pid), account)).into()).user
}

/// Proves: RES-3 final
#[test]
fn what_a_parent_collected_counts_once() {
    let mut ledger = Ledger::default();
    assert_eq!(settle(&mut ledger, [(1, used(5, 0)), (2, used(100, 0))]), 105);
    assert_eq!(settle(&mut ledger, [(1, used(5, 110))]), 115);
    assert_eq!(settle(&mut ledger, [(1, used(6, 110))]), 116);
}

/// The parent was read just before it waited for its child.
/// Proves: RES-3 final
#[test]
fn a_death_between_two_reads_is_seen_late_and_not_twice() {
    let mut ledger = Ledger::default();
    settle(&mut ledger, [(1, used(5, 0)), (2, used(100, 0))]);
    assert_eq!(settle(&mut ledger, [(1, used(5, 0))]), 105);
    assert_eq!(settle(&mut ledger, [(1, used(5, 100))]), 105);
    assert_eq!(settle(&mut ledger, [(1, used(7, 100))]), 107);
}

/// `SIGCHLD` is ignored: the kernel adds the child's time to nobody.
/// Proves: RES-3 final
#[test]
fn what_nobody_collects_is_not_forgotten() {
    let mut ledger = Ledger::default();
    settle(&mut ledger, [(1, used(5, 0)), (2, used(100, 0))]);
    for own in 5..20 {
        assert_eq!(settle(&mut ledger, [(1, used(own, 0))]), own + 100);
    }
}

#[test]
fn a_number_that_comes_back_is_another_process() {
    let mut ledger = Ledger::default();
    settle(&mut ledger, [(1, used(0, 0)), (2, used(100, 0))]);
    let again = Identity { pid: 2, start: 9 };
    let now = HashMap::from([(process(1), used(0, 100)), (again, used(1, 0))]);
    assert_eq!(ledger.settle(now).user, 101);
}

/// One step of a made-up life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Work(usize, u64),
    Fork,
    End(usize),
    Look,
    /// A look during which a child ends: its parent was read before, the child is gone after.
    LookAcrossTheEndOf(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (any::<usize>(), 0..100_u64).prop_map(|(who, ticks)| Step::Work(who, ticks)),
        Just(Step::Fork),
        any::<usize>().prop_map(Step::End),
        Just(Step::Look),
        any::<usize>().prop_map(Step::LookAcrossTheEndOf),
    ];
    prop::collection::vec(step, 0..80)
}

/// Children of one first process, which waits for them or does not.
struct Family {
    does_wait: bool,
    first_collected: u64,
    children: Vec<(i32, u64)>,
    next: i32,
    truth: u64,
}

impl Family {
    fn end(&mut self, who: usize) {
        if !self.children.is_empty() {
            let (_, ticks) = self.children.remove(who % self.children.len());
            if self.does_wait {
                self.first_collected += ticks;
            }
        }
    }

    fn seen(&self) -> HashMap<Identity, Account> {
        let first = (process(1), used(0, self.first_collected));
        let children = self.children.iter().map(|&(pid, ticks)| (process(pid), used(ticks, 0)));
        children.chain([first]).collect()
    }
}

proptest! {
    /// Proves: RES-3 live, RES-3 final
    #[test]
    fn the_sum_never_falls_and_never_exceeds_the_truth(steps in steps(), does_wait: bool) {
        let mut family =
            Family { does_wait, first_collected: 0, children: Vec::new(), next: 2, truth: 0 };
        let mut ledger = Ledger::default();
        let mut last = 0;
        for step in steps {
            let seen = match step {
                Step::Work(who, ticks) => {
                    if !family.children.is_empty() {
                        let who = who % family.children.len();
                        family.children[who].1 += ticks;
                        family.truth += ticks;
                    }
                    continue;
                }
                Step::Fork => {
                    family.children.push((family.next, 0));
                    family.next += 1;
                    continue;
                }
                Step::End(who) => {
                    family.end(who);
                    continue;
                }
                Step::Look => family.seen(),
                Step::LookAcrossTheEndOf(who) => {
                    let first = family.seen()[&process(1)];
                    family.end(who);
                    let mut seen = family.seen();
                    seen.insert(process(1), first);
                    seen
                }
            };
            let shown = ledger.settle(seen).user;
            prop_assert!(shown >= last);
            prop_assert!(shown <= family.truth, "{shown} of {}", family.truth);
            last = shown;
        }
        ledger.settle(family.seen());
        let shown = ledger.settle(family.seen()).user;
        if does_wait {
            prop_assert_eq!(shown, family.truth);
        }
    }
}
