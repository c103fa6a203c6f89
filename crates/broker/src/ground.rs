//! Where calls are performed and where they are judged as well, by paths as the sandbox has them: the
//! longest mount that a path is below decides.

use palisade_plan::model::Guard;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Ground(Vec<Piece>);

#[derive(Debug)]
struct Piece {
    top: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of the host: every name is judged.
    Tree,
    /// Of the run's own, around a tree: Landlock has to withhold as much there, so calls are performed,
    /// but nothing is judged.
    Surrounding,
    /// Not of the tree around it: the kernel answers.
    Island,
}

/// What a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing<'g> {
    In(&'g Path),
    Unjudged,
    Elsewhere,
}

impl Ground {
    pub(crate) fn of(guard: Option<&Guard>) -> Self {
        let piece = |kind| move |top: &PathBuf| Piece { top: top.clone(), kind };
        let mut pieces: Vec<Piece> = Vec::new();
        if let Some(guard) = guard {
            pieces.extend(guard.trees.iter().map(piece(Kind::Tree)));
            pieces.extend(guard.surroundings.iter().map(piece(Kind::Surrounding)));
            pieces.extend(guard.islands.iter().map(piece(Kind::Island)));
        }
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.top.as_os_str().len()));
        Self(pieces)
    }

    pub(crate) fn standing(&self, path: &Path) -> Standing<'_> {
        let Some(piece) = self.0.iter().find(|piece| path.starts_with(&piece.top)) else {
            return Standing::Elsewhere;
        };
        match piece.kind {
            Kind::Tree => Standing::In(&piece.top),
            Kind::Surrounding => Standing::Unjudged,
            Kind::Island => Standing::Elsewhere,
        }
    }
}
