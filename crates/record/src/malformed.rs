//! How a metrics file begins and ends, and why a text is not one.

/// The first line. Raised when a family changes its meaning.
pub(crate) const HEADER: &str = "# Palisade metrics, version 1";

/// The last line, by which a truncated file is detected. For a scraper both lines are comments.
pub(crate) const FOOTER: &str = "# EOF";

/// Why a text is not one of ours.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it does not begin with `{HEADER}`")]
    NotOurs,
    #[error("it does not end with `{FOOTER}`, so it is incomplete")]
    CutShort,
    #[error("line {line}: {what}")]
    Line { line: usize, what: &'static str },
    #[error("the buckets of {0} do not add up")]
    Buckets(&'static str),
}
