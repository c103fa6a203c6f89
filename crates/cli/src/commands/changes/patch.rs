//! Choosing changes one by one, as `git add -p` does it. Nothing is applied here.

use crate::output::{self, Paint, Style};
use palisade_record::escape;
use palisade_session::transaction::WaitingChanges;
use palisade_session::transaction::changes::{
    Change, ChangeSet, FileHunks, Hunk, HunkLine, RenderOptions, Selection, hunks, quoted,
    write_unified,
};
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal as _};
use std::path::PathBuf;

const HELP: &str = "\
y - apply this
n - leave it as it is on the host
a - apply this and everything that follows
d - leave this file, or what is left of it
q - leave this and everything that follows
? - this help";

/// What somebody says to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    All,
    RestOfFile,
    Quit,
}

/// The changes that somebody chooses. None if none of them.
pub(crate) fn choose(waiting: &WaitingChanges) -> anyhow::Result<Option<Selection>> {
    let set = waiting.scan()?;
    let mut dialogue = Dialogue { input: io::stdin().lock(), standing: None };
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut parts = Vec::new();
    // A directory comes with what is chosen in it.
    for change in set.changes().iter().filter(|change| !change.is_directory()) {
        match hunks(waiting.layers(), change)? {
            Some(file) if file.hunks().len() > 1 => {
                let chosen = dialogue.ask_for_hunks(change, &file)?;
                if chosen.len() == file.hunks().len() {
                    paths.push(change.path.clone());
                } else if !chosen.is_empty() {
                    parts.push(file.choose(&chosen));
                }
            }
            _ => {
                if dialogue.ask_for_file(waiting, &set, change)? {
                    paths.push(change.path.clone());
                }
            }
        }
    }
    let is_empty = paths.is_empty() && parts.is_empty();
    let selection = parts.into_iter().fold(Selection::paths(&paths), Selection::with_hunks);
    Ok((!is_empty).then_some(selection))
}

struct Dialogue<Input> {
    input: Input,
    /// For everything that follows.
    standing: Option<Answer>,
}

impl<Input: BufRead> Dialogue<Input> {
    fn ask_for_file(
        &mut self,
        waiting: &WaitingChanges,
        set: &ChangeSet,
        change: &Change,
    ) -> anyhow::Result<bool> {
        if self.standing.is_none() {
            let mut one = set.clone();
            one.retain(|other| other.path == change.path);
            let options = RenderOptions { colour: colour(), to_terminal: true };
            write_unified(waiting.layers(), &one, options, &mut io::stdout().lock())?;
        }
        let question = format!("Apply {}", escape::text(&quoted(&change.path)));
        Ok(matches!(self.ask(&question)?, Answer::Yes | Answer::All))
    }

    fn ask_for_hunks(
        &mut self,
        change: &Change,
        file: &FileHunks,
    ) -> anyhow::Result<BTreeSet<usize>> {
        let name = escape::text(&quoted(&change.path)).into_owned();
        let count = file.hunks().len();
        let mut chosen = BTreeSet::new();
        for (number, hunk) in file.hunks().iter().enumerate() {
            if self.standing.is_none() {
                output::print(&shown(hunk, Paint::for_stdout()))?;
            }
            match self.ask(&format!("Apply this part ({} of {count}) of {name}", number + 1))? {
                Answer::Yes | Answer::All => drop(chosen.insert(number)),
                Answer::No => {}
                Answer::RestOfFile | Answer::Quit => break,
            }
        }
        Ok(chosen)
    }

    fn ask(&mut self, question: &str) -> anyhow::Result<Answer> {
        if let Some(standing) = self.standing {
            return Ok(standing);
        }
        loop {
            output::question(&format!("{question} [y,n,a,d,q,?]? "));
            let mut line = String::new();
            // Whoever says nothing more wants nothing more.
            let is_end = self.input.read_line(&mut line)? == 0;
            let answer = match line.trim() {
                "y" | "yes" => Answer::Yes,
                "n" | "no" => Answer::No,
                "a" => Answer::All,
                "d" => Answer::RestOfFile,
                "q" => Answer::Quit,
                _ if is_end => Answer::Quit,
                _ => {
                    HELP.lines().for_each(output::note);
                    continue;
                }
            };
            if matches!(answer, Answer::All | Answer::Quit) {
                self.standing = Some(answer);
            }
            return Ok(answer);
        }
    }
}

fn colour() -> bool {
    io::stdout().is_terminal() && output::colour_wanted()
}

fn shown(hunk: &Hunk, paint: Paint) -> String {
    let mut text = format!("{}\n", hunk.header());
    for line in &hunk.lines {
        let (mark, style, bytes) = match line {
            HunkLine::Context(bytes) => (' ', Style::Plain, bytes),
            HunkLine::Removed(bytes) => ('-', Style::Red, bytes),
            HunkLine::Added(bytes) => ('+', Style::Green, bytes),
        };
        let content = String::from_utf8_lossy(bytes);
        let content = escape::text(content.trim_end_matches('\n'));
        text.push_str(&paint.with(style, &format!("{mark}{content}")));
        text.push('\n');
    }
    text
}
