//! Finds the valid word that is nearest to a mistyped one.

use std::cmp::Reverse;

/// The candidate with the fewest edits, if it is near enough to be what the user meant.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = typed.chars().count();
    // If every letter differs, it is another word and not a typing error.
    let allowed = (length / 3).max(1).min(length.saturating_sub(1));
    candidates
        .into_iter()
        .map(|candidate| (edits(&typed.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        // Of two that are as near, the one that begins alike.
        .min_by_key(|(distance, candidate)| (*distance, Reverse(common(typed, candidate))))
        .map(|(_, candidate)| candidate)
}

/// How many characters both begin with, whatever their case.
fn common(one: &str, other: &str) -> usize {
    let same = |(one, other): &(char, char)| one.eq_ignore_ascii_case(other);
    one.chars().zip(other.chars()).take_while(same).count()
}

/// Optimal string alignment: swapping two neighbours, the most common typing error, is one edit.
fn edits(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for (row, from_char) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, to_char) in to.iter().enumerate() {
            let substituted = rows[row][column] + usize::from(from_char != to_char);
            let mut best = substituted.min(rows[row][column + 1] + 1).min(line[column] + 1);
            let swapped =
                row > 0 && column > 0 && *from_char == to[column - 1] && from[row - 1] == *to_char;
            if swapped {
                best = best.min(rows[row - 1][column - 1] + 1);
            }
            line.push(best);
        }
        rows.push(line);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: POL-2 unknown-key
    #[test]
    fn finds_the_near_and_refuses_the_far() {
        let words = ["readOnlyPaths", "readWritePaths", "deniedPaths"];
        assert_eq!(nearest("readOnlyPath", words), Some("readOnlyPaths"));
        assert_eq!(nearest("raedWritePaths", words), Some("readWritePaths"));
        assert_eq!(nearest("readonly_paths", words), Some("readOnlyPaths"));
        assert_eq!(nearest("abcd", ["xbcd", "abcx"]), Some("abcx"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("id", ["ro", "rw"]), None);
        assert_eq!(nearest("3", ["0", "1", "2"]), None);
        assert_eq!(edits("ab", "ba"), 1);
        assert_eq!(edits("", "abc"), 3);
    }
}
