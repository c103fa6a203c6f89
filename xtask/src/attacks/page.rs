//! `docs/attacks.md`. Says what the tests declare, once no line of it is red, and nothing that differs
//! from machine to machine: neither times, nor what a kernel happened to lack.

use std::fmt::Write as _;

use super::table::{Coverage, LayerUse, Row, Table};

/// The groups of the corpus, by the letter of their ids.
const GROUPS: [(char, &str); 6] = [
    ('F', "Files, links, mounts"),
    ('P', "/proc, descriptors, processes"),
    ('K', "Kernel surface"),
    ('N', "Network"),
    ('H', "Handing back"),
    ('R', "Resources, set-up, policy"),
];

const INTRODUCTION: &str = "# Attacks

Written by `cargo xtask attacks`; do not edit. Each line is an attack that the tests try in earnest: on
the bare host, where it must work; inside, where it must not; and inside with layers switched off. The
last column is the smallest set of layers whose absence lets it through: with the whole set off it works
again, with any smaller set off it does not. `as root +` names layers that stand only where root starts
the sandbox. The sets are those of a kernel with Landlock's sixth version (6.12) or a newer one; on an
older kernel Landlock drops out of some of them.

Where no layer's absence lets an attack through, the column says what holds it instead. Layers come off
only in a build of the tests' own (cargo feature `layers-off`).
";

/// The page.
pub(super) fn render(table: &Table) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (letter, title) in GROUPS {
        let mut rows = table.attacks.iter().filter(|row| row.id.starts_with(letter)).peekable();
        if rows.peek().is_some() {
            let _ = write!(page, "\n## {title}\n\n");
            page.push_str("| id | attack | bare | inside | gets through only without |\n");
            page.push_str("| --- | --- | --- | --- | --- |\n");
            rows.for_each(|row| page.push_str(&line(row)));
        }
    }
    page.push_str("\n## Layers\n\nEvery layer, and the attacks in whose set it is.\n\n");
    page.push_str("| layer | what it is | attacks |\n| --- | --- | --- |\n");
    for LayerUse { name, what, attacks } in &table.layers {
        let _ = writeln!(page, "| {name} | {} | {} |", cell(what), attacks.join(" "));
    }
    page.push_str("\n## The corpus\n\nEvery kind of attack, and where it stands.\n\n");
    page.push_str("| id | what is tried | safe outcome | here |\n| --- | --- | --- | --- |\n");
    for entry in &table.corpus {
        let Coverage { id, what, safe, .. } = entry;
        let _ = writeln!(page, "| {id} | {} | {} | {} |", cell(what), cell(safe), standing(entry));
    }
    page
}

fn line(row: &Row) -> String {
    let bare = match &row.no_bare_run {
        None => "works".to_owned(),
        Some(reason) => format!("not shown: {}", cell(reason)),
    };
    let mut name = cell(&row.name);
    if let Some(needs) = &row.needs {
        let _ = write!(name, " *(needs {})*", cell(needs));
    }
    format!("| {} | {name} | {bare} | held | {} |\n", row.id, cell(&without(row)))
}

/// With what off it gets through, for both callers.
pub(super) fn without(row: &Row) -> String {
    if let Some(what_holds) = &row.by_design {
        return format!("no layer: {what_holds}{}", only(row));
    }
    match (&row.as_root, &row.as_user) {
        (Some(root), Some(user)) if root == user => user.join(" + "),
        (Some(root), Some(user)) if user.iter().all(|layer| root.contains(layer)) => {
            let more: Vec<&str> =
                root.iter().filter(|layer| !user.contains(layer)).map(String::as_str).collect();
            format!("{} (as root + {})", user.join(" + "), more.join(" + "))
        }
        (Some(root), Some(user)) => {
            format!("as root: {}; as user: {}", root.join(" + "), user.join(" + "))
        }
        (Some(layers), None) | (None, Some(layers)) => {
            format!("{}{}", layers.join(" + "), only(row))
        }
        (None, None) => String::new(),
    }
}

fn only(row: &Row) -> String {
    let reason = row.one_caller.as_deref().unwrap_or_default();
    match (&row.as_root, &row.as_user) {
        (Some(_), None) => format!(" (as root only: {reason})"),
        (None, Some(_)) => format!(" (as user only: {reason})"),
        _ => String::new(),
    }
}

fn standing(entry: &Coverage) -> String {
    let tried = match entry.attacks {
        0 => String::new(),
        1 => "1 attack".to_owned(),
        count => format!("{count} attacks"),
    };
    match &entry.later {
        None => tried,
        Some(later) if tried.is_empty() => {
            format!("comes with {}: {}", later.part, cell(&later.why))
        }
        Some(later) => {
            format!("{tried}; the rest comes with {}: {}", later.part, cell(&later.why))
        }
    }
}

/// Text that can stand in a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
