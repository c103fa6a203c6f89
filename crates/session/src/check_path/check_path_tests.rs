use super::*;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

/// A root with a file, directories and links in it, and a secret beside it.
struct TestTree {
    directory: tempfile::TempDir,
}

impl TestTree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self { directory };
        fs::create_dir_all(place.root().join("dir/sub")).unwrap();
        fs::create_dir_all(place.path().join("outside")).unwrap();
        fs::write(place.root().join("file"), "").unwrap();
        fs::write(place.root().join("dir/file"), "").unwrap();
        fs::write(place.path().join("outside/secret"), "").unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.root().join(name)).unwrap();
    }

    fn check(&self, denied: &[&str], path: impl AsRef<Path>) -> Result<CheckedPath, Refusal> {
        PathCheck::new(&self.root(), denied).unwrap().check(path.as_ref())
    }

    #[track_caller]
    fn leads(&self, path: impl AsRef<Path>, expected: &str) {
        let checked = self.check(&[], &path).unwrap();
        assert_eq!(checked.real_path, join(&self.root(), expected), "{}", path.as_ref().display());
        assert_eq!(checked.missing, Path::new(""));
        let named = fs::metadata(self.root().join(expected)).unwrap();
        let held = walk::stat(&checked.descriptor).unwrap();
        assert_eq!((held.st_dev, held.st_ino), (named.dev(), named.ino()));
    }

    #[track_caller]
    fn refuses(&self, denied: &[&str], path: impl AsRef<Path>, reason: &str) {
        let refusal = self.check(denied, &path).unwrap_err();
        assert_eq!(refusal.reason(), reason, "{}: {refusal}", path.as_ref().display());
    }
}

fn join(root: &Path, below: &str) -> PathBuf {
    if below.is_empty() { root.to_owned() } else { root.join(below) }
}

/// Proves: FS-4 library
#[test]
fn a_path_inside_is_handed_back_as_a_descriptor() {
    let place = TestTree::new();
    place.leads("file", "file");
    place.leads("./dir//sub/../file", "dir/file");
    place.leads("dir/", "dir");
    place.leads(".", "");
    place.leads(place.root(), "");
    place.leads(place.root().join("dir/./file"), "dir/file");
    let file = place.check(&[], "file").unwrap();
    let opened = format!("/proc/self/fd/{}", file.descriptor.as_raw_fd());
    fs::write(opened, "written by descriptor").unwrap();
    assert_eq!(fs::read_to_string(place.root().join("file")).unwrap(), "written by descriptor");
}

/// Proves: FS-4 traversal
#[test]
fn what_can_be_no_path_below_the_root_is_refused() {
    let place = TestTree::new();
    place.refuses(&[], "", "empty");
    place.refuses(&[], "dir/\0/../../x", "nul");
    place.refuses(&[], "x/".repeat(2048), "too-long");
    place.refuses(&[], "x".repeat(256), "too-long");
    for path in ["..", "../outside/secret", "dir/../../root/file", "dir/sub/../../.."] {
        place.refuses(&[], path, "traversal");
    }
    for path in [place.path(), place.path().join("outside/secret"), place.path().join("rootless")] {
        place.refuses(&[], path, "outside");
    }
    place.refuses(&[], place.root().join("../outside/secret"), "traversal");
    place.refuses(&[], "file/x", "not-a-directory");
    place.refuses(&[], "file/..", "not-a-directory");
}

/// Proves: FS-4 links
#[test]
fn links_that_stay_inside_are_followed() {
    let place = TestTree::new();
    place.link("dir", "relative");
    place.link(place.root().join("dir/sub"), "absolute");
    place.link("relative/../absolute", "chain");
    place.link("chain", "dir/sub/file-of-chain");
    place.leads("relative/file", "dir/file");
    place.leads("absolute", "dir/sub");
    place.leads("absolute/../file", "dir/file");
    place.leads("chain", "dir/sub");
    place.link(place.root(), "self");
    place.leads("self/self/file", "file");
}

/// Proves: FS-4 links, FS-4 traversal
#[test]
fn links_that_lead_out_are_refused() {
    let place = TestTree::new();
    place.link("../outside", "relative");
    place.link(place.path().join("outside"), "absolute");
    place.link(place.root().join("../outside"), "through-the-root");
    place.link("relative/secret", "chain");
    place.link("/", "top");
    for path in ["relative/secret", "absolute/secret", "through-the-root/secret", "chain", "top"] {
        place.refuses(&[], path, "link-outside");
        place.refuses(&[], place.root().join(path), "link-outside");
    }
    place.link("../outside/not-there-yet", "dangling");
    place.refuses(&[], "dangling", "link-outside");
    place.link(place.root(), "dir/back");
    place.refuses(&[], "dir/sub/../back/../x", "link-outside");
    place.link("circle", "circle");
    place.refuses(&[], "circle", "too-many-links");
}

/// Proves: FS-4 links
#[test]
fn a_link_of_proc_is_never_believed() {
    let check = PathCheck::new(Path::new("/proc/self"), [""; 0]).unwrap();
    for path in ["root/etc/passwd", "cwd", "fd/0", "exe"] {
        let refusal = check.check(Path::new(path)).unwrap_err();
        assert_eq!(refusal.reason(), "magic-link", "{path}");
    }
}

