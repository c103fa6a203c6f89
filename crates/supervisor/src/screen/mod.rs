//! Tracks the state of the terminal from the command's output, so that a question can be shown over it and removed
//! again (GATE-11).
//!
//! It only observes: the output goes to the terminal unchanged. It costs almost nothing while no question is open.

mod attributes;
mod drawing;
mod looks;
mod model;
mod modes;
mod palette;
mod pen;
mod scan;
mod tab_stops;

pub(crate) use model::Size;

use model::{Drawn, Model};
use modes::Modes;
use scan::Scanner;

/// Leaves the alternate screen and restores the cursor position.
const LEAVE: &[u8] = b"\x1b[?1049l";
/// Saves the cursor and enters the alternate screen.
const ENTER: &[u8] = b"\x1b[?1049h";
/// Ends an unfinished sequence, then plain text and no link.
const RESET: &[u8] = b"\x18\x1b\\\x1b[0m\x1b]8;;\x1b\\";
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

#[derive(Debug)]
pub(crate) struct Screen {
    scanner: Scanner,
    modes: Modes,
    model: Model,
    size: Size,
}

/// What is written before and after a question.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Before it: sets the terminal to a known state with the same content.
    pub(crate) before: Vec<u8>,
    /// Draws the same content again, after the window was resized.
    pub(crate) again: Vec<u8>,
    /// After it: restores everything.
    pub(crate) after: Vec<u8>,
    pub(crate) behind: Behind,
}

/// What happens to the terminal's content while a question covers a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behind {
    #[default]
    Stays,
    /// It is a copy, since the terminal itself keeps the main screen. It moves up by as many rows as the question needs
    /// beyond the free rows below it.
    MovesUp { free_rows: usize },
}

impl Screen {
    pub(crate) fn new(size: Size) -> Self {
        Self { scanner: Scanner::default(), modes: Modes::default(), model: Model::default(), size }
    }

    /// Observes output, in pieces of any size.
    pub(crate) fn watch(&mut self, written: &[u8]) {
        let modes = &mut self.modes;
        self.scanner.scan(written, |token| modes.apply(&token));
        self.model.take(written, modes.is_alternate(), self.size);
    }

    /// Whether the output ended between sequences and characters, where a question does not disturb it.
    pub(crate) fn is_between_sequences(&self) -> bool {
        self.scanner.unfinished().is_empty()
    }

    /// How much of the next output completes the unfinished sequence or character; all of it if nothing does.
    pub(crate) fn length_to_finish(&self, next: &[u8]) -> usize {
        self.scanner.length_to_finish(next)
    }

    /// The terminal was resized.
    pub(crate) fn resize(&mut self, size: Size) {
        if size != self.size {
            self.model.resize(self.size, size);
            self.size = size;
        }
    }

    /// What to write before and after a question that takes the whole terminal.
    pub(crate) fn surroundings(&mut self) -> Surroundings {
        let modes = &self.modes;
        let mut around = Surroundings::default();
        Modes::interrupt(&mut around.before);
        // The cursor is saved before margins are reset, which moves it home.
        if !modes.is_alternate() {
            around.before.extend_from_slice(ENTER);
        }
        modes.reset_for_question(&mut around.before);
        let drawn = self.model.drawn(self.size);
        if !modes.is_alternate() {
            let free_rows = drawn.as_ref().map_or(0, Drawn::free_rows);
            around.behind = Behind::MovesUp { free_rows };
        }
        around.again.extend_from_slice(RESET);
        around.again.extend_from_slice(CLEAR);
        if let Some(drawn) = &drawn {
            around.again.extend_from_slice(&drawn.contents());
        }
        around.before.extend_from_slice(&around.again);

        around.after.extend_from_slice(RESET);
        match drawn.filter(|_| modes.is_alternate()) {
            Some(drawn) => {
                around.after.extend_from_slice(CLEAR);
                around.after.extend_from_slice(&drawn.contents());
                modes.restore_modes(&mut around.after);
                let first = modes.origin().map_or(0, |first| first - 1);
                around.after.extend_from_slice(&drawn.cursor(first));
            }
            None if modes.is_alternate() => {
                around.after.extend_from_slice(CLEAR);
                modes.restore_modes(&mut around.after);
            }
            None => {
                modes.restore_modes(&mut around.after);
                around.after.extend_from_slice(LEAVE);
            }
        }
        modes.restore_pen(&mut around.after);
        // What the question interrupted starts again, and continues with the next output. A string longer than any
        // terminal needs loses its middle; the rest of it is still not taken for text.
        around.after.extend_from_slice(self.scanner.unfinished());
        around
    }
}

#[cfg(test)]
pub(crate) use scan::tests::WHOLE as WHOLE_SEQUENCES;

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
