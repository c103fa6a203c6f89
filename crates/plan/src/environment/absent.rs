//! Variables that name something on the host that is not in the view. Programs rely on them: they would write
//! where they cannot, wait for a server that does not exist, or fail to start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The directory for temporary files. Scripts use these without checking whether they are set.
const TEMPORARY: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "TEMPDIR"];
const USUAL_TEMPORARY: &str = "/tmp";
/// The current and the previous directory of a shell. A shell checks them when it starts.
const STOOD: [&str; 2] = ["PWD", "OLDPWD"];
/// Directories for programs' own files. Programs create them if needed, and have a default.
const OWN_FILES: [&str; 5] =
    ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CARGO_TARGET_DIR"];
/// Files that are loaded into every program of a kind. Without them it does not start, or prints warnings.
const LOADED: [&str; 8] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "RUBYOPT",
    "PERL5OPT",
];

/// What the command will be able to see.
pub(crate) trait Sight {
    /// Whether a directory will exist there.
    fn has_dir(&self, path: &Path) -> bool;
    /// Whether the command can create something at this path.
    fn can_make(&self, path: &Path) -> bool;
    /// Whether the host has something there that the command will not find.
    fn hides(&self, path: &Path) -> bool;
    /// Whether that is a socket, a FIFO or a device.
    fn hides_socket(&self, path: &Path) -> bool;
}

/// The names of variables that were not passed on unchanged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Misleading {
    pub(crate) dropped: Vec<String>,
    /// Set to [`USUAL_TEMPORARY`] instead.
    pub(crate) redirected: Vec<String>,
}

impl Misleading {
    /// Notes for the user.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let note = |names: &[String], text: &str| {
            (!names.is_empty()).then(|| format!("{}: {text}", names.join(", ")))
        };
        let dropped = note(
            &self.dropped,
            "not passed on because what they name is not in the sandbox; pass one on with --env NAME",
        );
        let redirected = note(
            &self.redirected,
            "/tmp in the sandbox because what they name is not there; add it with --rw PATH",
        );
        dropped.into_iter().chain(redirected)
    }
}

pub(super) fn drop_misleading(
    env: &mut BTreeMap<OsString, OsString>,
    sight: &dyn Sight,
) -> Misleading {
    let mut misleading = Misleading::default();
    let has_usual = sight.has_dir(Path::new(USUAL_TEMPORARY));
    let mut drop = Vec::new();
    for (name, value) in &mut *env {
        let path = Path::new(&*value);
        let Some(known) = name.to_str() else { continue };
        if TEMPORARY.contains(&known) {
            if value.is_empty() || sight.has_dir(path) {
                continue;
            }
            if has_usual {
                *value = USUAL_TEMPORARY.into();
                misleading.redirected.push(known.to_owned());
                continue;
            }
            drop.push(name.clone());
        } else if is_absent(known, value, sight) {
            drop.push(name.clone());
        }
    }
    for name in drop {
        env.remove(&name);
        let name = name.to_string_lossy().into_owned();
        // A shell sets these itself.
        if !STOOD.contains(&name.as_str()) {
            misleading.dropped.push(name);
        }
    }
    misleading
}

fn is_absent(name: &str, value: &OsStr, sight: &dyn Sight) -> bool {
    let path = Path::new(value);
    if STOOD.contains(&name) {
        return !sight.has_dir(path);
    }
    if OWN_FILES.contains(&name) {
        return path.is_absolute() && !sight.has_dir(path) && !sight.can_make(path);
    }
    let Some(text) = value.to_str() else { return false };
    if LOADED.contains(&name) {
        return paths_in(text).any(|path| sight.hides(path));
    }
    socket_in(text).is_some_and(|path| sight.hides_socket(path))
}

/// Absolute paths in options: whole words, and parts after `=` or `:`.
fn paths_in(text: &str) -> impl Iterator<Item = &Path> {
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, '=' | ':' | ',' | '"');
    text.split(ends).filter(|part| part.starts_with('/')).map(Path::new)
}

/// `PATH`, `PATH,NUMBER,…` (tmux), `unix:PATH`, `unix://PATH`, `unix:path=PATH,…` (D-Bus).
fn socket_in(text: &str) -> Option<&Path> {
    let text = text.strip_prefix("unix:").unwrap_or(text);
    let text = text.strip_prefix("path=").unwrap_or(text);
    let text = text.strip_prefix("//").unwrap_or(text);
    let path = text.split([',', ';']).next()?;
    // A value with a colon is a list, such as a search path.
    (path.starts_with('/') && !path.contains(':')).then(|| Path::new(path))
}

#[cfg(test)]
#[path = "absent_tests.rs"]
mod tests;
