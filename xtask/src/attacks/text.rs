//! The table for people at a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use super::page::without;
use super::table::{Outcome, Row, Table};

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Prints it, in colours on a terminal only.
pub(super) fn print(table: &Table) {
    let painter = Painter { in_colours: std::io::stdout().is_terminal() };
    print!("{}", painter.render(table));
}

struct Painter {
    in_colours: bool,
}

impl Painter {
    fn render(&self, table: &Table) -> String {
        let mut text = String::new();
        let width = table.attacks.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let heading = format!(
            "{:4} {:width$}  {:6} {:9} {:9} gets through only without",
            "id", "attack", "bare", "as root", "as user"
        );
        let _ = writeln!(text, "{}", self.paint(DIM, &heading));
        for row in &table.attacks {
            let bare = if row.no_bare_run.is_some() { "-" } else { bare(row) };
            let _ = writeln!(
                text,
                "{:4} {:width$}  {:6} {} {} {}",
                row.id,
                row.name,
                bare,
                self.outcome(row, "root"),
                self.outcome(row, "user"),
                without(row)
            );
        }
        let _ = writeln!(text, "\n{}", self.paint(DIM, "layer and the attacks in whose set it is"));
        for layer in &table.layers {
            let _ = writeln!(text, "{:20} {}", layer.name, layer.attacks.join(" "));
        }
        let put_off: Vec<String> = table
            .corpus
            .iter()
            .filter(|entry| entry.attacks == 0)
            .filter_map(|entry| Some(format!("{} ({})", entry.id, entry.later.as_ref()?.part)))
            .collect();
        if !put_off.is_empty() {
            let _ = writeln!(text, "\ncome with a later part: {}", put_off.join(", "));
        }
        for wrong in &table.wrong {
            let _ = writeln!(text, "{} {wrong}", self.paint(RED, "red:"));
        }
        let covered = table.corpus.iter().filter(|entry| entry.attacks > 0).count();
        let _ = writeln!(
            text,
            "\n{} attacks on {covered} of {} ids, {} red",
            table.attacks.len(),
            table.corpus.len(),
            table.wrong.len()
        );
        text
    }

    fn outcome(&self, row: &Row, by: &str) -> String {
        let (colour, word) = match row.outcomes.get(by) {
            Some(Outcome::Held) => (GREEN, "held"),
            Some(Outcome::Red(_)) => (RED, "RED"),
            Some(Outcome::NotTried) => (DIM, "not tried"),
            None => (DIM, "-"),
        };
        self.paint(colour, &format!("{word:9}"))
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.in_colours { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }
}

fn bare(row: &Row) -> &'static str {
    let was_tried = row.outcomes.values().any(|outcome| *outcome == Outcome::Held);
    match (was_tried, row.is_red()) {
        (_, true) => "?",
        (true, false) => "works",
        (false, false) => "-",
    }
}
