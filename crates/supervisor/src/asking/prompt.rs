//! The text of a question in the run's own terminal, and the rows in which it is drawn (GATE-8, GATE-11).
//!
//! Must never show text from inside unescaped. Colours are direct RGB values, so that no palette changes them.

use super::Backdrop;
use super::choice::choices;
use super::panel::{Legible, Note, Panel, State};
use crate::screen::Behind;
use palisade_ask::{Access, Act, Question, Subject};
use palisade_record::escape;
use rustix::termios::Winsize;
use std::fmt::Write as _;

/// Colours of the panel, the same on light and dark terminals.
const BASE: &str = "\x1b[0;38;2;232;232;232;48;2;32;36;48m";
const STRONG: &str = "\x1b[0;1;38;2;255;255;255;48;2;32;36;48m";
const FAINT: &str = "\x1b[0;38;2;170;176;190;48;2;32;36;48m";
const HEAD: &str = "\x1b[0;1;38;2;255;255;255;48;2;40;80;140m";
/// For a secret.
const RED: &str = "\x1b[0;1;38;2;255;255;255;48;2;176;0;0m";
const PLAIN: &str = "\x1b[0m";
const BOLD: &str = "\x1b[0;1m";
/// Synchronized output: the terminal shows nothing in between.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// Terminals that know no colours, by the beginning of their names in terminfo(5).
const MONOCHROME: [&str; 7] = ["dumb", "vt1", "vt2", "vt3", "vt4", "vt5", "ansi-m"];

/// A smaller terminal has room for one row only.
const MIN_COLUMNS: usize = 24;
const MIN_ROWS: usize = 10;
/// Precedes the request in a question with one row.
const ONE_ROW_KEYS: &str = "yn? ";
/// Program names are truncated to this.
const MAX_NAME_LEN: usize = 32;
/// The minimum room for a path, even on the smallest screen.
const MIN_PATH_WIDTH: usize = 24;

/// For a screen that a program uses: a bell, and the window's title, which is saved on xterm's stack meanwhile.
pub(super) const TITLE: &str =
    "\x1b[22;2t\x1b]2;palisade: a question waits (sandbox approve)\x07\x07";
pub(super) const TITLE_BACK: &str = "\x1b[23;2t";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Yes,
    No,
}

impl Colour {
    /// As defined by <https://no-color.org>.
    pub(super) fn of_environment() -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let term = std::env::var_os("TERM").unwrap_or_default();
        let is_monochrome =
            MONOCHROME.iter().any(|name| term.as_encoded_bytes().starts_with(name.as_bytes()));
        if is_unwanted || is_monochrome { Self::No } else { Self::Yes }
    }
}

/// The area on which a question is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) colour: Colour,
    /// Whether what is behind may move up, so that its last rows can be read above the panel.
    pub(super) behind: Behind,
}

