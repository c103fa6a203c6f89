//! Whether a path lies below another, by its bytes.

pub(crate) fn is_below(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.first().is_none_or(|next| *next == b'/'))
}
