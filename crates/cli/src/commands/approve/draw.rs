//! Puts the board on a terminal: the list, the details of one question, the keys.
//!
//! Every text from a question is escaped here, and a secret says so in words as well as in red.

use super::board::{Board, Mode, Pending};
use super::row::Row;
use super::{answers, help, text};
use jiff::Timestamp;
use palisade_ask::{Access, FileSubject, Process, Question, Subject};
use palisade_record::escape;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Below this nothing can be read.
const NARROWEST: u16 = 30;
const LABEL: usize = 11;
/// Most verbs fit in it, so that the list rarely moves sideways.
const MIN_VERB_WIDTH: usize = 7;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) coloured: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }

    fn secret(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Of the colours that can be read on a light and on a dark background.
    fn notice(self) -> Style {
        self.colour(Color::Magenta).add_modifier(Modifier::BOLD)
    }
}

/// The time, twice: one for what was said a moment ago, one for what people read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) monotonic: Instant,
    pub(crate) wall: Timestamp,
}

pub(crate) fn draw(frame: &mut Frame<'_>, board: &mut Board, theme: Theme, now: Moment) {
    let area = frame.area();
    if area.width < NARROWEST || area.height < 8 {
        put(frame, area, 0, &Line::raw("too small"));
        return;
    }
    if *board.mode() == Mode::Help {
        help::lines(usize::from(area.height)).iter().enumerate().for_each(|(at, line)| {
            put(frame, area, u16::try_from(at).unwrap_or(area.height), &Line::raw(line.as_str()));
        });
        return;
    }
    let keys = keys(board, usize::from(area.width) - 2);
    let list_height = list_height(board.rows().len(), area.height, keys.len());
    let title = title(board, usize::from(list_height));
    put(frame, area, 0, &Line::styled(title, Style::new().add_modifier(Modifier::BOLD)));
    draw_list(frame, below(area, 1, list_height), board, theme, now.wall);
    let footer = u16::try_from(keys.len() + 1).unwrap_or(area.height).min(area.height);
    let detail_top = 1 + list_height;
    let detail_height = area.height.saturating_sub(detail_top + footer);
    draw_detail(frame, below(area, detail_top, detail_height), board, theme, now.wall);
    let asked = asked(board);
    if let Some(said) = asked.as_deref().or_else(|| board.said(now.monotonic)) {
        let said = text::middle_cut(&escape::text(said), usize::from(area.width) - 1);
        put(frame, area, area.height.saturating_sub(footer), &Line::styled(said, theme.notice()));
    }
    for (at, line) in keys.into_iter().enumerate() {
        let line = Line::raw(format!(" {line}"));
        let at = 1 + u16::try_from(at).unwrap_or(0);
        put(frame, area, area.height.saturating_sub(footer) + at, &line);
    }
}

/// What the line above the keys says while a mode waits for a key.
fn asked(board: &Board) -> Option<String> {
    match board.mode() {
        Mode::List if !board.word().is_empty() => Some(format!("then Enter: {}_", board.word())),
        Mode::List | Mode::Help => None,
        Mode::Confirm(pending) => {
            Some(format!("{}: press Enter to confirm", pending_told(pending)))
        }
        Mode::Search => Some(format!("/{}_", board.sought())),
        Mode::Like => Some("answer all questions that have this in common:".to_owned()),
        Mode::Group(group) => Some(format!("{}: one answer to all of them", group.told())),
    }
}

fn pending_told(pending: &Pending) -> String {
    match pending {
        Pending::Answer { answer, .. } => answers::told(*answer).to_owned(),
        Pending::AnswerAll { group, answer } => {
            format!("{}: {}", group.told(), answers::told(*answer))
        }
        Pending::Save { store, .. } => format!("save this session's answers for the {store}"),
    }
}

