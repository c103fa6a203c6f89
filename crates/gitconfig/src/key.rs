//! The parts of a key: `section.name`, or `section.subsection.name`.

/// Splits a key as git does: the section ends at the first dot, the name begins after the last one, and the
/// subsection is what lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'k> {
    pub section: &'k [u8],
    /// May contain dots itself.
    pub subsection: Option<&'k [u8]>,
    pub name: &'k [u8],
}

impl<'k> Parts<'k> {
    /// `None` for a name before the first section header.
    pub fn of(key: &'k [u8]) -> Option<Self> {
        let first = key.iter().position(|byte| *byte == b'.')?;
        let last = key.iter().rposition(|byte| *byte == b'.')?;
        let subsection = (first < last).then(|| &key[first + 1..last]);
        Some(Self { section: &key[..first], subsection, name: &key[last + 1..] })
    }
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn a_key_is_taken_apart_at_its_first_and_last_dot() {
        for (key, section, subsection, name) in [
            ("core.bare", "core", None, "bare"),
            ("url.https://a.example/.insteadof", "url", Some("https://a.example/"), "insteadof"),
            ("a..b", "a", Some(""), "b"),
            ("a.", "a", None, ""),
        ] {
            let (section, name) = (section.as_bytes(), name.as_bytes());
            let parts = Parts { section, subsection: subsection.map(str::as_bytes), name };
            assert_eq!(Parts::of(key.as_bytes()), Some(parts), "{key}");
        }
        assert_eq!(Parts::of(b"bare"), None);
    }
}
