//! Human-readable units for sizes, times, CPUs and CPU sets: parsing and printing.
//!
//! Sizes are binary whatever the spelling (`512m`, `512MB`, `512MiB` are the same), as in the container tools
//! that people copy these values from.

use std::collections::BTreeSet;

const MULTIPLES: [(&str, u64); 4] =
    [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];
const SECOND: u64 = 1000;
const TIMES: [(&str, u64); 4] =
    [("h", 3600 * SECOND), ("m", 60 * SECOND), ("s", SECOND), ("ms", 1)];

/// Bytes from `512m`, `1.5g`, `10GB`, `4096`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let factor = match unit {
        "" => 1,
        letter => MULTIPLES.iter().find(|(name, _)| *name == letter)?.1,
    };
    scale(number, factor)
}

/// Milliseconds from `2m`, `300s`, `1500ms`; a plain number is in milliseconds.
pub(crate) fn parse_millis(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => 1,
        name => TIMES.iter().find(|(known, _)| *known == name)?.1,
    };
    scale(number, factor)
}

/// Thousandths of a CPU from `1.5`, `2` or `1500m`.
pub(crate) fn parse_cpus(text: &str) -> Option<u64> {
    match split(text)? {
        (number, "") => scale(number, 1000),
        (number, "m") => scale(number, 1),
        _ => None,
    }
}

/// The maximum of any kernel (`NR_CPUS` of x86-64).
const MAX_CPUS: u32 = 8192;

/// CPU numbers from `0-3,5`, the list format of cpuset(7).
pub(crate) fn parse_cpu_set(text: &str) -> Option<BTreeSet<u32>> {
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|cpu| is_plain && *cpu < MAX_CPUS)
    };
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The same format, as short as possible.
pub fn show_cpu_set(cpus: &BTreeSet<u32>) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let shown = spans.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

pub fn show_size(bytes: u64) -> String {
    MULTIPLES
        .iter()
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor))
        .map_or_else(|| bytes.to_string(), |(unit, factor)| format!("{}{unit}", bytes / factor))
}

pub fn show_millis(millis: u64) -> String {
    TIMES
        .iter()
        .find(|(_, factor)| millis > 0 && millis.is_multiple_of(*factor))
        .map_or_else(|| millis.to_string(), |(unit, factor)| format!("{}{unit}", millis / factor))
}

/// `1500` thousandths as `1.5`.
pub fn show_cpus(milli: u64) -> String {
    let fraction = format!("{:03}", milli % 1000);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        (milli / 1000).to_string()
    } else {
        format!("{}.{fraction}", milli / 1000)
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim()))
}

/// Exact decimal arithmetic: with floats, `0.1g` could be off by a byte.
fn scale(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let places = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scaled = whole.checked_mul(factor.into())? + part * u128::from(factor) / places;
    u64::try_from(scaled).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: POL-2 model
    #[test]
    fn units_read_as_people_write_them() {
        assert_eq!(parse_size("512m"), Some(512 << 20));
        assert_eq!(parse_size("1.5g"), Some(3 << 29));
        assert_eq!(parse_size("10GB"), parse_size("10 GiB"));
        assert_eq!(parse_size("100"), Some(100));
        assert_eq!(parse_millis("2m"), Some(120_000));
        assert_eq!(parse_millis("300000"), Some(300_000));
        assert_eq!(parse_cpus("1.5"), Some(1500));
        assert_eq!(parse_cpus("250m"), Some(250));
    }

    /// Proves: POL-2 wrong-type
    #[test]
    fn nonsense_and_overflow_are_not_numbers() {
        for text in ["", "m", "-1", "1x", "1..2", ".", "99999999999t", "18446744073709551616"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(parse_millis("3 fortnights"), None);
        assert_eq!(parse_cpus("1g"), None);
    }

    /// Proves: POL-2 limit-keys
    #[test]
    fn sets_of_cpus_read_as_the_kernel_writes_them() {
        for (text, cpus, shown) in [
            ("0", vec![0], "0"),
            ("0-3,5", vec![0, 1, 2, 3, 5], "0-3,5"),
            (" 7 , 0-1,1-2", vec![0, 1, 2, 7], "0-2,7"),
            ("3-3", vec![3], "3"),
            ("8191", vec![8191], "8191"),
        ] {
            let read = parse_cpu_set(text).unwrap();
            assert_eq!(read, cpus.into_iter().collect(), "{text}");
            assert_eq!(show_cpu_set(&read), shown);
        }
        for text in ["", ",", "0,", "1-", "-1", "3-1", "a", "0-3:2", "+1", "8192", "0-4294967295"] {
            assert_eq!(parse_cpu_set(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for number in [1, 1000, 1023, 1024, 1500, 60_000, 90_000, 3_600_000, 5 << 30] {
            assert_eq!(parse_size(&show_size(number)), Some(number));
            assert_eq!(parse_millis(&show_millis(number)), Some(number));
            assert_eq!(parse_cpus(&show_cpus(number)), Some(number));
        }
    }
}