fn title(board: &Board, list_height: usize) -> String {
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    };
    match (board.sessions(), board.count()) {
        (0, _) => " sandbox approve: no questions".to_owned(),
        (sessions, 0) => {
            format!(" sandbox approve: {}, no question", count(sessions, "session"))
        }
        (sessions, questions) => {
            let place = match board.rows().len() {
                rows if !board.sought().is_empty() => {
                    format!("; {rows} with `{}`", escape::text(board.sought()))
                }
                rows if rows > list_height => format!("; {} of {rows}", board.selected_index() + 1),
                _ => String::new(),
            };
            let (questions, sessions) = (count(questions, "question"), count(sessions, "session"));
            format!(" sandbox approve: {questions} in {sessions}{place}")
        }
    }
}

/// Half of what there is, or all but what the details of a question usually take.
fn list_height(rows: usize, height: u16, keys: usize) -> u16 {
    const DETAILS: u16 = 14;
    let keys = u16::try_from(keys).unwrap_or(0);
    let room = height.saturating_sub(keys + 2);
    let most = (room / 2).max(room.saturating_sub(DETAILS)).max(2);
    u16::try_from(rows).unwrap_or(most).clamp(1, most)
}

fn below(area: Rect, top: u16, height: u16) -> Rect {
    Rect { y: area.y + top, height, ..area }.intersection(area)
}

