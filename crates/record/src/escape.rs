//! Makes text from inside a sandbox safe to display: characters that a terminal would act on, or that are invisible,
//! are escaped (attacks H03 and H04).
//!
//! Must never drop a character, so that the original can be reconstructed; all others stay unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Displays text unescaped. Set in tests only; no shipped binary can.
#[cfg(feature = "layers-off")]
pub static AS_IT_IS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// For people: `\n`, `\x1b`, `\u{202e}`. A backslash is doubled, so that the result is unambiguous.
pub fn text(untrusted: &str) -> Cow<'_, str> {
    if untrusted.chars().all(|c| c != '\\' && !is_deceptive(c)) {
        return Cow::Borrowed(untrusted);
    }
    let mut shown = String::with_capacity(untrusted.len() + 8);
    for c in untrusted.chars() {
        push_escaped(&mut shown, c);
    }
    Cow::Owned(shown)
}

/// The same for bytes that need not be UTF-8, such as a path: an invalid byte becomes `\xNN`.
pub fn bytes(untrusted: &[u8]) -> String {
    let mut shown = String::with_capacity(untrusted.len());
    for chunk in untrusted.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_escaped(&mut shown, c);
        }
        for byte in chunk.invalid() {
            push_formatted(&mut shown, format_args!("\\x{byte:02x}"));
        }
    }
    shown
}

/// The same as one word of a command line, so that one name or argument does not look like two, or like our own words.
pub fn quoted(untrusted: &str) -> String {
    let shown = text(untrusted);
    let is_plain = !shown.is_empty()
        && shown.chars().all(|c| c.is_alphanumeric() || "-_./=:,+@%^\\".contains(c));
    if is_plain { shown.into_owned() } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

/// A word for a command line that a person copies: quoted where a shell would interpret it. Not escaped; that is up to
/// the code that prints the line.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    let after_home = word.strip_prefix("~/").unwrap_or(word);
    if !word.is_empty() && after_home.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// For serialised JSON: serde_json leaves DEL, C1 controls, bidirectional and zero-width characters as they are. JSON
/// is plain ASCII outside of strings, so each of them is inside a string, and its `\u` escape does not change the
/// meaning.
pub fn json(written: String) -> String {
    let harmless = |c: char| c == '\n' || !is_deceptive(c);
    if written.chars().all(harmless) {
        return written;
    }
    let mut escaped = String::with_capacity(written.len() + 16);
    for c in written.chars() {
        if harmless(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            push_formatted(&mut escaped, format_args!("\\u{unit:04x}"));
        }
    }
    escaped
}

fn push_escaped(shown: &mut String, c: char) {
    match c {
        '\\' => shown.push_str("\\\\"),
        '\n' if is_deceptive(c) => shown.push_str("\\n"),
        '\r' if is_deceptive(c) => shown.push_str("\\r"),
        '\t' if is_deceptive(c) => shown.push_str("\\t"),
        c if c.is_ascii() && is_deceptive(c) => {
            push_formatted(shown, format_args!("\\x{:02x}", u32::from(c)));
        }
        c if is_deceptive(c) => push_formatted(shown, format_args!("\\u{{{:x}}}", u32::from(c))),
        c => shown.push(c),
    }
}

fn push_formatted(shown: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = shown.write_fmt(escape);
}

/// Control characters, and Unicode characters that reorder text or are invisible: the default-ignorable code points and
/// the bidirectional controls (UAX #9, UTS #39; CVE-2021-42574).
fn is_deceptive(c: char) -> bool {
    #[cfg(feature = "layers-off")]
    if AS_IT_IS.load(std::sync::atomic::Ordering::Relaxed) {
        return false;
    }
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || matches!(c,
            '\u{ad}' // soft hyphen
            | '\u{34f}' // combining grapheme joiner
            | '\u{61c}' // arabic letter mark
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
            | '\u{17b4}' | '\u{17b5}' // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}' // Mongolian selectors and vowel separator
            | '\u{200b}'..='\u{200f}' // zero-width space, joiners, direction marks
            | '\u{2028}'..='\u{202e}' // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, isolates
            | '\u{fe00}'..='\u{fe0f}' // variation selectors
            | '\u{feff}' // zero-width no-break space
            | '\u{fff0}'..='\u{fffb}' // unassigned ignorables, interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}' // musical format controls
            | '\u{e0000}'..='\u{e0fff}' // tags, variation selectors supplement
        )
}

#[cfg(test)]
#[path = "escape_tests.rs"]
mod tests;
