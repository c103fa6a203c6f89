//! Paths and denied paths against a small tree that has every kind of link in it. Whatever is
//! allowed is inside the root, and is neither the secret beside it nor the one that is denied.
//!
//! An input is text: the first line is what is denied, separated by colons; the rest is the path. An
//! `@` at the start of either stands for the root's own name.
#![no_main]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use palisade_session::check_path::PathCheck;
use rustix::fs::fstat;

const DENIED: &str = "secrets";

struct TestTree {
    root: PathBuf,
    /// Inodes that must never be handed out.
    outside: u64,
    denied: u64,
}

fn place() -> &'static TestTree {
    static PLACE: OnceLock<TestTree> = OnceLock::new();
    PLACE.get_or_init(|| make().expect("the tree cannot be made"))
}

/// Below the temporary directory, which `cargo xtask fuzz` makes and removes.
fn make() -> std::io::Result<TestTree> {
    let directory = std::env::temp_dir().join(format!("check-path-{}", std::process::id()));
    let root = directory.join("r");
    fs::create_dir_all(root.join("d/e"))?;
    fs::create_dir_all(root.join(DENIED))?;
    fs::create_dir_all(directory.join("o"))?;
    let (outside, denied) = (directory.join("o/s"), root.join(DENIED).join("s"));
    for file in [&outside, &denied, &root.join("f"), &root.join("d/f")] {
        fs::write(file, "")?;
    }
    fs::hard_link(&denied, root.join("hard"))?;
    for (name, target) in [
        ("in", "d/e"),
        ("out", "../o"),
        ("up", ".."),
        ("circle", "circle"),
        ("chain", "in/../../abs/f"),
        ("new", "d/not-yet"),
        ("back", "../r/d"),
        ("alias", DENIED),
        ("d/e/up", "../../in"),
        ("proc", "/proc/self/root"),
    ] {
        symlink(target, root.join(name))?;
    }
    let root = root.canonicalize()?;
    symlink(root.join("d"), root.join("abs"))?;
    symlink(root.join("../o/s"), root.join("abs-out"))?;
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino());
    Ok(TestTree { outside: inode(&outside)?, denied: inode(&denied)?, root })
}

fn expanded(text: &[u8], root: &Path) -> PathBuf {
    let bytes = match text.strip_prefix(b"@") {
        Some(rest) => [root.as_os_str().as_bytes(), rest].concat(),
        None => text.to_vec(),
    };
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fuzz_target!(|data: &[u8]| {
    let TestTree { root, outside, denied } = place();
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let path = expanded(data.get(end + 1..).unwrap_or_default(), root);
    let rules = data[..end].split(|byte| *byte == b':').filter(|rule| !rule.is_empty());
    let rules = rules.map(|rule| expanded(rule, root)).chain([PathBuf::from(DENIED)]);
    let check = PathCheck::new(root, rules).expect("the root is there");
    match check.check(&path) {
        Ok(checked) => {
            let inode = fstat(&checked.descriptor).expect("it is open").st_ino;
            assert!(inode != *outside && inode != *denied, "{path:?}: {checked:?}");
            assert!(checked.real_path.starts_with(root), "{path:?}: {checked:?}");
            assert!(!checked.real_path.starts_with(root.join(DENIED)), "{path:?}: {checked:?}");
            let odd = |name: &OsStr| name == ".." || name == ".";
            assert!(!checked.missing.iter().any(odd) && checked.missing.is_relative());
            assert_eq!(checked.missing.as_os_str().is_empty(), checked.real_path.exists());
        }
        Err(refusal) => {
            assert!(!refusal.reason().is_empty() && !refusal.to_string().is_empty());
        }
    }
});
