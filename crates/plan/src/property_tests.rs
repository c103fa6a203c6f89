//! For random grants and denials: what is denied never shows, and nothing is writable unasked.

use crate::PlanError;
use crate::fake::{FakeTree, inside, plan, policy, user};
use crate::model::{MountAccess, MountOp};
use palisade_policy::model::{Mode, Policy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::path::Path;

const PLACES: [&str; 12] = [
    "/home/u/.config",
    "/home/u/.config/app",
    "/home/u/.config/gh",
    "/home/u/.ssh",
    "/home/u/docs",
    "/home/u/docs/deep/er",
    "/home/u/docs/deep",
    "/home/u/linked",
    "/srv/data/a",
    "/srv/data",
    "/srv/data/a/b",
    "/opt/tool/bin",
];

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    for place in PLACES {
        tree.file(format!("{place}/file"), "");
    }
    tree.link("/home/u/alias", "docs/deep").link("/srv/link", "/home/u/.ssh");
    tree
}

fn some_places() -> impl Strategy<Value = Vec<String>> {
    subsequence(PLACES.to_vec(), 0..4)
        .prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

fn some_policy() -> impl Strategy<Value = Policy> {
    let modes = select(vec![Mode::Dynamic, Mode::Static]);
    (some_places(), some_places(), some_places(), some_places(), modes).prop_map(
        |(read_only, read_write, overlay, denied, mode)| {
            let mut policy = Policy { mode, ..policy() };
            policy.filesystem.read_only_paths = read_only;
            policy.filesystem.read_write_paths = read_write;
            policy.filesystem.overlay_paths = overlay;
            policy.filesystem.denied_paths = denied;
            policy
        },
    )
}

/// Host paths that an operation shows.
fn shown(op: &MountOp, tree: &FakeTree) -> Vec<std::path::PathBuf> {
    match op {
        MountOp::Bind { source, .. } => tree.paths_below(source),
        MountOp::Overlay { lower, hidden, .. } => {
            let is_hidden =
                |path: &Path| hidden.iter().any(|hidden| path.starts_with(lower.join(hidden)));
            tree.paths_below(lower).into_iter().filter(|path| !is_hidden(path)).collect()
        }
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_denied_is_ever_bound(policy in some_policy()) {
        let tree = tree();
        let plan = match plan(&policy, &user(), &tree) {
            Ok(plan) => plan,
            Err(error) => {
                prop_assert!(error.refused_by_policy(), "{}", error);
                let is_conflict = matches!(
                    error,
                    PlanError::DeniedInsideWritable { .. }
                        | PlanError::Contradiction { .. }
                        | PlanError::GrantedTwice { .. }
                        | PlanError::WorkingDirectory { .. }
                );
                prop_assert!(is_conflict, "{}", error);
                return Ok(());
            }
        };
        let filesystem = &policy.filesystem;
        let asked: Vec<&str> = [
            &filesystem.read_only_paths,
            &filesystem.read_write_paths,
            &filesystem.overlay_paths,
        ]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
        for op in &inside(&plan).mounts {
            for path in shown(op, &tree) {
                for denied in &filesystem.denied_paths {
                    prop_assert!(!path.starts_with(denied), "{op:?} shows {path:?}");
                }
                for secret in ["/home/u/.ssh", "/home/u/.config/gh"] {
                    let approved = asked.iter().any(|asked| Path::new(asked).starts_with(secret));
                    prop_assert!(approved || !path.starts_with(secret), "{op:?} shows {path:?}");
                }
            }
            if let MountOp::Bind { target, access: MountAccess::ReadWrite, .. } = op {
                let granted = filesystem.read_write_paths.iter().any(|path| target.starts_with(path));
                prop_assert!(granted || target == Path::new("/home/u/project"), "{op:?}");
            }
        }
    }
}
