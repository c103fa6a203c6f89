//! Metrics as text: the exposition format 0.0.4 of Prometheus, written and read back.
//!
//! Only what was written here is accepted: anything else is an error, so that a file of another program is never taken
//! for ours and replaced.

use super::table::{Family, Label, Shape, TABLE, Unit, Values};
use super::{Histogram, Metrics};
use crate::malformed::{FOOTER, HEADER, Malformed};
use std::collections::BTreeMap;
use std::fmt::Write;

impl Metrics {
    /// All metrics, with zeros for what never happened: a rate needs a first value.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for family in TABLE {
            let kind = match family.shape {
                Shape::Counter => "counter",
                Shape::Histogram(_) => "histogram",
            };
            let name = family.name;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {}", escape_help(family.help));
            let _ = writeln!(text, "# TYPE {name} {kind}");
            match &family.shape {
                Shape::Counter => self.write_counter(family, &mut text),
                Shape::Histogram(bounds) => self.write_histogram(family, bounds, &mut text),
            }
        }
        text.push_str(FOOTER);
        text.push('\n');
        text
    }

    /// Reads the output of [`Metrics::to_text`], of this version or an older one.
    pub fn from_text(text: &str) -> Result<Self, Malformed> {
        if !text.starts_with(&format!("{HEADER}\n")) {
            return Err(Malformed::NotOurs);
        }
        let Some(lines) = text.strip_suffix(&format!("\n{FOOTER}\n")) else {
            return Err(Malformed::CutShort);
        };
        let mut read = Reading::default();
        for (at, line) in lines.lines().enumerate() {
            if !line.starts_with('#') {
                read.line(line).map_err(|what| Malformed::Line { line: at + 1, what })?;
            }
        }
        read.finish()
    }

    fn write_counter(&self, family: &Family, text: &mut String) {
        let mut series: BTreeMap<Vec<String>, u64> =
            combinations(family.labels).into_iter().map(|values| (values, 0)).collect();
        if let Some(counted) = self.counters.get(family.name) {
            series.extend(counted.iter().map(|(values, count)| (values.clone(), *count)));
        }
        for (values, count) in series {
            let pairs: Vec<(&str, &str)> = family
                .labels
                .iter()
                .zip(&values)
                .map(|(label, value)| (label.name, value.as_str()))
                .collect();
            write_sample(text, family.name, &pairs, &number(family.unit, count));
        }
    }

    fn write_histogram(&self, family: &Family, bounds: &[u64], text: &mut String) {
        let empty = Histogram::of(bounds);
        let histogram = self.histograms.get(family.name).unwrap_or(&empty);
        let bucket = format!("{}_bucket", family.name);
        let mut below = 0_u64;
        let uppers = bounds.iter().map(|bound| number(family.unit, *bound));
        for (upper, count) in uppers.chain(["+Inf".to_owned()]).zip(histogram.buckets.iter()) {
            below = below.saturating_add(*count);
            write_sample(text, &bucket, &[("le", &upper)], &below.to_string());
        }
        let sum = number(family.unit, histogram.sum);
        write_sample(text, &format!("{}_sum", family.name), &[], &sum);
        write_sample(text, &format!("{}_count", family.name), &[], &below.to_string());
    }
}

/// For labels with a fixed set of values.
fn combinations(labels: &[Label]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for label in labels {
        let Values::Fixed(values) = &label.values else { return Vec::new() };
        all = all
            .iter()
            .flat_map(|known| {
                values.iter().map(|value| {
                    known.iter().cloned().chain([(*value).to_owned()]).collect::<Vec<String>>()
                })
            })
            .collect();
    }
    all
}

