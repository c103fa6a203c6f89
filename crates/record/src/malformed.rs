//! How a metrics file begins and ends, and why a text is none of ours.

/// The first line. Raised when a family changes its meaning.
pub(crate) const HEADER: &str = "# Palisade metrics, version 1";

/// The last line, by which a file that was cut short shows. To a scraper both are comments.
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
