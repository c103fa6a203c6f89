//! Which directory is the project, and how it was found.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    pub root: PathBuf,
    pub found_by: FoundBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoundBy {
    Git,
    /// A name from `resources/view/markers.txt`.
    Marker(&'static str),
    #[default]
    WorkingDirectory,
}

impl Display for FoundBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git => f.write_str("git root"),
            Self::Marker(name) => write!(f, "found by {name}"),
            Self::WorkingDirectory => f.write_str("the working directory"),
        }
    }
}