fn write_sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: &str) {
    text.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let opening = if at == 0 { '{' } else { ',' };
        // Writing to a String cannot fail.
        let _ = write!(text, "{opening}{label}=\"{}\"", escape_value(value));
    }
    if !labels.is_empty() {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

fn escape_help(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n")
}

fn escape_value(text: &str) -> String {
    escape_help(text).replace('"', "\\\"")
}

/// Exact: counts are integers, and seconds have microsecond precision.
pub(super) fn number(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Times | Unit::Bytes => value.to_string(),
        Unit::Microseconds => {
            let text = format!("{}.{:06}", value / 1_000_000, value % 1_000_000);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

fn parse_number(unit: Unit, text: &str) -> Option<u64> {
    let digits = |text: &str| -> Option<u64> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain { text.parse().ok() } else { None }
    };
    if unit != Unit::Microseconds {
        return digits(text);
    }
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let micros = digits(&format!("{fraction:0<6}"))?;
    digits(seconds)?.checked_mul(1_000_000)?.checked_add(micros)
}

/// Histograms as they are written: cumulative, with the totals they must add up to.
#[derive(Default)]
struct Reading {
    metrics: Metrics,
    buckets: BTreeMap<&'static str, Vec<u64>>,
    sums: BTreeMap<&'static str, u64>,
    counts: BTreeMap<&'static str, u64>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let (series, value) = line.rsplit_once(' ').ok_or("it has no value")?;
        let (name, labels) = match series.split_once('{') {
            None => (series, Vec::new()),
            Some((name, labels)) => {
                let labels = labels.strip_suffix('}').ok_or("its labels have no end")?;
                (name, parse_labels(labels).ok_or("its labels cannot be read")?)
            }
        };
        for family in TABLE {
            match &family.shape {
                Shape::Counter if name == family.name => {
                    return self.counter(family, &labels, value);
                }
                Shape::Histogram(bounds) => {
                    if let Some(part) = name.strip_prefix(family.name)
                        && part.starts_with('_')
                    {
                        return self.part(family, bounds, (part, &labels), value);
                    }
                }
                Shape::Counter => {}
            }
        }
        Err("this version has no such metric")
    }

    fn counter(
        &mut self,
        family: &'static Family,
        labels: &[(String, String)],
        value: &str,
    ) -> Result<(), &'static str> {
        let known = family.labels;
        let fits = labels.len() == known.len()
            && known
                .iter()
                .zip(labels)
                .all(|(known, (name, value))| known.name == name && known.has(value));
        if !fits {
            return Err("this version has no such labels");
        }
        let value = parse_number(family.unit, value).ok_or("its value is not a count")?;
        let values = labels.iter().map(|(_, value)| value.clone()).collect();
        let counter = self.metrics.counters.entry(family.name).or_default();
        match counter.insert(values, value) {
            None => Ok(()),
            Some(_) => Err("it is there twice"),
        }
    }

    fn part(
        &mut self,
        family: &'static Family,
        bounds: &[u64],
        (part, labels): (&str, &[(String, String)]),
        value: &str,
    ) -> Result<(), &'static str> {
        let unit = if part == "_sum" { family.unit } else { Unit::Times };
        let value = parse_number(unit, value).ok_or("its value is not a count")?;
        let before = match (part, labels) {
            ("_sum", []) => self.sums.insert(family.name, value),
            ("_count", []) => self.counts.insert(family.name, value),
            ("_bucket", [(name, upper)]) if name == "le" => {
                let buckets = self.buckets.entry(family.name).or_default();
                let expected = match bounds.get(buckets.len()) {
                    Some(bound) => number(family.unit, *bound),
                    None => "+Inf".to_owned(),
                };
                if *upper != expected || buckets.len() > bounds.len() {
                    return Err("this version has other buckets");
                }
                buckets.push(value);
                None
            }
            _ => return Err("this version has no such labels"),
        };
        if before.is_some() { Err("it is there twice") } else { Ok(()) }
    }

    fn finish(mut self) -> Result<Metrics, Malformed> {
        for family in TABLE {
            let Shape::Histogram(bounds) = &family.shape else { continue };
            let wrong = || Malformed::Buckets(family.name);
            let (sum, count) = (self.sums.get(family.name), self.counts.get(family.name));
            let cumulative = match (self.buckets.get(family.name), sum, count) {
                // The file was written before this metric existed.
                (None, None, None) => continue,
                (Some(buckets), Some(_), Some(count))
                    if buckets.len() == bounds.len() + 1 && buckets.last() == Some(count) =>
                {
                    buckets
                }
                _ => return Err(wrong()),
            };
            let mut below = 0;
            let mut buckets = Vec::new();
            for so_far in cumulative {
                buckets.push(so_far.checked_sub(below).ok_or_else(wrong)?);
                below = *so_far;
            }
            let sum = sum.copied().unwrap_or_default();
            self.metrics.histograms.insert(family.name, Histogram { buckets, sum });
        }
        Ok(self.metrics)
    }
}

/// `a="b",c="d"`. None of our values needs an escape, so a value with one is not ours.
fn parse_labels(text: &str) -> Option<Vec<(String, String)>> {
    text.split(',')
        .map(|pair| {
            let (name, quoted) = pair.split_once('=')?;
            let value = quoted.strip_prefix('"')?.strip_suffix('"')?;
            let is_plain = !value.contains(['"', '\\']);
            is_plain.then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Unit, escape_help, number, parse_number, write_sample};

    /// Proves: TEL-1 prometheus
    #[test]
    fn what_the_format_needs_escaped_is_escaped() {
        let mut text = String::new();
        write_sample(&mut text, "m", &[("a", "back\\slash"), ("b", "\"quoted\"\nline")], "1");
        assert_eq!(text, "m{a=\"back\\\\slash\",b=\"\\\"quoted\\\"\\nline\"} 1\n");
        assert_eq!(escape_help("a \"b\" \\ c\nd"), r#"a "b" \\ c\nd"#);
    }

    #[test]
    fn seconds_are_exact_both_ways() {
        for (micros, text) in [(0, "0"), (1, "0.000001"), (10_000, "0.01"), (2_500_000, "2.5")] {
            assert_eq!(number(Unit::Microseconds, micros), text);
            assert_eq!(parse_number(Unit::Microseconds, text), Some(micros));
        }
        let largest = number(Unit::Microseconds, u64::MAX);
        assert_eq!(parse_number(Unit::Microseconds, &largest), Some(u64::MAX));
        for wrong in ["", ".", "1.", ".5", "1.0000001", "+1", "1e3", "NaN", "99999999999999999999"]
        {
            assert_eq!(parse_number(Unit::Microseconds, wrong), None, "{wrong}");
        }
    }
}
