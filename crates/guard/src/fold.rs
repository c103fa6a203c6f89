//! Compares names as a case-insensitive file system would: ext4 and f2fs with `casefold`, vfat, HFS+ and APFS.
//! When in doubt, names count as equal: refusing a harmless name costs less than missing a harmful one.

use std::borrow::Cow;

/// A form in which all variants of a name are equal, apart from the case of ASCII letters. Plain names are
/// borrowed.
pub fn comparable(name: &[u8]) -> Cow<'_, [u8]> {
    let name = without_tail(name);
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    let text = String::from_utf8_lossy(name);
    let mut out = String::with_capacity(text.len());
    for char in text.chars().filter(|char| !is_ignorable(*char)) {
        match char {
            // Full case folding (CaseFolding.txt, status C and F) of the characters that fold to ASCII letters.
            'ſ' => out.push('s'),
            'ß' | 'ẞ' => out.push_str("ss"),
            'ﬀ' => out.push_str("ff"),
            'ﬁ' => out.push_str("fi"),
            'ﬂ' => out.push_str("fl"),
            'ﬃ' => out.push_str("ffi"),
            'ﬄ' => out.push_str("ffl"),
            'ﬅ' | 'ﬆ' => out.push_str("st"),
            char => out.extend(char.to_lowercase()),
        }
    }
    Cow::Owned(without_tail(out.as_bytes()).to_owned())
}

/// vfat and NTFS ignore trailing dots and spaces.
fn without_tail(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    &name[..end]
}

/// Unicode's Default_Ignorable_Code_Point: HFS+ and ext4 ignore these characters in comparisons
/// (CVE-2014-9390).
fn is_ignorable(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::comparable;

    /// Proves: FS-9 variants
    #[test]
    fn variants_of_a_name_are_that_name() {
        for variant in [
            ".gitconfig",
            ".GitConfig",
            ".git\u{200c}config",
            "\u{feff}.GITCONFIG",
            ".gitconﬁg",
            ".gitconfig.",
            ".gitconfig. .",
            ".gitconfig\u{200b}.",
        ] {
            let same = comparable(variant.as_bytes()).eq_ignore_ascii_case(b".gitconfig");
            assert!(same, "{variant:?}");
        }
        assert_eq!(comparable(".vſcode".as_bytes()).as_ref(), b".vscode");
        assert_eq!(comparable(".\u{212a}ube".as_bytes()).as_ref(), b".kube");
    }

    #[test]
    fn other_names_stay_others_and_plain_ones_are_borrowed() {
        assert!(matches!(comparable(b"README.md"), std::borrow::Cow::Borrowed(b"README.md")));
        assert_ne!(comparable(b".git\xffconfig").as_ref(), b".gitconfig");
        assert_ne!(comparable("é".as_bytes()).as_ref(), b"e");
        assert_eq!(comparable(b"...").as_ref(), b"");
    }
}
