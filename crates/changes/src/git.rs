//! Recognises git directories by their structure, and what git would run from them. The rules are those by which the
//! broker judges writes (`broker/src/git.rs`); here they are asked about a finished tree.

use crate::entry::EntryKind;
use crate::merged_tree::MergedTree;
use crate::objection::{Objection, Verdict};
use palisade_guard::comparable;
use palisade_guard::gitconfig::{self, ConfigLocation};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Larger than any real configuration. Larger files are not judged, and so refused.
pub(crate) const MAX_CONFIG_BYTES: usize = 1 << 20;

const CONFIGS: [&str; 2] = ["config", "config.worktree"];
const OLD_REMOTES: [&str; 2] = ["remotes", "branches"];

/// Names with a meaning in a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Config,
    Hooks,
    /// `remotes` and `branches`: where remotes were kept before there was configuration, and still may be.
    OldRemotes,
    /// `lazygit.yml`: settings of a program that works on the repository.
    ToolSettings,
    /// Together with the others of its kind, it makes a directory a git directory.
    Marker,
    Itself,
}

impl Part {
    /// Also matches as a case-insensitive file system would.
    fn of(name: &OsStr) -> Option<Self> {
        const PARTS: [(&str, Part); 11] = [
            ("config", Part::Config),
            ("config.worktree", Part::Config),
            ("hooks", Part::Hooks),
            ("remotes", Part::OldRemotes),
            ("branches", Part::OldRemotes),
            ("lazygit.yml", Part::ToolSettings),
            ("HEAD", Part::Marker),
            ("objects", Part::Marker),
            ("refs", Part::Marker),
            ("commondir", Part::Marker),
            (".git", Part::Itself),
        ];
        let name = comparable(name.as_bytes());
        let part = PARTS.iter().find(|(text, _)| name.eq_ignore_ascii_case(text.as_bytes()));
        part.map(|(_, part)| *part)
    }
}

/// What comes to a path. `target` is that of a link.
pub(crate) fn judge(
    tree: &MergedTree<'_>,
    path: &Path,
    kind: EntryKind,
    target: Option<&Path>,
) -> Verdict {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Verdict::Allowed;
    };
    let dir_part = dir.file_name().and_then(Part::of);
    let is_run = match dir_part {
        Some(Part::Hooks) => is_hook(name) && kind != EntryKind::Directory,
        Some(Part::OldRemotes) => true,
        _ => false,
    };
    if is_run && dir.parent().is_some_and(|above| is_git_directory(tree, above)) {
        return Verdict::Refused(hook_denied());
    }
    if let Some(target) = target
        && !stays_below(target.as_os_str().as_bytes())
        && dir.ancestors().any(|above| is_git_directory(tree, above))
    {
        return Verdict::Refused(link_denied());
    }
    let is_directory = kind == EntryKind::Directory;
    match Part::of(name) {
        Some(Part::Config) if is_git_directory(tree, dir) => match kind {
            EntryKind::File => Verdict::ByContents,
            EntryKind::Directory => Verdict::Allowed,
            _ => Verdict::Refused(config_denied()),
        },
        Some(Part::Hooks) if !is_directory && is_git_directory(tree, dir) => {
            Verdict::Refused(hook_denied())
        }
        Some(Part::ToolSettings) if is_git_directory(tree, dir) => {
            Verdict::Refused(tool_settings_denied())
        }
        Some(Part::OldRemotes) if !is_directory && is_git_directory(tree, dir) => {
            Verdict::Refused(config_denied())
        }
        Some(Part::Marker) if is_git_directory(tree, dir) && !was_git_directory(tree, dir) => {
            match objection_to_adopting(tree, dir) {
                Some(objection) => Verdict::Refused(objection),
                None => Verdict::Allowed,
            }
        }
        _ => Verdict::Allowed,
    }
}

/// The new content of a configuration file. `project` is where the tree is.
pub(crate) fn judge_config(
    tree: &MergedTree<'_>,
    project: &Path,
    path: &Path,
    old: Option<&[u8]>,
    new: &[u8],
) -> Result<(), Objection> {
    let dir = path.parent().unwrap_or(Path::new(""));
    // What was no configuration of git before is judged as a whole.
    let old = old.filter(|_| was_git_directory(tree, dir));
    let git_dir = project.join(dir);
    let place = ConfigLocation { git_dir: &git_dir, tree: project, worktree: None };
    gitconfig::judge_at(old, new, &place)
        .map_err(|refused| Objection::new("git config", refused.to_string()))
}

/// Named `.git`, or with the parts by which git recognises one.
pub(crate) fn is_git_directory(tree: &MergedTree<'_>, dir: &Path) -> bool {
    is_named_git(dir) || has_parts(|name| tree.exists(&dir.join(name)))
}

fn was_git_directory(tree: &MergedTree<'_>, dir: &Path) -> bool {
    (is_named_git(dir) && tree.existed(dir)) || has_parts(|name| tree.existed(&dir.join(name)))
}

pub(crate) fn is_named_git(dir: &Path) -> bool {
    dir.file_name().and_then(Part::of) == Some(Part::Itself)
}

/// As git's `is_git_directory()` would find it, or as another repository's `commondir` would use it.
fn has_parts(has: impl Fn(&str) -> bool) -> bool {
    (has("objects") && has("refs")) || (has("HEAD") && has("commondir"))
}

/// A directory becomes a git directory: what is in it already begins to count.
fn objection_to_adopting(tree: &MergedTree<'_>, dir: &Path) -> Option<Objection> {
    let hooks: PathBuf = dir.join("hooks");
    if tree.names(&hooks).iter().any(|name| {
        is_hook(name) && tree.kind_before(&hooks.join(name)) != Some(EntryKind::Directory)
    }) {
        return Some(hook_denied());
    }
    if OLD_REMOTES.iter().any(|name| !tree.names(&dir.join(name)).is_empty()) {
        return Some(config_denied());
    }
    if tree.exists(&dir.join("lazygit.yml")) {
        return Some(tool_settings_denied());
    }
    CONFIGS.iter().map(|name| dir.join(name)).find_map(|config| {
        if !tree.existed(&config) {
            return None;
        }
        match tree.content_before(&config, MAX_CONFIG_BYTES) {
            Some(content) => gitconfig::judge(None, &content)
                .err()
                .map(|refused| Objection::new("git config", refused.to_string())),
            None => Some(config_denied()),
        }
    })
}

/// A hook git would run by this name.
fn is_hook(name: &OsStr) -> bool {
    !comparable(name.as_bytes()).to_ascii_lowercase().ends_with(b".sample")
}

/// Whether a link stays below its directory: git creates only such links.
fn stays_below(target: &[u8]) -> bool {
    !target.starts_with(b"/") && target.split(|byte| *byte == b'/').all(|name| name != b"..")
}

pub(crate) fn hook_denied() -> Objection {
    Objection::new("git hooks", "git runs its hooks on the host")
}

fn link_denied() -> Objection {
    Objection::new("git links", "git on the host would write where the link leads")
}

fn config_denied() -> Objection {
    let why = "git configuration can name programs, which git runs on the host";
    Objection::new("git config", why)
}

fn tool_settings_denied() -> Objection {
    Objection::new("lazygit.yml", "lazygit runs what its settings in a git directory name")
}
