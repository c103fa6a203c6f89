//! Paths of E2B's API, and where they are here. A relative path starts in the home of the sandbox, which is the directory that it
//! works in; E2B's home, which many programs write out, is the same.

use std::path::{Path, PathBuf};

/// The home of E2B's user.
const E2B_HOME: &str = "/home/user";

pub(crate) fn resolve(home: &Path, path: &str) -> PathBuf {
    let below = match path {
        "" | "." | "~" => Some(Path::new("")),
        _ => path.strip_prefix("~/").map(Path::new),
    };
    let below = below.or_else(|| Path::new(path).strip_prefix(E2B_HOME).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => home.to_owned(),
        // More slashes after the first must not make it a path of its own.
        Some(below) => home.join(below.strip_prefix("/").unwrap_or(below)),
        // `join` takes an absolute path as it is.
        None => home.join(path),
    }
}

/// As text; what is no text has marks in its place.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The last part of it.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| text(path), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::resolve;
    use std::path::Path;

    #[test]
    fn a_path_starts_at_home_unless_it_begins_with_a_slash() {
        let home = Path::new("/h");
        for (path, expected) in [
            ("", "/h"),
            ("~", "/h"),
            ("~/a", "/h/a"),
            ("~//etc", "/h/etc"),
            ("a/b", "/h/a/b"),
            ("/etc/hosts", "/etc/hosts"),
            ("/home/user", "/h"),
            ("/home/user/", "/h"),
            ("/home/user/a", "/h/a"),
            ("/home/users/a", "/home/users/a"),
        ] {
            assert_eq!(resolve(home, path), Path::new(expected), "{path}");
        }
    }
}
