//! Puts runs on a terminal: the list, or everything about one of them, and the keys.

use super::Wanted;
use super::board::Row;
use super::text;
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    selected: usize,
    /// The run that the details are about.
    details: Option<String>,
    /// There is no list to go back to.
    is_single: bool,
    wants_details: bool,
}

impl Shown {
    pub(super) fn new(wanted: &Wanted) -> Self {
        let details = match wanted {
            Wanted::All => None,
            Wanted::One(session) => Some(session.clone()),
        };
        Self { selected: 0, is_single: details.is_some(), details, wants_details: false }
    }

    /// Follows what has become of the runs.
    pub(super) fn settle(&mut self, rows: &[Row]) {
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        if std::mem::take(&mut self.wants_details) {
            self.details = rows.get(self.selected).map(|row| row.session.clone());
        }
        if self.details.as_ref().is_some_and(|name| rows.iter().all(|row| row.session != *name)) {
            self.details = None;
        }
    }

    pub(super) fn up(&mut self) {
        self.selected = self.selected.saturating_sub(1);
    }

    /// Past the end is found out by [`Shown::settle`].
    pub(super) fn down(&mut self) {
        self.selected += 1;
    }

    pub(super) fn enter_details(&mut self) {
        self.wants_details = self.details.is_none();
    }

    /// Whether there were any to leave.
    pub(super) fn leave_details(&mut self) -> bool {
        !self.is_single && self.details.take().is_some()
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, rows: &[Row], shown: &Shown, coloured: bool) {
    let row = shown.details.as_ref().and_then(|name| rows.iter().find(|row| row.session == *name));
    let (mut lines, keys) = match row {
        Some(row) => {
            (details(row, coloured), if shown.is_single { "q quit" } else { "esc list   q quit" })
        }
        None => {
            (list(rows, shown, frame.area().height, coloured), "↑↓ select   enter details   q quit")
        }
    };
    let area = frame.area();
    lines.truncate(usize::from(area.height.saturating_sub(1)));
    for (y, line) in (area.y..).zip(&lines) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
    if area.height > 0 {
        let keys = Line::styled(format!(" {keys}"), colour(coloured, Color::Cyan));
        frame.buffer_mut().set_line(area.x, area.bottom() - 1, &keys, area.width);
    }
}

fn list(rows: &[Row], shown: &Shown, height: u16, coloured: bool) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let count = match rows.len() {
        0 => "no sandbox of yours is running".to_owned(),
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    let mut lines = vec![Line::styled(format!(" sandbox top: {count}"), bold)];
    if rows.is_empty() {
        lines.push(Line::raw(" What `sandbox run` starts will show up here."));
        return lines;
    }
    let mut table = text::table(rows).into_iter();
    let headings = table.next().map(|heading| heading.text).unwrap_or_default();
    lines.push(Line::styled(format!(" {headings}"), Style::new().add_modifier(Modifier::DIM)));
    // Title, headings and keys.
    let room = usize::from(height.saturating_sub(3)).max(1);
    let first = (shown.selected + 1).saturating_sub(room);
    for (index, line) in table.enumerate().skip(first).take(room) {
        let mut style = if line.is_near { colour(coloured, Color::Yellow) } else { Style::new() };
        if index == shown.selected {
            style = style.add_modifier(Modifier::REVERSED);
        }
        lines.push(Line::styled(format!(" {}", line.text), style));
    }
    lines
}

fn details(row: &Row, coloured: bool) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(" sandbox top", bold)];
    lines.extend(text::details(row).into_iter().map(|line| {
        let is_near = line.ends_with("  near");
        let style = if is_near { colour(coloured, Color::Yellow) } else { Style::new() };
        Line::styled(format!(" {line}"), style)
    }));
    lines
}

fn colour(coloured: bool, colour: Color) -> Style {
    if coloured { Style::new().fg(colour) } else { Style::new() }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