impl Page {
    /// A terminal that does not know its size reports 0.
    pub(super) fn of_terminal(size: Winsize, backdrop: Backdrop) -> Self {
        let or = |number: u16, classic| if number == 0 { classic } else { usize::from(number) };
        Self {
            columns: or(size.ws_col, 80),
            rows: or(size.ws_row, 24),
            colour: match backdrop {
                Backdrop::Known => Colour::of_environment(),
                Backdrop::AsItIs => Colour::No,
            },
            behind: Behind::Stays,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Styles {
    base: &'static str,
    strong: &'static str,
    faint: &'static str,
    head: &'static str,
    secret: &'static str,
}

impl Styles {
    fn of(colour: Colour) -> Self {
        match colour {
            Colour::Yes => {
                Self { base: BASE, strong: STRONG, faint: FAINT, head: HEAD, secret: RED }
            }
            Colour::No => {
                Self { base: PLAIN, strong: BOLD, faint: PLAIN, head: BOLD, secret: BOLD }
            }
        }
    }
}

/// Rows of text, wrapped at the full width.
#[derive(Debug)]
struct Rows {
    columns: usize,
    used: usize,
    rows: Vec<String>,
}

impl Rows {
    fn new(columns: usize) -> Self {
        Self { columns: columns.max(2), used: 0, rows: Vec::new() }
    }

    fn begin(&mut self, style: &str, text: &str) {
        self.rows.push(String::new());
        self.used = 0;
        self.add(style, text);
    }

    fn add(&mut self, style: &str, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.push_str(style);
        }
        for c in text.chars() {
            if self.used + width(c) > self.columns || self.rows.is_empty() {
                self.rows.push(style.to_owned());
                self.used = 0;
            }
            self.used += width(c);
            if let Some(row) = self.rows.last_mut() {
                row.push(c);
            }
        }
    }

    /// Text that is broken between its words, and in one that has no room in a row.
    fn add_words(&mut self, style: &str, text: &str) {
        for word in text.split_inclusive(' ') {
            let needed = columns_of(word.trim_end());
            if self.used + needed > self.columns && needed < self.columns / 2 {
                self.begin(style, "          ");
            }
            self.add(style, word);
        }
    }

    /// A group that stays in one row.
    fn add_group(&mut self, key: (&str, &str), word: (&str, &str)) {
        let needed = columns_of(key.1) + columns_of(word.1);
        if self.used + needed > self.columns {
            self.begin(word.0, " ");
        }
        self.add(key.0, key.1);
        self.add(word.0, word.1);
    }
}

/// Adapts the panel to what fits on the page, and lays its rows out. It always fits on the screen: a path that is too long
/// loses its middle, never its end.
pub(super) fn lay_out(
    panel: &mut Panel,
    question: &Question,
    others: usize,
    page: Page,
) -> Vec<String> {
    let styles = Styles::of(page.colour);
    let whole = panel.fit(|panel| {
        let has_room = page.columns >= MIN_COLUMNS && page.rows >= MIN_ROWS;
        let whole = has_room.then(|| full(panel, question, others, page, styles).rows);
        match whole.filter(|rows| rows.len() <= page.rows) {
            Some(rows) => (Legible::All, Some(rows)),
            None => (legible_in_one_row(question, page), None),
        }
    });
    whole.unwrap_or_else(|| vec![one_row(panel, question, page, styles)])
}

/// Draws rows in the last rows of a terminal of this size.
pub(super) fn picture(rows: &[String], page: Page) -> String {
    let base = Styles::of(page.colour).base;
    let first = page.rows.saturating_sub(rows.len()) + 1;
    let mut text = BEGIN.to_owned();
    if let Behind::MovesUp { free_rows } = page.behind {
        let needed = rows.len().saturating_sub(free_rows);
        let _ = write!(text, "\x1b[{};1H{}", page.rows, "\n".repeat(needed));
    }
    for (index, row) in rows.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "\x1b[{};1H{base}\x1b[2K{row}{base}", first + index);
    }
    text + END
}

/// How much of the question one row shows.
fn legible_in_one_row(question: &Question, page: Page) -> Legible {
    let file = question.subject.file();
    let has_other_paths = file.is_some_and(|file| !file.also.is_empty() || file.new_path.is_some());
    let (verb, what) = wanted(&question.subject);
    let needed = ONE_ROW_KEYS.len() + verb.len() + 1 + columns_of(&what);
    Legible::OneRow { shows_whole_path: needed <= page.columns && !has_other_paths }
}

