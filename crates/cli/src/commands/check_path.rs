//! `sandbox check-path`: may a path be used, for scripts and programs that ask by command line.

use crate::output::{self, Paint, Style};
use clap::Args;
use palisade_record::escape;
use palisade_session::check_path::{CheckedPath, PathCheck, Refusal};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
Checks that each PATH stays below the root after every link in it is followed, and that it does \
not lead to something that is denied. Nothing is created or opened for reading. For a path that \
does not exist yet, the nearest existing directory is checked.

--deny PATH denies the path with everything below it, also through links, hard links and other \
mounts. With `*` or `?` (in one name) or `**` (any number of directories) it is a pattern. Upper \
and lower case differ.

The answer is true at the moment it is given. A program that uses the path while others can \
change the tree should call the library, which returns an open descriptor of what was checked.

Examples:
  sandbox check-path --root . src/main.rs
  sandbox check-path --root ~/project --deny .env --deny '**/*.pem' -- \"$path\" || exit
  sandbox check-path --root /srv/data --json a b

Exit codes: 0 all allowed, 1 at least one denied, 125 sandbox failed.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct CheckPath {
    /// The directory to stay below
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// What must not be reached: a path, relative to the root or absolute, or a pattern (repeatable)
    #[arg(long, value_name = "PATH")]
    deny: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Paths to check, relative to the root, or absolute and inside it
    // Not as `PathBuf`: clap takes an empty one for a mistake in usage, and it is a path to refuse.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
}

impl CheckPath {
    /// Ends with 1 if one of the paths is refused.
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let check = PathCheck::new(&self.root, &self.deny)?;
        let answers: Vec<_> =
            self.paths.iter().map(Path::new).map(|path| (path, check.check(path))).collect();
        if self.json {
            let answers = answers.iter().map(|(path, answer)| as_json(path, answer));
            output::print_json(&answers.collect::<Vec<_>>())?;
        } else {
            let paint = Paint::for_stdout();
            let lines = answers.iter().map(|(path, answer)| line(path, answer, paint));
            output::print(&lines.collect::<String>())?;
        }
        let refused = answers.iter().any(|(_, answer)| answer.is_err());
        Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn line(path: &Path, answer: &Result<CheckedPath, Refusal>, paint: Paint) -> String {
    let shown = |path: &Path| escape::text(&path.to_string_lossy()).into_owned();
    match answer {
        Ok(checked) => format!(
            "{} {} -> {}{}\n",
            paint.with(Style::Green, "allowed"),
            shown(path),
            shown(&checked.real_path),
            if checked.missing.as_os_str().is_empty() { "" } else { " (does not exist yet)" },
        ),
        Err(refusal) => format!(
            "{} {}: {}\n",
            paint.with(Style::Red, "denied"),
            shown(path),
            escape::text(&refusal.to_string())
        ),
    }
}

fn as_json(path: &Path, answer: &Result<CheckedPath, Refusal>) -> serde_json::Value {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    match answer {
        Ok(checked) => json!({
            "path": text(path),
            "allowed": true,
            "realPath": text(&checked.real_path),
            "exists": checked.missing.as_os_str().is_empty(),
        }),
        Err(refusal) => json!({
            "path": text(path),
            "allowed": false,
            "reason": refusal.reason(),
            "message": refusal.to_string(),
        }),
    }
}
