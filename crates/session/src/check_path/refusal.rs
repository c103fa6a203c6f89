//! Why a path was refused: each reason has a code for programs and a sentence for people.

use palisade_sys::SysError;
use std::path::PathBuf;

/// A path that must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the path is empty")]
    Empty,

    #[error("the path contains a NUL byte; the kernel would truncate it there")]
    Nul,

    #[error("{bytes} bytes long; the kernel takes {most}")]
    TooLong { bytes: usize, most: usize },

    #[error("absolute, and not below the root {}", root.display())]
    Outside { root: PathBuf },

    #[error("`..` leads out of the root {}", root.display())]
    Traversal { root: PathBuf },

    #[error("`..` follows {}, which does not exist", missing.display())]
    BehindMissing { missing: PathBuf },

    #[error("the link {} leads out of the root, to {}", link.display(), target.display())]
    LinkOutside { link: PathBuf, target: PathBuf },

    #[error("the link {} is one of /proc; the target of such a link is not a path", link.display())]
    MagicLink { link: PathBuf },

    #[error("more than {most} links, or a loop of links")]
    TooManyLinks { most: usize },

    #[error("{} is not a directory", path.display())]
    NotADirectory { path: PathBuf },

    #[error("{} is denied by {}", real_path.display(), rule.display())]
    Denied { rule: PathBuf, real_path: PathBuf },

    #[error(
        "{} has other names (hard links), and whether {} denies one of them cannot be told: {why}",
        real_path.display(), rule.display()
    )]
    OtherNames { rule: PathBuf, real_path: PathBuf, why: String },

    #[error("the tree changed during each of {tries} attempts; try again when it is not in use")]
    Unsettled { tries: u32 },

    #[error("the root was {} and no longer exists; repeat the check", root.display())]
    RootMoved { root: PathBuf },

    #[error("cannot read the mount table: {0}")]
    Mounts(String),

    #[error("cannot be looked at: {0}")]
    System(#[from] SysError),
}

impl Refusal {
    /// A code for programs; it stays the same when the sentence changes.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Nul => "nul",
            Self::TooLong { .. } => "too-long",
            Self::Outside { .. } => "outside",
            Self::Traversal { .. } => "traversal",
            Self::BehindMissing { .. } => "behind-missing",
            Self::LinkOutside { .. } => "link-outside",
            Self::MagicLink { .. } => "magic-link",
            Self::TooManyLinks { .. } => "too-many-links",
            Self::NotADirectory { .. } => "not-a-directory",
            Self::Denied { .. } => "denied",
            Self::OtherNames { .. } => "other-names",
            Self::Unsettled { .. } => "unsettled",
            Self::RootMoved { .. } => "root-moved",
            Self::Mounts(_) | Self::System(_) => "system",
        }
    }
}
