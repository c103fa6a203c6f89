//! How much changed in each file, as `git diff --stat` shows it.

use super::names::{Shown, name, shown};
use super::unified::Side;
use crate::changeset::{Change, ChangeKind, ChangeSet};
use crate::error::Result;
use crate::hunks::{lines, operations};
use crate::layers::Layers;
use crate::paths::quoted;
use similar::DiffOp;
use std::io::Write;

/// As many columns as git assumes where there is no terminal.
const COLUMNS: usize = 80;
const LEAST_GRAPH: usize = 10;

enum Amount {
    Lines { added: usize, removed: usize },
    Bytes { old: u64, new: u64 },
    Unknown,
}

/// A line a file, and a sum.
pub fn write_stat(
    layers: &Layers,
    set: &ChangeSet,
    colour: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let rows: Vec<(String, Amount)> = shown(set)
        .iter()
        .map(|shown| {
            let label = match shown.from {
                Some((from, _)) => format!("{} => {}", quoted(&from.path), name(shown.change)),
                None => name(shown.change),
            };
            (label, amount(layers, shown))
        })
        .collect();
    let number = |amount: &Amount| match amount {
        Amount::Lines { added, removed } => added + removed,
        Amount::Bytes { .. } | Amount::Unknown => 0,
    };
    let most = rows.iter().map(|(_, amount)| number(amount)).max().unwrap_or_default();
    let digits = most.to_string().len().max(3);
    let longest = rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let width = longest.min(COLUMNS - digits - LEAST_GRAPH - 5);
    let graph = COLUMNS.saturating_sub(width + digits + 5);
    let (mut added_lines, mut removed_lines) = (0, 0);
    for (label, amount) in &rows {
        let label = shortened(label, width);
        match amount {
            Amount::Lines { added, removed } => {
                added_lines += added;
                removed_lines += removed;
                let (plus, minus) = bars(*added, *removed, most, graph);
                let total = added + removed;
                let (green, red, reset) =
                    if colour { ("\x1b[32m", "\x1b[31m", "\x1b[m") } else { ("", "", "") };
                let plus = if plus.is_empty() { plus } else { format!("{green}{plus}{reset}") };
                let minus = if minus.is_empty() { minus } else { format!("{red}{minus}{reset}") };
                let line = format!(" {label:width$} | {total:digits$} {plus}{minus}");
                writeln!(out, "{}", line.trim_end())?;
            }
            Amount::Bytes { old, new } => {
                writeln!(out, " {label:width$} | {:>digits$} {old} -> {new} bytes", "Bin")?;
            }
            Amount::Unknown => writeln!(out, " {label:width$} | {:>digits$}", "?")?,
        }
    }
    let counted = |number: usize, one: &str, many: &str| {
        format!("{number} {}", if number == 1 { one } else { many })
    };
    let mut sum = format!(" {} changed", counted(rows.len(), "file", "files"));
    if added_lines > 0 || removed_lines == 0 {
        let text = counted(added_lines, "insertion(+)", "insertions(+)");
        sum.push_str(&format!(", {text}"));
    }
    if removed_lines > 0 || added_lines == 0 {
        let text = counted(removed_lines, "deletion(-)", "deletions(-)");
        sum.push_str(&format!(", {text}"));
    }
    if !rows.is_empty() {
        writeln!(out, "{sum}")?;
    }
    Ok(())
}

fn amount(layers: &Layers, shown: &Shown<'_>) -> Amount {
    let Shown { change, from } = shown;
    let has_content = |change: &Change| {
        matches!(
            change.kind,
            ChangeKind::Added
                | ChangeKind::Deleted
                | ChangeKind::Modified
                | ChangeKind::TypeChanged
        )
    };
    if !has_content(change) {
        return Amount::Lines { added: 0, removed: 0 };
    }
    let old = match from {
        Some((from, _)) => Side::read(layers, &from.path, from.old_at),
        None => Side::read(layers, &change.path, change.old_at),
    };
    let new = Side::read(layers, &change.path, change.new_at);
    match (old.text(), new.text()) {
        (Some(old), Some(new)) => {
            let (old, new) = (lines(old), lines(new));
            let (mut added, mut removed) = (0, 0);
            for operation in operations(&old, &new) {
                if !matches!(operation, DiffOp::Equal { .. }) {
                    added += operation.new_range().len();
                    removed += operation.old_range().len();
                }
            }
            Amount::Lines { added, removed }
        }
        _ => match (size(&old), size(&new)) {
            (Some(old), Some(new)) => Amount::Bytes { old, new },
            _ => Amount::Unknown,
        },
    }
}

fn size(side: &Side) -> Option<u64> {
    match side {
        Side::Absent => Some(0),
        Side::Text(text) => Some(text.len() as u64),
        Side::Binary(bytes) | Side::TooLarge(bytes) => Some(*bytes),
        Side::Unreadable => None,
    }
}

/// Scaled so that the longest fits; at least one mark for anything that changed.
fn bars(added: usize, removed: usize, most: usize, width: usize) -> (String, String) {
    let scaled = |number: usize| {
        if number == 0 || most <= width { number } else { 1 + number * (width - 1) / most }
    };
    ("+".repeat(scaled(added)), "-".repeat(scaled(removed)))
}

/// The end of a long name says more than its beginning.
fn shortened(label: &str, width: usize) -> String {
    if label.len() <= width {
        return label.to_owned();
    }
    let end: String = label.chars().skip(label.chars().count() + 3 - width).collect();
    format!("...{end}")
}
