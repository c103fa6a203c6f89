use super::*;
use crate::keys::find;

fn step(path: &str, from: impl Into<Value>, to: impl Into<Value>) -> Option<Direction> {
    direction(find(path).unwrap(), Some(&from.into()), Some(&to.into()))
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| (*item).to_owned()).collect())
}

/// Proves: POL-4 untrusted-project
#[test]
fn every_sort_of_key_knows_which_way_is_tighter() {
    use Direction::{Loosens, Neutral, Tightens};
    let word = Value::Word;
    assert_eq!(step("isolationLevel", word("LEVEL_1"), word("LEVEL_2")), Some(Tightens));
    assert_eq!(step("network.mode", word("none"), word("proxy")), Some(Loosens));
    assert_eq!(step("view", word("host"), word("host")), None);
    assert_eq!(step("process.envMode", word("inherit"), word("explicit")), Some(Neutral));
    assert_eq!(step("process.envMode", word("inherit"), word("clean")), Some(Tightens));
    assert_eq!(step("process.debug", Value::Bool(true), Value::Bool(false)), Some(Tightens));
    assert_eq!(
        step("filesystem.hideSecrets", Value::Bool(true), Value::Bool(false)),
        Some(Loosens)
    );
    assert_eq!(
        step("filesystem.protectNames", Value::Bool(true), Value::Bool(false)),
        Some(Loosens)
    );
    assert_eq!(
        step("filesystem.unprotectedPaths", list(&[]), list(&[".git/hooks"])),
        Some(Loosens)
    );
    assert_eq!(step("filesystem.buildDirs", list(&[]), list(&["target"])), Some(Loosens));
    assert_eq!(step("resources.timeout", Value::Number(5), Value::Number(4)), Some(Tightens));
    assert_eq!(step("filesystem.readOnlyPaths", list(&["/a"]), list(&["/a", "/b"])), Some(Loosens));
    assert_eq!(step("filesystem.readOnlyPaths", list(&["/a"]), list(&["/b"])), Some(Neutral));
    assert_eq!(step("filesystem.deniedPaths", list(&["/a"]), list(&["/b", "/a"])), Some(Tightens));
    assert_eq!(step("process.allowedExecutables", list(&[]), list(&["ls"])), Some(Tightens));
    assert_eq!(step("process.allowedExecutables", list(&["ls"]), list(&[])), Some(Loosens));
    assert_eq!(
        step("process.hostname", Value::Text("a".into()), Value::Text("b".into())),
        Some(Neutral)
    );
    let timeout = find("resources.timeout").unwrap();
    assert_eq!(direction(timeout, None, Some(&Value::Number(1))), Some(Tightens));
    assert_eq!(direction(timeout, Some(&Value::Number(1)), None), Some(Loosens));
}

/// Proves: POL-2 limit-keys, POL-4 untrusted-project
#[test]
fn a_limit_knows_what_it_means_that_nobody_set_it() {
    use Direction::{Loosens, Neutral, Tightens};
    let unset = |path, to: Value| direction(find(path).unwrap(), None, Some(&to));
    let number = Value::Number;
    let cpus = |cpus: &[u32]| Value::Cpus(cpus.iter().copied().collect());
    assert_eq!(unset("resources.memoryHigh", number(1)), Some(Tightens));
    // No swap is what a run with limited memory has by itself.
    assert_eq!(unset("resources.maxSwap", number(1)), Some(Loosens));
    assert_eq!(unset("resources.maxSwap", number(0)), None);
    assert_eq!(step("resources.maxSwap", number(5), number(4)), Some(Tightens));
    assert_eq!(unset("resources.cpuSet", cpus(&[0])), Some(Tightens));
    assert_eq!(step("resources.cpuSet", cpus(&[0, 1]), cpus(&[1])), Some(Tightens));
    assert_eq!(step("resources.cpuSet", cpus(&[1]), cpus(&[0, 1])), Some(Loosens));
    assert_eq!(step("resources.cpuSet", cpus(&[1]), cpus(&[2])), Some(Neutral));
    assert_eq!(unset("resources.normalizeTime", number(10)), Some(Tightens));
    assert_eq!(step("resources.normalizeTime", number(10), number(20)), Some(Tightens));
    assert_eq!(step("resources.normalizeTime", number(20), number(10)), Some(Loosens));
    assert_eq!(step("resources.normalizeTime", number(20), number(30)), Some(Neutral));
    let normalize = find("resources.normalizeTime").unwrap();
    assert_eq!(direction(normalize, Some(&number(10)), None), Some(Loosens));
    let (off, on) = (Value::Bool(false), Value::Bool(true));
    assert_eq!(step("resources.bestEffort", off, on), Some(Loosens));
    assert_eq!(step("resources.waived", list(&[]), list(&["cpus"])), Some(Loosens));
}

/// A path below an allowed one may be a link out of it.
///
/// Proves: POL-4 untrusted-project
#[test]
fn a_path_below_an_allowed_one_does_not_count_as_allowed() {
    let to = list(&["/work", "/work/link"]);
    assert_eq!(step("filesystem.readWritePaths", list(&["/work"]), to), Some(Direction::Loosens));
}

/// Proves: POL-4 lock
#[test]
fn system_call_lists_compare_by_their_mode() {
    let rule = |mode, list| SyscallRule { mode, list };
    let (none, one, two) = (list(&[]), list(&["read"]), list(&["read", "write"]));
    let whitelist = |from, to| syscalls(rule("WHITELIST", from), rule("WHITELIST", to));
    let blacklist = |from, to| syscalls(rule("BLACKLIST", from), rule("BLACKLIST", to));
    assert_eq!(whitelist(&two, &one), Some(Direction::Tightens));
    assert_eq!(whitelist(&one, &two), Some(Direction::Loosens));
    assert_eq!(whitelist(&none, &one), Some(Direction::Neutral));
    assert_eq!(blacklist(&one, &two), Some(Direction::Tightens));
    assert_eq!(blacklist(&one, &none), Some(Direction::Loosens));
    let changed = syscalls(rule("WHITELIST", &none), rule("BLACKLIST", &none));
    assert_eq!(changed, Some(Direction::Loosens));
    assert_eq!(
        syscalls(rule("BLACKLIST", &one), rule("WHITELIST", &none)),
        Some(Direction::Neutral)
    );
}

/// To lose somebody's work is harm to the user, and to keep what an organisation wants gone is harm to it: neither restricts
/// the command, so that a project needs trust for both.
///
/// Proves: POL-4 untrusted-project
#[test]
fn what_becomes_of_the_changes_of_an_expired_session_is_tighter_in_no_direction() {
    let (keep, discard) = (Value::Word("keep"), Value::Word("discard"));
    let key = "filesystem.onExpiry";
    assert_eq!(step(key, keep.clone(), discard.clone()), Some(Direction::Neutral));
    assert_eq!(step(key, discard, keep), Some(Direction::Neutral));
}
