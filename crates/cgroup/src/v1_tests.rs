use super::*;

#[test]
fn the_exact_sum_is_divided_as_the_ticks_are() {
    let second = Duration::from_secs(1);
    let (user, system) = split(Some(second), "user 75\nsystem 25\n");
    assert_eq!(
        (user, system),
        (Some(Duration::from_millis(750)), Some(Duration::from_millis(250)))
    );
    assert_eq!(split(Some(second), "user 0\nsystem 0\n"), (Some(second), Some(Duration::ZERO)));
    assert_eq!(split(None, ""), (None, None));
}

#[test]
fn disks_are_summed_up_and_the_total_is_not_counted_again() {
    let text = "999:0 Read 10\n999:0 Write 3\n999:0 Total 13\n999:16 Read 5\nTotal 18\n";
    assert_eq!(sum_of_disks(text, "Read"), Some(15));
    assert_eq!(sum_of_disks(text, "Write"), Some(3));
    assert_eq!(sum_of_disks("Total 0\n", "Read"), Some(0));
    assert_eq!(sum_of_disks("", "Read"), None);
}

/// The kernel rings before it kills, so a look in between must not be the last one.
#[test]
fn a_bell_without_a_kill_asks_for_another_look() {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    let bell = OomBell { event, rang: Cell::new(false), kills_heard_of: Cell::new(0) };
    assert!(!bell.answer().unwrap());
    rustix::io::write(&bell.event, &1_u64.to_ne_bytes()).unwrap();
    assert!(bell.answer().unwrap());
    assert!(bell.is_pending(true, 0));
    assert!(bell.is_pending(false, 0));
    assert!(!bell.is_pending(false, 1));
    assert!(!bell.is_pending(false, 1));
    assert!(bell.is_pending(true, 1));
}
