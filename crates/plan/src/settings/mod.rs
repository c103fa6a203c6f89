//! Copies settings of tools without their credentials: registries and proxies keep working, and no token comes
//! along. Only formats that are understood are copied; everything else stays hidden.
//!
//! Pure: text in, text out. `carried.rs` says which files are read and where the copies are.

mod carried;
mod copied;
mod lines;
mod secret;
mod xml;

pub(crate) use carried::{Copies, collect, place};
pub(crate) use copied::copy_settings;

/// What is left of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filtered {
    /// Nothing had to be left out.
    Clean,
    /// The text without its credentials, and what those were, by name.
    Without { text: String, left_out: Vec<String> },
    /// It cannot be told what is a credential in it.
    Unclear,
}

/// By the name of a format in `resources/view/settings.txt`.
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