fn full(panel: &Panel, question: &Question, others: usize, page: Page, styles: Styles) -> Rows {
    let room = Room::of(question, page);
    let mut rows = Rows::new(page.columns);
    let head = if question.is_secret { styles.secret } else { styles.head };
    let title = match question.is_secret {
        true => " sandbox: a question about a SECRET ",
        false => " sandbox: a question ",
    };
    rows.begin(head, title);
    let rest = page.columns.saturating_sub(columns_of(title));
    rows.add(
        head,
        &match page.colour {
            Colour::Yes => " ".repeat(rest),
            Colour::No => "-".repeat(rest),
        },
    );
    let (verb, what) = wanted(&question.subject);
    rows.begin(head, "?");
    rows.add(styles.base, &format!(" {} wants to {verb} ", program(question)));
    let what = cut(&what, room.path);
    match question.is_secret {
        true => rows.add(styles.secret, &format!("the secret {what}")),
        false => rows.add(styles.strong, &what),
    }
    let file = question.subject.file();
    if let Some(new) = file.and_then(|file| file.new_path.as_deref()) {
        rows.add(styles.base, " to ");
        rows.add(styles.strong, &cut(&shown(new), room.each_other));
    }
    for also in file.map(|file| file.also.as_slice()).unwrap_or_default() {
        rows.add(styles.base, &format!(" with {}", cut(&shown(also), room.each_other)));
    }
    if let Some(file) = file.filter(|file| file.is_tree()) {
        // Opening a directory once gives access to all of it while it is open.
        let is_listed = file.act == Act::Read;
        let given = if file.may_be_once() && !is_listed { "for longer than once: " } else { "" };
        rows.begin(styles.faint, &format!("  {given}all of "));
        rows.add(styles.base, &cut(&format!("{}/**", shown(&file.path)), room.each_other));
        if file.entry.is_some() {
            rows.add(styles.faint, " writable");
        }
    }
    if let Some(file) = file.filter(|file| file.is_name_only) {
        rows.begin(
            styles.faint,
            match file.access {
                Access::Write => "  only this name: something in its directory is hidden",
                _ => {
                    "  only that it exists: something in it is hidden, files in it are asked about"
                }
            },
        );
    }
    let own = file.filter(|file| file.is_directory).map(|file| &file.path);
    let directory = file.and_then(|file| file.directory.as_ref());
    if let Some(directory) = directory.filter(|directory| own != Some(directory)) {
        rows.begin(styles.faint, "  directory: ");
        let directory = cut(&format!("{}/**", shown(directory)), room.each_other);
        rows.add(styles.base, &directory);
        if file.is_some_and(|file| file.access == Access::Write) {
            rows.add(styles.faint, " writable");
        }
    }
    if others > 0 {
        rows.begin(styles.faint, &format!("  {others} more waiting, also in `sandbox approve`"));
    }
    if panel.shows_help() {
        for choice in choices(question) {
            let key = match question.is_secret {
                true => choice.typed.to_owned(),
                false => choice.key.to_string(),
            };
            rows.begin(styles.strong, &format!("  {key:<8}"));
            rows.add_words(styles.base, choice.meaning);
        }
        rows.begin(styles.faint, "  why asked: ");
        rows.add_words(styles.base, &cut(&escape::text(&question.reason), room.each_other));
        if let Some(patience) = question.patience() {
            let seconds = patience.as_secs();
            rows.begin(styles.faint, &format!("  denied without an answer after {seconds} s"));
        }
    }
    answers(&mut rows, panel, question, styles);
    rows
}

/// The possible answers, the input, and what happened to it.
fn answers(rows: &mut Rows, panel: &Panel, question: &Question, styles: Styles) {
    let chord = panel.chord().name();
    rows.begin(styles.faint, " ");
    let others =
        [("?", " explain "), (&chord, " look at the program "), ("Ctrl-C", " interrupt it")];
    for (key, word) in others {
        rows.add_group((styles.strong, &format!(" {key}")), (styles.faint, word));
    }
    let note = match panel.note() {
        Note::Nothing => None,
        Note::TooFast => {
            Some("key ignored: it came too soon or too fast; wait a moment".to_owned())
        }
        Note::Pasted => Some("pasted text is not an answer".to_owned()),
        Note::Unknown => Some("not an answer here".to_owned()),
        Note::AloneOnly => Some("press Enter once more".to_owned()),
        Note::NoRoom => Some("no room to explain: enlarge the terminal".to_owned()),
    };
    if let Some(note) = note {
        rows.begin(styles.strong, &format!("  {note}"));
    }
    rows.begin(styles.base, " ");
    match panel.state() {
        State::Choosing if question.is_secret => {
            let words: Vec<&str> = choices(question)
                .map(|choice| choice.typed)
                .filter(|word| !word.is_empty())
                .collect();
            let (last, first) = words.split_last().unwrap_or((&"no", &[]));
            let words = format!("{} or {last}", first.join(", "));
            rows.add(styles.base, &format!(" Type {words}, then Enter: "));
            rows.add(styles.strong, panel.word());
        }
        State::Choosing => {
            for choice in choices(question) {
                let key = format!(" {}", choice.key);
                rows.add_group((styles.strong, &key), (styles.base, &format!(" {} ", choice.word)));
            }
        }
        State::Confirming(choice) => {
            rows.add(styles.strong, &format!(" {}: ", choice.meaning));
            rows.add(styles.base, "press Enter to confirm, another key to go back");
        }
    }
}

