//! Running sandboxes, as a person names them and is told of them.

use crate::commands::approve::text as columns;
use anyhow::bail;
use palisade_record::escape;
use palisade_session::runs::Announced;

/// What a person may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRun {
    pub(crate) session: String,
    pub(crate) command: String,
}

impl From<Announced> for NamedRun {
    fn from(run: Announced) -> Self {
        Self { session: run.session, command: run.command }
    }
}

/// Of a command line, to tell runs apart.
const COMMAND_CHARS: usize = 40;

/// The one run that is meant: by the beginning or the end of its session's name.
pub(crate) fn find(named: &str, running: &[NamedRun]) -> anyhow::Result<String> {
    let named = named.trim();
    let fits = |run: &&NamedRun| {
        !named.is_empty() && (run.session.starts_with(named) || run.session.ends_with(named))
    };
    let all = |runs: &mut dyn Iterator<Item = &NamedRun>| {
        runs.map(|run| format!("{} ({})", run.session, start(&run.command, COMMAND_CHARS)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match running.iter().filter(fits).collect::<Vec<_>>()[..] {
        [run] => Ok(run.session.clone()),
        [] if running.is_empty() => bail!("no run `{named}`: no sandbox of yours is running"),
        [] => bail!("no run `{named}`; these run: {}", all(&mut running.iter())),
        ref several => {
            bail!("`{named}` is ambiguous: {}", all(&mut several.iter().copied()))
        }
    }
}

/// The beginning of a text from a run, with a mark where it was cut.
fn start(text: &str, width: usize) -> String {
    let text = escape::text(text);
    if columns::width(&text) <= width {
        return text.into_owned();
    }
    let mut kept = columns::wrap(&text, width.saturating_sub(1)).swap_remove(0);
    kept.push('…');
    kept
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod tests;
