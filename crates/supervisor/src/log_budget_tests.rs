use super::*;

fn omitted(path: &str) -> Omitted {
    let key = SumKey { what: "access", is_allowed: false, source: Some("rule".to_owned()) };
    Omitted { key, path: Some(path.to_owned()), count: 1, was_asked: false }
}

fn budget(excess: Excess) -> LogBudget {
    LogBudget::new(3, Duration::from_millis(100), excess)
}

fn sums(kinds: Vec<EventKind>) -> Vec<EventsSummed> {
    let sum = |kind| match kind {
        EventKind::EventsSummed(sum) => *sum,
        other => panic!("{other:?}"),
    };
    kinds.into_iter().map(sum).collect()
}

/// Proves: AUD-2 separate-budgets
#[test]
fn a_burst_is_recorded_and_then_the_rate() {
    let start = Instant::now();
    let mut budget = budget(Excess::Summed);
    let taken = |budget: &mut LogBudget, now| (0..50).filter(|_| budget.take(now)).count();
    assert_eq!(taken(&mut budget, start), 3);
    assert_eq!(taken(&mut budget, start + Duration::from_millis(250)), 2);
    assert_eq!(taken(&mut budget, start + Duration::from_millis(300)), 1);
    assert_eq!(taken(&mut budget, start + Duration::from_secs(60)), 3);
}

/// Proves: AUD-2 sums
#[test]
fn what_exceeds_a_budget_is_summed_after_a_while_and_at_the_end() {
    let start = Instant::now();
    let mut budget = budget(Excess::Summed);
    for number in 0..7 {
        budget.add_up(omitted(&format!("/{number}")), start + Duration::from_millis(number));
    }
    assert!(budget.take_due(start + Duration::from_millis(900)).is_empty());
    let told = sums(budget.take_due(start + SUM_AFTER));
    assert_eq!((told.len(), told[0].count, told[0].duration_ms), (1, 7, 6));
    assert_eq!(
        (told[0].last_path.as_deref(), told[0].source.as_deref()),
        (Some("/6"), Some("rule"))
    );
    assert_eq!(budget.due(), None);
    // The flood goes on: the next sum comes later.
    let again = start + SUM_AFTER + Duration::from_millis(1);
    budget.add_up(omitted("/x"), again);
    assert_eq!(budget.due(), Some(again + 2 * SUM_AFTER));
    assert_eq!(sums(budget.take_all())[0].count, 1);
}

#[test]
fn without_the_layer_the_rest_is_not_recorded_at_all() {
    let start = Instant::now();
    let mut budget = budget(Excess::Dropped);
    let late = start + Duration::from_secs(60);
    assert_eq!((0..9).filter(|_| budget.take(start)).count(), 3);
    assert!(!budget.take(late));
    budget.add_up(omitted("/x"), late);
    assert!(budget.take_all().is_empty());
}
