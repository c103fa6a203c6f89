//! The few formats of the files of a group. Must never guess: what cannot be parsed is not a number.

/// The number after `key` in a file of lines `KEY NUMBER`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// A single number; `None` for `max` and `-1`, which mean no limit.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The number of `key=NUMBER` in the line of `device`, in a file of lines `MAJOR:MINOR KEY=NUMBER…`.
pub(crate) fn of_device(text: &str, device: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        (name == device).then_some(rest)
    })?;
    pair(line, key)
}

/// The number of `key=NUMBER` among words.
pub(crate) fn pair(words: &str, key: &str) -> Option<u64> {
    words.split_whitespace().find_map(|word| {
        let (name, value) = word.split_once('=')?;
        (name == key).then(|| value.parse().ok()).flatten()
    })
}

/// A list of CPUs as cpuset(7) writes it: `0-3,5`.
pub(crate) fn cpus(text: &str) -> Option<Vec<u32>> {
    /// More than any kernel is built for.
    const MAX_WEIGHT: u32 = 65_536;
    let mut cpus = Vec::new();
    for span in text.trim().split(',').filter(|span| !span.is_empty()) {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MAX_WEIGHT {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The reverse; the kernel accepts single numbers as well as ranges.
pub(crate) fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_whole_words() {
        let text = "oom 3\noom_kill 7\nmax 0\n";
        assert_eq!(keyed(text, "oom"), Some(3));
        assert_eq!(keyed(text, "oom_kill"), Some(7));
        assert_eq!(keyed(text, "oom_group_kill"), None);
        assert_eq!(keyed("oom_kill seven", "oom_kill"), None);
    }

    #[test]
    fn no_limit_is_no_number() {
        assert_eq!(number("4096\n"), Some(4096));
        assert_eq!(number("max\n"), None);
        assert_eq!(number("-1\n"), None);
    }

    #[test]
    fn devices_are_told_apart() {
        let text = "8:16 rbps=5 wbps=max riops=max wiops=9\n8:1 rbps=2\n";
        assert_eq!(of_device(text, "8:16", "rbps"), Some(5));
        assert_eq!(of_device(text, "8:16", "wbps"), None);
        assert_eq!(of_device(text, "8:1", "rbps"), Some(2));
        assert_eq!(of_device(text, "8:0", "rbps"), None);
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus("\n"), Some(vec![]));
        assert_eq!(cpus("0-4294967295"), None);
        assert_eq!(cpus("a"), None);
        assert_eq!(cpu_list(&[0, 2, 3]), "0,2,3");
    }
}
