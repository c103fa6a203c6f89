//! Git configuration files: reading one never panics, what was there may stay, and a file that is
//! found harmless sets nothing that runs a program.
//!
//! An input is the new file, and behind a line of `%%` the old one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palisade_guard::gitconfig::{ConfigLocation, Refused, judge, judge_at, values};
use std::path::Path;

/// Some of the keys by which git runs a program or reads more settings.
const NEVER_NEW: [&str; 9] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
    "core.editor",
    "core.pager",
    "core.worktree",
    "include.path",
    "credential.helper",
    "alias.a",
];

fuzz_target!(|data: &[u8]| {
    const SEPARATOR: &[u8] = b"%%\n";
    let split = data.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let (new, old) = match split {
        Some(at) => (&data[..at], Some(&data[at + SEPARATOR.len()..])),
        None => (data, None),
    };
    let lines = new.split(|byte| *byte == b'\n').count();
    match judge(old, new) {
        Ok(()) => {
            for key in NEVER_NEW {
                let kept = old.map_or_else(Vec::new, |old| values(old, key));
                let fresh = values(new, key).into_iter().find(|value| !kept.contains(value));
                assert_eq!(fresh, None, "{key}");
            }
        }
        Err(
            Refused::Unreadable { line, .. }
            | Refused::Key { line, .. }
            | Refused::Harmful { line, .. }
            | Refused::Value { line, .. },
        ) => assert!((1..=lines).contains(&line), "line {line} of {lines}"),
    }
    // A file may take its own place, unless git itself could not be told what it says.
    let again = judge(Some(new), new);
    assert!(matches!(again, Ok(()) | Err(Refused::Unreadable { .. })), "{again:?}");
    if judge(None, new).is_ok() {
        assert_eq!(judge(old, new), Ok(()), "an old file takes nothing away");
    }
    let place = ConfigLocation {
        git_dir: Path::new("/p/.git/modules/m"),
        tree: Path::new("/p"),
        worktree: None,
    };
    match (judge(old, new), judge_at(old, new, &place)) {
        (Ok(()), there) => assert_eq!(there, Ok(()), "a place takes nothing away"),
        (Err(Refused::Key { key, .. } | Refused::Harmful { key, .. }), Ok(())) => {
            assert_eq!(key, "core.worktree");
        }
        (Err(_), Ok(())) => panic!("a place allows nothing else"),
        (Err(_), Err(_)) => {}
    }
});
