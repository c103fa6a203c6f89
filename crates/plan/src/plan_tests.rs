//! Whole plans for invented hosts.

use crate::facts::*;
use std::path::*;
use std::ffi::OsString;

struct Real;
impl HostTree for Real {
    fn entry(&self, p: &Path) -> Option<Entry> { use std::os::unix::fs::MetadataExt; let m = std::fs::symlink_metadata(p).ok()?; Some(Entry{kind: k(m.file_type()), uid: m.uid(), gid: m.gid()}) }
    fn read_link(&self, p: &Path) -> Option<PathBuf> { std::fs::read_link(p).ok() }
    fn children(&self, p: &Path) -> Vec<(OsString, EntryKind)> { std::fs::read_dir(p).map(|d| d.flatten().filter_map(|e| Some((e.file_name(), k(e.file_type().ok()?)))).collect()).unwrap_or_default() }
    fn read_small(&self, p: &Path) -> Option<String> { std::fs::read_to_string(p).ok() }
}
fn k(t: std::fs::FileType) -> EntryKind { if t.is_dir() {EntryKind::Dir} else if t.is_file() {EntryKind::File} else if t.is_symlink() {EntryKind::Symlink} else {EntryKind::Other} }

#[test]
fn real_speed() {
    let mut facts = crate::fake::root();
    facts.cwd = "/work/main".into();
    facts.env = std::env::vars_os().collect();
    facts.mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(|l| { let w: Vec<&str> = l.split(' ').collect(); HostMount{device: w[2].into(), root: w[3].into(), mount_point: w[4].into(), fs_type: String::new()} }).collect();
    for stat in [false] {
    let mut policy = crate::fake::policy();
    if stat { policy.mode = palisade_policy::model::Mode::Static; }
    let mut best = u128::MAX;
    for _ in 0..300 {
        let t = std::time::Instant::now();
        let p = crate::build(&crate::Request{policy: &policy, facts: &facts, tree: &Real, command: vec!["true".into()], session: "s".into()}).unwrap();
        let e = t.elapsed().as_nanos();
        best = best.min(e); std::hint::black_box(p);
    }
    println!("best {best} ns");
    let p = crate::build(&crate::Request{policy: &policy, facts: &facts, tree: &Real, command: vec!["true".into()], session: "s".into()}).unwrap();
    
    }
}
