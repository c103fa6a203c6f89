use super::{Coming, GuardJudge, Judge as _};
use crate::merged_tree::MergedTree;
use crate::objection::Verdict;
use crate::test_overlay::TestOverlay;
use crate::{EntryKind, Layers};
use palisade_guard::{MatchContext, Matcher};
use std::fs;
use std::path::{Path, PathBuf};

fn judge() -> GuardJudge {
    let matcher = Matcher::new(MatchContext::default());
    GuardJudge::new(matcher, PathBuf::from("/project"), vec![PathBuf::from("my-hooks")])
}

fn verdict(layers: &Layers, path: &str, kind: EntryKind) -> Verdict {
    let target = (kind == EntryKind::Link).then_some(Path::new("elsewhere"));
    let coming = Coming { path: Path::new(path), kind, target };
    judge().judge(&MergedTree::new(layers), coming)
}

fn is_refused(layers: &Layers, path: &str, kind: EntryKind) -> bool {
    matches!(verdict(layers, path, kind), Verdict::Refused(_))
}

/// FS-9
#[test]
fn what_the_host_would_run_is_refused_by_name_and_by_structure() {
    let overlay = TestOverlay::new(|project| {
        for dir in [".git/hooks", "bare/objects", "bare/refs", "plain/hooks", "almost/objects"] {
            fs::create_dir_all(project.join(dir)).unwrap();
        }
        fs::write(project.join("almost/config"), "[core]\n\tfsmonitor = evil\n").unwrap();
    });
    overlay.session(|root| {
        // Makes `almost` a git directory.
        fs::create_dir(root.join("almost/refs")).unwrap();
        // Hides that `bare` is one.
        fs::remove_dir(root.join("bare/refs")).unwrap();
    });
    let layers = overlay.layers();
    let file = EntryKind::File;
    for refused in [
        ".envrc",
        "deep/.envrc",
        ".ENVRC",
        ".git/hooks/pre-commit",
        "bare/hooks/post-checkout",
        "almost/refs",
        "my-hooks-are-elsewhere/.vimrc",
        ".git/my-hooks/pre-commit",
        ".jj/repo",
    ] {
        assert!(is_refused(&layers, refused, file), "{refused}");
    }
    for allowed in
        ["src/main.rs", ".git/hooks/pre-commit.sample", "plain/hooks/pre-commit", ".git/index"]
    {
        assert_eq!(verdict(&layers, allowed, file), Verdict::Allowed, "{allowed}");
    }
    for by_contents in [".git/config", "bare/config", "almost/config.worktree"] {
        assert_eq!(verdict(&layers, by_contents, file), Verdict::ByContents, "{by_contents}");
        assert!(is_refused(&layers, by_contents, EntryKind::Link), "{by_contents} as a link");
    }
    assert!(is_refused(&layers, ".git/hooks", EntryKind::Link));
}

/// FS-9
#[test]
fn git_configuration_is_judged_by_what_it_says() {
    let overlay = TestOverlay::new(|project| fs::create_dir(project.join(".git")).unwrap());
    let layers = overlay.layers();
    let tree = MergedTree::new(&layers);
    let judged =
        |old, new: &[u8]| judge().judge_contents(&tree, Path::new(".git/config"), old, new).is_ok();
    assert!(judged(None, b"[user]\n\tname = somebody\n"));
    assert!(!judged(None, b"[core]\n\tfsmonitor = evil\n"));
    assert!(judged(
        Some(b"[core]\n\tfsmonitor = mine\n"),
        b"[core]\n\tfsmonitor = mine\n[user]\n\tname = somebody\n"
    ));
    assert!(!judged(Some(b"[core]\n\tfsmonitor = mine\n"), b"[core]\n\tfsmonitor = other\n"));
}

/// FS-9
#[test]
fn path_files_of_an_environment_are_judged_by_what_they_say() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("venv/lib/python3.12/site-packages")).unwrap();
        fs::write(project.join("venv/pyvenv.cfg"), "").unwrap();
    });
    let layers = overlay.layers();
    let path = "venv/lib/python3.12/site-packages/x.pth";
    assert_eq!(verdict(&layers, path, EntryKind::File), Verdict::ByContents);
    assert!(is_refused(&layers, path, EntryKind::Link));
    assert!(is_refused(&layers, "venv/lib/python3.12", EntryKind::Link));
    let tree = MergedTree::new(&layers);
    let judged = |new: &[u8]| judge().judge_contents(&tree, Path::new(path), None, new).is_ok();
    assert!(judged(b"/somewhere\n"));
    assert!(!judged(b"import evil\n"));
    assert_eq!(
        verdict(&layers, "new/lib/python3.12/site-packages/x.pth", EntryKind::File),
        Verdict::Allowed
    );
}
