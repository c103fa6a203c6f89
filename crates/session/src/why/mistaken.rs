//! Recognises a host or a variable that was given in place of a path.

use crate::caller::Caller;
use palisade_hosts::Host;
use std::ffi::OsStr;
use std::path::Path;

/// A subject that is not a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherSubject {
    Variable(String),
    Host(String),
}

/// What the text could mean instead, if no such path exists.
pub fn other_subject(caller: &Caller, path: &Path) -> Option<OtherSubject> {
    if caller.facts.cwd.join(path).symlink_metadata().is_ok() {
        return None;
    }
    let text = path.to_str()?;
    if caller.facts.env.contains_key(OsStr::new(text)) {
        return Some(OtherSubject::Variable(text.to_owned()));
    }
    host_in(text).map(|host| OtherSubject::Host(host.to_owned()))
}

/// Extensions of project files. Some of these are also top-level domains, but a question about a file that does not
/// exist yet is more likely.
const FILE_ENDINGS: [&str; 44] = [
    "bak", "bash", "c", "cc", "cfg", "cnf", "conf", "cpp", "css", "csv", "diff", "env", "go", "h",
    "hpp", "html", "ini", "java", "jpg", "js", "json", "jsx", "key", "lock", "log", "lua", "md",
    "patch", "pdf", "pem", "php", "png", "py", "rb", "rs", "sh", "sql", "svg", "toml", "ts", "tsx",
    "txt", "yaml", "yml",
];

/// `notes.txt`, but not `notes.example.txt`, which could equally be a host.
fn is_file_name(text: &str) -> bool {
    let ending = text.rsplit_once('.').filter(|(stem, _)| !stem.contains('.'));
    ending.is_some_and(|(_, ending)| FILE_ENDINGS.contains(&&*ending.to_ascii_lowercase()))
}

/// The host of a URL, or of a plain word: a name with a dot, or an address.
fn host_in(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', '?', '#']).next()?;
        return Some(host.rsplit('@').next().unwrap_or(host)).filter(|host| !host.is_empty());
    }
    let is_host = |text: &str| Host::parse(text).is_ok();
    let name = text.rsplit_once(':').map_or(text, |(name, _)| name);
    let is_dotted = name.contains('.') && !name.starts_with('.') && !name.ends_with('.');
    let is_name = is_dotted && is_host(name) && !is_file_name(text);
    let is_address = text.contains("::") && is_host(text);
    (!text.contains('/') && (is_name || is_address)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::host_in;

    #[test]
    fn a_word_that_reads_like_a_host_is_told_from_a_path() {
        for (text, host) in [
            ("example.org", "example.org"),
            ("example.org:8443", "example.org:8443"),
            ("https://me@example.org:8443/a?b", "example.org:8443"),
            ("203.0.113.7", "203.0.113.7"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(host_in(text), Some(host), "{text}");
        }
        for path in [
            "notes.txt",
            "main.rs",
            "README.md",
            "src/main.rs",
            ".envrc",
            "Makefile",
            "..",
            "./a.b",
            "https://",
            "a b.c",
        ] {
            assert_eq!(host_in(path), None, "{path}");
        }
    }
}
