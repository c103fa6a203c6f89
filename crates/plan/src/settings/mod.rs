//! Copies settings of tools without their credentials, so that registries and proxies keep working. No token
//! may be copied: a file in a format that is not understood stays hidden.
//!
//! The filters are pure: text in, text out. `carried.rs` decides which files are read and where the copies are.

mod carried;
mod copied;
mod lines;
mod secret;
mod xml;

pub(crate) use carried::{Copies, collect, place};
pub(crate) use copied::copy_settings;

/// The result of filtering a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filtered {
    /// Nothing had to be removed.
    Clean,
    /// The text without its credentials, and the names of those.
    Without { text: String, left_out: Vec<String> },
    /// It cannot be determined what is a credential.
    Unclear,
}

/// `format` is a name from `resources/view/settings.txt`.
pub(crate) fn filter(format: &str, text: &str) -> Filtered {
    let filtered = match format {
        "xml" => xml::filter(text),
        format => match lines::Grammar::of(format) {
            Some(grammar) => lines::filter(&grammar, text),
            None => None,
        },
    };
    match filtered {
        None => Filtered::Unclear,
        Some((_, left_out)) if left_out.is_empty() => Filtered::Clean,
        Some((text, left_out)) => Filtered::Without { text, left_out },
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