/// For a terminal without room for more. What is not shown cannot be granted there.
fn one_row(panel: &Panel, question: &Question, page: Page, styles: Styles) -> String {
    let (verb, what) = wanted(&question.subject);
    let keys: String = match question.is_secret {
        true if panel.word().is_empty() => "no? SECRET ".to_owned(),
        true => format!("no? {} SECRET ", panel.word()),
        false => panel.choices(question).map(|choice| choice.key).chain("? ".chars()).collect(),
    };
    let head = if question.is_secret { styles.secret } else { styles.head };
    let room = page.columns.saturating_sub(keys.len() + verb.len() + 1);
    let what = if columns_of(&what) <= room { what } else { end_of(&what, room) };
    format!("{head}{keys}{}{verb} {what}", styles.base)
}

/// The end of a text that fits after an ellipsis.
fn end_of(text: &str, room: usize) -> String {
    let mut used = width('…');
    let fits = |c: &char| {
        used += width(*c);
        used <= room
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// The requested action and its object.
fn wanted(subject: &Subject) -> (&'static str, String) {
    match subject {
        Subject::File(file) => (file.verb(), shown(file.named())),
        Subject::Host(host) => ("connect to", escape::text(&host.to_string()).into_owned()),
    }
}

/// The columns available for the paths of a question.
#[derive(Clone, Copy, Debug)]
struct Room {
    path: usize,
    each_other: usize,
}

impl Room {
    fn of(question: &Question, page: Page) -> Self {
        /// Around a path: the words before it and its length; or a label and the length.
        const WORDS: usize = 56;
        const LABEL: usize = 36;
        let file = question.subject.file();
        // Half of a wide character does not fit at the end of a row.
        let columns = page.columns.saturating_sub(1).max(1);
        let keys: usize = 1 + choices(question).map(|choice| choice.word.len() + 4).sum::<usize>();
        // Besides the keys: the title, waiting questions, other keys and a note, which take two rows on a narrow page.
        let rows = page.rows.saturating_sub(keys.div_ceil(columns) + 7);
        let others = file.map_or(0, |file| {
            file.also.len()
                + usize::from(file.new_path.is_some())
                + usize::from(file.directory.is_some())
                + usize::from(file.is_directory)
        });
        let half = rows.div_ceil(2) * columns;
        // Each may end in the middle of a row.
        let each_other = ((rows / 2) * columns).checked_div(others).unwrap_or(0);
        Self {
            path: half.saturating_sub(WORDS + columns_of(&program(question))).max(MIN_PATH_WIDTH),
            each_other: each_other.saturating_sub(LABEL + columns / 2).max(MIN_PATH_WIDTH),
        }
    }
}

/// The maximum number of columns of a character.
fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

fn columns_of(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The beginning and the end of a text that does not fit, and its length. The end of a path is more informative.
fn cut(text: &str, room: usize) -> String {
    if columns_of(text) <= room {
        return text.to_owned();
    }
    let within = |columns: usize| {
        let mut used = 0;
        move |c: &char| {
            used += width(*c);
            used <= columns
        }
    };
    let beginning: String = text.chars().take_while(within(room / 3)).collect();
    let end: Vec<char> = text.chars().rev().take_while(within(room - room / 3)).collect();
    let end: String = end.into_iter().rev().collect();
    format!("{beginning}…{end} ({} characters)", text.chars().count())
}

/// The question in one line, where it cannot be asked here: for `sandbox approve`.
pub(super) fn notice(question: &Question) -> String {
    format!("waiting: {}; answer with `sandbox approve`", summary(question))
}

/// Which program requests what. Without its arguments, which may contain secrets.
pub(super) fn summary(question: &Question) -> String {
    let (verb, mut what) = wanted(&question.subject);
    if let Some(new) = question.subject.file().and_then(|file| file.new_path.as_deref()) {
        what.push_str(" to ");
        what.push_str(&shown(new));
    }
    format!("{} wants to {verb} {what}", program(question))
}

/// Quoted, so that a name cannot look like our own words.
fn program(question: &Question) -> String {
    let Some(process) = question.processes.first() else { return "a program".to_owned() };
    let name = process.executable.rsplit('/').next().unwrap_or_default();
    let mut kept = String::new();
    for c in name.chars() {
        kept.push(c);
        if escape::text(&kept).chars().count() > MAX_NAME_LEN {
            kept.pop();
            kept.push('…');
            break;
        }
    }
    format!("{} ({})", escape::quoted(&kept), process.pid)
}

fn shown(path: &std::path::Path) -> String {
    escape::bytes(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
pub(super) mod tests;
