//! Names of files: what is guarded stays so in another case, what is opened is not guarded, and a
//! directory that is moved into place is searched for everything that is guarded below its new name.
//!
//! An input is a path below the guarded tree, with components of any bytes.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use palisade_guard::{MatchContext, Matcher};

const HOME: &str = "/home/u";
const TREES: [&str; 2] = ["/home/u", "/home/u/project"];

fuzz_target!(|data: &[u8]| {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let (every_directory_is_old, tree) = (first & 1 == 1, TREES[usize::from(first >> 1 & 1)]);
    if rest.contains(&0) {
        return;
    }
    let named = Path::new(OsStr::from_bytes(rest)).components();
    let below: PathBuf = named.filter(|part| matches!(part, Component::Normal(_))).collect();
    if below.as_os_str().is_empty() {
        return;
    }
    let tree = Path::new(tree);
    let path = tree.join(&below);
    // The list is read once; only what is opened differs from input to input.
    static MATCHER: OnceLock<Matcher> = OnceLock::new();
    let grounds = || MatchContext { homes: vec![HOME.into()], ..MatchContext::default() };
    let matcher = MATCHER.get_or_init(|| Matcher::new(grounds()));
    let mut is_old = |_: &Path| every_directory_is_old;
    let hit = matcher.judge(tree, &path, &mut is_old).is_some();

    let shouted = tree.join(OsStr::from_bytes(&below.as_os_str().as_bytes().to_ascii_uppercase()));
    assert_eq!(matcher.judge(tree, &shouted, &mut is_old).is_some(), hit, "{shouted:?}");

    if !hit {
        return;
    }
    let opened = Matcher::new(MatchContext { opened: vec![path.clone()], ..grounds() });
    assert!(opened.judge(tree, &path, &mut is_old).is_none(), "{path:?}");
    for directory in path.ancestors().skip(1).take_while(|directory| *directory != tree) {
        if matcher.judge(tree, directory, &mut is_old).is_some() {
            continue;
        }
        let inner = path.strip_prefix(directory).expect("an ancestor");
        // Guarded wherever it is, so it could not have been made before the directory was moved.
        let elsewhere = tree.join("elsewhere").join(inner);
        if matcher.judge(tree, &elsewhere, &mut is_old).is_some() {
            continue;
        }
        let found = matcher.below(tree, directory, &mut is_old).into_iter().any(|below| {
            // A name that is guarded includes all below it.
            let depth = below.dir.components().count();
            let parts: Vec<&OsStr> = inner.iter().collect();
            parts.get(depth).is_some_and(|name| below.name.matches(name.as_bytes()))
        });
        assert!(found, "{inner:?} in a directory that becomes {directory:?}");
    }
});
