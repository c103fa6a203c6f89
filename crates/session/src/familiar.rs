//! Reports a project that was found above the working directory, the first time it is used: more becomes writable than
//! the working directory, and nobody named it. Nothing depends on the file of known projects: if it cannot be read or
//! written, the project is reported again.

use crate::app_dirs::{self, AppDirs};
use palisade_plan::{FoundBy, Located};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file has one path per line. When it exceeds this size, it starts empty again.
const MAX_FILE_BYTES: usize = 64 << 10;

fn file_of(places: &AppDirs) -> PathBuf {
    places.state.join("projects")
}

/// The note about the project, if this is its first use.
pub(crate) fn introduce(places: &AppDirs, project: &Located, cwd: &Path) -> Option<String> {
    let FoundBy::Marker(name) = project.found_by else { return None };
    if project.root == cwd {
        return None;
    }
    let file = file_of(places);
    let mut known = fs::read(&file).unwrap_or_default();
    let root = project.root.as_os_str().as_bytes();
    if known.split(|byte| *byte == b'\n').any(|line| line == root) {
        return None;
    }
    if known.len() + root.len() >= MAX_FILE_BYTES {
        known.clear();
    }
    known.extend_from_slice(root);
    known.push(b'\n');
    // At worst the note is repeated.
    let _ = app_dirs::replace_file(&file, &known);
    Some(format!("the project is {}, found by {name}", project.root.display()))
}

#[cfg(test)]
mod tests {
    use super::introduce;
    use crate::app_dirs::AppDirs;
    use palisade_plan::{FoundBy, Located};
    use std::path::Path;

    /// Proves: FS-1 project-markers
    #[test]
    fn a_project_above_is_named_once() {
        let state = tempfile::tempdir().unwrap();
        let places = AppDirs {
            organisation: "/nowhere".into(),
            user: "/nowhere".into(),
            state: state.path().to_owned(),
            runtime: "/nowhere".into(),
        };
        let project = |found_by| Located { root: "/home/u/app".into(), found_by };
        let marked = project(FoundBy::Marker("package.json"));
        let src = Path::new("/home/u/app/src");
        assert_eq!(introduce(&places, &project(FoundBy::Git), src), None);
        assert_eq!(introduce(&places, &marked, Path::new("/home/u/app")), None);
        let told = introduce(&places, &marked, src).unwrap();
        assert_eq!(told, "the project is /home/u/app, found by package.json");
        assert_eq!(introduce(&places, &marked, src), None);
        let longer = Located { root: "/home/u/app2".into(), ..marked };
        assert!(introduce(&places, &longer, Path::new("/home/u/app2/x")).is_some());
    }
}
