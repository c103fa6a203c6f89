//! The full-screen list: one loop over keys, sessions and the clock.
//!
//! The terminal is put back on every way out.

use super::board::{Action, Board, Row};
use super::draw::{self, Moment, Theme};
use super::notice::Notices;
use super::{PATIENCE, address, once};
use crate::output;
use anyhow::Context;
use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind};
use crossterm::execute;
use jiff::Timestamp;
use palisade_ask::Store;
use palisade_ask::sessions::{Change, Sessions};
use palisade_session::Ending;
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// New sessions, a resized window and the seconds that are left are seen after this at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(crate) fn show(sessions: &mut Sessions, notices: Option<Notices>) -> anyhow::Result<ExitCode> {
    // Before the screen is taken: what is wrong from the start is said where it stays.
    sessions.attend()?;
    let known = sessions.refresh_fully(PATIENCE)?;
    let ending = Ending::take()?;
    let mut terminal = ratatui::try_init().context("the terminal can not be used")?;
    // A pasted text is no answer, whatever letters it has. A terminal without it goes without.
    let _ = execute!(io::stdout(), EnableBracketedPaste);
    let shown = Screen::new(sessions, notices, ending).run(&mut terminal, &known);
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    let restored = ratatui::try_restore().context("the terminal can not be put back");
    let code = shown?;
    // Who was told to end may have lost its terminal as well.
    if code == ExitCode::SUCCESS {
        restored?;
    }
    Ok(code)
}

struct Screen<'a> {
    sessions: &'a mut Sessions,
    board: Board,
    notices: Option<Notices>,
    ending: Ending,
    theme: Theme,
}

impl<'a> Screen<'a> {
    fn new(sessions: &'a mut Sessions, notices: Option<Notices>, ending: Ending) -> Self {
        let theme = Theme { coloured: output::colour_wanted() };
        Self { sessions, board: Board::new(Instant::now()), notices, ending, theme }
    }

    fn run(
        &mut self,
        terminal: &mut DefaultTerminal,
        known: &[Change],
    ) -> anyhow::Result<ExitCode> {
        self.hear(known);
        loop {
            let now = Moment { monotonic: Instant::now(), wall: Timestamp::now() };
            terminal.draw(|frame| draw::draw(frame, &mut self.board, self.theme, now))?;
            let is_terminal_gone = self.wait()?;
            if let Some(code) = self.ending.wanted()? {
                return Ok(ExitCode::from(code));
            }
            if is_terminal_gone || self.sessions.is_over() {
                return Ok(ExitCode::SUCCESS);
            }
            while event::poll(Duration::ZERO)? {
                if self.take(&event::read()?) == Action::Quit {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            let changes = self.sessions.refresh()?;
            self.notify(&changes);
            self.hear(&changes);
        }
    }

    /// Until something happens. True if the terminal is gone.
    fn wait(&self) -> Result<bool, rustix::io::Errno> {
        let stdin = io::stdin();
        let keys = PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN);
        let ending = PollFd::new(&self.ending, PollFlags::IN);
        let mut polled: Vec<PollFd<'_>> = [keys, ending]
            .into_iter()
            .chain(
                self.sessions
                    .descriptors()
                    .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)),
            )
            .collect();
        match rustix::event::poll(&mut polled, Timespec::try_from(LOOK_AGAIN).ok().as_ref()) {
            Ok(_) => Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn take(&mut self, event: &Event) -> Action {
        let Event::Key(key) = event else { return Action::Nothing };
        if key.kind == KeyEventKind::Release {
            return Action::Nothing;
        }
        let now = Instant::now();
        let action = self.board.press(*key, now);
        if let Action::Answer { session, id, answer } = &action
            && let Err(error) = self.sessions.answer(session, *id, *answer)
        {
            self.board.say(error.to_string(), now);
            self.board.take_back(session);
        }
        if let Action::AnswerAll { questions, answer } = &action {
            for (session, id) in questions {
                if let Err(error) = self.sessions.answer(session, *id, *answer) {
                    self.board.say(error.to_string(), now);
                    self.board.take_back(session);
                }
            }
        }
        if let Action::Save { session, store } = &action {
            self.save(session.as_deref(), *store, now);
        }
        action
    }

    fn save(&mut self, session: Option<&str>, store: Store, now: Instant) {
        let only = {
            let mut names = self.sessions.iter().map(|(name, _)| name);
            names.next().filter(|_| names.next().is_none())
        };
        let Some(session) = session.or(only).map(str::to_owned) else {
            let several = "several sessions are open: wait for a question of the one to save";
            return self.board.say(several.to_owned(), now);
        };
        if let Err(error) = self.sessions.save(&session, store) {
            self.board.say(error.to_string(), now);
        }
    }

    fn hear(&mut self, changes: &[Change]) {
        let now = Instant::now();
        for change in changes {
            match change {
                Change::Answered { audit, .. } => self.board.say(once::told(audit), now),
                Change::Refused { session, refused } => {
                    self.board.say(refused.message.clone(), now);
                    self.board.take_back(session);
                }
                Change::Trouble { session, error } => {
                    self.board.say(format!("session {session}: {error}"), now);
                }
                Change::Withdrawn { id, .. } => {
                    self.board.say(format!("question {id}: nobody waits for it any more"), now);
                }
                Change::Done { command, .. } if command == "cmd.policy.save" => {
                    self.board.say("the session's answers are saved".to_owned(), now);
                }
                Change::Appeared { .. }
                | Change::Vanished { .. }
                | Change::Asked { .. }
                | Change::Done { .. } => {}
            }
        }
        self.board.update(rows(self.sessions), self.sessions.iter().count(), now);
    }

    fn notify(&mut self, changes: &[Change]) {
        let Some(notices) = &mut self.notices else { return };
        for change in changes {
            if matches!(change, Change::Asked { is_new: true, .. }) {
                notices.arrived();
            }
        }
        let open = self.sessions.iter().flat_map(|(_, session)| session.open());
        notices.tell(open.max_by_key(|question| question.asked_at), Instant::now());
    }
}

fn rows(sessions: &Sessions) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, session) in sessions.iter() {
        for question in session.open() {
            let names = sessions.iter().map(|(name, _)| name);
            rows.push(Row {
                address: address::shown(names, name, question.id),
                command: session.command().to_owned(),
                project: session.project().to_owned(),
                question: question.clone(),
            });
        }
    }
    rows
}
