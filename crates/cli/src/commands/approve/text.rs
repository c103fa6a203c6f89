//! Fits text into columns of a terminal.
//!
//! Nothing is lost by wrapping; what is cut shows that it was.

use ratatui::text::Span;

/// Columns that it takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

fn width_of(c: char) -> usize {
    width(c.encode_utf8(&mut [0; 4]))
}

/// Lines of at most this many columns. Cut anywhere: a path has no words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = width_of(c);
        if used + wide > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line.push(c);
        used += wide;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The end of it, with a mark in front if it was longer: of a path, the end tells more.
pub(crate) fn end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut kept: Vec<char> = Vec::new();
    for c in text.chars().rev() {
        used += width_of(c);
        if used > columns {
            break;
        }
        kept.push(c);
    }
    std::iter::once('…').chain(kept.into_iter().rev()).collect()
}

/// Its beginning and its end, with a mark between if it was longer.
pub(crate) fn middle_cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let beginning: String = text
        .chars()
        .take_while(|c| {
            used += width_of(*c);
            used <= columns / 2
        })
        .collect();
    let rest = columns - width(&beginning);
    beginning + &end(text, rest)
}

/// Groups of words, each group kept together where it fits.
pub(crate) fn fill(groups: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for group in groups {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(group) <= columns => {
                line.push_str("   ");
                line.push_str(group);
            }
            _ => lines.push(group.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{end, fill, middle_cut, width, wrap};

    #[test]
    fn wrapping_loses_nothing_and_fits() {
        for text in ["", "short", "/opt/a/rather/long/path", "漢字漢字漢字", "e\u{301}e\u{301}"]
        {
            for columns in 2..12 {
                let lines = wrap(text, columns);
                assert_eq!(lines.concat(), text);
                assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            }
        }
    }

    #[test]
    fn the_end_of_a_path_is_kept() {
        assert_eq!(end("/opt/sdk/include/x.h", 40), "/opt/sdk/include/x.h");
        assert_eq!(end("/opt/sdk/include/x.h", 8), "…ude/x.h");
        assert_eq!(width(&end("漢字漢字", 4)), 3, "half a character does not fit");
    }

    #[test]
    fn of_a_sentence_both_ends_are_kept() {
        assert_eq!(middle_cut("allowed: /opt/sdk/x.h", 21), "allowed: /opt/sdk/x.h");
        assert_eq!(middle_cut("allowed: /opt/sdk/include/x.h", 20), "allowed: /…clude/x.h");
        for columns in 2..12 {
            assert!(width(&middle_cut("漢字漢字漢字漢字", columns)) <= columns);
        }
    }

    #[test]
    fn groups_are_kept_together() {
        let groups = ["y once", "s session", "q quit"].map(str::to_owned);
        assert_eq!(fill(&groups, 18), ["y once   s session", "q quit"]);
        assert_eq!(fill(&groups, 80).len(), 1);
        assert_eq!(fill(&groups, 3).len(), 3);
    }
}