fn put(frame: &mut Frame<'_>, area: Rect, y: u16, line: &Line<'_>) {
    if y < area.height {
        frame.buffer_mut().set_line(area.x, area.y + y, line, area.width);
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, board: &Board, theme: Theme, now: Timestamp) {
    if board.rows().is_empty() {
        let text = if board.count() == 0 {
            " What a `sandbox run` asks for will show up here."
        } else {
            " Nothing matches; Esc shows everything."
        };
        put(frame, area, 0, &Line::raw(text));
        return;
    }
    let height = usize::from(area.height);
    let first = (board.selected_index() + 1).saturating_sub(height);
    let width = usize::from(area.width);
    let addresses = board.rows().iter().map(|row| row.address.chars().count()).max().unwrap_or(0);
    let verbs = board.rows().iter().map(|row| wanted(&row.question.subject).0.len()).max();
    let widths = Widths { addresses, verbs: verbs.unwrap_or(0).max(MIN_VERB_WIDTH), line: width };
    let visible = board.rows().iter().enumerate().skip(first).take(height);
    for (at, (index, row)) in visible.enumerate() {
        let mut style = if row.question.is_secret { theme.secret() } else { Style::new() };
        if index == board.selected_index() {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let mark = if board.is_marked(row) { "*" } else { " " };
        let line = list_line(row, mark, widths, now);
        put(frame, area, u16::try_from(at).unwrap_or(0), &Line::styled(line, style));
    }
}

/// Columns of the list.
#[derive(Clone, Copy, Debug)]
struct Widths {
    addresses: usize,
    verbs: usize,
    line: usize,
}

fn list_line(row: &Row, mark: &str, widths: Widths, now: Timestamp) -> String {
    let Widths { addresses, verbs, line } = widths;
    let (verb, what) = wanted(&row.question.subject);
    let left = left(&row.question, now).map_or_else(String::new, |left| format!("{left} "));
    let address = escape::text(&row.address);
    let secret = if row.question.is_secret { "SECRET " } else { "" };
    let start = format!("{mark}{address:<addresses$}  {secret}{verb:<verbs$} ");
    let room = line.saturating_sub(text::width(&start) + text::width(&left) + 1);
    let what = text::end(&what, room);
    let gap = room.saturating_sub(text::width(&what)) + 1;
    format!("{start}{what}{}{left}", " ".repeat(gap))
}

fn draw_detail(frame: &mut Frame<'_>, area: Rect, board: &mut Board, theme: Theme, now: Timestamp) {
    let width = usize::from(area.width);
    let rule = Line::styled("─".repeat(width), Style::new().add_modifier(Modifier::DIM));
    put(frame, area, 0, &rule);
    let Some(row) = board.selected() else { return };
    let lines = detail(row, theme, width, now);
    let room = usize::from(area.height.saturating_sub(1));
    board.limit_scroll(lines.len().saturating_sub(room));
    let hidden = lines.len().saturating_sub(board.scroll() + room);
    for (at, line) in lines.into_iter().skip(board.scroll()).take(room).enumerate() {
        put(frame, area, u16::try_from(at + 1).unwrap_or(area.height), &line);
    }
    if hidden > 0 {
        let more = format!(" {hidden} more lines: space ");
        let x = width.saturating_sub(text::width(&more) + 2);
        let at = Rect { x: area.x + u16::try_from(x).unwrap_or(0), ..area }.intersection(area);
        put(frame, at, 0, &Line::styled(more, theme.notice()));
    }
}

/// In a word, and whole.
fn wanted(subject: &Subject) -> (String, String) {
    match subject {
        Subject::File(file) => (file.verb().to_owned(), path(file.named())),
        Subject::Host(host) => ("connect".to_owned(), escape::text(&host.to_string()).into_owned()),
    }
}

/// What would be granted stands first, whole; who wants it and why after it.
fn detail(row: &Row, theme: Theme, width: usize, now: Timestamp) -> Vec<Line<'static>> {
    let question = &row.question;
    let file = question.subject.file();
    let mut sheet = Sheet { lines: Vec::new(), width };
    let plain = Style::new();
    let granted = if question.is_secret { theme.secret() } else { plain };
    if question.is_secret {
        sheet.add("", "THIS IS A SECRET: anyone who reads it can act in your name", granted);
    }
    let (verb, what) = wanted(&question.subject);
    sheet.add(&verb, &what, granted.add_modifier(Modifier::BOLD));
    if let Some(new) = file.and_then(|file| file.new_path.as_deref()) {
        sheet.add("to", &path(new), plain.add_modifier(Modifier::BOLD));
    }
    match file {
        Some(file) if file.entry.is_some() && file.may_last() => {
            let all = format!("for longer than once: all of {}/** writable", path(&file.path));
            sheet.add("", &all, plain);
        }
        Some(file) if file.is_name_only && file.access == Access::Write => {
            sheet.add("", "only this name: something in its directory is hidden", plain);
        }
        Some(file) if file.is_name_only => {
            sheet.add("", "only that it exists: something in it is hidden", plain);
        }
        Some(file) if file.is_tree() => {
            sheet.add("", "a directory, with everything below it", plain);
        }
        _ => {}
    }
    for needed in file.map(|file| file.also.as_slice()).unwrap_or_default() {
        sheet.add("and with it", &path(needed), plain);
    }
    if let Some(directory) = question.offered() {
        let is_written = file.is_some_and(|file| file.access == Access::Write);
        let writable = if is_written { " writable" } else { "" };
        sheet.add("directory", &format!("{}/**{writable}", path(directory)), plain);
    }
    sheet.add("why asked", &escape::text(&question.reason), plain);
    if let Some(process) = question.processes.first() {
        sheet.process(process, file.map(|file| file.operation.as_str()));
    }
    let waiting = question.requests.len();
    if waiting > 1 && file.is_some() {
        let pids: Vec<String> =
            question.processes.iter().map(|process| process.pid.to_string()).collect();
        let of = if pids.len() == 1 { "process" } else { "processes" };
        let calls = format!("{waiting} calls, of {of} {}", pids.join(", "));
        sheet.add("waiting", &calls, plain);
    }
    sheet.add("session", &escape::text(&row.command), plain);
    sheet.add("", &format!("in {}", escape::text(&row.project)), plain);
    if let Some(left) = left(question, now) {
        sheet.add("no answer", &format!("denied automatically in {left}"), plain);
    }
    sheet.lines
}

struct Sheet {
    lines: Vec<Line<'static>>,
    width: usize,
}

impl Sheet {
    fn add(&mut self, label: &str, value: &str, style: Style) {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let room = self.width.saturating_sub(LABEL + 3);
        for (at, piece) in text::wrap(value, room).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            self.lines.push(Line::from(vec![
                Span::styled(format!(" {label:<LABEL$} "), dim),
                Span::styled(piece, style),
            ]));
        }
    }

    fn process(&mut self, process: &Process, operation: Option<&str>) {
        let plain = Style::new();
        let mut by = format!("{} (process {})", escape::text(&process.executable), process.pid);
        if let Some(operation) = operation {
            by = format!("{by}, by {}", escape::text(operation));
        }
        self.add("wanted by", &by, plain);
        let arguments: Vec<String> =
            process.arguments.iter().map(|argument| escape::quoted(argument)).collect();
        self.add("command", &arguments.join(" "), plain);
        self.add("working in", &escape::text(&process.cwd), plain);
        for (depth, ancestor) in process.ancestors.iter().rev().enumerate() {
            let label = if depth == 0 { "started by" } else { "" };
            let branch = if depth == 0 {
                String::new()
            } else {
                format!("{}└ ", " ".repeat(depth.min(8)))
            };
            self.add(
                label,
                &format!("{branch}{} ({})", escape::text(&ancestor.name), ancestor.pid),
                plain,
            );
        }
    }
}

