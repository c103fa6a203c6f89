//! The difference between two merged policies, or two texts of a file, for a person or as JSON.

use crate::output::{self, Paint, Style};
use palisade_policy::{Diagnostic, Direction, Merged, PolicyChange, diff, not_enforced};
use palisade_record::escape;
use serde_json::json;

/// What would change, and what would then be refused.
pub(super) fn show(before: &Merged, after: &Merged, as_json: bool) -> anyhow::Result<()> {
    let changes = diff(before, after);
    let refused = not_enforced(after);
    if as_json {
        return output::print_json(&json!({ "changes": changes, "refused": refused }));
    }
    let mut text = lines(&changes);
    for complaint in &refused {
        text.push_str(&refusal(complaint));
    }
    if text.is_empty() {
        text.push_str("nothing would change\n");
    }
    output::print(&text)
}

pub(super) fn refusal(complaint: &Diagnostic) -> String {
    format!("would be rejected: {}\n", escape::text(&complaint.to_string()))
}

pub(super) fn lines(changes: &[PolicyChange]) -> String {
    let paint = Paint::for_stdout();
    let mut text = String::new();
    for change in changes {
        let (word, style) = match change.direction {
            Direction::Tightens => ("tightens", Style::Green),
            Direction::Loosens => ("loosens", Style::Red),
            Direction::Neutral => ("changes", Style::Yellow),
        };
        let shown = |value: &str| match value {
            "" => "-".to_owned(),
            value => escape::text(value).into_owned(),
        };
        text.push_str(&format!(
            "{} {}: {} -> {}\n",
            paint.with(style, &format!("{word:<8}")),
            change.key,
            shown(&change.from),
            shown(&change.to),
        ));
    }
    text
}

/// A line of a file: kept, removed or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) sign: char,
    pub(crate) text: &'t str,
}

/// How a text that was changed in one place differs, with this many lines around it, or all of them.
pub(crate) fn in_text<'t>(before: &'t str, after: &'t str, around: Option<usize>) -> Vec<Line<'t>> {
    let around = around.unwrap_or(usize::MAX);
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let alike = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let head = alike(&mut before.iter().zip(&after));
    let most = before.len().min(after.len()) - head;
    let tail = alike(&mut before.iter().rev().zip(after.iter().rev())).min(most);
    let with = |sign: char| move |text: &&'t str| Line { sign, text };
    let kept_before = before[head.saturating_sub(around)..head].iter().map(with(' '));
    let gone = before[head..before.len() - tail].iter().map(with('-'));
    let new = after[head..after.len() - tail].iter().map(with('+'));
    let kept_behind = before[before.len() - tail..].iter().take(around).map(with(' '));
    kept_before.chain(gone).chain(new).chain(kept_behind).collect()
}

pub(crate) fn painted(lines: &[Line<'_>], paint: Paint) -> String {
    let line = |line: &Line<'_>| {
        let style = match line.sign {
            '-' => Style::Red,
            '+' => Style::Green,
            _ => Style::Plain,
        };
        paint.with(style, &format!("{}{}", line.sign, escape::text(line.text))) + "\n"
    };
    lines.iter().map(line).collect()
}
