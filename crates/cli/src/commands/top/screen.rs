//! The full screen: one loop over keys and the clock. The terminal is put back on every way out.

use super::Wanted;
use super::board::Board;
use super::draw::{self, Shown};
use crate::output;
use anyhow::Context;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A resized window is drawn anew after this at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) fn show(mut board: Board, interval: Duration) -> anyhow::Result<ExitCode> {
    // Before the screen is taken: what is wrong from the start is said where it stays.
    board.refresh()?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    let shown = run(&mut board, interval, &mut terminal);
    ratatui::try_restore().context("cannot restore the terminal")?;
    if let Some(session) = shown? {
        output::print(&format!("run {session} has ended\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Until it is left, or until the one run that was asked for is over: then this is its name.
fn run(
    board: &mut Board,
    interval: Duration,
    terminal: &mut DefaultTerminal,
) -> anyhow::Result<Option<String>> {
    let coloured = output::colour_wanted();
    let mut shown = Shown::new(&board.wanted);
    let mut next_look = Instant::now() + interval.min(LOOK_AGAIN);
    loop {
        if let (Wanted::One(session), []) = (&board.wanted, board.rows()) {
            return Ok(Some(session.clone()));
        }
        shown.settle(board.rows());
        terminal.draw(|frame| draw::draw(frame, board.rows(), &shown, coloured))?;
        if is_terminal_gone_after(next_look.saturating_duration_since(Instant::now()))? {
            return Ok(None);
        }
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && press(&mut shown, key) == Pressed::Quit
            {
                return Ok(None);
            }
        }
        if Instant::now() >= next_look {
            board.refresh()?;
            next_look = Instant::now() + interval;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    Quit,
    GoOn,
}

fn press(shown: &mut Shown, key: KeyEvent) -> Pressed {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            return Pressed::Quit;
        }
        KeyCode::Char('q') => return Pressed::Quit,
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if !shown.leave_details() => {
            return if key.code == KeyCode::Esc { Pressed::Quit } else { Pressed::GoOn };
        }
        KeyCode::Up | KeyCode::Char('k') => shown.up(),
        KeyCode::Down | KeyCode::Char('j') => shown.down(),
        KeyCode::Enter | KeyCode::Right => shown.enter_details(),
        _ => {}
    }
    Pressed::GoOn
}

/// Waits for a key, at most this long.
fn is_terminal_gone_after(patience: Duration) -> Result<bool, rustix::io::Errno> {
    let stdin = io::stdin();
    let mut polled = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let patience = Timespec::try_from(patience.min(LOOK_AGAIN)).ok();
    match rustix::event::poll(&mut polled, patience.as_ref()) {
        Ok(_) => Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
