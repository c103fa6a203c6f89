//! Paths that look writable and forget (FS-5).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use palisade_testkit::{World, overlays_replace_directories};

use crate::inside::{inside, tree};

/// Proves: FS-5 looks-writable, FS-5 upper-layer, FS-5 thrown-away
#[test]
fn writes_to_an_overlay_are_seen_inside_and_thrown_away() {
    let world = World::new();
    world.write("home/settings/kept", "old\n");
    world.write("home/settings/removed", "old\n");
    world.write("home/settings/sub/deep", "old\n");
    let before = tree(&world.home().join("settings"));
    let script = "cd ~/settings && echo new > kept && rm removed && rm sub/deep && mkdir made && \
                  echo x > made/file && chmod 700 kept && mv kept renamed && \
                  cat renamed made/file && ls . sub";
    let output = inside(&world, &["--overlay", "~/settings"], script);
    output.assert_code(0);
    assert_eq!(output.out(), "new\nx\n.:\nmade\nrenamed\nsub\n\nsub:\n");
    assert_eq!(tree(&world.home().join("settings")), before);
    let kept = world.home().join("settings/kept");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "old\n");
    assert_ne!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o700);
}

/// Before Linux 6.6 it fails, and what was to be removed or hidden is not uncovered by that.
///
/// Proves: FS-5 looks-writable, FS-5 thrown-away, FS-2 hidden
#[test]
fn whole_directories_can_be_removed_and_replaced() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/settings/sub/deep", "old\n");
    let script = "cd ~; rm -r settings/sub && mkdir settings/sub .ssh && echo own > .ssh/id && \
                  cat .ssh/id; ls settings/sub; grep -rs secret .";
    let output = inside(&world, &["--overlay", "~"], script);
    if overlays_replace_directories() {
        assert_eq!(output.out(), "own\n", "{}", output.err());
    } else {
        assert_eq!(output.out(), "", "{}", output.err());
        assert!(output.err().contains("Input/output error"), "{}", output.err());
    }
    for (file, text) in [(".ssh/id", "top secret\n"), ("settings/sub/deep", "old\n")] {
        assert_eq!(fs::read_to_string(world.home().join(file)).unwrap(), text);
    }
}

/// Proves: FS-5 looks-writable, FS-5 thrown-away
#[test]
fn a_tree_of_roots_looks_writable_to_anyone() {
    let world = World::new();
    let script = "echo mine > /etc/palisade-test && cat /etc/palisade-test && \
                  sed -i 's/.*/changed/' /etc/hostname && cat /etc/hostname && mkdir /etc/made && \
                  rm /etc/alternatives/* && ls /etc/alternatives && echo removed";
    let before = fs::read_to_string("/etc/hostname").unwrap();
    let output = inside(&world, &["--overlay", "/etc"], script);
    output.assert_code(0);
    assert_eq!(output.out(), "mine\nchanged\nremoved\n");
    assert!(!Path::new("/etc/palisade-test").exists());
    assert!(Path::new("/etc/alternatives").exists());
    assert_eq!(fs::read_to_string("/etc/hostname").unwrap(), before);
}

/// Proves: FS-5 looks-writable
#[test]
fn a_private_file_of_roots_stays_private_in_an_overlay() {
    let world = World::new();
    let script = "cat /etc/shadow 2>/dev/null | wc -c; cat /etc/gshadow 2>/dev/null | wc -c";
    let output = inside(&world, &["--overlay", "/etc"], script);
    assert_eq!(output.out(), "0\n0\n", "{}", output.err());
}

/// Proves: FS-5 looks-writable, FS-2 hidden
#[test]
fn secrets_are_absent_from_an_overlay() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/.config/gh/hosts.yml", "top secret\n");
    world.write("home/.config/app/settings", "harmless\n");
    let script = "cd ~; cat .ssh/id .config/gh/hosts.yml 2>/dev/null; cat .config/app/settings; \
                  ls -A .config";
    let output = inside(&world, &["--overlay", "~"], script);
    output.assert_code(0);
    assert_eq!(output.out(), "harmless\napp\n");
    assert_eq!(fs::read_to_string(world.home().join(".ssh/id")).unwrap(), "top secret\n");
}

/// Proves: FS-5 thrown-away
#[test]
fn an_overlay_of_the_project_keeps_the_project_as_it_was() {
    let world = World::new();
    world.write_in_project("source", "old\n");
    let script = "echo new > source; rm -rf .git; touch made; cat source";
    let output = inside(&world, &["--overlay", "."], script);
    output.assert_code(0);
    assert_eq!(output.out(), "new\n");
    assert_eq!(tree(&world.project()), [world.project().join("source").display().to_string()]);
    assert_eq!(fs::read_to_string(world.project().join("source")).unwrap(), "old\n");
}
