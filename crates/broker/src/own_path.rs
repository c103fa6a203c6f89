//! Paths through the caller's own entry in `/proc`. The broker is in another pid namespace and would find its
//! own entry or none, so they are resolved as the caller means them.

use crate::call::CWD;

const SELVES: [&[u8]; 2] = [b"self", b"thread-self"];

/// The directory of the caller that a path goes through, and how much of the path that takes; the rest is a
/// relative path or, after `root`, an absolute one. `is_own` says by which ids the caller knows itself.
pub(crate) fn leave(path: &[u8], is_own: impl Fn(i32) -> bool) -> Option<(i32, usize)> {
    if let Some(rest) = path.strip_prefix(b"/dev/fd/") {
        return descriptor(path, rest);
    }
    let (who, rest) = split(path.strip_prefix(b"/proc/")?)?;
    let (what, after) = split(rest)?;
    let found = match what {
        b"cwd" => (CWD, onward(path, after)?),
        // The slash stays: the broker has the same root.
        b"root" => (CWD, onward(path, after)? - 1),
        b"fd" => descriptor(path, after)?,
        _ => return None,
    };
    // Asked last: it costs more than all the rest.
    (SELVES.contains(&who) || digits(who).is_some_and(is_own)).then_some(found)
}

fn descriptor(path: &[u8], rest: &[u8]) -> Option<(i32, usize)> {
    let (number, after) = split(rest)?;
    Some((digits(number)?, onward(path, after)?))
}

/// How much of a path is resolved when `after` is left; none if nothing follows.
fn onward(path: &[u8], after: &[u8]) -> Option<usize> {
    let start = after.iter().position(|byte| *byte != b'/')?;
    Some(path.len() - after.len() + start)
}

fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().position(|byte| *byte == b'/')?;
    Some((&path[..end], &path[end + 1..]))
}

fn digits(text: &[u8]) -> Option<i32> {
    let is_plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{CWD, leave};

    fn left(path: &str) -> Option<(i32, String)> {
        let (dir, length) = leave(path.as_bytes(), |number| number == 42)?;
        Some((dir, path[length..].to_owned()))
    }

    /// Proves: GATE-2 relative
    #[test]
    fn a_path_through_the_callers_own_entry_goes_on_from_there() {
        let some = |dir, rest: &str| Some((dir, rest.to_owned()));
        assert_eq!(left("/proc/self/cwd/a/b"), some(CWD, "a/b"));
        assert_eq!(left("/proc/thread-self/cwd//a"), some(CWD, "a"));
        assert_eq!(left("/proc/self/root/opt/x"), some(CWD, "/opt/x"));
        assert_eq!(left("/proc/self/root//opt/x"), some(CWD, "/opt/x"));
        assert_eq!(left("/proc/self/fd/7/x"), some(7, "x"));
        assert_eq!(left("/dev/fd/7/x"), some(7, "x"));
        assert_eq!(left("/proc/42/cwd/x"), some(CWD, "x"));
    }

    #[test]
    fn everything_else_in_proc_is_left_alone() {
        for path in [
            "/proc/self",
            "/proc/self/",
            "/proc/self/cwd",
            "/proc/self/cwd/",
            "/proc/self/exe",
            "/proc/self/exe/x",
            "/proc/self/fd/7",
            "/proc/self/fd/x/y",
            "/proc/self/fd//y",
            "/proc/1/cwd/x",
            "/proc/cpuinfo",
            "/dev/null",
            "/dev/fd/",
            "/sys/x",
        ] {
            assert_eq!(left(path), None, "{path}");
        }
    }
}
