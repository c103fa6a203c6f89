//! The difference between two merged policies, for a person or as JSON.

use crate::output::{self, Paint, Style};
use palisade_policy::{Change, Diagnostic, Direction, Merged, diff, not_enforced};
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
    format!("would be refused: {}\n", escape::text(&complaint.to_string()))
}

pub(super) fn lines(changes: &[Change]) -> String {
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