/// Proves: FS-4 library, FS-4 links
#[test]
fn what_does_not_exist_yet_is_judged_by_the_nearest_directory() {
    let place = TestTree::new();
    place.link("dir/sub/new", "dangling");
    place.link(place.root().join("fresh"), "absolute");
    for (path, real, missing) in [
        ("new", "new", "new"),
        ("dir/new/deeper/file", "dir/new/deeper/file", "new/deeper/file"),
        ("dangling", "dir/sub/new", "new"),
        ("dangling/x", "dir/sub/new/x", "new/x"),
        ("absolute/x", "fresh/x", "fresh/x"),
    ] {
        let checked = place.check(&[], path).unwrap();
        assert_eq!(checked.real_path, place.root().join(real));
        assert_eq!(checked.missing, Path::new(missing));
        let parent = walk::real_path(&checked.descriptor).unwrap();
        assert_eq!(parent.join(missing), place.root().join(real));
        assert!(!place.root().join(real).exists(), "{path} was made");
    }
    place.refuses(&[], "new/../../root/file", "traversal");
    place.refuses(&[], "new/../file", "behind-missing");
}

/// Proves: FS-4 denied-paths
#[test]
fn a_denied_path_is_denied_by_every_name() {
    let place = TestTree::new();
    place.link("dir/file", "alias");
    place.link("dir", "dir-alias");
    place.link("alias", "alias-of-alias");
    fs::hard_link(place.root().join("dir/file"), place.root().join("hard")).unwrap();
    let names = [
        "dir/file",
        "dir//./file/",
        "dir/sub/../file",
        "alias",
        "alias-of-alias",
        "dir-alias/file",
        "hard",
    ];
    let absolute = place.root().join("dir/file");
    for denied in ["dir/file", "dir", "alias", "dir-alias", absolute.to_str().unwrap(), "**/fil*"] {
        for name in names {
            place.refuses(&[denied], name, "denied");
        }
    }
    place.check(&["dir/file"], "dir/sub").unwrap();
    place.check(&["dir/FILE"], "dir/file").unwrap();
    place.check(&["dir/fil"], "dir/file").unwrap();
    place.check(&["*/file"], "file").unwrap();
}

/// Proves: FS-4 denied-paths
#[test]
fn a_hard_link_of_something_outside_that_is_denied_is_denied() {
    let place = TestTree::new();
    let secret = place.path().join("outside/secret");
    fs::hard_link(&secret, place.root().join("innocent")).unwrap();
    place.refuses(&[secret.to_str().unwrap()], "innocent", "denied");
    place.refuses(&["../outside"], "innocent", "denied");
    place.check(&["dir"], "innocent").unwrap();
}

/// Proves: FS-4 denied-paths
#[test]
fn what_is_denied_and_does_not_exist_cannot_be_made() {
    let place = TestTree::new();
    place.link("dir/sub", "short");
    place.refuses(&["dir/sub/new"], "short/new", "denied");
    place.refuses(&["short/new"], "dir/sub/new/deeper", "denied");
    place.refuses(&["**/.env"], "dir/sub/.env", "denied");
    place.check(&["short/new"], "dir/sub/newer").unwrap();
}

/// Proves: FS-4 denied-paths
#[test]
fn a_denied_directory_stays_denied_when_it_is_moved() {
    let place = TestTree::new();
    let check = PathCheck::new(&place.root(), ["dir"]).unwrap();
    fs::rename(place.root().join("dir"), place.root().join("elsewhere")).unwrap();
    let refusal = check.check(Path::new("elsewhere/file")).unwrap_err();
    assert_eq!(refusal.reason(), "denied");
    assert_eq!(check.check(Path::new("dir/file")).unwrap_err().reason(), "denied");
}

#[test]
fn a_root_that_is_moved_or_no_directory_is_an_error() {
    let place = TestTree::new();
    PathCheck::new(&place.root().join("file"), [""; 0]).unwrap_err();
    let check = PathCheck::new(&place.root(), [""; 0]).unwrap();
    fs::rename(place.root(), place.path().join("away")).unwrap();
    assert_eq!(check.check(Path::new("file")).unwrap_err().reason(), "root-moved");
}

#[test]
fn a_root_may_be_named_through_a_link() {
    let place = TestTree::new();
    symlink(place.root(), place.path().join("short")).unwrap();
    let check = PathCheck::new(&place.path().join("short"), ["dir/file"]).unwrap();
    let by_link = place.path().join("short/dir");
    assert_eq!(check.check(&by_link).unwrap().real_path, place.root().join("dir"));
    assert_eq!(check.check(&by_link.join("file")).unwrap_err().reason(), "denied");
}

/// Where a container's filter refuses openat2, the walk alone has to come to the same answer.
/// Proves: FS-4 links
#[test]
fn without_the_kernels_help_the_answer_is_the_same() {
    let place = TestTree::new();
    place.link("dir", "in");
    place.link("../outside", "out");
    place.link("in/sub/../file", "chain");
    let check = PathCheck::new(&place.root(), [""; 0]).unwrap();
    for path in ["file", "in/file", "out/secret", "chain", "in/../file", "new", "file/x", "."] {
        let by_kernel = check.check(Path::new(path)).map(|checked| checked.real_path);
        let by_hand = check.check_with(Path::new(path), walk::by_hand);
        assert_eq!(by_kernel, by_hand.map(|checked| checked.real_path), "{path}");
    }
}
