//! Runs in words and columns, the same on a screen and in a pipe.

use super::board::{LimitNow, Row};
use palisade_policy::limit::{LimitKind, Unit};
use palisade_policy::units;
use palisade_record::escape;

/// Of a session's name the end is shown: it is random, while the beginning is a clock.
const TAIL: usize = 8;
const UNKNOWN: &str = "-";

/// A line of the table, and whether it is about a run that comes near a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableLine {
    pub(super) text: String,
    pub(super) is_near: bool,
}

/// A heading and a line for each run, in columns; what comes last may be cut by a narrow screen.
pub(super) fn table(rows: &[Row]) -> Vec<TableLine> {
    const HEADINGS: [&str; 9] =
        ["SESSION", "AGE", "CPU%", "MEMORY", "PEAK", "LIMIT", "PROCS", "READ/S", "WRITE/S"];
    let cells: Vec<[String; 9]> = std::iter::once(HEADINGS.map(str::to_owned))
        .chain(rows.iter().map(|row| cells(row, rows)))
        .collect();
    let width = |column: usize| cells.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let lasts = std::iter::once(("COMMAND".to_owned(), false)).chain(rows.iter().map(last_column));
    cells
        .iter()
        .zip(lasts)
        .map(|(line, (last, is_near))| {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let padded = match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                };
                text.push_str(&padded);
                text.push_str("  ");
            }
            TableLine { text: text + &last, is_near }
        })
        .collect()
}

fn cells(row: &Row, rows: &[Row]) -> [String; 9] {
    let usage = row.usage.as_ref();
    let of = |tell: &dyn Fn(&super::board::Usage) -> String| {
        usage.map_or_else(|| UNKNOWN.to_owned(), tell)
    };
    let io = usage.and_then(|usage| usage.io.as_ref());
    let rate = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_owned(), size);
    [
        short_name(row, rows),
        age(row.age_ms),
        of(&|usage| usage.cpu_percent.map_or_else(|| UNKNOWN.to_owned(), |it| format!("{it:.1}"))),
        of(&|usage| size(usage.memory_bytes)),
        of(&|usage| size(usage.peak_memory_bytes)),
        row.limit(LimitKind::Memory).map_or_else(|| UNKNOWN.to_owned(), size),
        of(&|usage| usage.processes.to_string()),
        rate(io.and_then(|io| io.read_bytes_per_second)),
        rate(io.and_then(|io| io.written_bytes_per_second)),
    ]
}

fn last_column(row: &Row) -> (String, bool) {
    let near = near(row);
    let command = escape::text(&row.command);
    match (&row.unread, near.is_empty()) {
        (Some(why), _) => (format!("{command}  [{}]", escape::text(why)), false),
        (None, true) => (command.into_owned(), false),
        (None, false) => (format!("[{near}] {command}"), true),
    }
}

/// `memory 95 %, pids 80 %`, or nothing.
fn near(row: &Row) -> String {
    row.near()
        .map(|(name, percent)| format!("{} {percent} %", escape::text(name)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The end of its name, or all of it where another run's ends the same.
fn short_name(row: &Row, rows: &[Row]) -> String {
    let name = &row.session;
    let tail = name.char_indices().rev().nth(TAIL - 1).map_or(name.as_str(), |(at, _)| &name[at..]);
    let is_alone = rows.iter().filter(|other| other.session.ends_with(tail)).count() == 1;
    escape::text(if is_alone { tail } else { name }).into_owned()
}

/// Everything about one run.
pub(super) fn details(row: &Row) -> Vec<String> {
    let field = |name: &str, value: String| format!("{name:<10} {value}");
    let mut lines = vec![
        field("session", escape::text(&row.session).into_owned()),
        field("command", escape::text(&row.command).into_owned()),
        field("running", format!("{}, since {:.0}", age(row.age_ms), row.started_at)),
        field("pid 1", row.init.to_string()),
    ];
    if let Some(why) = &row.unread {
        lines.push(field("not read", escape::text(why).into_owned()));
    }
    if let Some(usage) = &row.usage {
        let percent = usage.cpu_percent.map_or_else(String::new, |it| format!("{it:.1} % now, "));
        lines.push(field("cpu", format!("{percent}{} used", seconds(usage.cpu_ms))));
        let (now, peak) = (size(usage.memory_bytes), size(usage.peak_memory_bytes));
        lines.push(field("memory", format!("{now} now, {peak} at most")));
        let (processes, threads) = (usage.processes, usage.threads);
        lines.push(field("processes", format!("{processes}, threads {threads}")));
        if let Some(io) = &usage.io {
            let side = |bytes, calls, per_second: Option<u64>| {
                let rate = per_second.map_or_else(String::new, |it| format!(", {}/s", size(it)));
                format!("{} in {calls} calls{rate}", size(bytes))
            };
            let read = side(io.read_bytes, io.reads, io.read_bytes_per_second);
            lines.push(field("read", read));
            let written = side(io.written_bytes, io.writes, io.written_bytes_per_second);
            lines.push(field("written", written));
        }
    }
    lines.push(String::new());
    if row.limits.is_empty() {
        lines.push("no limits".to_owned());
        return lines;
    }
    lines.push(format!(
        "{:<13} {:>10} {:>10} {:>5}  {:<10} {}",
        "LIMIT", "VALUE", "USED", "", "HOLDER", "GRIP"
    ));
    lines.extend(row.limits.iter().map(limit_line));
    lines
}

fn limit_line(limit: &LimitNow) -> String {
    let name = escape::text(&limit.limit.name);
    let show = |value: u64| limit_value(&limit.limit.name, value);
    let used = limit.used.map_or_else(|| UNKNOWN.to_owned(), show);
    let percent = limit.used.map_or_else(String::new, |used| {
        format!("{} %", used.saturating_mul(100) / limit.limit.value.max(1))
    });
    let near = if limit.is_near { "  near" } else { "" };
    format!(
        "{name:<13} {:>10} {used:>10} {percent:>5}  {:<10} {}{near}",
        show(limit.limit.value),
        escape::text(&limit.limit.holder),
        escape::text(&limit.limit.grip),
    )
}

/// In the limit's unit, short enough for a column.
fn limit_value(limit: &str, value: u64) -> String {
    match LimitKind::named(limit).map(LimitKind::unit) {
        Some(Unit::Bytes) => size(value),
        Some(Unit::BytesPerSecond) => format!("{}/s", size(value)),
        Some(Unit::OperationsPerSecond) => format!("{value}/s"),
        Some(Unit::Milliseconds) => seconds(value),
        Some(Unit::MilliCpus) => units::show_cpus(value),
        // A run of a later version may have limits that are not known here.
        Some(Unit::CpuCount | Unit::Count) | None => value.to_string(),
    }
}

/// Three digits or four: `812B`, `1.5M`, `128M`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "K", "M", "G", "T", "P"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes}B"),
        _ if value < 9.95 => format!("{value:.1}{}", UNITS[unit]),
        _ => format!("{value:.0}{}", UNITS[unit]),
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:01}s", millis / 1000, millis % 1000 / 100)
}

/// `12s`, `3m05s`, `2h07m`, `3d04h`.
pub(super) fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
