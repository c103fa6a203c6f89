//! Converts the model's content to terminal output: for an empty screen, without margins or origin mode.

use super::looks::{Looks, number_of};
use super::pen::Look;

/// Draws every cell. Erased cells are erased again, with the background they had.
pub(super) fn contents(screen: &vt100::Screen, looks: &Looks, to: &mut Vec<u8>) {
    let (rows, columns) = screen.size();
    let mut last: Option<Look> = None;
    // What the cell before looked like, by its number.
    let mut last_number = None;
    // The cursor's column, if it is in this row.
    let mut at = None;
    to.extend_from_slice(b"\x1b[?7h");
    for row in 0..rows.get() {
        // A line that wrapped into this row does so again: the terminal joins such rows when they are copied.
        let goes_on = row > 0 && at == Some(columns.get()) && screen.row_wrapped(row - 1);
        at = goes_on.then_some(0);
        let mut column = 0;
        while let Some(cell) = (column < columns.get()).then(|| screen.cell(row, column)).flatten()
        {
            let number = number_of(cell);
            let width = if cell.is_wide() { 2 } else { 1 };
            let erased = count_erased(screen, (row, column), number);
            if erased > 0 {
                let background = looks.get(number).and_then(|look| look.attributes.background());
                if let Some(background) = background {
                    place((row, column), to);
                    to.extend_from_slice(&[b"\x1b[0;", background, b"m"].concat());
                    to.extend_from_slice(format!("\x1b[{erased}X").as_bytes());
                    last_number = None;
                }
                at = None;
                column += erased;
                continue;
            }
            if at != Some(column) {
                place((row, column), to);
            }
            if last_number != Some(number) {
                let look = look_of(looks, number);
                look.restore_after(last.as_ref(), to);
                (last, last_number) = (Some(look), Some(number));
            }
            to.extend_from_slice(cell.contents().as_bytes());
            column += width;
            at = Some(column);
        }
    }
    to.extend_from_slice(b"\x1b[?7l");
    Look::default().restore(to);
}

/// Restores the cursor position, also after the last column, where the next character wraps. Rows are counted from
/// `first`.
pub(super) fn cursor(screen: &vt100::Screen, looks: &Looks, first: u16, to: &mut Vec<u8>) {
    let columns = screen.size().1.get();
    let (row, column) = screen.cursor_position();
    let counted = row.saturating_sub(first);
    if column < columns {
        return place((counted, column), to);
    }
    // Only writing a character there moves the cursor after the last column.
    let is_half = screen.cell(row, columns - 1).is_some_and(vt100::Cell::is_wide_continuation);
    let last = columns.saturating_sub(if is_half { 2 } else { 1 });
    place((counted, last), to);
    let Some(cell) = screen.cell(row, last) else { return };
    look_of(looks, number_of(cell)).restore(to);
    let letter = if cell.has_contents() { cell.contents() } else { " " };
    to.extend_from_slice(letter.as_bytes());
}

fn look_of(looks: &Looks, number: u32) -> Look {
    looks.get(number).cloned().unwrap_or_default()
}

/// How many cells from here on are empty and have this look.
fn count_erased(screen: &vt100::Screen, (row, column): (u16, u16), number: u32) -> u16 {
    let is_erased = |column: &u16| {
        screen.cell(row, *column).is_some_and(|cell| {
            !cell.has_contents() && !cell.is_wide_continuation() && number_of(cell) == number
        })
    };
    let end = (column..screen.size().1.get()).find(|column| !is_erased(column));
    end.unwrap_or(screen.size().1.get()) - column
}

fn place((row, column): (u16, u16), to: &mut Vec<u8>) {
    to.extend_from_slice(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
}
