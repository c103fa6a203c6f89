//! Paths of E2B's API, and where they are. A relative path starts in the home of the sandbox.

use crate::store::KeptSandbox;
use std::path::{Path, PathBuf};

/// Where a path of a request is.
pub(crate) fn resolve(sandbox: &KeptSandbox, path: &str) -> PathBuf {
    let below = match path {
        "" | "." | "~" => Some(Path::new("")),
        _ => path.strip_prefix("~/").map(Path::new),
    };
    let below = below.or_else(|| Path::new(path).strip_prefix(&sandbox.shown_home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => sandbox.home.clone(),
        // More slashes after the first must not make it a path of its own.
        Some(below) => sandbox.home.join(below.strip_prefix("/").unwrap_or(below)),
        // `join` takes an absolute path as it is.
        None => sandbox.home.join(path),
    }
}

/// The same as the client knows it.
pub(crate) fn shown(sandbox: &KeptSandbox, path: &Path) -> String {
    let path = match path.strip_prefix(&sandbox.home) {
        Ok(below) if below.as_os_str().is_empty() => sandbox.shown_home.clone(),
        Ok(below) => sandbox.shown_home.join(below),
        Err(_) => path.to_owned(),
    };
    text(&path)
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
    use super::{resolve, shown};
    use crate::store::KeptSandbox;
    use std::path::Path;

    #[test]
    fn a_path_starts_at_home_unless_it_begins_with_a_slash() {
        let sandbox = KeptSandbox::example("id");
        for (path, expected, as_shown) in [
            ("", "/h", "/home/user"),
            ("~", "/h", "/home/user"),
            ("~/a", "/h/a", "/home/user/a"),
            ("~//etc", "/h/etc", "/home/user/etc"),
            ("a/b", "/h/a/b", "/home/user/a/b"),
            ("/etc/hosts", "/etc/hosts", "/etc/hosts"),
            ("/home/user", "/h", "/home/user"),
            ("/home/user/", "/h", "/home/user"),
            ("/home/user/a", "/h/a", "/home/user/a"),
            ("/home/users/a", "/home/users/a", "/home/users/a"),
            ("/h/a", "/h/a", "/home/user/a"),
        ] {
            let resolved = resolve(&sandbox, path);
            assert_eq!(resolved, Path::new(expected), "{path}");
            assert_eq!(shown(&sandbox, &resolved), as_shown, "{path}");
        }
    }
}
