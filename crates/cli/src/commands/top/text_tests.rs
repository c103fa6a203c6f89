use super::{age, details, size, table};
use crate::commands::top::board::tests::row;

#[test]
fn sizes_and_ages_are_short() {
    for (bytes, shown) in [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0K"),
        (10 << 10, "10K"),
        (1_048_575, "1.0M"),
        (1536 << 20, "1.5G"),
        (u64::MAX, "16384P"),
    ] {
        assert_eq!(size(bytes), shown, "{bytes}");
    }
    for (millis, shown) in [
        (999, "0s"),
        (59_999, "59s"),
        (185_000, "3m05s"),
        (7_620_000, "2h07m"),
        (273_600_000, "3d04h"),
    ] {
        assert_eq!(age(millis), shown);
    }
}

#[test]
fn columns_stand_below_their_headings_and_a_command_cannot_break_out() {
    let mut other = row(&[]);
    other.session = "other-session".to_owned();
    other.command = "printf '\u{1b}[2J\u{202e}'\nsandbox".to_owned();
    other.usage = None;
    let rows = [row(&[("memory", 100 << 20)]), other];
    let lines = table(&rows);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| !line.text.contains(['\u{1b}', '\n', '\u{202e}'])));
    let at = |line: usize, word: &str| lines[line].text.find(word).unwrap();
    assert_eq!(at(0, "COMMAND"), at(1, "[memory 90 %] make all"));
    assert_eq!(at(0, "SESSION"), at(1, "deadbeef"));
    assert!(lines[1].text.contains("1m05s  50.0     90M   95M   100M      3    2.0K     4.0K"));
    assert_eq!((lines[1].is_near, lines[2].is_near), (true, false));
}

#[test]
fn a_tail_that_two_runs_share_is_not_used() {
    let mut other = row(&[]);
    other.session = "ffff-deadbeef".to_owned();
    let lines = table(&[row(&[]), other]);
    assert!(lines[1].text.starts_with("0199c0de-"), "{lines:?}");
    assert!(lines[2].text.starts_with("ffff-deadbeef "), "{lines:?}");
}

#[test]
fn details_name_the_holder_of_every_limit() {
    let text = details(&row(&[("memory", 100 << 20), ("cpus", 1500), ("iops", 10)])).join("\n");
    for part in [
        "session    0199c0de-0000-7000-8000-0000deadbeef",
        "command    make all",
        "running    1m05s, since 1970-01-01T00:16:40Z",
        "cpu        50.0 % now, 2.0s used",
        "memory     90M now, 95M at most",
        "processes  3, threads 7",
        "read       4.0K in 10 calls, 2.0K/s",
        "memory              100M        90M  90 %  cgroup-v2  hard  near",
        "cpus                 1.5          -        cgroup-v2  hard",
        "iops                10/s          -        cgroup-v2  hard",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(details(&row(&[])).iter().any(|line| line == "no limits"));
}