fn path(path: &Path) -> String {
    escape::bytes(path.as_os_str().as_bytes())
}

/// Minutes and seconds until it is denied without an answer.
fn left(question: &Question, now: Timestamp) -> Option<String> {
    let seconds = question.expires_at?.duration_since(now).as_secs().max(0);
    Some(format!("{}:{:02}", seconds / 60, seconds % 60))
}

/// The keys that mean something now.
fn keys(board: &Board, columns: usize) -> Vec<String> {
    let keys: Vec<String> = match board.mode() {
        Mode::List | Mode::Help => list_keys(board).into_iter().map(str::to_owned).collect(),
        Mode::Confirm(_) => vec!["Enter confirm".to_owned(), "any other key: back".to_owned()],
        Mode::Search => vec!["Enter keep".to_owned(), "Esc show everything".to_owned()],
        Mode::Like => {
            let groups = board.groups().into_iter();
            let groups = groups.map(|(key, group)| format!("{key} {}", group.told()));
            groups.chain(["Esc back".to_owned()]).collect()
        }
        Mode::Group(_) => ["y once", "s session", "a always", "n no", "x never", "Esc back"]
            .map(str::to_owned)
            .to_vec(),
    };
    let cut = keys.iter().map(|key| text::middle_cut(key, columns)).collect::<Vec<_>>();
    text::fill(&cut, columns)
}

fn list_keys(board: &Board) -> Vec<&'static str> {
    let mut keys: Vec<&str> = Vec::new();
    if let Some(Row { question, .. }) = board.selected() {
        let file = question.subject.file();
        match question.is_secret {
            true => keys.extend(["type yes (once), session, no or never, then Enter"]),
            false => {
                let once = file.is_none_or(FileSubject::may_be_once).then_some("y once");
                let longer = ["s session", "a always"].into_iter();
                keys.extend(once);
                keys.extend(longer.filter(|_| file.is_none_or(FileSubject::may_last)));
            }
        }
        if question.offered().is_some() {
            keys.extend(["d directory", "D directory always"]);
            if file.is_some_and(|file| file.access == Access::Read) {
                keys.push("e and run");
            }
        }
        if !question.is_secret && file.is_some_and(|file| file.may_be_copied) {
            keys.push("c copy");
        }
        if !question.is_secret {
            keys.extend(["n no", "x never"]);
        }
        if board.rows().len() > 1 {
            keys.push("= all alike");
        }
        keys.push("j/k move");
    }
    if board.count() > 1 {
        keys.push("/ search");
    }
    if board.sessions() > 0 {
        keys.push("w save");
    }
    keys.extend(["? help", "q quit"]);
    keys
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
