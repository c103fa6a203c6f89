use super::*;
use crate::test_child::in_child;

fn shown() -> Vec<u8> {
    std::fs::read("/proc/self/cmdline").unwrap()
}

#[test]
fn the_name_is_all_that_is_left_of_the_words() {
    let before = shown();
    in_child(|| {
        let length = shown().len();
        replace_command_line("new").unwrap();
        assert_eq!(shown().len(), length);
        assert!(shown().starts_with(b"new\0"));
        assert!(shown()[3..].iter().all(|byte| *byte == 0));
    });
    assert_eq!(shown(), before, "the child's memory is its own");
}

#[test]
fn a_name_that_is_too_long_is_cut() {
    in_child(|| {
        let length = shown().len();
        replace_command_line(&"n".repeat(length + 10)).unwrap();
        assert_eq!(shown(), [vec![b'n'; length - 1], vec![0]].concat());
    });
}

#[test]
fn a_name_with_brackets_misleads_nobody() {
    let fields: Vec<String> = (3..=52).map(|field| (field * 100).to_string()).collect();
    let stat = format!("7 (a) R 1 (b) {}\n", fields.join(" "));
    assert_eq!(words_in(&stat), Some(4800..4900));
}

#[test]
fn what_we_may_not_know_is_no_place() {
    let zeroes = vec!["0"; 50].join(" ");
    assert_eq!(words_in(&format!("7 (sandbox) {zeroes}")), None);
    assert_eq!(words_in("7 (sandbox) R 1"), None);
}
