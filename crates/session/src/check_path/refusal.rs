//! Why a path was refused: each reason has a word for programs and a sentence for people.

use palisade_sys::SysError;
use std::path::PathBuf;

/// A path that must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the path is empty")]
    Empty,

    #[error("the path holds a NUL byte; the kernel would end it there")]
    Nul,

    #[error("{bytes} bytes long; the kernel takes {most}")]
    TooLong { bytes: usize, most: usize },

    #[error("absolute, and not below the root {}", root.display())]
    Outside { root: PathBuf },

    #[error("`..` leads out of the root {}", root.display())]
    Traversal { root: PathBuf },

    #[error("`..` stands behind {}, which does not exist", missing.display())]
    BehindMissing { missing: PathBuf },

    #[error("the link {} leads out of the root, to {}", link.display(), target.display())]
    LinkOutside { link: PathBuf, target: PathBuf },

    #[error("the link {} is one of /proc; such a link need not lead where it says", link.display())]
    MagicLink { link: PathBuf },

    #[error("more than {most} links on the way, or links in a circle")]
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

    #[error("the tree changed under {tries} tries to look at it; try again when it is quiet")]
    Unsettled { tries: u32 },

    #[error("the root was {} and is no longer there; make the check anew", root.display())]
    RootMoved { root: PathBuf },

    #[error("what is mounted where cannot be read: {0}")]
    Mounts(String),

    #[error("cannot be looked at: {0}")]
    System(#[from] SysError),
}

impl Refusal {
    /// One word for programs; it does not change with the sentence.
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
